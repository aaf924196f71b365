"""The reference in a process of its own: a crash or a hang costs one batch and not the run."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapshot.config import Suite
from snapshot.model import Fingerprint, Observation
from snapshot.runners.faults import injected
from snapshot.runners.imports import Broken, unimportable
from snapshot.runners.process import Answer, Process
from snapshot.suite import Group

if TYPE_CHECKING:
    from snapshot.runners.reference import Reference

Load = Callable[[Suite, str], "Reference"]
"""Loads a suite's model in a dtype."""


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
        process: where it runs.
        fingerprint: the environment it runs in, without a batch size.

    Raises:
        GoldensError: torch is missing, or the model cannot be loaded.
    """

    def __init__(self, suite: Suite, dtype: str, load: Load | None = None) -> None:
        self.process = Process(
            functools.partial(_begin, suite, dtype, load or load_reference),
            suite.timeout,
            "the model's process",
        )
        self.fingerprint: Fingerprint = self.process.greeting

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process."""
        self.process.end()

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
        rows: tuple[Observation, ...] = self.process.ask(_Task(group, forced, fault))
        return rows


def _begin(suite: Suite, dtype: str, load: Load) -> tuple[Fingerprint, Answer]:
    """In the process: loads the model once, for every group to come."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    model = load(suite, dtype)
    return model.fingerprint, functools.partial(_run, model)


def _run(model: Reference, task: _Task) -> tuple[Observation, ...]:
    with injected(model, task.fault):
        return model.run(task.group, task.forced)


def load_reference(suite: Suite, dtype: str) -> Reference:
    """The reference. Raises `RunError` where what it needs cannot be imported."""
    try:
        from snapshot.runners.reference import Reference
    except Broken as error:
        hint = "pip install 'goldens[lora]', or verify recorded outputs with --from FILE"
        raise unimportable("the reference needs", error, hint) from None
    return Reference(suite, dtype)
