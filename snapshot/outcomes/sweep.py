"""Which wording the reference gives at which batch size."""

from __future__ import annotations

from dataclasses import dataclass

from snapshot.difference import Divergence


@dataclass(frozen=True)
class Cell:
    """One case at one batch size and composition.

    Attributes:
        wording: index into the case's wordings; None where it could not be run.
        parting: where it leaves the first column's wording; None where it does not.
        error: why it could not be run.
    """

    wording: int | None
    parting: Divergence | None = None
    error: str | None = None


@dataclass(frozen=True)
class SweptCase:
    """One case over all columns.

    Attributes:
        wordings: the different texts, in the order of their first column.
    """

    case: str
    wordings: tuple[str, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Sweep:
    """One suite at one dtype.

    Attributes:
        slug: the environment, without a batch size.
        columns: ``batch 3`` in file order, ``batch 3, order 1`` in a shuffled one.
    """

    suite: str
    dtype: str
    slug: str
    columns: tuple[str, ...]
    cases: tuple[SweptCase, ...]

    @property
    def moved(self) -> list[SweptCase]:
        """The cases with more than one wording."""
        return [case for case in self.cases if len(case.wordings) > 1]

    @property
    def told(self) -> list[SweptCase]:
        """The cases of which there is more to say: those that moved, or could not be run."""
        return [
            case
            for case in self.cases
            if len(case.wordings) > 1 or any(cell.wording is None for cell in case.cells)
        ]

    @property
    def failed(self) -> int:
        """How many cells could not be run."""
        return sum(cell.wording is None for case in self.cases for cell in case.cells)
