"""Wave's paged decode kernel, compiled as SGLang compiles it, for AMD's accelerators.

SGLang's own entry runs its Triton kernel instead at the one shape where Wave's gives NaN on
ROCm 10. Here the two phases are called themselves, so that what goes by Wave's name is Wave's.
"""

from __future__ import annotations

from grouped_decode.candidates.candidate import Candidate, Result, refuse
from grouped_decode.case import Case
from grouped_decode.inputs import Tensors

MODULE = "sglang.srt.layers.attention.wave_ops.decode_attention"
SPLITS, BLOCK = 8, 32


def limits(case: Case) -> str | None:
    return refuse(
        case,
        float16_only=case.dtype != "float16" or case.fp8,
        pages_of_one_slot_only=case.page_size > 1,
        no_sinks=case.sinks,
        no_window=case.window is not None,
        contiguous_K_and_V_only=case.shared_v or "interleaved" in case.traits,
        query_heads_in_16s_or_one_a_KV_head_only=case.group > 1 and case.group % 16 != 0,
    )


def run_wave(tensors: Tensors) -> Result:
    from sglang.srt.layers.attention.wave_ops import decode_attention as wave

    case, (q, k, v, indptr, indices) = tensors.case, tensors.positional
    logits, peaks = wave.decode_attention_intermediate_arrays_shapes(
        case.batch, case.dv, case.q_heads, SPLITS
    )
    partial, highest = (tensors.scratch(*sizes, splits=0) for sizes in (logits, peaks))
    shape = wave.paged_decode_attention_shape(
        case.q_heads, case.kv_heads, case.dk, case.dv, BLOCK, case.batch
    )
    split, merge = wave.get_wave_kernel(shape, SPLITS, q.dtype, tensors.out.dtype, case.logit_cap)
    split(q, k, v, indptr, indices, partial, highest)
    merge(partial, highest, indptr, tensors.out)
    return tensors.out, None


WAVE = Candidate("wave", run_wave, limits, ("wave_lang", MODULE), ("rocm",), SPLITS)
