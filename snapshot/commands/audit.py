"""``goldens audit``: mutation testing of the tolerances.

Injects known faults into the reference, judges what it then gives exactly as ``verify`` would,
and says which faults the tolerances would have let through.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

from snapshot.commands.generation_audit import Auditor
from snapshot.commands.kernels_audit import audit_kernels
from snapshot.commands.status import relaxations
from snapshot.config import Config
from snapshot.detection import Detection
from snapshot.history import recall
from snapshot.kernel_detection import KernelDetection
from snapshot.ledger import Entry
from snapshot.outcomes.audit import Audit
from snapshot.plan import KernelPlan, Plan, both_kinds, narrow
from snapshot.progress import Progress, silent
from snapshot.resolve import against
from snapshot.runners.rerun import Rerun
from snapshot.store import Store
from snapshot.verification import expiry


def audit(
    config: Config,
    selectors: Sequence[str] = (),
    *,
    batch_size: int | None = None,
    dtype: str | None = None,
    slug: str | None = None,
    day: datetime.date | None = None,
    progress: Progress = silent,
) -> Audit:
    """Injects every fault into the selected cases.

    Args:
        batch_size: where the faulty generations run; default: the suite's largest, which is
            fastest. Kernels have none, and are left out where one is asked for.
        slug: the recorded fingerprint that generations are held to; default: their own. A
            kernel is held to the oracle, wherever it was recorded.
        day: on which expiry is judged.

    Raises:
        UsageError: nothing is selected, or there is no such fingerprint.
        RunError: the reference cannot be run, or has no goldens to be held to.
    """
    store, day, history = Store(config.store), day or datetime.date.today(), recall(config)
    generation, kernels = both_kinds(config, selectors, batch_size=batch_size)
    if slug is not None:
        there = [p for p in generation if slug in store.fingerprints(p.suite.name)]
        for plan in generation if not there else ():
            against(store, plan.suite.name, slug)  # says what was recorded
        generation, kernels = there, []
    selected: list[Plan | KernelPlan] = [*generation, *kernels]
    for damage in store.check([plan.suite.name for plan in selected]):
        raise damage
    ledger = {p.suite.name: relaxations(config, store, p, history, day) for p in selected}
    return Audit(
        detections=tuple(
            detection
            for plan in generation
            for detection in _detections(
                config, store, plan, batch_size, dtype, slug, day, progress
            )
        ),
        kernels=tuple(
            KernelDetection(
                plan.suite.name,
                tuple(audit_kernels(plan.suite, plan.chosen, day=day, progress=progress)),
            )
            for plan in kernels
        ),
        expired=tuple(
            expiry(entry.rule)
            for entries in ledger.values()
            for entry in entries
            if entry.rule is not None and entry.rule.expired(day)
        ),
        advice=tuple(
            f"{_where(name, entry)}: {text}"
            for name, entries in ledger.items()
            for entry in entries
            for text in entry.advice
        ),
    )


def _detections(
    config: Config,
    store: Store,
    plan: Plan,
    batch_size: int | None,
    dtype: str | None,
    slug: str | None,
    day: datetime.date,
    progress: Progress,
) -> Iterator[Detection]:
    """One a dtype of the suite."""
    suite, dtypes = plan.suite, plan.suite.dtypes
    size = max(narrow(suite, "batch_sizes", suite.batch_sizes, batch_size))
    named = None if slug is None else against(store, suite.name, slug)
    if named is not None and named.identity is not None:
        dtypes = narrow(suite, "dtype", dtypes, named.identity.dtype)
        if batch_size is None:
            size = named.identity.batch_size or size
    for name in narrow(suite, "dtype", dtypes, dtype):
        with Rerun(plan, progress) as rerun:
            yield Auditor(config, store, plan, rerun, name, size, day, progress).detection(named)


def _where(suite: str, entry: Entry) -> str:
    return f"suites.{suite}.tolerance" if entry.rule is None else entry.rule.where
