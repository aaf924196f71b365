"""SGLang's Triton decode kernel, as of 0.5.23.

Its page table holds one slot for each key, whatever the page size. A sliding window is its
backend's work, which shortens that table: the kernel has none.
"""

from __future__ import annotations

from grouped_decode.candidates.candidate import Candidate, Result, interpreted, refuse
from grouped_decode.case import Case
from grouped_decode.inputs import Tensors

MODULE = "sglang.kernels.ops.attention.decode_attention"
SPLITS = 8  # its default, --triton-attention-num-kv-splits


def limits(case: Case) -> str | None:
    return refuse(
        case,
        no_window=case.window is not None,
        no_bfloat16_in_the_interpreter=interpreted() and case.dtype == "bfloat16",
    )


def run_sglang(tensors: Tensors) -> Result:
    import torch
    from sglang.kernels.ops.attention.decode_attention import decode_attention_fwd

    case, device, options = tensors.case, tensors.q.device, tensors.options
    indptr, indices = tensors.token_table()
    cuda = device.type == "cuda" and torch.version.hip is None
    decode_attention_fwd(
        tensors.q,
        tensors.k_buffer,
        tensors.v_buffer,
        tensors.out,
        indptr,
        indices,
        tensors.scratch(case.batch, case.q_heads, SPLITS, case.dv, splits=2),
        tensors.scratch(case.batch, case.q_heads, SPLITS, splits=2),
        torch.full((case.batch,), SPLITS, dtype=torch.int32, device=device),
        SPLITS,
        options["sm_scale"],
        options["k_scale"],
        options["v_scale"],
        logit_cap=case.logit_cap,
        sinks=tensors.sinks,
        has_mla=case.shared_v,
        use_pdl=cuda and torch.cuda.get_device_capability(device) >= (9, 0),  # as its backend does
        page_size=case.page_size,
    )
    return tensors.out, None


SGLANG = Candidate("sglang", run_sglang, limits, modules=("triton", MODULE), splits=SPLITS)
