"""Rows asked several at a time, with a bound, and none of them waiting for a dead server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from snapshot.errors import GoldensError, RunError
from snapshot.model import Observation
from snapshot.progress import Advance
from snapshot.runners.engines.engine import Ask, Refused
from snapshot.runners.observe import Rows

T = TypeVar("T")

GIVE_UP = 3
"""Rows that may fail one after the other before the rest are not asked any more: each has been
tried several times over, and a server that is gone does not come back for the next one."""


def gather(
    asks: Sequence[Ask],
    one: Callable[[Ask], Observation | None],
    concurrency: int,
    advance: Advance,
) -> Rows:
    """What `one` gives for each row, or the error that it raised; without those it has none for.

    Rows that were done stay done. After `GIVE_UP` failures in a row the others are errors with
    the last failure's words; a `Refused` row is an answer, not a failure.
    """
    watch = _Watch()

    def attempt(ask: Ask) -> Observation | GoldensError | None:
        gone = watch.gone
        if gone is not None:
            return RunError(f"not asked: the engine failed {GIVE_UP} rows in a row: {gone.what}")
        try:
            return watch.answered(one(ask))
        except Refused as error:
            return watch.answered(error)
        except GoldensError as error:
            return watch.failed(error)
        except Exception as error:  # an engine of someone else; its rows must not cost the others
            return watch.failed(RunError(f"{type(error).__name__}: {error}"))

    rows: Rows = {}
    with ThreadPoolExecutor(max_workers=concurrency) as pool:
        pending = {pool.submit(attempt, ask): ask.key for ask in asks}
        try:
            for done in as_completed(pending):
                row = done.result()
                if row is not None:
                    rows[pending[done]] = row
                advance(1)
        except BaseException:  # interrupted: what has not begun need not begin
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return rows


class _Watch:
    """Counts failures that follow each other, over all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures = 0
        self.gone: GoldensError | None = None

    def answered(self, row: T) -> T:
        with self._lock:
            self._failures = 0
        return row

    def failed(self, error: GoldensError) -> GoldensError:
        with self._lock:
            self._failures += 1
            if self._failures >= GIVE_UP:
                self.gone = error
        return error
