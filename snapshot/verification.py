"""A run held to its goldens, and all of them together with one exit code."""

from __future__ import annotations

import dataclasses
import datetime
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from snapshot.errors import GoldensError, StoreError
from snapshot.evidence import Evidence, Now
from snapshot.model import (
    REFERENCE,
    Fingerprint,
    GenerationCase,
    Golden,
    Json,
    Observation,
    RecordedFingerprint,
)
from snapshot.plan import Plan
from snapshot.policy import Rule, Strictness, allowed, strictness
from snapshot.resolve import Baseline
from snapshot.result import UNKNOWN_ENVIRONMENT, Result, Verdict
from snapshot.shelf import Shelf
from snapshot.store import Store
from snapshot.verdict import judge


@dataclass(frozen=True)
class Said:
    """What the reference gave while verifying, in the batches that its goldens are of.

    Attributes:
        here: where it ran, batch size included.
        rows: by case key; only those that it was asked.
    """

    here: Fingerprint
    rows: Mapping[str, Observation]


@dataclass(frozen=True)
class Held:
    """One run against one environment's goldens.

    Attributes:
        suite, subject: what ran.
        slug: where; None for outputs of an unknown environment.
        baseline: what it was held to.
        results: one a selected case.
        expired: rules that cover one of them and have expired.
        held_to: whose goldens those are: the reference's ask whether it is right, its own
            whether it moved.
        engine: what an engine tells of itself, by name.
        unchecked: the checks that an engine could not run, each with why.
        not_run: by case: why it was not run. Counted, and never a pass.
        said: what the reference gave here and now; None where it was not run.
    """

    suite: str
    subject: str
    slug: str | None
    baseline: Baseline
    results: tuple[Result, ...]
    expired: tuple[str, ...] = ()
    held_to: str = REFERENCE
    engine: Mapping[str, Json] = field(default_factory=dict)
    unchecked: Mapping[str, str] = field(default_factory=dict)
    not_run: Mapping[str, str] = field(default_factory=dict)
    said: Said | None = None

    @property
    def place(self) -> str:
        """Where it ran, for people."""
        return self.slug or UNKNOWN_ENVIRONMENT

    @property
    def own(self) -> bool:
        """Whether it asks if an engine moved from its own goldens, not if it is right."""
        return self.held_to == self.subject != REFERENCE


def expiry(rule: Rule) -> str:
    """What a report says of a rule that has expired."""
    return f"{rule.where}: expired on {rule.expires}, owner {rule.owner}, {rule.issue}"


@dataclass(frozen=True)
class Run:
    """One subject's run of the selected cases, and what it is held to.

    Attributes:
        plan: the suite and the selected cases.
        subject: what ran.
        here: where; None where that is not known.
        baseline: the goldens it is held to.
        store: where those lie.
        day: on which expiry is judged.
        held_to: the subject whose goldens those are.
    """

    plan: Plan
    subject: str
    here: Fingerprint | None
    baseline: Baseline
    store: Store
    day: datetime.date
    held_to: str = REFERENCE

    def check(self) -> None:
        """Raises `ConfigError` where rules overlap: before hours of work, not after."""
        _ = self.rules

    def evidences(self, rows: Mapping[str, Observation | GoldensError]) -> dict[str, Evidence]:
        """All that is known of each selected case, by key, before the reference is asked."""
        suite, shelf = self.plan.suite, self.shelf
        looked_for = self.baseline.how
        if self.baseline.slug is not None:
            looked_for = f"{self.baseline.slug} has none of this case"
        return {
            case.key: Evidence(
                suite=suite.name,
                case=case.key,
                adapter=case.adapter,
                subject=self.subject,
                here=self.here,
                candidate=rows[case.key],
                golden=shelf.golden(case.key),
                recorded=shelf.recorded,
                looked_for=looked_for,
                siblings=_Siblings(shelf, case),
                variants=_Variants(shelf, case.key),
                strictness=self.rules[case.key],
                allowed=allowed(suite.policy.allow, case.key),
            )
            for case in self.plan.cases
            if case.key in self.plan.chosen
        }

    def held(self, evidences: Mapping[str, Evidence], now: Mapping[str, Now]) -> Held:
        """The verdict on every case, with what the reference said where it was asked."""
        expired = dict.fromkeys(
            expiry(rule) for strict in self.rules.values() for rule in strict.expired
        )
        return Held(
            suite=self.plan.suite.name,
            subject=self.subject,
            slug=None if self.here is None else self.here.slug,
            baseline=self.baseline,
            results=tuple(
                judge(dataclasses.replace(e, now=now[key]) if key in now else e)
                for key, e in evidences.items()
            ),
            expired=tuple(expired),
            held_to=self.held_to,
            said=self._said(evidences, now),
        )

    def _said(self, evidences: Mapping[str, Evidence], now: Mapping[str, Now]) -> Said | None:
        """The reference's own run, or what it gave when it was asked about another's."""
        if self.subject == REFERENCE:
            here = self.here
            rows = {key: e.candidate for key, e in evidences.items()}
        else:
            here = next((n.here for n in now.values() if n.here is not None), None)
            rows = {key: n.golden_batch for key, n in now.items() if n.golden_batch is not None}
        found = {key: row for key, row in rows.items() if isinstance(row, Observation)}
        return None if here is None else Said(here, found)

    @functools.cached_property
    def shelf(self) -> Shelf:
        suite = self.plan.suite.name
        return Shelf(self.store, suite, self.baseline.slug, self.plan.cases, self.held_to)

    @functools.cached_property
    def rules(self) -> dict[str, Strictness]:
        """What applies to each selected case.

        Raises:
            ConfigError: two rules in force cover the same thing.
        """
        there = self.here
        if there is None and self.baseline.exact and self.shelf.recorded is not None:
            # Only an environment's own goldens tell where outputs were made: an inherited one's
            # `when` conditions, or those of a slug to compare with, are another environment's.
            there = self.shelf.recorded.fingerprint
        return {
            case.key: strictness(
                self.plan.suite.policy,
                case=case.key,
                subject=self.subject,
                environment=there,
                day=self.day,
            )
            for case in self.plan.cases
            if case.key in self.plan.chosen
        }


class _Siblings(Mapping[str, Golden]):
    """`Shelf.siblings`, read when a rule first asks: most cases match, and no rule does."""

    def __init__(self, shelf: Shelf, case: GenerationCase) -> None:
        self._shelf, self._case = shelf, case

    @functools.cached_property
    def _read(self) -> Mapping[str, Golden]:
        return self._shelf.siblings(self._case)

    def __getitem__(self, name: str) -> Golden:
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)


class _Variants(Sequence[tuple[Golden, RecordedFingerprint]]):
    """`Shelf.variants`, read when a rule first asks."""

    def __init__(self, shelf: Shelf, key: str) -> None:
        self._shelf, self._key = shelf, key

    @functools.cached_property
    def _read(self) -> Sequence[tuple[Golden, RecordedFingerprint]]:
        return self._shelf.variants(self._key)

    @overload
    def __getitem__(self, index: int) -> tuple[Golden, RecordedFingerprint]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[Golden, RecordedFingerprint]]: ...

    def __getitem__(self, index: int | slice) -> Any:
        return self._read[index]

    def __len__(self) -> int:
        return len(self._read)


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
