"""AITER's MLA decode, for AMD's accelerators."""

from __future__ import annotations

from grouped_decode.candidates.candidate import Candidate, Result, refuse
from grouped_decode.case import Case
from grouped_decode.inputs import Tensors


def limits(case: Case) -> str | None:
    return refuse(
        case,
        bfloat16_only=case.dtype != "bfloat16" or case.fp8,
        V_inside_K_of_576_and_512_with_one_KV_head_only=not case.shared_v
        or (case.dk, case.dv, case.kv_heads) != (576, 512, 1),
        query_heads_16_or_128_only=case.q_heads not in (16, 128),
        no_sinks=case.sinks,
        no_window=case.window is not None,
        no_soft_cap=case.logit_cap > 0,
        pages_of_one_slot_only_in_this_adapter=case.page_size > 1,
    )


def run_aiter(tensors: Tensors) -> Result:
    import torch
    from aiter.mla import mla_decode_fwd

    case, device = tensors.case, tensors.q.device
    mla_decode_fwd(
        tensors.q,
        tensors.k_buffer.unsqueeze(1),  # [pages, slots of a page, KV heads, Dk]
        tensors.out,
        torch.arange(case.batch + 1, dtype=torch.int32, device=device),
        tensors.kv_indptr,
        tensors.kv_indices,
        tensors.kv_indptr.diff().clamp(max=1),
        1,
        sm_scale=tensors.options["sm_scale"],
    )
    return tensors.out, None


AITER = Candidate("aiter", run_aiter, limits, ("aiter.mla",), ("rocm",))
