"""How strictly a case is held, and who said that it may be held less strictly.

Strict is the default. A rule loosens one suite's matching cases in matching environments
only, says why, who owns it and until when; past that day it holds nothing up any more.
"""

from __future__ import annotations

import datetime
import fnmatch
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from snapshot.errors import ConfigError
from snapshot.model import Fingerprint
from snapshot.predicate import Predicate


@dataclass(frozen=True)
class TextTolerance:
    """Texts may differ down to a ROUGE-L of `rouge_l` by `metric` (see `metrics.text`)."""

    rouge_l: float
    metric: str = "rouge-score"


@dataclass(frozen=True)
class LogprobTolerance:
    """Logprobs may differ by `max` at any one value and by `rms` over all, in nats."""

    max: float | None = None
    rms: float | None = None


@dataclass(frozen=True)
class Tolerance:
    """None is the strict default: equal text, logprobs within the calibrated noise floor."""

    text: TextTolerance | None = None
    logprob: LogprobTolerance | None = None


class Scoped(Protocol):
    """What every entry of a policy has: file and key, and a glob over case keys."""

    @property
    def where(self) -> str: ...
    @property
    def case(self) -> str: ...


@dataclass(frozen=True)
class Rule:
    """A ``relax`` or ``quarantine`` entry.

    Attributes:
        where: file and key, for messages.
        case: glob over case keys.
        subject: the subject it covers; None: every one.
        when: the environments it covers; empty: every one.
        expires: the first day on which it covers nothing.
        tolerance: what it loosens (relax only).
    """

    where: str
    case: str
    subject: str | None
    when: Predicate
    reason: str
    issue: str
    owner: str
    expires: datetime.date
    tolerance: Tolerance = field(default_factory=Tolerance)

    def covers(self, case: str, subject: str, environment: Fingerprint | None) -> bool:
        """Whether it is about this case there. An unknown environment meets no condition."""
        here = not self.when.terms if environment is None else self.when.holds(environment)
        return here and fnmatch.fnmatchcase(case, self.case) and self.subject in (None, subject)

    def expired(self, day: datetime.date) -> bool:
        return day >= self.expires

    def __str__(self) -> str:
        return f"{self.case} ({self.reason}; {self.owner}, {self.issue}, until {self.expires})"


AnyRule = TypeVar("AnyRule", bound=Rule)


@dataclass(frozen=True)
class Allowance:
    """An ``allow`` entry: a finding that recording accepts for the cases it names.

    Attributes:
        where: file and key, for messages.
        case: glob over case keys.
        finding: see `snapshot.admission`.
    """

    where: str
    case: str
    finding: str
    reason: str


def allowed(allowances: Iterable[Allowance], case: str) -> frozenset[str]:
    """The findings that are accepted for this case."""
    return frozenset(a.finding for a in allowances if fnmatch.fnmatchcase(case, a.case))


@dataclass(frozen=True)
class Policy:
    """All that a suite says on strictness."""

    tolerance: Tolerance = field(default_factory=Tolerance)
    relax: tuple[Rule, ...] = ()
    quarantine: tuple[Rule, ...] = ()
    allow: tuple[Allowance, ...] = ()


@dataclass(frozen=True)
class Strictness:
    """What applies to one case.

    Attributes:
        tolerance: the suite's, loosened by `relaxed`.
        relaxed: the rules in force; at most one for text and one for logprobs.
        quarantine: the live quarantine rule, if any.
        expired: rules that would cover the case, had they not expired.
        suite: the suite's own tolerance.
    """

    tolerance: Tolerance
    relaxed: tuple[Rule, ...] = ()
    quarantine: Rule | None = None
    expired: tuple[Rule, ...] = ()
    suite: Tolerance = field(default_factory=Tolerance)

    def without(self, rule: Rule) -> Tolerance:
        """The tolerance, had this one of `relaxed` not been in force."""
        text, logprob = rule.tolerance.text, rule.tolerance.logprob
        return Tolerance(
            text=self.tolerance.text if text is None else self.suite.text,
            logprob=self.tolerance.logprob if logprob is None else self.suite.logprob,
        )


def strictness(
    policy: Policy,
    *,
    case: str,
    subject: str,
    environment: Fingerprint | None,
    day: datetime.date,
) -> Strictness:
    """What applies to one case on one day in one environment.

    Raises:
        ConfigError: two rules in force cover the same thing for this case.
    """
    covering = [rule for rule in policy.relax if rule.covers(case, subject, environment)]
    live = [rule for rule in covering if not rule.expired(day)]
    text = only([rule for rule in live if rule.tolerance.text is not None], case)
    logprob = only([rule for rule in live if rule.tolerance.logprob is not None], case)
    held = [rule for rule in policy.quarantine if rule.covers(case, subject, environment)]
    return Strictness(
        tolerance=Tolerance(
            text=policy.tolerance.text if text is None else text.tolerance.text,
            logprob=policy.tolerance.logprob if logprob is None else logprob.tolerance.logprob,
        ),
        relaxed=tuple(rule for rule in live if rule in (text, logprob)),
        quarantine=only([rule for rule in held if not rule.expired(day)], case),
        expired=tuple(rule for rule in (*covering, *held) if rule.expired(day)),
        suite=policy.tolerance,
    )


def check_rules(policy: Policy, cases: Sequence[str]) -> None:
    """Every rule must match a configured case, on some machine at least, and no two the same.

    Raises:
        ConfigError: naming the rule that matches none, or two that loosen the same thing for a
            case wherever the narrower one holds. Conditions that are merely not known to
            exclude each other are judged in an environment, by `strictness`.
    """
    require_matches([*policy.relax, *policy.quarantine, *policy.allow], cases)
    text = [rule for rule in policy.relax if rule.tolerance.text is not None]
    logprob = [rule for rule in policy.relax if rule.tolerance.logprob is not None]
    for alike in (text, logprob, policy.quarantine):
        require_one(alike, cases)


def require_matches(entries: Iterable[Scoped], cases: Sequence[str]) -> None:
    """Raises `ConfigError` where an entry matches none of the configured cases."""
    for entry in entries:
        if not any(fnmatch.fnmatchcase(case, entry.case) for case in cases):
            raise ConfigError(
                "the rule matches no case",
                where=entry.where,
                expected=f"a glob over the {len(cases)} case keys, such as {cases[0]}",
                got=entry.case,
                hint="remove the rule, or see the keys with: goldens status --json",
            )


def require_one(alike: Sequence[Rule], cases: Sequence[str]) -> None:
    """Raises `ConfigError` where two rules about the same thing surely cover a case together."""
    for one, other in itertools.combinations(alike, 2):
        shared = [case for case in cases if _both(one, other, case)]
        if shared:
            only([one, other], shared[0])


def _both(one: Rule, other: Rule, case: str) -> bool:
    """Whether two rules surely cover this case together somewhere."""
    subjects = {one.subject, other.subject} - {None}
    terms = one.when.terms.items(), other.when.terms.items()
    nested = terms[0] <= terms[1] or terms[1] <= terms[0]
    globs = all(fnmatch.fnmatchcase(case, rule.case) for rule in (one, other))
    return len(subjects) <= 1 and nested and globs


def only(rules: Sequence[AnyRule], case: str) -> AnyRule | None:
    """The one rule of these, which are about the same thing; None where there is none.

    Raises:
        ConfigError: there are two.
    """
    if len(rules) > 1:
        raise ConfigError(
            f"two rules cover the same thing for {case}",
            where=" and ".join(rule.where for rule in rules),
            expected="one rule a case: narrow one of them",
            got=" and ".join(rule.case for rule in rules),
        )
    return rules[0] if rules else None
