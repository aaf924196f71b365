"""``goldens record`` for kernel suites: every candidate's own bits, where they are right."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from snapshot.admission import UNSTABLE
from snapshot.config import Config
from snapshot.errors import GoldensError
from snapshot.kernel_model import OUT, Computed, KernelObservation, Moved, NotRun
from snapshot.kernel_policy import kernel_strictness
from snapshot.kernel_verdict import KernelEvidence, judge_alone
from snapshot.model import Fingerprint, Golden, Json
from snapshot.names import safe_name
from snapshot.payload import compare, trimmed
from snapshot.plan import KernelPlan
from snapshot.policy import allowed
from snapshot.progress import Progress
from snapshot.recording import Recorded, Target, versions, write_goldens
from snapshot.runners.kernel_worker import KernelWorker, Ran
from snapshot.store import Change, Store

_VERSIONS = ("torch", "triton")


def record_kernels(
    config: Config,
    to: Target,
    plan: KernelPlan,
    *,
    dtype: str | None,
    new_only: bool,
    repeat: int,
    progress: Progress,
) -> Iterator[Recorded]:
    """Records each candidate's results at each dtype; a case that is refused costs only itself.

    Args:
        to: where to write.
        repeat: runs of every case, each in a fresh process.

    Raises:
        UsageError: the suite has no such dtype.
        StoreError: an existing golden is damaged; it is not overwritten.
        RunError: a candidate cannot be run at all.
    """
    to.check(plan.suite.name)
    existing = to.goldens if new_only else None
    for candidate in plan.suite.candidates:
        runs = _Runs(config.blob_budget)
        label = f"record {plan.suite.name} {candidate}"
        for number in range(1, repeat + 1):
            with KernelWorker(plan.suite, candidate) as worker:
                if worker.problem is not None:
                    raise worker.problem
                here = [worker.at(name) for name in plan.dtypes(dtype)]
                keys = [_wanted(plan, candidate, environment, existing) for environment in here]
                every = [key for chosen in keys for key in chosen]
                again = f", run {number}, in a fresh process" if number > 1 else ""
                with progress(label + again, len(every)) as advance:
                    for key, ran in worker.observe(every, advance):
                        runs.add(key, ran)
        for environment, chosen in zip(here, keys, strict=True):
            yield _write(to, plan, candidate, environment, chosen, runs)


def _wanted(
    plan: KernelPlan, candidate: str, here: Fingerprint, existing: Store | None
) -> Sequence[str]:
    keys = plan.keys(here.identity.dtype)
    if existing is None:
        return keys
    recorded = existing.cases(plan.suite.name, here.slug, safe_name(candidate))
    return [key for key in keys if key not in recorded]


@dataclass
class _Runs:
    """What every case gave, run by run; only the first run's arrays are kept, within budget."""

    budget: int
    first: dict[str, Ran] = field(default_factory=dict)
    unstable: dict[str, Moved] = field(default_factory=dict)
    failed: dict[str, GoldensError] = field(default_factory=dict)

    def add(self, key: str, ran: Ran) -> None:
        known = self.first.get(key)
        if known is None:
            kept = ran if isinstance(ran, NotRun | GoldensError) else trimmed(ran, self.budget)
            self.first[key] = kept
        elif isinstance(ran, GoldensError):
            self.failed[key] = ran
        elif not isinstance(known, NotRun | GoldensError) and not isinstance(ran, NotRun):
            same = (known.output.out, known.output.lse) == (ran.output.out, ran.output.lse)
            if not same:
                golden: Golden[Computed] = Golden("", "", "", known)
                self.unstable[key] = compare(golden, ran.arrays[OUT])


def _write(
    to: Target,
    plan: KernelPlan,
    candidate: str,
    here: Fingerprint,
    keys: Sequence[str],
    runs: _Runs,
) -> Recorded:
    refused: dict[str, str] = {}
    not_run: dict[str, str] = {}
    rows: list[KernelObservation] = []
    for key in keys:
        ran = runs.failed.get(key) or runs.first[key]
        if isinstance(ran, NotRun):
            not_run[key] = ran.reason
            continue
        why, quarantined = _refusal(plan, candidate, here, key, ran, runs.unstable.get(key))
        if why is None and not isinstance(ran, GoldensError):
            rows.append(ran)
        elif quarantined:
            not_run[key] = f"quarantined: {why}"
        else:
            refused[key] = str(why)
    done = write_goldens(
        to,
        plan.suite.name,
        safe_name(candidate),
        here,
        rows,
        {},
        whole=plan.whole,
        by=versions(here, _VERSIONS),
    )
    calibration = _calibrated(to, done, runs.unstable)
    return replace(done, calibration=calibration, refused=refused, not_run=not_run)


def _refusal(
    plan: KernelPlan,
    candidate: str,
    here: Fingerprint,
    key: str,
    ran: KernelObservation | GoldensError,
    moved: Moved | None,
) -> tuple[str | None, bool]:
    """Why a result must not become a golden, None where it may; and whether that is known."""
    policy = plan.suite.policy
    accepted = allowed(policy.allow, key)
    strict = kernel_strictness(
        policy, case=key, subject=candidate, environment=here, day=datetime.date.today()
    )
    result = judge_alone(
        KernelEvidence(
            suite=plan.suite.name,
            case=key,
            subject=candidate,
            here=here,
            candidate=ran,
            strictness=strict,
            allowed=accepted,
        )
    )
    why = None
    if result is not None:
        why = f"{result.verdict.value}: {result.headline}"
    elif moved is not None and UNSTABLE not in accepted:
        why = (
            f"{UNSTABLE}: a fresh process gives other bits in {moved.rows} of {moved.of_rows} "
            f"rows, {moved.distance}"
        )
    return why, strict.quarantine is not None


def _calibrated(to: Target, done: Recorded, unstable: Mapping[str, Moved]) -> Mapping[str, Json]:
    """Notes beside the goldens how far repeats were apart, by case; gives all that stands there.

    Only for goldens that were written now: what is known of the others is kept, also where
    they lie in the store and these are pending.
    """
    written = {key for key, change in done.changes.items() if change is not Change.UNCHANGED}
    if not written:
        return done.calibration
    recorded = to.written.read_fingerprint(done.suite, done.slug)
    known = {**_unstable(to.goldens, done), **_unstable(to.written, done)}
    known = {key: noise for key, noise in known.items() if key not in written}
    known |= {
        key: {
            "rows": moved.rows,
            "of_rows": moved.of_rows,
            "sampled": moved.of_rows if moved.sampled is None else moved.sampled,
            "ulp_max": moved.ulp_max,
        }
        for key, moved in unstable.items()
        if key in written
    }
    calibration = {**recorded.calibration, done.subject: {"unstable": known}}
    to.written.write_fingerprint(replace(recorded, calibration=calibration))
    return calibration


def _unstable(store: Store, done: Recorded) -> Mapping[str, Json]:
    """What a store knows of a subject's repeats, by case."""
    if done.slug not in store.fingerprints(done.suite):
        return {}
    noise = store.read_fingerprint(done.suite, done.slug).calibration.get(done.subject, {})
    return noise.get("unstable", {}) if isinstance(noise, dict) else {}
