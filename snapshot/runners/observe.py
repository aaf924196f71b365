"""Runs batches and gathers what came out, case by case."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from snapshot.errors import GoldensError, RunError
from snapshot.model import Observation
from snapshot.runners.worker import Worker
from snapshot.suite import Group

Advance = Callable[[int], None]
"""Takes the number of rows that have just been done."""

Progress = Callable[[str, int], AbstractContextManager[Advance]]
"""Takes what runs and how many rows it has."""

Rows = dict[str, Observation | GoldensError]
"""By case key: what the case gave, or why it gave nothing."""


@contextlib.contextmanager
def silent(label: str, rows: int) -> Iterator[Advance]:
    """Progress that nobody looks at."""
    yield lambda done: None


def observe(
    worker: Worker,
    groups: Iterable[Group],
    advance: Advance,
    forced: Mapping[str, Sequence[int]] | None = None,
    fault: str | None = None,
) -> Rows:
    """Runs the groups in order. A batch that fails costs its own rows, not the others.

    Args:
        forced, fault: see `Worker.run`.
    """
    rows: Rows = {}
    for group in groups:
        try:
            observations = worker.run(group, forced, fault)
            rows |= {observation.case: observation for observation in observations}
        except GoldensError as error:
            rows |= {case.key: error for case in group.rows}
        advance(len(group.rows))
    return rows


def complete(rows: Rows, needed: Collection[str] | None = None) -> dict[str, Observation]:
    """The rows that were answered. Raises `RunError` naming the first needed one that was not.

    Args:
        needed: case keys; None: every row.
    """
    for key, row in rows.items():
        if isinstance(row, GoldensError) and (needed is None or key in needed):
            raise RunError(f"a row could not be run, and all are needed: {row}", where=key)
    return {key: row for key, row in rows.items() if isinstance(row, Observation)}
