"""One change of what goldens.toml asks, and what is recorded that it covers."""

from __future__ import annotations

import enum
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from snapshot.calibrate import BATCH_SIZES
from snapshot.model import Fingerprint, RecordedFingerprint
from snapshot.policy import Rule
from snapshot.tree import Place


class Direction(enum.Enum):
    """What a change does to strictness."""

    LOOSENED = "loosened"
    TIGHTENED = "tightened"
    CHANGED = "changed"


@dataclass(frozen=True)
class PolicyChange:
    """One change of goldens.toml, or of a noise floor that it refers to.

    Attributes:
        direction: see `Direction`.
        what: ``tolerance.text``, ``relax``, ``quarantine``, ``inherits``, ``batch_sizes``...
        where: the suite, environment or rule it is about.
        before, after: in words; None where there was or is none.
        details: reason, owner, issue and expiry of a rule; observed noise; how far a limit moved.
        cases: how many recorded goldens it covers.
        environments: slugs of the recorded environments it covers.
    """

    direction: Direction
    what: str
    where: str
    before: str | None
    after: str | None
    details: tuple[str, ...] = ()
    cases: int | None = None
    environments: tuple[str, ...] = ()

    @property
    def loosened(self) -> bool:
        return self.direction is Direction.LOOSENED


@dataclass(frozen=True)
class Ground:
    """What is recorded, for saying what a rule covers.

    Attributes:
        places: every golden.
        recorded: environments by suite and slug.
    """

    places: Sequence[Place]
    recorded: Mapping[tuple[str, str], RecordedFingerprint] = field(default_factory=dict)

    def covered(self, suite: str, rule: Rule | None) -> list[Place]:
        """The goldens of a suite that a rule is about; all of them for None."""
        return [p for p in self.places if p.suite == suite and self._covers(p, rule)]

    def _covers(self, place: Place, rule: Rule | None) -> bool:
        if rule is None:
            return True
        recorded = self.recorded.get((place.suite, place.slug))
        here: Fingerprint | None = recorded.fingerprint if recorded else None
        holds = here is None or not rule.when.terms or rule.when.holds(here)
        return holds and fnmatch.fnmatchcase(place.case, rule.case)

    def noise(self, suite: str, slugs: Iterable[str]) -> str | None:
        """The drift between batch sizes that was measured in these environments, in words."""
        measured = [
            drift
            for slug in slugs
            if (found := self.recorded.get((suite, slug)))
            and isinstance(drift := found.calibration.get(BATCH_SIZES), dict)
            and {"q99", "max"} <= drift.keys()
        ]
        if not measured:
            return None
        q99, largest = (max(float(drift[name]) for drift in measured) for name in ("q99", "max"))
        return f"measured there: 99 % of logprob differences below {q99:.2g}, max {largest:.2g}"
