"""A process of its own: what happens there costs one answer."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from snapshot.errors import ConfigError, GoldensError, RunError
from snapshot.runners.process import Process


def load(greeting: str = "hello") -> tuple[Any, Callable[[Any], Any]]:
    return (greeting, os.getpid()), answer


def answer(question: Any) -> Any:
    if question == "raise":
        raise ValueError("first line\nsecond line")
    if question == "ours":
        raise RunError("known", hint="try this")
    if question == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if question == "exit":
        os._exit(7)
    if question == "hang":
        time.sleep(600)
    return question, os.getpid()


def refuse() -> Any:
    raise ConfigError("nothing has that name")


def burst() -> Any:
    raise ZeroDivisionError("in load")


def test_it_greets_answers_and_lives_on_after_what_is_raised() -> None:
    with Process(partial(load, "hi"), 30, "it") as process:
        greeting, pid = process.greeting
        assert greeting == "hi" and pid != os.getpid()
        assert process.ask([1]) == ([1], pid)
        with pytest.raises(RunError, match=r"ValueError: first line$"):
            process.ask("raise")
        with pytest.raises(RunError, match="known") as error:
            process.ask("ours")
        assert error.value.hint == "try this"
        assert process.ask(2) == (2, pid)


def test_death_and_hanging_cost_one_answer() -> None:
    with Process(load, 2, "it") as process:
        with pytest.raises(RunError, match="it died with signal 9"):
            process.ask("die")
        with pytest.raises(RunError, match="it died with exit code 7"):
            process.ask("exit")
        with pytest.raises(RunError, match="timed out after 2 s"):
            process.ask("hang")
        answer, pid = process.ask("again")
        assert answer == "again" and pid != process.greeting[1]


@pytest.mark.parametrize(("begin", "kind"), [(refuse, ConfigError), (burst, RunError)])
def test_what_loading_raises_is_raised_here(begin: Any, kind: type[GoldensError]) -> None:
    with pytest.raises(kind):
        Process(begin, 5, "it")
