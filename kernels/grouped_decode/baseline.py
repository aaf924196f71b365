"""The same-dtype torch baseline: how far plain torch is from the oracle, hence how far is usual."""

from __future__ import annotations

import math
from typing import Any

import torch

from grouped_decode.arguments import check
from grouped_decode.sequences import key_slots


def attention_baseline(
    *tensors: torch.Tensor, lse_base: str = "e", **options: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """`out` [B, Hq, Dv] in q's dtype and `lse` [B, Hq] float32, with torch's own matmuls.

    Scores and softmax are in float32, weights and their product with V in q's dtype, which is where
    fused kernels round too.
    Takes and raises what `attention_oracle` does.
    """
    args = check(*tensors, **options)
    dtype = args.q.dtype
    shape = (args.batch, args.q_heads, args.dv)
    out = torch.zeros(shape, dtype=dtype, device=args.q.device)
    lse = torch.full(shape[:2], -math.inf, dtype=torch.float32, device=args.q.device)
    group = args.q_heads // args.kv_heads
    for row, slots in enumerate(key_slots(args)):
        q = args.q[row].view(args.kv_heads, group, args.dk)
        k = args.k_buffer[slots].float().permute(1, 2, 0)
        scores = q.float() @ k * (args.sm_scale * args.k_scale)
        if args.logit_cap:
            scores = args.logit_cap * torch.tanh(scores / args.logit_cap)
        terms = scores
        if args.sinks is not None:
            sinks = args.sinks.float().view(args.kv_heads, group, 1)
            terms = torch.cat([scores, sinks], 2)
        if terms.shape[2] == 0:
            continue
        total = torch.logsumexp(terms, 2)
        lse[row] = total.flatten()
        weights = torch.exp(scores - total[..., None]).to(dtype)
        v = args.v_buffer[slots].to(dtype).transpose(0, 1)
        out[row] = ((weights @ v) * args.v_scale).reshape(shape[1:])
    return out, lse if lse_base == "e" else lse / math.log(2)
