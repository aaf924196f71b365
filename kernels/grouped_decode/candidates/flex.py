"""torch's flex_attention, on padded keys and values; compiled where there is a GPU."""

from __future__ import annotations

from typing import Any

from grouped_decode.candidates.candidate import Candidate, Result, refuse
from grouped_decode.candidates.padded import padded
from grouped_decode.case import Case
from grouped_decode.inputs import Tensors


def limits(case: Case) -> str | None:
    power = case.dk & (case.dk - 1) == 0 and case.dv & (case.dv - 1) == 0
    return refuse(
        case,
        no_sinks=case.sinks,
        no_float8=case.fp8,
        compiles_for_head_widths_that_are_powers_of_two_up_to_512_only=not power,
    )


def run_flex(tensors: Tensors) -> Result:
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    k, v, valid = padded(tensors)
    case, device = tensors.case, tensors.q.device
    cap = case.logit_cap

    def capped(score: Any, *_: Any) -> Any:
        return cap * torch.tanh(score / cap)

    mask = create_block_mask(
        lambda b, h, row, key: valid[b, key], case.batch, None, 1, k.shape[2], device=str(device)
    )
    call = torch.compile(flex_attention, dynamic=False) if device.type == "cuda" else flex_attention
    out, lse = call(
        tensors.q.unsqueeze(2),
        k,
        v,
        score_mod=capped if cap else None,
        block_mask=mask,
        scale=case.dk**-0.5,
        enable_gqa=case.group > 1,
        return_lse=True,
    )
    return out.squeeze(2), lse.squeeze(2)


FLEX = Candidate("flex", run_flex, limits, modules=("torch",))
