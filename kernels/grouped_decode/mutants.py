"""Kernels that are wrong on purpose, to show that the bounds see what public kernels get wrong.

Each starts from the float64 oracle and makes one mistake, so the mistake is all there is to see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from grouped_decode.arguments import check
from grouped_decode.inputs import Tensors
from grouped_decode.oracle import attention_oracle
from grouped_decode.sequences import key_slots

Result = tuple[torch.Tensor, torch.Tensor]
SPLITS = 4


def unharmed(tensors: Tensors) -> Result:
    """No mistake: what each mutant would give without its own."""
    return _rounded(tensors, attention_oracle(*tensors.positional, **tensors.options))


def oldest_key_dropped(tensors: Tensors) -> Result:
    """A window that is one too short."""
    return _over_slots(tensors, lambda slots: slots[1:])


def scale_up_1_percent(tensors: Tensors) -> Result:
    """Scores multiplied with 1.01."""
    options = {**tensors.options, "sm_scale": tensors.options["sm_scale"] * 1.01}
    return _rounded(tensors, attention_oracle(*tensors.positional, **options))


def gain_up_2_percent(tensors: Tensors) -> Result:
    """Outputs multiplied with 1.02: cosine similarity cannot see it."""
    out, lse = attention_oracle(*tensors.positional, **tensors.options)
    return _rounded(tensors, (out * 1.02, lse))


def last_split_dropped(tensors: Tensors) -> Result:
    """The last of four splits never merged."""
    return _over_slots(tensors, lambda slots: slots[: len(slots) - len(slots) // SPLITS])


def lse_not_rescaled(tensors: Tensors) -> Result:
    """Partial outputs averaged as if every split had the same weight."""
    parts = [
        _over_slots(tensors, lambda slots, i=i: slots.tensor_split(SPLITS)[i], sink=i == 0)
        for i in range(SPLITS)
    ]
    out = torch.stack([part.double() for part, _ in parts]).mean(0)
    lse = torch.logsumexp(torch.stack([lse for _, lse in parts]), 0)
    return _rounded(tensors, (out, lse))


def stale_page(tensors: Tensors) -> Result:
    """One page of each sequence replaced by its first page, as by an old table entry."""

    def shift(slots: torch.Tensor) -> torch.Tensor:
        size, middle = tensors.case.page_size, len(slots) // 2
        return torch.cat([slots[:middle], slots[:size], slots[middle + size :]])[: len(slots)]

    return _over_slots(tensors, shift)


def sink_counted_twice(tensors: Tensors) -> Result:
    """The sink added by the splits and again by their merge."""
    out, lse = attention_oracle(*tensors.positional, **tensors.options)
    if tensors.sinks is None:
        return _rounded(tensors, (out, lse))
    twice = torch.logaddexp(lse, tensors.sinks.double())
    return _rounded(tensors, (out * torch.exp(lse - twice)[..., None], twice))


MUTANTS: dict[str, Callable[[Tensors], Result]] = {
    mutant.__name__: mutant
    for mutant in (
        oldest_key_dropped,
        scale_up_1_percent,
        gain_up_2_percent,
        last_split_dropped,
        lse_not_rescaled,
        stale_page,
        sink_counted_twice,
    )
}


def _over_slots(
    tensors: Tensors, change: Callable[[torch.Tensor], torch.Tensor], sink: bool = True
) -> Result:
    """The oracle over each sequence's changed list of key slots."""
    args = check(*tensors.positional, **tensors.options)
    changed = [change(slots) for slots in key_slots(args)]
    ends = torch.tensor([0] + [len(slots) for slots in changed]).cumsum(0)
    table = replace(
        tensors,
        kv_indptr=ends.to(tensors.kv_indptr),
        kv_indices=torch.cat(changed).to(tensors.kv_indices),
    )
    options = {**tensors.options, "window": None, "page_size": 1, "last_page_len": None}
    if not sink:
        options["sinks"] = None
    return _rounded(tensors, attention_oracle(*table.positional, **options))


def _rounded(tensors: Tensors, result: Result) -> Result:
    return result[0].to(tensors.q.dtype), result[1].float()
