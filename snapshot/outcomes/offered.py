"""What waits for review after a verification."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from snapshot.errors import GoldensError
from snapshot.recording import Recorded


@dataclass
class Offered:
    """What waits for review after a verification.

    Attributes:
        folder: where.
        recorded: what was written there.
        problems: why other goldens could not be written.
    """

    folder: Path
    recorded: list[Recorded] = field(default_factory=list)
    problems: list[GoldensError] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many goldens were written."""
        return sum(len(item.changes) for item in self.recorded)

    @property
    def failed(self) -> bool:
        """Whether something must not, or cannot, become a golden."""
        return bool(self.problems) or any(item.refused for item in self.recorded)
