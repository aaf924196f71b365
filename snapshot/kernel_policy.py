"""How strictly a kernel is held: bounds on its error, and the rules that loosen them in the open.

The bounds are those a kernel in that dtype keeps when it is right: measured faults (a key
dropped, a scale 1 % off, an unmerged split) stand well above them, and rounding below.
"""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace

from grouped_decode.case import Case

from snapshot.difference import Finding
from snapshot.errors import ConfigError
from snapshot.kernel_model import Computed
from snapshot.model import Fingerprint
from snapshot.policy import Allowance, Rule, allowed, only, require_matches, require_one

REL_L2 = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 5e-3}
LSE_ABS = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-3}
ZERO_LENGTH = "zero-length"
"""The finding of an ``allow`` entry that masks rows of sequences without keys."""
BASELINE_RATIO, BASELINE_SLACK = 2.0, 1e-5


@dataclass(frozen=True)
class Bounds:
    """Largest errors allowed; None is the strict default.

    Attributes:
        rel_l2: of any row, relative; default by dtype (`REL_L2`).
        max_abs: of any element; default twice the same-dtype baseline's, plus 1e-5.
        lse_abs: of any log-sum-exp, in nats; default by dtype (`LSE_ABS`).
    """

    rel_l2: float | None = None
    max_abs: float | None = None
    lse_abs: float | None = None

    def resolved(self, dtype: str, baseline_max_abs: float) -> Limits:
        """The bounds as numbers, for an output of `dtype` whose baseline errs by that much."""
        usual = BASELINE_RATIO * baseline_max_abs + BASELINE_SLACK
        return Limits(
            REL_L2[dtype] if self.rel_l2 is None else self.rel_l2,
            usual if self.max_abs is None else self.max_abs,
            LSE_ABS[dtype] if self.lse_abs is None else self.lse_abs,
        )


@dataclass(frozen=True)
class Limits:
    """`Bounds` with every default filled in."""

    rel_l2: float
    max_abs: float
    lse_abs: float


def within(computed: Computed, bounds: Bounds) -> bool:
    """Whether a kernel's figures are those of a right result."""
    return not computed.misplaced and not excesses(computed, bounds)


def excesses(computed: Computed, bounds: Bounds) -> list[Finding]:
    """Every bound that a kernel's figures exceed, worst kind of error first."""
    errors, lse = computed.errors, computed.lse_error
    limits = bounds.resolved(computed.out.dtype, computed.baseline.max_abs)
    found: list[Finding] = []
    if errors.compared == 0:
        found.append(
            Finding("compared", "0 elements compared: nothing shows that it is right", got="0")
        )
    if errors.rel_l2 > limits.rel_l2:
        found.append(
            Finding(
                "rel_l2",
                f"{row_name(errors.row)}: rel-L2 {errors.rel_l2:.3g}, bound {limits.rel_l2:.3g}, "
                f"up to {errors.row_ulp} ulp off",
                where=row_name(errors.row),
                got=f"{errors.rel_l2:.4g}",
                allowed=f"{limits.rel_l2:.4g}",
            )
        )
    if errors.max_abs > limits.max_abs:
        found.append(
            Finding(
                "max_abs",
                f"an element is {errors.max_abs:.3g} off, bound {limits.max_abs:.3g}, where plain "
                f"torch is at most {computed.baseline.max_abs:.3g} off",
                got=f"{errors.max_abs:.4g}",
                allowed=f"{limits.max_abs:.4g}",
            )
        )
    if lse is not None and lse.abs > limits.lse_abs:
        found.append(
            Finding(
                "lse_abs",
                f"{row_name(lse.row)}: LSE {lse.abs:.3g} off, bound {limits.lse_abs:.3g}",
                where=row_name(lse.row),
                got=f"{lse.abs:.4g}",
                allowed=f"{limits.lse_abs:.4g}",
            )
        )
    return found


def row_name(row: tuple[int, ...]) -> str:
    """``sequence 1, head 77``."""
    named = zip(("sequence", "head", "element"), row, strict=False)
    return ", ".join(f"{name} {index}" for name, index in named) or "the whole"


def numbered(noun: str, indices: Sequence[int]) -> str:
    """``sequence 3``, ``heads 0 to 7`` or ``heads 0, 2 and 5``; long lists are cut."""
    if len(indices) == 1:
        return f"{noun} {indices[0]}"
    if len(indices) > 2 and indices[-1] - indices[0] == len(indices) - 1:
        return f"{noun}s {indices[0]} to {indices[-1]}"
    shown, more = [str(i) for i in indices[:6]], len(indices) - 6
    last = f"{more} more" if more > 0 else shown.pop()
    return f"{noun}s {', '.join(shown)} and {last}"


@dataclass(frozen=True)
class KernelRule(Rule):
    """A ``relax`` entry of a kernel suite."""

    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True)
class Exclusion:
    """A ``not_run`` entry: cases that are not run on a device, counted and never a pass.

    Attributes:
        device: ``cpu`` or ``cuda``...; None: every one.
        subject: the candidate it holds for; None: every one.
    """

    where: str
    case: str
    reason: str
    device: str | None = None
    subject: str | None = None


@dataclass(frozen=True)
class KernelPolicy:
    """All that a kernel suite says on strictness."""

    tolerance: Bounds = field(default_factory=Bounds)
    relax: tuple[KernelRule, ...] = ()
    quarantine: tuple[Rule, ...] = ()
    allow: tuple[Allowance, ...] = ()
    not_run: tuple[Exclusion, ...] = ()

    def masks(self, case: str) -> bool:
        """Whether rows of sequences without keys count for nothing in this case."""
        return ZERO_LENGTH in allowed(self.allow, case)

    def excluded(self, case: str, subject: str, device: str) -> str | None:
        """Why a case is not to be run with a candidate on a device; None where it is."""
        return next(
            (
                entry.reason
                for entry in self.not_run
                if fnmatch.fnmatchcase(case, entry.case)
                and entry.device in (None, device)
                and entry.subject in (None, subject)
            ),
            None,
        )


@dataclass(frozen=True)
class KernelStrictness:
    """What applies to one case of one kernel; as `policy.Strictness`.

    Attributes:
        bounds: the suite's, loosened by `relaxed`.
        suite: the suite's own bounds.
    """

    bounds: Bounds = field(default_factory=Bounds)
    relaxed: tuple[KernelRule, ...] = ()
    quarantine: Rule | None = None
    expired: tuple[Rule, ...] = ()
    suite: Bounds = field(default_factory=Bounds)

    def needed(self, computed: Computed) -> tuple[KernelRule, ...]:
        """Those of `relaxed` without which a kernel's figures would exceed a bound."""
        return tuple(rule for rule in self.relaxed if excesses(computed, self._without(rule)))

    def _without(self, rule: KernelRule) -> Bounds:
        loosened = [name for name in _NAMES if getattr(rule.bounds, name) is not None]
        return replace(self.bounds, **{name: getattr(self.suite, name) for name in loosened})


_NAMES = tuple(bound.name for bound in fields(Bounds))


def kernel_strictness(
    policy: KernelPolicy,
    *,
    case: str,
    subject: str,
    environment: Fingerprint | None,
    day: datetime.date,
) -> KernelStrictness:
    """What applies to one case of one kernel on one day in one environment.

    Raises:
        ConfigError: two rules in force cover the same bound, or two quarantines the same case.
    """
    covering = [rule for rule in policy.relax if rule.covers(case, subject, environment)]
    live = [rule for rule in covering if not rule.expired(day)]
    held = [rule for rule in policy.quarantine if rule.covers(case, subject, environment)]
    rules = {name: only(_setting(live, name), case) for name in _NAMES}
    values = {
        name: getattr(policy.tolerance if rule is None else rule.bounds, name)
        for name, rule in rules.items()
    }
    return KernelStrictness(
        bounds=Bounds(**values),
        relaxed=tuple(rule for rule in live if rule in rules.values()),
        quarantine=only([rule for rule in held if not rule.expired(day)], case),
        expired=tuple(rule for rule in (*covering, *held) if rule.expired(day)),
        suite=policy.tolerance,
    )


def check_kernel_rules(policy: KernelPolicy, cases: Sequence[str]) -> None:
    """As `policy.check_rules`: every rule matches a case, no two loosen the same thing, and a mask
    of zero-length rows has some to mask.

    Raises:
        ConfigError: naming the rule or the two.
    """
    require_matches([*policy.relax, *policy.quarantine, *policy.allow, *policy.not_run], cases)
    for alike in (policy.quarantine, *(_setting(policy.relax, name) for name in _NAMES)):
        require_one(alike, cases)
    for entry in policy.allow:
        covered = [case for case in cases if fnmatch.fnmatchcase(case, entry.case)]
        if entry.finding == ZERO_LENGTH and not any(0 in Case.parse(c).lengths for c in covered):
            raise ConfigError(
                "the entry masks rows of sequences without keys, and its cases have none",
                where=entry.where,
                expected="a glob that covers a case with a sequence of length 0, such as *-ragged*",
                got=entry.case,
            )


def _setting(rules: Iterable[KernelRule], bound: str) -> list[KernelRule]:
    return [rule for rule in rules if getattr(rule.bounds, bound) is not None]
