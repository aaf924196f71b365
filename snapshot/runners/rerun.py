"""The reference run again here and now, as far as judging a difference needs it.

Whatever was run once is kept for as long as the run lasts: the cases of a batch share it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from snapshot.errors import GoldensError
from snapshot.model import GenerationCase, Observation
from snapshot.plan import Plan
from snapshot.progress import Progress
from snapshot.runners.observe import observe
from snapshot.runners.worker import Worker
from snapshot.suite import Group

FLOAT32 = "float32"

Forced = Mapping[str, Sequence[int]]


class Rerun:
    """A context manager; workers start when they are first needed.

    Args:
        plan: the suite and its cases.
        progress: told of every run.

    Attributes:
        notes: what could not be run, and why, each once.
    """

    def __init__(self, plan: Plan, progress: Progress) -> None:
        self._plan, self._progress = plan, progress
        self._workers: dict[str, Worker | GoldensError] = {}
        self._kept: dict[tuple[str, str, tuple[Group, ...]], Mapping[str, Observation]] = {}
        self.notes: list[str] = []

    def __enter__(self) -> Rerun:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            if isinstance(worker, Worker):
                worker.close()

    def worker(self, dtype: str) -> Worker:
        """The reference in a dtype.

        Raises:
            GoldensError: it cannot be run here; the same one again each time.
        """
        if dtype not in self._workers:
            try:
                self._workers[dtype] = Worker(self._plan.suite, dtype)
            except GoldensError as error:
                self._workers[dtype] = error
        found = self._workers[dtype]
        if isinstance(found, GoldensError):
            raise found
        return found

    def free(self, dtype: str, size: int, keys: Iterable[str]) -> Mapping[str, Observation]:
        """What the reference says to these cases at a batch size; without those that failed."""
        groups = self._plan.groups(size, frozenset(keys))
        return self._run("again", dtype, groups, None)

    def afresh(self, dtype: str, size: int, keys: Iterable[str]) -> Mapping[str, Observation]:
        """As `free`, in a process of its own."""
        groups = self._plan.groups(size, frozenset(keys))
        return self._run("in a fresh process", dtype, groups, None, fresh=True)

    def forced(
        self, dtype: str, size: int, keys: Iterable[str], tokens: Forced
    ) -> Mapping[str, Observation]:
        """The reference made to say `tokens`, by case key, and scoring them."""
        groups = self._plan.groups(size, frozenset(keys))
        return self._run("on the golden's tokens", dtype, groups, tokens)

    def as_base(
        self, dtype: str, size: int, keys: Iterable[str], tokens: Forced
    ) -> Mapping[str, Observation]:
        """As `forced`, with no adapter on any row."""
        groups = [
            Group(tuple(map(_without_adapter, group.rows)), group.size)
            for group in self._plan.groups(size, frozenset(keys))
        ]
        return self._run("without adapters", dtype, groups, tokens)

    def _run(
        self,
        label: str,
        dtype: str,
        groups: Sequence[Group],
        tokens: Forced | None,
        fresh: bool = False,
    ) -> Mapping[str, Observation]:
        name = (label, dtype, tuple(groups))
        if name not in self._kept:
            self._kept[name] = self._observed(label, dtype, groups, tokens, fresh)
        return self._kept[name]

    def _observed(
        self,
        label: str,
        dtype: str,
        groups: Sequence[Group],
        tokens: Forced | None,
        fresh: bool,
    ) -> Mapping[str, Observation]:
        if not groups:
            return {}
        what = f"reference {label}, {dtype} batch {groups[0].size}"
        with contextlib.ExitStack() as stack:
            try:
                worker = Worker(self._plan.suite, dtype) if fresh else self.worker(dtype)
            except GoldensError as error:
                self._note(f"{what}: not run: {error.what}")
                return {}
            if fresh:
                stack.enter_context(worker)
            advance = stack.enter_context(self._progress(what, sum(len(g.rows) for g in groups)))
            rows = observe(worker, groups, advance, tokens)
        for key, row in rows.items():
            if isinstance(row, GoldensError):
                self._note(f"{what}: {key}: {row.what}")
        return {key: row for key, row in rows.items() if isinstance(row, Observation)}

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _without_adapter(case: GenerationCase) -> GenerationCase:
    return dataclasses.replace(case, adapter=None)
