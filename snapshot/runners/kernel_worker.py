"""A kernel in a process of its own; whatever goes wrong there costs one case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from snapshot.errors import GoldensError, RunError
from snapshot.kernel_model import KernelObservation, NotRun
from snapshot.kernel_suite import KernelSuite
from snapshot.model import Fingerprint
from snapshot.runners.imports import Broken, unimportable
from snapshot.runners.process import Answer, Process

Ran = KernelObservation | NotRun | GoldensError


class KernelWorker:
    """Runs the cases of a suite with one kernel; a context manager.

    Args:
        suite: device and timeout.
        candidate: the kernel's name, which need not be one of the suite's.

    Attributes:
        problem: why the kernel cannot be had; then every case is answered with it.

    Raises:
        ConfigError: no kernel has that name.
        RunError: torch is missing or has no such device.
    """

    def __init__(self, suite: KernelSuite, candidate: str) -> None:
        load = partial(_load, candidate, suite.device, suite.root)
        self._suite, self._candidate = suite, candidate
        self._process = Process(load, suite.timeout, "the kernel's process")
        greeting: tuple[Fingerprint, RunError | None] = self._process.greeting
        self._fingerprint, self.problem = greeting

    def __enter__(self) -> KernelWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.end()

    def at(self, dtype: str) -> Fingerprint:
        """The environment it runs in, for cases of a dtype."""
        return replace(self._fingerprint, identity=replace(self._fingerprint.identity, dtype=dtype))

    def observe(
        self, keys: Iterable[str], advance: Callable[[int], None]
    ) -> Iterator[tuple[str, Ran]]:
        """Runs the cases in order, but for those that the suite does not run here."""
        backend = self._fingerprint.identity.backend
        device = "cuda" if backend == "rocm" else backend
        for key in keys:
            reason = self._suite.policy.excluded(key, self._candidate, device)
            yield key, self.run(key) if reason is None else NotRun(key, reason)
            advance(1)

    def run(self, key: str) -> Ran:
        """What the kernel gave, why it was not run, or what went wrong.

        After an error the next case runs in a fresh process: a GPU's context does not survive
        a bad access, and every later case would fail with it.
        """
        if self.problem is not None:
            return self.problem
        try:
            ran: KernelObservation | NotRun = self._process.ask(
                (key, self._suite.policy.masks(key))
            )
        except GoldensError as error:
            self._process.end()
            return error
        return ran


def _load(candidate: str, device: str, root: Any) -> tuple[Any, Answer]:
    try:
        from snapshot.runners.decode import load
    except Broken as error:
        raise unimportable("kernels need", error, "pip install 'goldens[kernels]'") from None
    return load(candidate, device, root)
