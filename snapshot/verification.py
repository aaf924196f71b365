"""The outcome of ``goldens verify``: every run, what it was held to, and one exit code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from snapshot.errors import StoreError
from snapshot.model import Result, Verdict
from snapshot.policy import Rule
from snapshot.resolve import Baseline


@dataclass(frozen=True)
class Held:
    """One run against one environment's goldens.

    Attributes:
        suite, subject: what ran.
        slug: where; None for outputs of an unknown environment.
        baseline: what it was held to.
        results: one a selected case.
        expired: rules that cover one of them and have expired.
        not_run: by case: why it was not run. Counted, and never a pass.
    """

    suite: str
    subject: str
    slug: str | None
    baseline: Baseline
    results: tuple[Result, ...]
    expired: tuple[str, ...] = ()
    not_run: Mapping[str, str] = field(default_factory=dict)


def expiry(rule: Rule) -> str:
    """What a report says of a rule that has expired."""
    return f"{rule.where}: expired on {rule.expires}, owner {rule.owner}, {rule.issue}"


@dataclass(frozen=True)
class Verification:
    """The outcome of ``goldens verify``.

    Attributes:
        held: every run.
        damage: files below the store that cannot be trusted, of these suites or their blobs.
    """

    held: tuple[Held, ...] = ()
    damage: tuple[StoreError, ...] = ()

    @property
    def expired(self) -> list[str]:
        """Rules that cover a verified case and have expired, each once."""
        return list(dict.fromkeys(rule for held in self.held for rule in held.expired))

    @property
    def results(self) -> list[Result]:
        return [result for held in self.held for result in held.results]

    @property
    def not_run(self) -> list[str]:
        """Why cases were not run, once a case."""
        return [reason for held in self.held for reason in held.not_run.values()]

    @property
    def exit_code(self) -> int:
        """1 something failed, 3 goldens are missing, 5 drift only, 4 nothing ran, 0 all pass."""
        verdicts = {result.verdict for result in self.results}
        failing = {v for v in verdicts if not v.passes}
        if self.damage or self.expired or failing - {Verdict.MISSING, Verdict.DRIFT}:
            return 1
        if Verdict.MISSING in failing:
            return 3
        if Verdict.DRIFT in failing:
            return 5
        return 0 if verdicts else 4
