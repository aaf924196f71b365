"""The reference in a process of its own.

The command stays light (it never imports torch), a crash of the model's process costs one
batch and not the run, a second worker really is a fresh one, and a batch that hangs is ended.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import TYPE_CHECKING

from snapshot.config import Suite
from snapshot.errors import GoldensError, RunError
from snapshot.model import Fingerprint, Observation
from snapshot.runners.faults import injected
from snapshot.suite import Group

if TYPE_CHECKING:
    from snapshot.runners.reference import Reference

Load = Callable[[Suite, str], "Reference"]
"""Loads a suite's model in a dtype."""

_Answer = Fingerprint | tuple[Observation, ...] | GoldensError


@dataclass(frozen=True)
class _Task:
    """What is sent to the process; see `Worker.run`."""

    group: Group
    forced: Mapping[str, Sequence[int]] | None
    fault: str | None


class Worker:
    """A loaded reference that runs groups; a context manager.

    Args:
        suite, dtype: what it loads.
        load: loads it, in the process; a function of a module.

    Attributes:
        fingerprint: the environment it runs in, without a batch size.

    Raises:
        GoldensError: torch is missing, or the model cannot be loaded.
    """

    def __init__(self, suite: Suite, dtype: str, load: Load | None = None) -> None:
        self._suite, self._dtype, self._load = suite, dtype, load or load_reference
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self.fingerprint = self._start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process."""
        self._end()

    def run(
        self,
        group: Group,
        forced: Mapping[str, Sequence[int]] | None = None,
        fault: str | None = None,
    ) -> tuple[Observation, ...]:
        """One observation a row of the group.

        Args:
            forced: by case key: tokens that the row is made to say (see `Reference.run`).
            fault: a fault of `snapshot.runners.faults` to run with.

        Raises:
            RunError: the run raised, its process died, or it took longer than the suite's
                timeout. The worker can be used again: it starts afresh.
        """
        if self._connection is None:
            self._start()
        assert self._connection is not None
        with contextlib.suppress(BrokenPipeError):  # it died idle: receiving says how
            self._connection.send(_Task(group, forced, fault))
        answer = self._receive(self._suite.timeout)
        if isinstance(answer, GoldensError):
            raise answer
        assert isinstance(answer, tuple)
        return answer

    def _start(self) -> Fingerprint:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, self._suite, self._dtype, self._load), daemon=True
        )
        self._process.start()
        theirs.close()
        answer = self._receive(timeout=None)
        if isinstance(answer, GoldensError):
            self._end()
            raise answer
        assert isinstance(answer, Fingerprint)
        return answer

    def _receive(self, timeout: float | None) -> _Answer:
        assert self._connection is not None and self._process is not None
        if not self._connection.poll(timeout):
            self._end()
            return RunError(f"timed out after {timeout:g} s")
        try:
            answer: _Answer = self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode or 0
            self._end()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            return RunError(f"the model's process died with {how}")
        return answer

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._connection = self._process = None


def _serve(connection: Connection, suite: Suite, dtype: str, make: Load) -> None:
    """The process: loads the model once, then answers group by group."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    model: Reference | None = None

    def load() -> Fingerprint:
        nonlocal model
        model = make(suite, dtype)
        return model.fingerprint

    connection.send(_attempt(load))
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while model is not None:
            run = functools.partial(_run, model, connection.recv())
            connection.send(_attempt(run))


def _run(model: Reference, task: _Task) -> tuple[Observation, ...]:
    with injected(model, task.fault):
        return model.run(task.group, task.forced)


def load_reference(suite: Suite, dtype: str) -> Reference:
    """The reference. Raises `RunError` where what it needs is not installed."""
    try:
        from snapshot.runners.reference import Reference
    except ModuleNotFoundError as error:
        raise RunError(
            f"the reference needs {error.name}, which is not installed",
            where=sys.executable,
            hint="pip install 'goldens[lora]', or verify recorded outputs with --from FILE",
        ) from None
    return Reference(suite, dtype)


def _attempt(act: Callable[[], _Answer]) -> _Answer:
    """What `act` returns, or what it raises as an error that can be sent."""
    try:
        return act()
    except GoldensError as error:
        return error
    except Exception as error:  # torch, transformers and peft raise every kind
        reason = str(error).strip().splitlines() or [""]
        return RunError(f"{type(error).__name__}: {reason[0]}")
