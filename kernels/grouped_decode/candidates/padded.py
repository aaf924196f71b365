"""Keys and values as padded batches, for kernels that know no pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grouped_decode.inputs import Tensors

if TYPE_CHECKING:
    import torch


def padded(tensors: Tensors) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """K and V as [B, Hkv, longest, D], and which keys count, bool [B, longest].

    Entries past a sequence's end show slot 0, which no sequence owns, as padded tables do.
    """
    import torch

    from grouped_decode.arguments import check
    from grouped_decode.sequences import key_slots

    rows = list(key_slots(check(*tensors.positional, **tensors.options)))
    longest = max(1, *map(len, rows))
    table = torch.zeros((len(rows), longest), dtype=torch.long, device=tensors.q.device)
    valid = torch.zeros_like(table, dtype=torch.bool)
    for row, slots in enumerate(rows):
        table[row, : len(slots)] = slots
        valid[row, : len(slots)] = True
    k = tensors.k_buffer[table].transpose(1, 2)
    return k, tensors.v_buffer[table].transpose(1, 2), valid
