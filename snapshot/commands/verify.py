"""``goldens verify``: runs a candidate and holds it to the goldens. Writes nothing there."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from snapshot.commands.kernels_verify import verify_kernels
from snapshot.config import Config, Suite
from snapshot.errors import RunError, UsageError
from snapshot.model import REFERENCE, Fingerprint
from snapshot.plan import Plan, kernel_plans, kernels_without_batch, narrow, plans
from snapshot.policy import Strictness, allowed, strictness
from snapshot.resolve import Baseline, Shape, against, named_environment, resolve
from snapshot.runners.engines.file import SUBJECT, read_outputs
from snapshot.runners.observe import Progress, Rows, observe, silent
from snapshot.runners.worker import Worker
from snapshot.shelf import Shelf
from snapshot.store import Store
from snapshot.verdict import Evidence, judge
from snapshot.verification import Held, Verification, expiry


@dataclass(frozen=True)
class Request:
    """What the command line asks for; see `goldens verify --help`."""

    selectors: Sequence[str] = ()
    batch_size: int | None = None
    dtype: str | None = None
    outputs: Path | None = None
    environment: str | None = None
    against: str | None = None
    day: datetime.date = field(default_factory=datetime.date.today)
    progress: Progress = silent


def verify(config: Config, request: Request) -> Verification:
    """Runs the selected cases and judges them.

    Raises:
        UsageError: nothing is selected, or the request contradicts itself.
        RunError: the reference cannot be run at all.
    """
    _consistent(request)
    store = Store(config.store)
    chosen = plans(config, request.selectors)
    kernels = kernels_without_batch(
        kernel_plans(config, request.selectors), chosen, request.batch_size
    )
    suites = [plan.suite.name for plan in chosen] + [plan.suite.name for plan in kernels]
    damage = store.check(suites)
    if request.outputs is not None and len(chosen) != 1:
        raise UsageError(
            "recorded outputs are of one suite",
            where="--from",
            expected=f"one of {', '.join(config.suites) or 'none is configured'}",
            got=" ".join(request.selectors) or "no selector",
        )
    run = _reference if request.outputs is None else _outputs
    held = [held for plan in chosen for held in run(config, store, plan, request)]
    for kernel_plan in kernels if request.outputs is None else ():
        held += verify_kernels(
            config,
            store,
            kernel_plan,
            dtype=request.dtype,
            against_slug=request.against,
            day=request.day,
            progress=request.progress,
        )
    return Verification(tuple(held), tuple(damage))


def _consistent(request: Request) -> None:
    if request.environment is None:
        return
    if request.outputs is None:
        what, got = "--environment says where recorded outputs were made", "no --from"
    elif request.against is not None:
        what, got = "two environments to be held to", "--environment and --against"
    else:
        return
    expected = "--from FILE --environment NAME, or --against SLUG"
    raise UsageError(what, where="the command line", expected=expected, got=got)


def _reference(config: Config, store: Store, plan: Plan, request: Request) -> Iterator[Held]:
    """Runs the reference here, at every batch size and dtype that is asked for."""
    suite = plan.suite
    named = None if request.against is None else against(store, suite.name, request.against)
    for dtype, sizes in _shapes(suite, request, named):
        with Worker(suite, dtype) as worker:
            for size in sizes:
                here = worker.fingerprint.at(size)
                baseline = named or resolve(config, store, suite.name, here)
                rules = _rules(plan, REFERENCE, here, request.day)
                groups = plan.groups(size)
                label = f"verify {suite.name} {dtype} batch {size}"
                with request.progress(label, sum(len(group.rows) for group in groups)) as advance:
                    rows = observe(worker, groups, advance)
                shelf = Shelf(store, suite.name, baseline.slug, plan.cases)
                yield _hold(plan, REFERENCE, here, baseline, shelf, rules, rows)


def _outputs(config: Config, store: Store, plan: Plan, request: Request) -> Iterator[Held]:
    """Holds recorded outputs to the environment that the request names."""
    suite, path = plan.suite, request.outputs
    assert path is not None
    if request.against is not None:
        baseline = against(store, suite.name, request.against)
    elif request.environment is not None:
        shape = Shape(request.dtype, request.batch_size)
        baseline = named_environment(config, store, suite.name, request.environment, shape)
    else:
        recorded = store.fingerprints(suite.name)
        raise UsageError(
            "recorded outputs do not say where they were made",
            where="--from",
            expected="--against SLUG or --environment NAME",
            got="neither",
            hint=f"--against one of {', '.join(recorded)}" if recorded else "goldens record",
        )
    rows: Rows = dict(read_outputs(path, [case.key for case in plan.cases]))
    for key in plan.chosen - rows.keys():
        rows[key] = RunError("no output for this case", where=str(path))
    shelf = Shelf(store, suite.name, baseline.slug, plan.cases)
    # Only an environment's own goldens tell where the outputs were made: an inherited one's
    # `when` conditions, or those of a slug to compare with, are another environment's.
    there = shelf.recorded.fingerprint if baseline.exact and shelf.recorded else None
    rules = _rules(plan, SUBJECT, there, request.day)
    yield _hold(plan, SUBJECT, None, baseline, shelf, rules, rows)


def _shapes(
    suite: Suite, request: Request, named: Baseline | None
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The dtypes to run, each with its batch sizes; a named golden brings its own."""
    dtypes, sizes = suite.dtypes, suite.batch_sizes
    if named is not None and named.identity is not None:
        dtypes = narrow(suite, "dtype", dtypes, named.identity.dtype)
        if named.identity.batch_size in sizes and request.batch_size is None:
            sizes = (named.identity.batch_size,)
    for dtype in narrow(suite, "dtype", dtypes, request.dtype):
        yield dtype, narrow(suite, "batch_sizes", sizes, request.batch_size)


def _rules(
    plan: Plan, subject: str, environment: Fingerprint | None, day: datetime.date
) -> dict[str, Strictness]:
    """What applies to each selected case; known before anything is run."""
    policy = plan.suite.policy
    return {
        case.key: strictness(
            policy, case=case.key, subject=subject, environment=environment, day=day
        )
        for case in plan.cases
        if case.key in plan.chosen
    }


def _hold(
    plan: Plan,
    subject: str,
    here: Fingerprint | None,
    baseline: Baseline,
    shelf: Shelf,
    rules: Mapping[str, Strictness],
    rows: Rows,
) -> Held:
    """Judges every selected case of one run."""
    suite = plan.suite.name
    looked_for = baseline.how
    if baseline.slug is not None:
        looked_for = f"{baseline.slug} has none of this case"
    results = [
        judge(
            Evidence(
                suite=suite,
                case=case.key,
                adapter=case.adapter,
                subject=subject,
                here=here,
                candidate=rows[case.key],
                golden=shelf.golden(case.key),
                recorded=shelf.recorded,
                looked_for=looked_for,
                siblings=shelf.siblings(case),
                variants=shelf.variants(case.key),
                strictness=rules[case.key],
                allowed=allowed(plan.suite.policy.allow, case.key),
            )
        )
        for case in plan.cases
        if case.key in plan.chosen
    ]
    expired = dict.fromkeys(expiry(rule) for strict in rules.values() for rule in strict.expired)
    return Held(
        suite=suite,
        subject=subject,
        slug=None if here is None else here.slug,
        baseline=baseline,
        results=tuple(results),
        expired=tuple(expired),
    )
