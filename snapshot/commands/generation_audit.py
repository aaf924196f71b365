"""The generation half of ``goldens audit``: faults injected into the reference, and judged."""

from __future__ import annotations

import dataclasses
import datetime
from collections import Counter
from collections.abc import Iterator, Mapping

from snapshot.admission import same_arrays
from snapshot.calibrate import power
from snapshot.config import Config
from snapshot.detection import ASKED, ENGINE, METRIC, OTHER, OWN, Cell, Detection
from snapshot.errors import GoldensError, RunError
from snapshot.evidence import Evidence, Now
from snapshot.inquiry import of_engine, of_reference
from snapshot.metrics.text import NotScorable, rouge_l
from snapshot.model import REFERENCE, Fingerprint, Observation
from snapshot.plan import Plan
from snapshot.progress import Progress
from snapshot.resolve import Baseline, resolve
from snapshot.result import Result, Verdict
from snapshot.runners.faults import FAULTS, Fault
from snapshot.runners.observe import Rows, complete, observe
from snapshot.runners.rerun import Rerun
from snapshot.store import Store
from snapshot.verdict import judge
from snapshot.verification import Run

ENGINE_SUBJECT = "engine"

_Observed = Mapping[str, Observation]
_SETTLED = frozenset({Verdict.MATCH, Verdict.VARIANT})


class Auditor:
    """Faults of one suite at one dtype and batch size."""

    def __init__(
        self,
        config: Config,
        store: Store,
        plan: Plan,
        rerun: Rerun,
        dtype: str,
        size: int,
        day: datetime.date,
        progress: Progress,
    ) -> None:
        self._config, self._store, self._plan, self._rerun = config, store, plan, rerun
        self._dtype, self._size, self._day, self._progress = dtype, size, day, progress
        self._here: Fingerprint = rerun.worker(dtype).fingerprint.at(size)

    def detection(self, named: Baseline | None) -> Detection:
        """Every fault in every scenario.

        Args:
            named: the goldens to hold the faulty runs to; None: this environment's own, and those
                of another of its batch sizes.

        Raises:
            RunError: there are no goldens, or the reference cannot be run without a fault.
        """
        own = named or resolve(self._config, self._store, self._plan.suite.name, self._here)
        if own.slug is None:
            raise RunError(
                "no goldens to hold the faulty runs to",
                where=self._here.slug,
                got=own.full,
                hint=f"goldens record {self._plan.suite.name}",
            )
        clean = complete(self._run(None))
        scenarios = {OWN: own}
        other = self._other() if named is None else None
        if other is not None:
            scenarios |= dict.fromkeys((OTHER, ENGINE, ASKED), other)
        cells: list[Cell] = []
        unreached: dict[str, str] = {}
        for fault in FAULTS.values():
            reached = self._reached(fault, clean)
            if isinstance(reached, str):
                unreached[fault.name] = reached
                continue
            for scenario, baseline in scenarios.items():
                cells += self._cells(scenario, baseline, fault, clean, reached)
        ends = {
            scenario: Counter(r.verdict for r in self._judged(scenario, baseline, clean, clean))
            for scenario, baseline in scenarios.items()
        }
        recorded = self._store.read_fingerprint(self._plan.suite.name, own.slug)
        return Detection(
            suite=self._plan.suite.name,
            slug=self._here.slug,
            golden_slug=own.slug,
            cells=tuple(cells),
            unreached=unreached,
            clean=ends,
            power=power(recorded.calibration),
        )

    def _other(self) -> Baseline | None:
        """The goldens of this environment at the first other batch size that has some."""
        for size in self._plan.suite.batch_sizes:
            if size != self._size:
                suite = self._plan.suite.name
                found = resolve(self._config, self._store, suite, self._here.at(size))
                if found.exact:
                    return found
        return None

    def _reached(self, fault: Fault, clean: _Observed) -> dict[str, Observation] | str:
        """The rows that the fault changes; or why there are none."""
        adapters = len(self._plan.suite.adapters)
        if adapters < fault.adapters:
            return f"it needs {fault.adapters} adapter(s), the suite has {adapters}"
        rows = self._run(fault.name)
        errors = [row for row in rows.values() if isinstance(row, GoldensError)]
        if errors:
            return f"it could not be injected: {errors[0].what}"
        faulty = complete(rows)
        reached = {key: row for key, row in faulty.items() if not same_arrays(row, clean[key])}
        return reached or "it changes no bit of any selected case"

    def _run(self, fault: str | None) -> Rows:
        groups = self._plan.groups(self._size)
        what = f"audit {self._plan.suite.name} {self._dtype} batch {self._size}"
        label = f"{what}, {fault or 'no fault'}"
        with self._progress(label, sum(len(group.rows) for group in groups)) as advance:
            worker = self._rerun.worker(self._dtype)
            return observe(worker, groups, advance, fault=fault)

    def _cells(
        self,
        scenario: str,
        baseline: Baseline,
        fault: Fault,
        clean: _Observed,
        reached: _Observed,
    ) -> Iterator[Cell]:
        rows = {**clean, **reached}
        for result in self._judged(scenario, baseline, clean, rows):
            if result.case in reached:
                yield Cell(
                    scenario=scenario,
                    fault=fault.name,
                    case=result.case,
                    verdict=result.verdict,
                    distance=result.distance,
                    score=_score(result),
                    relaxed=result.relaxed,
                )

    def _judged(
        self, scenario: str, baseline: Baseline, clean: _Observed, rows: _Observed
    ) -> tuple[Result, ...]:
        """Runs with or without a fault, judged as `verify` would."""
        if scenario in (ENGINE, ASKED):
            rows = {key: _as_engine(row) for key, row in rows.items()}
            run = Run(self._plan, ENGINE_SUBJECT, None, baseline, self._store, self._day)
        else:
            run = Run(self._plan, REFERENCE, self._here, baseline, self._store, self._day)
        evidences = run.evidences(rows)
        return run.held(evidences, self._now(scenario, baseline, evidences, clean)).results

    def _now(
        self,
        scenario: str,
        baseline: Baseline,
        evidences: Mapping[str, Evidence],
        clean: _Observed,
    ) -> Mapping[str, Now]:
        """What the reference is known to give here: without the fault."""
        if scenario == ENGINE:
            return {}
        if scenario == ASKED:
            size = baseline.identity.batch_size if baseline.identity is not None else None
            assert size is not None
            return of_engine(self._rerun, self._plan, evidences, evidences, self._dtype, size)
        same = {k for k, e in evidences.items() if e.candidate is clean[k]}
        differ = [k for k in same if judge(evidences[k]).verdict not in _SETTLED]
        asked = of_reference(self._rerun, evidences, differ, self._dtype, self._size)
        there = baseline.identity is not None and baseline.identity.batch_size == self._size
        faulty = {
            key: Now(golden_batch=clean[key] if there else None, candidate_batch=clean[key])
            for key in evidences
            if key not in same
        }
        return {**asked, **faulty}


def _as_engine(row: Observation) -> Observation:
    """The row as an engine would give it: it knows neither weights nor batches."""
    return dataclasses.replace(row, workload=None, composition=None)


def _score(result: Result) -> float:
    """ROUGE-L of the two texts; 0.0 where they differ in a way that no score sees."""
    golden, candidate = result.golden_text, result.candidate_text
    if golden is None or candidate is None or golden == candidate:
        return 1.0
    try:
        return rouge_l(METRIC, golden, candidate)
    except NotScorable:
        return 0.0
