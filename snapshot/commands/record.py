"""``goldens record``: runs the reference and keeps what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from snapshot.admission import refusals, refused
from snapshot.calibrate import calibration
from snapshot.commands.kernels_record import record_kernels
from snapshot.config import Config
from snapshot.model import REFERENCE, Observation
from snapshot.plan import Plan, both_kinds, narrow
from snapshot.progress import Progress, silent
from snapshot.recording import Recorded, target, write_goldens
from snapshot.runners.observe import complete, observe
from snapshot.runners.worker import Worker
from snapshot.store import Store
from snapshot.suite import Group

_Run = Mapping[str, Observation]
_VERSIONS = ("torch", "transformers", "peft")


def record(
    config: Config,
    selectors: Sequence[str] = (),
    *,
    batch_size: int | None = None,
    dtype: str | None = None,
    candidate: str | None = None,
    new_only: bool = False,
    repeat: int = 2,
    pending: Path | None = None,
    update_in_ci: bool = False,
    progress: Progress = silent,
) -> list[Recorded]:
    """Records the selected cases at the suite's batch sizes and dtypes.

    Nothing is written for a generation suite and dtype unless all of it may be. Kernels' cases
    stand alone: what may be is written, what may not is refused.

    Args:
        candidate: only this one of the kernel suites' candidates.
        new_only: leave every golden that exists as it is.
        repeat: runs of every batch; each one after the first in a fresh process.
        pending: write there instead of into the store.
        update_in_ci: write into the store although this is a CI job.

    Raises:
        UsageError: nothing is selected, or this is a CI job.
        RecordRefused: naming the rows that must not become goldens.
        RunError: a batch could not be run.
        StoreError: an existing golden is damaged; it is not overwritten.
    """
    goldens, written = Store(config.store), target(config.store, pending, update_in_ci=update_in_ci)
    done: list[Recorded] = []
    generation, kernels = both_kinds(config, selectors, batch_size=batch_size, candidate=candidate)
    for plan in generation:
        suite = plan.suite

        def wanted(slug: str, plan: Plan = plan) -> frozenset[str]:
            if not new_only:
                return plan.chosen
            return plan.chosen - set(goldens.cases(plan.suite.name, slug, REFERENCE))

        sizes = narrow(suite, "batch_sizes", suite.batch_sizes, batch_size)
        for name in narrow(suite, "dtype", suite.dtypes, dtype):
            done += _record(written, plan, name, sizes, repeat, wanted, progress)
    for kernel_plan in kernels:
        done += record_kernels(
            config,
            written,
            kernel_plan,
            dtype=dtype,
            new_only=new_only,
            repeat=repeat,
            progress=progress,
        )
    return done


def _record(
    store: Store,
    plan: Plan,
    dtype: str,
    sizes: Sequence[int],
    repeat: int,
    wanted: Callable[[str], frozenset[str]],
    progress: Progress,
) -> list[Recorded]:
    label = f"record {plan.suite.name} {dtype}"
    for damage in store.check([plan.suite.name]):
        raise damage  # before hours of work that could not be kept
    with Worker(plan.suite, dtype) as worker:
        here = [worker.fingerprint.at(size) for size in sizes]
        keys = [wanted(environment.slug) for environment in here]
        runs = [
            plan.groups(size, plan.with_base_rows(chosen))
            for size, chosen in zip(sizes, keys, strict=True)
        ]
        orders = [
            [group.reversed() for group in run] if size > 1 else []
            for run, size in zip(runs, sizes, strict=True)
        ]
        with progress(label, _rows([*runs, *orders])) as advance:
            first = [complete(observe(worker, run, advance)) for run in runs]
            ordered = [complete(observe(worker, run, advance)) for run in orders]
    repeats = []
    for number in range(2, repeat + 1):
        with (
            Worker(plan.suite, dtype) as worker,
            progress(f"{label}, run {number}, in a fresh process", _rows(runs)) as advance,
        ):
            # Backwards: a row that depends on the batch before it does not repeat.
            repeats.append([complete(observe(worker, run[::-1], advance)) for run in runs])
    # In float32 no row may depend on its neighbours. Half precision may: that is rounding.
    _admit(plan, sizes, first, repeats, ordered if dtype == "float32" else [{}] * len(sizes))
    done = []
    for i, environment in enumerate(here):
        noise = calibration(
            plan.cases,
            first[i],
            repeats=[run[i] for run in repeats],
            orders=[ordered[i]] if ordered[i] else [],
            batch_sizes=[run for j, run in enumerate(first) if j != i],
        )
        rows = [first[i][case.key] for case in plan.cases if case.key in keys[i]]
        done.append(
            write_goldens(
                store,
                plan.suite.name,
                REFERENCE,
                environment,
                rows,
                noise,
                whole=plan.whole,
                versions=_VERSIONS,
            )
        )
    return done


def _rows(runs: Sequence[Sequence[Group]]) -> int:
    return sum(len(group.rows) for run in runs for group in run)


def _admit(
    plan: Plan,
    sizes: Sequence[int],
    first: Sequence[_Run],
    repeats: Sequence[Sequence[_Run]],
    ordered: Sequence[_Run],
) -> None:
    """Raises `RecordRefused` where any row must not become a golden."""
    found = [
        replace(finding, where=f"{finding.where} at batch size {size}")
        for i, size in enumerate(sizes)
        for finding in refusals(
            [case for case in plan.cases if case.key in first[i]],
            first[i],
            repeats=[run[i] for run in repeats],
            reordered=ordered[i] or None,
            allow=plan.suite.policy.allow,
        )
    ]
    if found:
        raise refused(plan.suite.name, found)
