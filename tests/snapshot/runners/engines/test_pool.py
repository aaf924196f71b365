"""Rows asked several at a time: bounded, and none waits for an engine that is gone."""

from __future__ import annotations

import threading
import time

from snapshot.errors import GoldensError, RunError
from snapshot.model import GenerationCase, Observation
from snapshot.runners.engines.engine import Ask, Refused
from snapshot.runners.engines.pool import GIVE_UP, gather
from tests.snapshot.builders import observation

ASKS = [Ask(GenerationCase(f"base/{i}", None, "p"), (1,), 4, 2) for i in range(12)]


def rows(one: object, concurrency: int = 1) -> dict[str, Observation | GoldensError]:
    done: list[int] = []
    found = gather(ASKS, one, concurrency, done.append)  # type: ignore[arg-type]
    assert sum(done) == len(ASKS)
    return found


def test_no_more_than_so_many_at_once() -> None:
    lock, now, most = threading.Lock(), 0, 0

    def one(ask: Ask) -> Observation:
        nonlocal now, most
        with lock:
            now, most = now + 1, max(most, now + 1)
        time.sleep(0.01)
        with lock:
            now -= 1
        return observation(case=ask.key)

    assert len(rows(one, concurrency=3)) == len(ASKS) and most == 3


def test_an_engine_that_fails_row_after_row_is_not_asked_any_more() -> None:
    asked: list[str] = []

    def one(ask: Ask) -> Observation:
        asked.append(ask.key)
        if len(asked) > 4:
            raise RunError("it died")
        return observation(case=ask.key)

    found = list(rows(one).values())
    assert len(asked) == 4 + GIVE_UP
    assert all(isinstance(row, Observation) for row in found[:4])
    assert all(isinstance(row, RunError) and "it died" in row.what for row in found[4:])


def test_refusals_and_single_failures_do_not_end_the_run() -> None:
    asked: list[str] = []

    def one(ask: Ask) -> Observation:
        asked.append(ask.key)
        if len(asked) % 2:
            raise RunError("once") if len(asked) % 4 == 1 else ValueError("a bug of someone else")
        raise Refused("not this one")

    found = list(rows(one).values())
    assert len(asked) == len(ASKS)
    assert isinstance(found[2], RunError) and found[2].what == "ValueError: a bug of someone else"
