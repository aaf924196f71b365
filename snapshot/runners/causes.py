"""Why a kernel's result is wrong, where running it again can tell: what it depends on and must not.

Each answer is an experiment: the same values, without one thing that no right result can depend
on. Where none helps, that is said as well: then it is computed wrongly from what may be read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from grouped_decode.case import Case

from snapshot.kernel_model import Computed
from snapshot.kernel_policy import Bounds, within

if TYPE_CHECKING:
    from grouped_decode.inputs import Inputs, Tensors

Clean = Callable[["Inputs", "Tensors"], None]

PADDING = ("nanpad", "garbagepad")
"""Traits that fill slots which no sequence owns."""

TRIES = 16
"""Slots or splits that are tried one by one: each is a run of the kernel."""


@dataclass(frozen=True)
class Conditions:
    """What a kernel finds besides its inputs.

    Attributes:
        out: what the output buffer holds.
        scratch: what scratch holds.
        split: the only split whose scratch holds it, the others' holds zeros; None: all.
        clean: changes the placed cache.
    """

    out: float = math.nan
    scratch: float = math.nan
    split: int | None = None
    clean: Clean | None = None


Try = Callable[[Case, Conditions], Computed | None]
"""What the kernel gives under these conditions; None where it raises."""


@dataclass(frozen=True)
class Experiments:
    """A wrong result, and how to have the kernel run again.

    Attributes:
        case: the workload.
        found: the result that is wrong.
        attempt: runs it again.
        splits: of the kernel's scratch, where it says how many.
    """

    case: Case
    found: Computed
    attempt: Try
    splits: int | None = None

    def causes(self) -> Iterator[str]:
        """Sentences, the most telling first."""
        known = [*self._buffers(), *self._padding()]
        yield from known
        if not known and self.found.misplaced:
            poisoned = _without(self.case) != self.case
            seen = self.attempt(_without(self.case), Conditions(0.0, 0.0))
            if seen is not None and seen.misplaced:
                where = "output, scratch and padding" if poisoned else "output and scratch"
                yield f"not from memory it must not read: the same where {where} hold zeros"

    def _buffers(self) -> Iterator[str]:
        if not self._helps(Conditions(0.0, 0.0)):
            return
        if how := self._helps(Conditions(out=0.0)):
            yield f"rows are never written: {how} where the output buffer held zeros"
        elif how := self._helps(Conditions(scratch=0.0)):
            tried = range(min(self.splits or 0, TRIES))
            first = next((s for s in tried if not self._helps(Conditions(split=s))), None)
            which = f"; the first split that shows is {first} of {self.splits}"
            yield f"scratch is read that was never written: {how} where it held zeros" + (
                "" if first is None else which
            )
        else:
            yield "depends on what output and scratch held: better where both held zeros"

    def _padding(self) -> Iterator[str]:
        how = self._helps(Conditions(), _without(self.case))
        if _without(self.case) == self.case or not how:
            return
        where = "slots that nobody owns hold"
        if self.case.page_size > 1 and self._helps(Conditions(clean=_clean_tails)):
            where = f"the unused slots of last pages{self._slot()} hold"
        elif self._helps(Conditions(clean=_clean_first_page)):
            where = "page 0, which no sequence owns and padded page tables show, holds"
        yield f"depends on padding: {how} where {where} zeros"

    def _slot(self) -> str:
        """The first unused slot that by itself makes the first bad sequence's rows wrong."""
        bad = self.found.misplaced
        row = bad[0].first[0] if bad else self.found.errors.row[0]
        page = self.case.page_size
        used = (self.case.lengths[row] - 1) % page + 1
        for offset in range(used, min(page, used + TRIES)):
            if not self._helps(Conditions(clean=partial(_clean_tails, but=(row, offset)))):
                return f" (slot {offset} of sequence {row}'s is the first to show)"
        return ""

    def _helps(self, conditions: Conditions, case: Case | None = None) -> str:
        """How much better the result is then; empty where it is not."""
        seen = self.attempt(self.case if case is None else case, conditions)
        if seen is None:
            return ""
        if within(seen, Bounds()):
            return "right"
        error = f"(rel-L2 {seen.errors.rel_l2:.3g})"
        if self.found.misplaced:
            return "" if seen.misplaced else f"finite, though wrong {error},"
        less = not seen.misplaced and seen.errors.rel_l2 < self.found.errors.rel_l2 / 2
        return f"less wrong {error}" if less else ""


def _clean_tails(inputs: Inputs, tensors: Tensors, but: tuple[int, int] | None = None) -> None:
    """Zeros in the slots of each sequence's last page that hold no key; not in the slot `but`,
    a sequence and a place in its last page."""
    case, page = inputs.case, inputs.case.page_size
    _zero(
        tensors,
        [
            int(inputs.kv_indices[end - 1]) * page + offset
            for row, (end, length) in enumerate(
                zip(inputs.kv_indptr[1:], case.lengths, strict=True)
            )
            for offset in range((length - 1) % page + 1 if length else page, page)
            if (row, offset) != but
        ],
    )


def _clean_first_page(inputs: Inputs, tensors: Tensors) -> None:
    _zero(tensors, list(np.arange(inputs.case.page_size)))


def _zero(tensors: Tensors, slots: list[int]) -> None:
    import torch

    chosen = torch.tensor(slots, dtype=torch.long, device=tensors.q.device)
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[tensors.k_buffer.element_size()]
    for buffer in (tensors.k_buffer, tensors.v_buffer):
        buffer.view(bits)[chosen] = 0


def _without(case: Case) -> Case:
    """The case with zeros in slots that nobody owns."""
    return replace(case, traits=tuple(t for t in case.traits if t not in PADDING))
