"""Runs batches and gathers what came out, case by case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from snapshot.errors import GoldensError, RunError
from snapshot.model import Observation
from snapshot.progress import Advance
from snapshot.runners.worker import Worker
from snapshot.suite import Group

Rows = dict[str, Observation | GoldensError]
"""By case key: what the case gave, or why it gave nothing."""


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
