"""What a review of pending goldens did, and the keys that steer one."""

from __future__ import annotations

from dataclasses import dataclass, field

from snapshot.errors import GoldensError
from snapshot.pending import Decision


@dataclass
class Reviewed:
    """What a review did, or would do.

    Attributes:
        decisions: by name, in the order they were made.
        left: names that still wait.
        problems: what could not be reviewed or accepted.
    """

    decisions: dict[str, Decision] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    problems: list[GoldensError] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """1 something cannot be reviewed or accepted, 4 nothing waited, else 0."""
        if self.problems:
            return 1
        return 0 if self.decisions or self.left else 4


KEYS = {
    "a": "accept",
    "r": "reject",
    "s": "skip",
    "g": "accept group",
    "x": "reject group",
    "A": "accept all",
    "R": "reject all",
    "q": "quit",
}
