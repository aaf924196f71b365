"""Merging of partial attention results, as cascade attention and sharded caches need it."""

from __future__ import annotations

import math

import torch


def merge_states(
    out_a: torch.Tensor, lse_a: torch.Tensor, out_b: torch.Tensor, lse_b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The attention over both key sets from that over each.

    out = (exp(lse_a) out_a + exp(lse_b) out_b) / (exp(lse_a) + exp(lse_b)), computed in float32
    with the larger LSE taken out. A state with lse = -inf is empty: it has no weight, whatever
    its output holds, NaN included. Two empty states give out = 0, lse = -inf. A sink must have
    been added to one of the states only.

    Args:
        out_a, out_b: [..., Dv], one dtype, normalised.
        lse_a, lse_b: [...] float32, natural logarithm.

    Returns:
        (out [..., Dv] in the states' dtype, lse [...] float32)

    Raises:
        ValueError: shapes or dtypes do not fit together.
    """
    if out_a.shape != out_b.shape or out_a.dtype != out_b.dtype:
        raise ValueError(
            f"out_b: expected shape {tuple(out_a.shape)} and dtype {out_a.dtype} (out_a's), "
            f"got {tuple(out_b.shape)} and {out_b.dtype}"
        )
    for name, lse in (("lse_a", lse_a), ("lse_b", lse_b)):
        if lse.shape != out_a.shape[:-1]:
            wanted, got = tuple(out_a.shape[:-1]), tuple(lse.shape)
            raise ValueError(f"{name}: expected shape {wanted}, got {got}")
    lse_a, lse_b = lse_a.float(), lse_b.float()
    peak = torch.maximum(lse_a, lse_b)
    top = torch.where(peak == -math.inf, 0.0, peak)
    weight_a, weight_b = torch.exp(lse_a - top), torch.exp(lse_b - top)
    mass = weight_a + weight_b
    total = torch.where(mass == 0, 1.0, mass)
    out = _share(out_a, weight_a / total) + _share(out_b, weight_b / total)
    return out.to(out_a.dtype), torch.where(mass == 0, -math.inf, top + torch.log(total))


def _share(out: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    weight = weight[..., None]
    return torch.where(weight == 0, 0.0, out.float() * weight)
