"""What a command line selects: suites, their cases, and the whole batches to run."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from snapshot.config import Config, Suite
from snapshot.errors import UsageError
from snapshot.model import GenerationCase
from snapshot.policy import check_rules
from snapshot.suite import Group, generation_cases, groups, read_prompts, select

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """The selected part of one suite.

    Attributes:
        suite: the suite.
        cases: all its cases, in order.
        chosen: keys of the selected ones.
    """

    suite: Suite
    cases: tuple[GenerationCase, ...]
    chosen: frozenset[str]

    @property
    def whole(self) -> bool:
        return len(self.chosen) == len(self.cases)

    def with_base_rows(self, keys: frozenset[str]) -> frozenset[str]:
        """The keys, and the base row of each one's prompt: an adapter is judged beside it."""
        prompts = {case.prompt for case in self.cases if case.key in keys}
        base = {c.key for c in self.cases if c.adapter is None and c.prompt in prompts}
        return keys | base

    def groups(self, batch_size: int, keys: frozenset[str] | None = None) -> list[Group]:
        """The batches that hold a row of `keys` (default: a selected one), whole: what is
        selected never changes a number."""
        wanted = self.chosen if keys is None else keys
        return [
            group
            for group in groups(self.cases, batch_size)
            if any(case.key in wanted for case in group.rows)
        ]


def plans(config: Config, selectors: Sequence[str]) -> list[Plan]:
    """The suites and cases that the selectors name; everything when there is none.

    Args:
        selectors: each a suite's name or a glob over case keys.

    Raises:
        UsageError: a selector that selects nothing.
        ConfigError: a suite's prompts, or a rule that matches no case.
    """
    globs = [selector for selector in selectors if selector not in config.suites]
    used: set[str] = set()
    found: list[Plan] = []
    everything: list[str] = list(config.suites)
    for suite in config.suites.values():
        cases = generation_cases(read_prompts(suite.prompts), list(suite.adapters))
        keys = [case.key for case in cases]
        check_rules(suite.policy, keys)
        everything += keys
        used.update(glob for glob in globs if select(keys, [glob]))
        if not selectors or suite.name in selectors:
            chosen = keys
        else:
            chosen = select(keys, globs) if globs else []
        if chosen:
            found.append(Plan(suite, tuple(cases), frozenset(chosen)))
    for glob in globs:
        if glob not in used:
            close = difflib.get_close_matches(glob, everything, n=3, cutoff=0.4)
            raise UsageError(
                "nothing is selected by this",
                where=str(config.path),
                expected="a suite or a glob over case keys"
                + (f", such as {', '.join(close)}" if close else ""),
                got=glob,
                hint="goldens status --json",
            )
    return found


def narrow(suite: Suite, key: str, configured: tuple[T, ...], wanted: T | None) -> tuple[T, ...]:
    """The configured values of a suite's key, or the one that is wanted of them.

    Raises:
        UsageError: the suite is not configured for it.
    """
    if wanted is None:
        return configured
    if wanted not in configured:
        raise UsageError(
            "the suite is not configured for this",
            where=f"suites.{suite.name}.{key}",
            expected=", ".join(map(str, configured)),
            got=str(wanted),
        )
    return (wanted,)
