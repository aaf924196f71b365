"""``goldens record`` for generation suites: the reference's answers, and how much is noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from snapshot.admission import refusals, refused
from snapshot.calibrate import calibration
from snapshot.model import REFERENCE, Observation
from snapshot.plan import Plan
from snapshot.progress import Progress
from snapshot.recording import Recorded, Target, versions, write_goldens
from snapshot.runners.observe import complete, observe
from snapshot.runners.worker import Worker
from snapshot.suite import Group

_Run = Mapping[str, Observation]
_VERSIONS = ("torch", "transformers", "peft")


def record_generation(
    to: Target,
    plan: Plan,
    dtype: str,
    sizes: Sequence[int],
    wanted: Callable[[str], frozenset[str]],
    *,
    repeat: int,
    progress: Progress,
    said: Mapping[int, _Run] | None = None,
) -> list[Recorded]:
    """Runs the reference at these batch sizes and writes what is wanted of it.

    Every size runs what any of them wants: what the batch alone moves is measured between them.

    Args:
        wanted: by a fingerprint's slug: the cases to write there.
        repeat: runs of every batch; each one after the first in a fresh process.
        said: by batch size: what the reference gave for cases that are wanted when it ran here
            before. It is one more run, in another process, that must give the same.

    Raises:
        RecordRefused: naming the rows that must not become goldens; nothing was written.
        RunError: a batch could not be run.
        StoreError: an existing golden is damaged; it is not overwritten.
    """
    label = f"record {plan.suite.name} {dtype}"
    to.check(plan.suite.name)
    before = said or {}
    with Worker(plan.suite, dtype) as worker:
        here = [worker.fingerprint.at(size) for size in sizes]
        keys = [wanted(environment.slug) for environment in here]
        kept = [
            plan.groups(size, plan.with_base_rows(k)) for size, k in zip(sizes, keys, strict=True)
        ]
        every = plan.with_base_rows(frozenset().union(*keys))
        runs = [plan.groups(size, every) for size in sizes]
        orders = [
            [group.reversed() for group in run] if size > 1 else []
            for run, size in zip(kept, sizes, strict=True)
        ]
        # Backwards where a run went before: a row that depends on the batch before it does not
        # repeat.
        step = -1 if before else 1
        with progress(label, _rows([*runs, *orders])) as advance:
            first = [
                complete(observe(worker, run[::step], advance), _keys(needed))
                for run, needed in zip(runs, kept, strict=True)
            ]
            ordered = [complete(observe(worker, run, advance)) for run in orders]
    repeats: list[list[_Run]] = [[before.get(size, {}) for size in sizes]] if before else []
    for number in range(2, repeat + 1):
        with (
            Worker(plan.suite, dtype) as worker,
            progress(f"{label}, run {number}, in a fresh process", _rows(kept)) as advance,
        ):
            repeats.append([complete(observe(worker, run[::-1], advance)) for run in kept])
    found = [
        replace(finding, where=f"{finding.where} at batch size {size}")
        for i, size in enumerate(sizes)
        for finding in refusals(
            [case for case in plan.cases if case.key in _keys(kept[i])],
            first[i],
            repeats=[run[i] for run in repeats],
            # In float32 no row may depend on its neighbours. Half precision may: it rounds.
            reordered=ordered[i] if dtype == "float32" and ordered[i] else None,
            allow=plan.suite.policy.allow,
        )
    ]
    if found:
        raise refused(plan.suite.name, found)
    done = []
    for i, environment in enumerate(here):
        noise = calibration(
            plan.cases,
            first[i],
            repeats=[run[i] for run in repeats],
            orders=[ordered[i]] if ordered[i] else [],
            batch_sizes=[run for j, run in enumerate(first) if j != i],
        )
        done.append(
            write_goldens(
                to,
                plan.suite.name,
                REFERENCE,
                environment,
                [first[i][case.key] for case in plan.cases if case.key in keys[i]],
                noise,
                whole=len(keys[i]) == len(plan.cases),
                by=versions(environment, _VERSIONS),
            )
        )
    return done


def _rows(runs: Sequence[Sequence[Group]]) -> int:
    return sum(len(group.rows) for run in runs for group in run)


def _keys(run: Sequence[Group]) -> frozenset[str]:
    return frozenset(case.key for group in run for case in group.rows)
