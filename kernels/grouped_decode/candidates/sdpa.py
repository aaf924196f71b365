"""torch's scaled_dot_product_attention, on padded keys and values."""

from __future__ import annotations

from grouped_decode.candidates.candidate import Candidate, Result, refuse
from grouped_decode.candidates.padded import padded
from grouped_decode.case import Case
from grouped_decode.inputs import Tensors


def limits(case: Case) -> str | None:
    return refuse(case, no_soft_cap=case.logit_cap > 0, no_sinks=case.sinks, no_float8=case.fp8)


def run_sdpa(tensors: Tensors) -> Result:
    from torch.nn.functional import scaled_dot_product_attention

    k, v, valid = padded(tensors)
    case = tensors.case
    q = tensors.q.view(case.batch, case.kv_heads, case.group, case.dk)
    mask = valid[:, None, None, :].expand(-1, -1, case.group, -1)
    out = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=case.dk**-0.5)
    return out.reshape(case.batch, case.q_heads, case.dv), None


SDPA = Candidate("sdpa", run_sdpa, limits, modules=("torch",))
