"""A function in a process of its own: what crashes, hangs or leaks there costs one answer.

The command stays light (it never imports torch), a second process really is a fresh one, and
one that hangs is ended.
"""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Self

from snapshot.errors import GoldensError, RunError

Answer = Callable[[Any], Any]
"""Takes a question, gives an answer; both can be pickled."""

Load = Callable[[], tuple[Any, Answer]]
"""What the process begins with: gives a greeting and the function that answers."""


class Process:
    """Answers questions in a process of its own; a context manager.

    Args:
        load: a picklable function that is called there first.
        timeout: seconds that an answer may take.
        name: what runs there, for messages: "the model's process".

    Attributes:
        greeting: what `load` gave besides the function.

    Raises:
        GoldensError: `load` raised; any other exception than ours becomes a `RunError`.
    """

    def __init__(self, load: Load, timeout: float, name: str) -> None:
        self._load, self._timeout, self._name = load, timeout, name
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self.greeting = self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int | None:
        """Of the process; None while there is none."""
        return None if self._process is None else self._process.pid

    def ask(self, question: Any) -> Any:
        """The answer; from a fresh process where the last one has ended.

        Raises:
            GoldensError: the function raised, its process died, or it took longer than the
                timeout. More can be asked afterwards.
        """
        if self._connection is None:
            self._start()
        assert self._connection is not None
        with contextlib.suppress(BrokenPipeError):  # it died idle: receiving says how
            self._connection.send(question)
        answer = self._receive(self._timeout)
        if isinstance(answer, GoldensError):
            raise answer
        return answer

    def end(self) -> None:
        """Ends the process; the next question starts another."""
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._connection = self._process = None

    def _start(self) -> Any:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._load), daemon=True)
        self._process.start()
        theirs.close()
        greeting = self._receive(timeout=None)
        if isinstance(greeting, GoldensError):
            self.end()
            raise greeting
        return greeting

    def _receive(self, timeout: float | None) -> Any:
        assert self._connection is not None and self._process is not None
        if not self._connection.poll(timeout):
            self.end()
            return RunError(f"timed out after {timeout:g} s")
        try:
            return self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode or 0
            self.end()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            return RunError(f"{self._name} died with {how}")


def _serve(connection: Connection, load: Load) -> None:
    """The process: loads once, then answers question by question."""
    answer: Answer | None = None

    def begin(_: None) -> Any:
        nonlocal answer
        greeting, answer = load()
        return greeting

    connection.send(_attempt(begin, None))
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while answer is not None:
            question = connection.recv()
            connection.send(_attempt(answer, question))


def _attempt(act: Answer, question: Any) -> Any:
    """What `act` returns, or what it raises as an error that can be sent."""
    try:
        return act(question)
    except GoldensError as error:
        return error
    except Exception as error:  # torch, transformers and triton raise every kind
        reason = str(error).strip().splitlines() or [""]
        return RunError(f"{type(error).__name__}: {reason[0]}")
