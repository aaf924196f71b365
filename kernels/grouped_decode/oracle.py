"""The truth kernels are held to: attention in float64 on the inputs as they are stored."""

from __future__ import annotations

import math
from typing import Any

import torch

from grouped_decode.arguments import check
from grouped_decode.sequences import key_slots


def attention_oracle(
    *tensors: torch.Tensor, lse_base: str = "e", **options: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Float64 `out` [B, Hq, Dv] and `lse` [B, Hq] of a `grouped_decode_attention` call.

    Takes its five tensors and those of its options that change the result, on any device. The
    formula is in that function's docstring; this is it, one sequence at a time, nothing fused.

    Raises:
        TypeError, ValueError: as `grouped_decode_attention`.
    """
    args = check(*tensors, **options)
    shape = (args.batch, args.q_heads, args.dv)
    out = torch.zeros(shape, dtype=torch.float64, device=args.q.device)
    lse = torch.full(shape[:2], -math.inf, dtype=torch.float64, device=args.q.device)
    group = args.q_heads // args.kv_heads
    for row, slots in enumerate(key_slots(args)):
        q = args.q[row].double().view(args.kv_heads, group, args.dk)
        k = args.k_buffer[slots].double()
        scores = torch.einsum("hgd,nhd->hgn", q, k) * (args.sm_scale * args.k_scale)
        if args.logit_cap:
            scores = args.logit_cap * torch.tanh(scores / args.logit_cap)
        scores = scores.reshape(args.q_heads, len(slots))
        terms = scores
        if args.sinks is not None:
            terms = torch.cat([scores, args.sinks.double()[:, None]], 1)
        if terms.shape[1] == 0:
            continue
        lse[row] = torch.logsumexp(terms, 1)
        weights = torch.exp(scores - lse[row][:, None]).view(args.kv_heads, group, -1)
        v = args.v_buffer[slots].double()
        out[row] = torch.einsum("hgn,nhd->hgd", weights, v).reshape(shape[1:]) * args.v_scale
    return out, lse if lse_base == "e" else lse / math.log(2)
