"""The kernel half of ``goldens audit``: would the suite's bounds see a kernel that is wrong?

Each fault is a kernel that starts from the float64 oracle and makes one mistake
(`grouped_decode.mutants`), so the mistake is all there is to see. It runs as a candidate does, in
a process of its own, on the suite's cases and device, and is judged by the same rules: once by
the suite's tolerance, once under each candidate's relax rules.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence

from snapshot.errors import GoldensError
from snapshot.kernel_detection import Exposure
from snapshot.kernel_model import KernelObservation, NotRun, Tensor
from snapshot.kernel_policy import KernelStrictness, kernel_strictness
from snapshot.kernel_suite import KernelSuite, dtype_of
from snapshot.kernel_verdict import KernelEvidence, judge_alone
from snapshot.model import Fingerprint
from snapshot.progress import Progress, silent
from snapshot.runners.kernel_worker import KernelWorker, Ran

_MUTANTS = "grouped_decode.mutants"

FAULTS: Mapping[str, str] = {
    "oldest key dropped": f"{_MUTANTS}:oldest_key_dropped",
    "last split dropped": f"{_MUTANTS}:last_split_dropped",
    "scale +1%": f"{_MUTANTS}:scale_up_1_percent",
    "output gain +2%": f"{_MUTANTS}:gain_up_2_percent",
    "LSE merged without rescale": f"{_MUTANTS}:lse_not_rescaled",
    "stale page read": f"{_MUTANTS}:stale_page",
    "sink counted twice": f"{_MUTANTS}:sink_counted_twice",
}
"""By name: the kernel that has the fault, as goldens.toml would name a candidate."""

UNHARMED = f"{_MUTANTS}:unharmed"


def audit_kernels(
    suite: KernelSuite,
    keys: Sequence[str] | None = None,
    *,
    faults: Mapping[str, str] = FAULTS,
    day: datetime.date | None = None,
    progress: Progress = silent,
) -> Iterator[Exposure]:
    """Every fault at every case: caught, missed, or without effect.

    Args:
        keys: of the cases (`plan.KernelPlan.chosen`); None: all of the suite's.
        faults: names and kernels; any ``module:function`` candidate is one.
        day: on which relax rules are judged; None: today.

    Raises:
        RunError: torch is missing or has no such device.
    """
    chosen = suite.cases if keys is None else keys
    day = datetime.date.today() if day is None else day
    right = {key: _bits(ran) for key, ran, _ in _runs(suite, UNHARMED, chosen, "none", progress)}
    for fault, kernel in faults.items():
        for key, ran, here in _runs(suite, kernel, chosen, fault, progress):
            if isinstance(ran, NotRun):
                continue
            own = suite.policy.tolerance
            strict = KernelStrictness(own, suite=own)
            result = judge_alone(_evidence(suite, fault, key, ran, strict))
            let_through: dict[str, tuple[str, ...]] = {}
            for candidate in suite.candidates if result is not None else ():
                rules = kernel_strictness(
                    suite.policy, case=key, subject=candidate, environment=here, day=day
                )
                if not isinstance(ran, GoldensError) and (
                    judge_alone(_evidence(suite, fault, key, ran, rules)) is None
                ):
                    let_through[candidate] = tuple(r.where for r in rules.needed(ran.output))
            yield Exposure(
                fault=fault,
                case=key,
                verdict=None if result is None else result.verdict,
                headline="" if result is None else result.headline,
                effect=_bits(ran) != right[key],
                rel_l2=None if isinstance(ran, GoldensError) else ran.output.errors.rel_l2,
                let_through=let_through,
            )


def _runs(
    suite: KernelSuite, kernel: str, keys: Sequence[str], fault: str, progress: Progress
) -> Iterator[tuple[str, Ran, Fingerprint]]:
    """What a kernel gives at each case, and the case's environment."""
    with (
        KernelWorker(suite, kernel) as worker,
        progress(f"audit {suite.name}, fault: {fault}", len(keys)) as advance,
    ):
        for key, ran in worker.observe(keys, advance):
            yield key, ran, worker.at(dtype_of(key))


def _bits(ran: Ran) -> tuple[Tensor, Tensor | None] | None:
    if isinstance(ran, NotRun | GoldensError):
        return None
    return ran.output.out, ran.output.lse


def _evidence(
    suite: KernelSuite,
    fault: str,
    key: str,
    ran: KernelObservation | GoldensError,
    strict: KernelStrictness,
) -> KernelEvidence:
    return KernelEvidence(
        suite=suite.name, case=key, subject=fault, here=None, candidate=ran, strictness=strict
    )
