"""What a command line selects: suites, their cases, and the whole batches to run."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from snapshot.config import Config, Suite
from snapshot.errors import UsageError
from snapshot.kernel_policy import check_kernel_rules
from snapshot.kernel_suite import KernelSuite, dtype_of
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


@dataclass(frozen=True)
class KernelPlan:
    """The selected part of one kernel suite.

    Attributes:
        suite: the suite.
        chosen: the selected case keys, in order.
    """

    suite: KernelSuite
    chosen: tuple[str, ...]

    @property
    def whole(self) -> bool:
        return len(self.chosen) == len(self.suite.cases)

    def dtypes(self, wanted: str | None = None) -> tuple[str, ...]:
        """The dtypes of the selected cases, or the one that is wanted of the suite's.

        Raises:
            UsageError: no case of the suite has it.
        """
        kept = narrow(self.suite, "dtypes", self.suite.dtypes, wanted)
        return tuple(dtype for dtype in kept if self.keys(dtype))

    def keys(self, dtype: str) -> tuple[str, ...]:
        """The selected cases of one dtype: those share a fingerprint."""
        return tuple(key for key in self.chosen if dtype_of(key) == dtype)


def plans(config: Config, selectors: Sequence[str]) -> list[Plan]:
    """The suites and cases of kind ``lora-generation`` that the selectors name.

    Args:
        selectors: each a suite's name or a glob over case keys; everything when there is none.

    Raises:
        UsageError: a selector that selects nothing, in suites of any kind.
        ConfigError: a suite's prompts, or a rule that matches no case.
    """
    cases = _generation_cases(config)
    chosen = _chosen(config, cases, selectors)
    return [
        Plan(suite, tuple(cases[suite.name]), frozenset(chosen[suite.name]))
        for suite in config.suites.values()
        if chosen[suite.name]
    ]


def generation_plans(config: Config, selectors: Sequence[str]) -> list[Plan]:
    """As `plans`, for commands that have nothing to do for kernels.

    Raises:
        UsageError: as `plans`, or no generation is selected.
    """
    found = plans(config, selectors)
    if not found:
        raise UsageError(
            "this is for text generation, and only kernels are selected",
            where=str(config.path),
            expected=f"a case of {', '.join(config.suites)}"
            if config.suites
            else "a suite of kind lora-generation, and none is configured",
            got=" ".join(selectors) or "no selector",
        )
    return found


def kernel_plans(config: Config, selectors: Sequence[str]) -> list[KernelPlan]:
    """The suites and cases of kind ``grouped-decode`` that the selectors name; as `plans`."""
    chosen = _chosen(config, _generation_cases(config), selectors)
    return [
        KernelPlan(suite, tuple(chosen[suite.name]))
        for suite in config.kernels.values()
        if chosen[suite.name]
    ]


def both_kinds(
    config: Config,
    selectors: Sequence[str],
    *,
    batch_size: int | None = None,
    candidate: str | None = None,
) -> tuple[list[Plan], list[KernelPlan]]:
    """Both kinds' plans, without those that an option leaves out.

    Args:
        batch_size: kernels have none, so where one is asked for they are left out.
        candidate: generation has none, so where one is asked for it is left out.

    Raises:
        UsageError: as `plans`, or nothing is left.
    """
    generation, kernels = plans(config, selectors), kernel_plans(config, selectors)
    if batch_size is not None:
        if kernels and not generation:
            raise UsageError(
                "kernels have no batch size: it stands in the case's key",
                where=f"suites.{kernels[0].suite.name}",
                expected="a selector, such as " + kernels[0].chosen[0],
                got=f"--batch-size {batch_size}",
            )
        kernels = []
    if candidate is not None:
        if not kernels:
            raise UsageError(
                "candidates are kernels, and no kernel suite is selected",
                where="--candidate",
                expected=f"one of {', '.join(config.kernels) or 'none is configured'}",
                got=" ".join(selectors) or "no selector",
            )
        generation = []
        kernels = [_narrowed(plan, candidate) for plan in kernels]
    return generation, kernels


def _narrowed(plan: KernelPlan, candidate: str) -> KernelPlan:
    candidates = narrow(plan.suite, "candidates", plan.suite.candidates, candidate)
    return replace(plan, suite=replace(plan.suite, candidates=candidates))


def _generation_cases(config: Config) -> dict[str, list[GenerationCase]]:
    return {
        suite.name: generation_cases(read_prompts(suite.prompts), list(suite.adapters))
        for suite in config.suites.values()
    }


def _chosen(
    config: Config, cases: Mapping[str, Sequence[GenerationCase]], selectors: Sequence[str]
) -> dict[str, list[str]]:
    """The selected keys of every suite, whatever its kind."""
    keys = {name: [case.key for case in found] for name, found in cases.items()}
    keys |= {suite.name: list(suite.cases) for suite in config.kernels.values()}
    for suite in config.suites.values():
        check_rules(suite.policy, keys[suite.name])
    for kernels in config.kernels.values():
        check_kernel_rules(kernels.policy, kernels.cases)
    globs = [selector for selector in selectors if selector not in keys]
    for glob in globs:
        if not any(select(found, [glob]) for found in keys.values()):
            everything = [*keys, *itertools.chain(*keys.values())]
            close = difflib.get_close_matches(glob, everything, n=3, cutoff=0.4)
            raise UsageError(
                "nothing is selected by this",
                where=str(config.path),
                expected="a suite or a glob over case keys"
                + (f", such as {', '.join(close)}" if close else ""),
                got=glob,
                hint="goldens status --json",
            )
    return {
        name: found if not selectors or name in selectors else select(found, globs) if globs else []
        for name, found in keys.items()
    }


def narrow(
    suite: Suite | KernelSuite, key: str, configured: tuple[T, ...], wanted: T | None
) -> tuple[T, ...]:
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
