"""``goldens verify``: runs a candidate and holds it to the goldens. Writes nothing there."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from snapshot.commands.engine import Scores, Where, verify_engine
from snapshot.commands.kernels_verify import verify_kernels
from snapshot.config import Config, Suite
from snapshot.engineconfig import chosen
from snapshot.errors import GoldensError, RunError, UsageError
from snapshot.evidence import Evidence, Now
from snapshot.inquiry import of_engine, of_reference
from snapshot.model import REFERENCE
from snapshot.plan import KernelPlan, Plan, both_kinds, narrow
from snapshot.progress import Progress, silent
from snapshot.recording import target
from snapshot.resolve import Baseline, Shape, against, named_environment, resolve
from snapshot.result import Verdict
from snapshot.runners.engines.file import SUBJECT, read_outputs
from snapshot.runners.observe import Rows, observe
from snapshot.runners.rerun import Rerun
from snapshot.store import Store
from snapshot.verdict import judge
from snapshot.verification import Held, Run, Verification

AUTO, ALWAYS, NEVER = ATTRIBUTE = ("auto", "always", "never")
"""When the reference is asked who moved: for cases that fail and where it runs, for all, never."""

_P = TypeVar("_P", Plan, KernelPlan)
_ASKED = frozenset({Verdict.DRIFT, Verdict.REGRESSION, Verdict.UNATTRIBUTED})


@dataclass(frozen=True)
class Request:
    """What the command line asks for; see `goldens verify --help`."""

    selectors: Sequence[str] = ()
    batch_size: int | None = None
    dtype: str | None = None
    outputs: Path | None = None
    environment: str | None = None
    against: str | None = None
    engine: str | None = None
    url: str | None = None
    attribute: str = AUTO
    day: datetime.date = field(default_factory=datetime.date.today)
    progress: Progress = silent
    candidate: str | None = None
    pending: Path | None = None


def verify(config: Config, request: Request) -> Verification:
    """Runs the selected cases and judges them.

    Raises:
        UsageError: nothing is selected, or the request contradicts itself.
        RunError: the reference cannot be run at all.
    """
    _consistent(request)
    store = Store(config.store)
    if request.pending is not None:
        target(config.store, request.pending)  # before hours of work, not after
    selected, kernels = both_kinds(
        config, request.selectors, batch_size=request.batch_size, candidate=request.candidate
    )
    if request.against is not None and not request.selectors:
        # Slugs differ between kinds and suites: those are meant that have this one.
        there = _having(store, selected, request.against), _having(store, kernels, request.against)
        selected, kernels = there if any(there) else (selected, kernels)
    suites = [plan.suite.name for plan in selected] + [plan.suite.name for plan in kernels]
    damage = store.check(suites)
    if request.outputs is not None and len(selected) != 1:
        raise UsageError(
            "recorded outputs are of one suite",
            where="--from",
            expected=f"one of {', '.join(config.suites) or 'none is configured'}",
            got=" ".join(request.selectors) or "no selector",
        )
    run = _reference if request.outputs is None else _outputs
    run = run if request.engine is None else _engine
    held = [held for plan in selected for held in run(config, store, plan, request)]
    for kernel_plan in kernels if request.outputs is None and request.engine is None else ():
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


def _having(store: Store, found: Sequence[_P], slug: str) -> list[_P]:
    """The plans of suites that were recorded in an environment."""
    return [plan for plan in found if slug in store.fingerprints(plan.suite.name)]


def _consistent(request: Request) -> None:
    own = request.outputs is None and request.engine is None
    expected = "--engine NAME or --from FILE, with --environment NAME or --against SLUG"
    if request.outputs is not None and request.engine is not None:
        what, got = "two candidates", "--engine and --from"
    elif request.url is not None and request.engine is None:
        what, got = "--url says where an engine is", "no --engine"
    elif request.environment is not None and own:
        what, got = "--environment says where recorded outputs were made", "no --from, no --engine"
    elif request.environment is not None and request.against is not None:
        what, got = "two environments to be held to", "--environment and --against"
    elif request.pending is not None and request.outputs is not None and request.attribute == NEVER:
        what, got = "--pending keeps what the reference says", "--from and --attribute never"
        expected = "--attribute auto or always"
    else:
        return
    raise UsageError(what, where="the command line", expected=expected, got=got)


def _reference(config: Config, store: Store, plan: Plan, request: Request) -> Iterator[Held]:
    """Runs the reference here, at every batch size and dtype that is asked for."""
    suite = plan.suite
    named = None if request.against is None else against(store, suite.name, request.against)
    with Rerun(plan, request.progress) as rerun:
        for dtype, sizes in _shapes(suite, request, named):
            worker = rerun.worker(dtype)
            for size in sizes:
                here = worker.fingerprint.at(size)
                baseline = named or resolve(config, store, suite.name, here)
                run = Run(plan, REFERENCE, here, baseline, store, request.day)
                run.check()
                groups = plan.groups(size)
                label = f"verify {suite.name} {dtype} batch {size}"
                with request.progress(label, sum(len(group.rows) for group in groups)) as advance:
                    rows = observe(worker, groups, advance)
                evidences = run.evidences(rows)
                keys = _asked(evidences, request.attribute)
                now = of_reference(rerun, evidences, keys, dtype, size) if keys else {}
                yield run.held(evidences, now)


def _outputs(config: Config, store: Store, plan: Plan, request: Request) -> Iterator[Held]:
    """Holds recorded outputs to the environment that the request names."""
    suite, path = plan.suite, request.outputs
    assert path is not None
    shape = Shape(request.dtype, request.batch_size)
    if request.against is not None:
        baseline = against(store, suite.name, request.against, shape)
    elif request.environment is not None:
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
    run = Run(plan, SUBJECT, None, baseline, store, request.day)
    evidences = run.evidences(rows)
    yield run.held(evidences, _ask_about_outputs(plan, evidences, baseline, request))


def _engine(config: Config, store: Store, plan: Plan, request: Request) -> Iterator[Held]:
    """Asks an engine, and holds it to the reference's goldens and to its own."""
    assert request.engine is not None
    shape = Shape(request.dtype, request.batch_size)
    return verify_engine(
        config,
        store,
        plan,
        chosen(config.engines, request.engine, request.url),
        Where(request.environment, request.against, shape),
        lambda evidences, baseline, scores: _ask_about_outputs(
            plan, evidences, baseline, request, scores
        ),
        request.day,
        request.progress,
    )


def _asked(evidences: Mapping[str, Evidence], attribute: str) -> list[str]:
    """The cases that the reference is asked about."""
    if attribute == NEVER:
        return []
    if attribute == ALWAYS:
        return list(evidences)
    return [key for key, e in evidences.items() if judge(e).verdict in _ASKED]


def _ask_about_outputs(
    plan: Plan,
    evidences: Mapping[str, Evidence],
    baseline: Baseline,
    request: Request,
    scores: Scores | None = None,
) -> Mapping[str, Now]:
    """What the reference says here, where here is where the outputs were made: unasked only if
    this machine has the fingerprint that they are held to, on request anywhere."""
    keys = _asked(evidences, request.attribute)
    identity = baseline.identity
    if not keys or identity is None:
        return {}
    with Rerun(plan, request.progress) as rerun:
        try:
            here = rerun.worker(identity.dtype).fingerprint
        except GoldensError:
            if request.attribute == ALWAYS:
                raise
            return {}
        size = identity.batch_size or 1
        here = here.at(size)
        if request.attribute == AUTO and here.identity != identity:
            return {}
        now = of_engine(rerun, plan, evidences, keys, identity.dtype, size, scores)
        return {key: replace(each, here=here) for key, each in now.items()}


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
