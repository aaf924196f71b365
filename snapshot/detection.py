"""What injected faults say of the tolerances: which are caught, and how loose is too loose.

Pure: the faults were run and judged elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from snapshot.difference import Distance
from snapshot.result import Verdict

METRIC = "unicode-lcs"
"""ROUGE-L by Unicode words: it sees every script."""

OWN = "own batch"
OTHER = "other batch"
ENGINE = "engine, alone"
ASKED = "engine, reference asked"

SCENARIOS = {
    OWN: "the same code in the golden's environment and batch",
    OTHER: "the same code, held to the golden of another batch size; the reference is asked",
    ENGINE: "an engine of unknown batch, held to another batch size; no reference at hand",
    ASKED: "the same engine with --attribute: the reference is asked",
}
"""In what relation a faulty run was to the golden that it was held to."""


@dataclass(frozen=True)
class Cell:
    """One fault in one case in one scenario.

    Attributes:
        verdict: how it ended.
        distance: of its logprobs from the golden's.
        score: ROUGE-L of the texts by `METRIC`; 1.0 where they are equal, 0.0 where it is blind
            to the difference.
        relaxed: the relax rules that it passed by.
    """

    scenario: str
    fault: str
    case: str
    verdict: Verdict
    distance: Distance | None = None
    score: float = 1.0
    relaxed: tuple[str, ...] = ()

    @property
    def caught(self) -> bool:
        return not self.verdict.passes


@dataclass(frozen=True)
class Loosest:
    """The tolerances up to which every fault still fails at least one case.

    Attributes:
        rms, max: of logprobs, in nats; a bound must be below. None where a fault moves no
            logprob; infinite where every fault gives some that are not finite.
        rouge_l: a bound must be above; None where a fault is `blind`.
        blind: faults that move no text at all: text alone never catches them.
    """

    rms: float | None
    max: float | None
    rouge_l: float | None
    blind: tuple[str, ...] = ()


@dataclass(frozen=True)
class Detection:
    """All faults at one fingerprint.

    Attributes:
        suite, slug: where the faulty runs ran.
        golden_slug: what the scenario `OWN` holds them to.
        cells: one a scenario, fault and case that the fault reached.
        unreached: by fault: why it says nothing here.
        clean: by scenario: how the same runs without any fault ended.
        power: adapter effect over batch drift; None where not measured.
    """

    suite: str
    slug: str
    golden_slug: str
    cells: tuple[Cell, ...]
    unreached: Mapping[str, str] = field(default_factory=dict)
    clean: Mapping[str, Mapping[Verdict, int]] = field(default_factory=dict)
    power: float | None = None

    def of(self, scenario: str, fault: str | None = None) -> list[Cell]:
        """The cells of a scenario, and of one fault in it."""
        return [
            cell for cell in self.cells if cell.scenario == scenario and fault in (None, cell.fault)
        ]

    @property
    def faults(self) -> list[str]:
        return list(dict.fromkeys(cell.fault for cell in self.cells))

    @property
    def scenarios(self) -> list[str]:
        return [name for name in SCENARIOS if self.of(name)]

    def score(self, scenario: str) -> float | None:
        """Share of the cells that fail; None without any."""
        cells = self.of(scenario)
        return sum(cell.caught for cell in cells) / len(cells) if cells else None

    def missed(self, scenario: str) -> list[Cell]:
        return [cell for cell in self.of(scenario) if not cell.caught]

    @property
    def let_through(self) -> dict[str, list[Cell]]:
        """By relax rule: the faults that pass by it."""
        found: dict[str, list[Cell]] = {}
        for cell in self.missed(OWN):
            for rule in cell.relaxed:
                found.setdefault(rule, []).append(cell)
        return found


def loosest(cells: Sequence[Cell]) -> Loosest:
    """The loosest tolerances under which each fault among these cells still fails somewhere."""
    faults = {cell.fault: [c for c in cells if c.fault == cell.fault] for cell in cells}
    if not faults:
        return Loosest(None, None, None)
    blind = tuple(name for name, own in faults.items() if all(c.score == 1.0 for c in own))
    return Loosest(
        rms=min(max(_rms(c) for c in own) for own in faults.values()) or None,
        max=min(max(_max(c) for c in own) for own in faults.values()) or None,
        rouge_l=None if blind else max(min(c.score for c in own) for own in faults.values()),
        blind=blind,
    )


def _rms(cell: Cell) -> float:
    return _finite(0.0 if cell.distance is None else cell.distance.rms)


def _max(cell: Cell) -> float:
    return _finite(0.0 if cell.distance is None else cell.distance.max)


def _finite(value: float) -> float:
    return value if math.isfinite(value) else math.inf
