"""vLLM's Triton decode kernel, as of 0.32: the one its Triton MLA backend uses."""

from __future__ import annotations

from grouped_decode.candidates.candidate import Candidate, Result, interpreted, refuse
from grouped_decode.case import Case
from grouped_decode.inputs import Tensors

MODULE = "vllm.v1.attention.ops.triton_decode_attention"
SPLITS = 8


def limits(case: Case) -> str | None:
    return refuse(
        case,
        no_sinks=case.sinks,
        no_window=case.window is not None,
        no_bfloat16_in_the_interpreter=interpreted() and case.dtype == "bfloat16",
    )


def run_vllm(tensors: Tensors) -> Result:
    import torch
    from vllm.v1.attention.ops.triton_decode_attention import decode_attention_fwd

    case, device, options = tensors.case, tensors.q.device, tensors.options
    pages = tensors.kv_indptr.diff().tolist()
    table = torch.zeros((case.batch, max(1, *pages)), dtype=torch.int32, device=device)
    for row, taken in zip(table, tensors.kv_indices.split(pages), strict=True):
        row[: len(taken)] = taken

    def scale(name: str) -> torch.Tensor:
        return torch.tensor(options[name], dtype=torch.float32, device=device)

    lse = tensors.scratch(case.batch, case.q_heads)
    decode_attention_fwd(
        tensors.q,
        tensors.k_buffer,
        tensors.v_buffer,
        tensors.out,
        lse,
        table,
        torch.tensor(case.lengths, dtype=torch.int32, device=device),
        tensors.scratch(case.batch, case.q_heads, SPLITS, case.dv + 1, splits=2),
        SPLITS,
        options["sm_scale"],
        page_size=case.page_size,
        logit_cap=case.logit_cap,
        k_scale=scale("k_scale"),
        v_scale=scale("v_scale"),
        is_mla=case.shared_v,
    )
    return tensors.out, lse


VLLM = Candidate("vllm", run_vllm, limits, modules=("triton", MODULE), splits=SPLITS)
