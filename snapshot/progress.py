"""How far a run is, told to whoever shows it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

Advance = Callable[[int], None]
"""Takes the number of rows that have just been done."""

Progress = Callable[[str, int], AbstractContextManager[Advance]]
"""Takes what runs and how many rows it has."""


@contextlib.contextmanager
def silent(label: str, rows: int) -> Iterator[Advance]:
    """Progress that nobody looks at."""
    yield lambda done: None
