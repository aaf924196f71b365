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


Right = Callable[[Case, Conditions], bool]
"""Whether the kernel's result is right under these conditions."""


def causes(case: Case, found: Computed, splits: int | None, right: Right) -> Iterator[str]:
    """Sentences, the most telling first.

    Args:
        found: the result that is wrong.
        splits: of the kernel's scratch, where it says how many.
    """
    known = [*_buffers(case, splits, right), *_padding(case, found, right)]
    yield from known
    if not known and found.misplaced:
        padding = any(trait in case.traits for trait in PADDING)
        if not padding or not right(_without(case), Conditions(0.0, 0.0)):
            where = "output, scratch and padding" if padding else "output and scratch"
            yield f"not from memory it must not read: the same where {where} hold zeros"


def _buffers(case: Case, splits: int | None, right: Right) -> Iterator[str]:
    if not right(case, Conditions(0.0, 0.0)):
        return
    if right(case, Conditions(out=0.0)):
        yield "rows are never written: right where the output buffer held zeros"
    elif right(case, Conditions(scratch=0.0)):
        leaks = (s for s in range(min(splits or 0, TRIES)) if not right(case, Conditions(split=s)))
        first = next(leaks, None)
        which = "" if first is None else f"; the first split that shows is {first} of {splits}"
        yield f"scratch is read that was never written: right where it held zeros{which}"
    else:
        yield "depends on what output and scratch held: right where both held zeros"


def _padding(case: Case, found: Computed, right: Right) -> Iterator[str]:
    for trait in PADDING:
        if trait not in case.traits or not right(_without(case), Conditions()):
            continue
        where = "slots that nobody owns"
        if case.page_size > 1 and right(case, Conditions(clean=_clean_tails)):
            where = "the unused slots of last pages" + _slot(case, found, right)
        elif right(case, Conditions(clean=_clean_first_page)):
            where = "page 0, which no sequence owns and padded page tables show,"
        yield f"depends on padding: right where {where} hold zeros".replace(", hold", ", holds")


def _slot(case: Case, found: Computed, right: Right) -> str:
    """The first unused slot that by itself makes the first bad sequence's rows wrong."""
    row = found.misplaced[0].first[0] if found.misplaced else found.errors.row[0]
    used = (case.lengths[row] - 1) % case.page_size + 1
    for offset in range(used, min(case.page_size, used + TRIES)):
        if not right(case, Conditions(clean=partial(_clean_tails, but=(row, offset)))):
            return f" (slot {offset} of sequence {row}'s is the first to show)"
    return ""


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
