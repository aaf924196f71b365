"""``goldens verify`` for kernel suites: is each candidate right here, and did it move?"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from snapshot.config import Config
from snapshot.kernel_model import NotRun
from snapshot.kernel_policy import kernel_strictness
from snapshot.kernel_verdict import KernelEvidence, judge_kernel
from snapshot.names import safe_name
from snapshot.plan import KernelPlan, narrow
from snapshot.policy import allowed
from snapshot.progress import Progress
from snapshot.resolve import Baseline, against, resolve
from snapshot.result import Result
from snapshot.runners.kernel_worker import KernelWorker
from snapshot.shelf import environment, golden
from snapshot.store import Store
from snapshot.verification import Held, expiry


def verify_kernels(
    config: Config,
    store: Store,
    plan: KernelPlan,
    *,
    dtype: str | None,
    against_slug: str | None,
    day: datetime.date,
    progress: Progress,
) -> Iterator[Held]:
    """Runs every candidate on the selected cases, at each dtype, and judges it.

    Raises:
        UsageError: the suite has no such dtype, or the slug was not recorded.
        RunError: torch is missing or has no such device.
    """
    suite = plan.suite
    named = None if against_slug is None else against(store, suite.name, against_slug)
    if named is not None and named.identity is not None and dtype is None:
        (dtype,) = narrow(suite, "dtypes", suite.dtypes, named.identity.dtype)
    for candidate in suite.candidates:
        with KernelWorker(suite, candidate) as worker:
            for name in plan.dtypes(dtype):
                baseline = named or resolve(config, store, suite.name, worker.at(name))
                yield _hold(store, plan, candidate, worker, name, baseline, day, progress)


def _hold(
    store: Store,
    plan: KernelPlan,
    candidate: str,
    worker: KernelWorker,
    dtype: str,
    baseline: Baseline,
    day: datetime.date,
    progress: Progress,
) -> Held:
    """Runs and judges the cases of one dtype, one by one: outputs are large."""
    suite, here, keys = plan.suite, worker.at(dtype), plan.keys(dtype)
    recorded = environment(store, suite.name, baseline.slug)
    looked_for = baseline.how
    if baseline.slug is not None:
        looked_for = f"{baseline.slug} has none of {candidate} for this case"
    rules = {
        key: kernel_strictness(suite.policy, case=key, subject=candidate, environment=here, day=day)
        for key in keys
    }
    results: list[Result] = []
    not_run: dict[str, str] = {}
    with progress(f"verify {suite.name} {candidate} {dtype}", len(keys)) as advance:
        for key, ran in worker.observe(keys, advance):
            if isinstance(ran, NotRun):
                not_run[key] = ran.reason
                continue
            evidence = KernelEvidence(
                suite=suite.name,
                case=key,
                subject=candidate,
                here=here,
                candidate=ran,
                golden=golden(store, suite.name, baseline.slug, safe_name(candidate), key),
                recorded=recorded,
                looked_for=looked_for,
                strictness=rules[key],
                allowed=allowed(suite.policy.allow, key),
            )
            results.append(judge_kernel(evidence))
    past = dict.fromkeys(expiry(rule) for strict in rules.values() for rule in strict.expired)
    return Held(
        suite=suite.name,
        subject=candidate,
        slug=here.slug,
        baseline=baseline,
        results=tuple(results),
        expired=tuple(past),
        not_run=not_run,
    )
