"""A kernel in a process of its own; whatever goes wrong there costs one case."""

from __future__ import annotations

import sys
from functools import partial
from types import TracebackType
from typing import Any

from snapshot.errors import GoldensError, RunError
from snapshot.kernel_model import KernelObservation, NotRun
from snapshot.kernel_suite import KernelSuite
from snapshot.model import Fingerprint
from snapshot.runners.process import Answer, Process

Ran = KernelObservation | NotRun | GoldensError


class KernelWorker:
    """Runs the cases of a suite with one kernel; a context manager.

    Args:
        suite: device and timeout.
        candidate: the kernel's name, which need not be one of the suite's.

    Attributes:
        fingerprint: the environment it runs in; its dtype is to be replaced by a case's.

    Raises:
        RunError: torch is missing or has no such device, or no kernel has that name.
    """

    def __init__(self, suite: KernelSuite, candidate: str) -> None:
        load = partial(_load, candidate, suite.device, suite.root)
        self._process = Process(load, suite.timeout, "the kernel's process")
        self.fingerprint: Fingerprint = self._process.greeting

    def __enter__(self) -> KernelWorker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.end()

    def run(self, key: str) -> Ran:
        """What the kernel gave, why it was not run, or what went wrong.

        After an error the next case runs in a fresh process: a GPU's context does not survive
        a bad access, and every later case would fail with it.
        """
        try:
            ran: KernelObservation | NotRun = self._process.ask(key)
        except GoldensError as error:
            self._process.end()
            return error
        return ran


def _load(candidate: str, device: str, root: Any) -> tuple[Any, Answer]:
    try:
        from snapshot.runners.decode import load
    except ModuleNotFoundError as error:
        raise RunError(
            f"kernels need {error.name}, which is not installed",
            where=sys.executable,
            hint="pip install 'goldens[kernels]'",
        ) from None
    return load(candidate, device, root)
