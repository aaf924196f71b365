"""``goldens status``: what is configured, what is recorded, and what is held less strictly."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from snapshot.blame import since
from snapshot.calibrate import Floor, floor, power
from snapshot.config import Config
from snapshot.errors import StoreError, UsageError
from snapshot.history import recall
from snapshot.ledger import Entry, ledger
from snapshot.model import REFERENCE
from snapshot.outcomes.status import RecordedStatus, SuiteStatus
from snapshot.plan import KernelPlan, Plan, kernel_plans, plans
from snapshot.policy import Policy
from snapshot.resolve import Shape, named_environment
from snapshot.result import Observed
from snapshot.store import Store


def status(config: Config, day: datetime.date) -> list[SuiteStatus]:
    """The state of every suite. Needs no torch.

    Raises:
        ConfigError: the configuration is wrong.
        StoreError: a recorded environment cannot be read.
    """
    store, history = Store(config.store), recall(config)
    generation = [_suite(config, store, plan, history, day) for plan in plans(config, ())]
    kernels = [_kernels(config, store, plan, history, day) for plan in kernel_plans(config, ())]
    return generation + kernels


def relaxations(
    config: Config,
    store: Store,
    plan: Plan | KernelPlan,
    history: Sequence[Observed],
    day: datetime.date,
) -> list[Entry]:
    """The ledger of one suite. A kernel suite's bounds are on errors, not on logprobs: it holds
    only its rules, and what was observed under one is how often it was needed."""
    suite = plan.suite
    if isinstance(plan, KernelPlan):
        cases = plan.suite.cases
        policy = Policy(relax=plan.suite.policy.relax, quarantine=plan.suite.policy.quarantine)
    else:
        cases, policy = tuple(case.key for case in plan.cases), plan.suite.policy
    recorded = {s: store.read_fingerprint(suite.name, s) for s in store.fingerprints(suite.name)}
    noise = [floor(entry.calibration, same_batch=False) for entry in recorded.values()]
    return ledger(
        suite.name,
        policy,
        cases,
        history,
        day,
        since=since(config.path, [*policy.relax, *policy.quarantine]),
        floor=Floor(
            "measured",
            rms=max((one.rms for one in noise), default=0.0),
            max=max((one.max for one in noise), default=0.0),
        ),
        environments={slug: entry.fingerprint for slug, entry in recorded.items()},
    )


def _suite(
    config: Config, store: Store, plan: Plan, history: Sequence[Observed], day: datetime.date
) -> SuiteStatus:
    name = plan.suite.name
    shapes = [Shape(dtype, size) for dtype in plan.suite.dtypes for size in plan.suite.batch_sizes]
    return SuiteStatus(
        suite=name,
        cases=tuple(case.key for case in plan.cases),
        recorded=tuple(_recorded(store, plan, slug) for slug in store.fingerprints(name)),
        rules=tuple(relaxations(config, store, plan, history, day)),
        environments=_environments(config, store, name, shapes),
    )


def _kernels(
    config: Config, store: Store, plan: KernelPlan, history: Sequence[Observed], day: datetime.date
) -> SuiteStatus:
    name = plan.suite.name
    return SuiteStatus(
        suite=name,
        cases=plan.suite.cases,
        recorded=tuple(
            _subject(store, plan, slug, subject)
            for slug in store.fingerprints(name)
            for subject in store.subjects(name, slug)
        ),
        rules=tuple(relaxations(config, store, plan, history, day)),
        environments=_environments(
            config, store, name, [Shape(dtype, None) for dtype in plan.suite.dtypes]
        ),
    )


def _subject(store: Store, plan: KernelPlan, slug: str, subject: str) -> RecordedStatus:
    existing = set(store.cases(plan.suite.name, slug, subject))
    recorded = store.read_fingerprint(plan.suite.name, slug)
    configured = plan.keys(recorded.fingerprint.identity.dtype)
    return RecordedStatus(
        slug=slug,
        configured=len(configured),
        cases=len(existing.intersection(configured)),
        missing=tuple(key for key in configured if key not in existing),
        stale=tuple(sorted(existing.difference(configured))),
        subjects=(subject,),
        power=None,
    )


def _recorded(store: Store, plan: Plan, slug: str) -> RecordedStatus:
    suite = plan.suite.name
    existing = set(store.cases(suite, slug, REFERENCE))
    configured = [case.key for case in plan.cases]
    return RecordedStatus(
        slug=slug,
        configured=len(configured),
        cases=len(existing & set(configured)),
        missing=tuple(key for key in configured if key not in existing),
        stale=tuple(sorted(existing - set(configured))),
        subjects=tuple(store.subjects(suite, slug)),
        power=power(store.read_fingerprint(suite, slug).calibration),
    )


def _environments(
    config: Config, store: Store, suite: str, shapes: Sequence[Shape]
) -> dict[str, str]:
    return {name: _environment(config, store, suite, name, shapes) for name in config.environments}


def _environment(
    config: Config, store: Store, suite: str, name: str, shapes: Sequence[Shape]
) -> str:
    found: list[str] = []
    for shape in shapes:
        try:
            baseline = named_environment(config, store, suite, name, shape)
        except (UsageError, StoreError) as error:
            return f"{error.what}: {error.got}"
        if baseline.slug is not None:
            found.append(f"{baseline.slug} ({baseline.how})")
    return "; ".join(found) or "no golden"
