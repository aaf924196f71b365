"""Kernels that can be held to the oracle, by name; every one is called the same way.

A candidate takes a case's `Tensors` and returns ``(out, lse)``: out [B, Hq, Dv], lse [B, Hq] in
natural units or None if it does not give one. What it documents not to support it declares; such
a case is *not run*, with the reason, and never a pass. What it merely gets wrong is run and found.

Other packages add candidates through the entry-point group ``goldens.kernels``: an entry loads a
`Candidate`, or a callable as above. ``module:function`` names such a callable directly.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grouped_decode.case import Case
from grouped_decode.inputs import Tensors

if TYPE_CHECKING:
    import torch

Result = tuple["torch.Tensor", "torch.Tensor | None"]
Kernel = Callable[[Tensors], Result]
GROUP = "goldens.kernels"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A named kernel.

    Attributes:
        name: what it is called on the command line and in goldens.
        package: what must be importable for it to run here, or None.
        limits: why a case is outside what the kernel documents, or None if it is inside.
        kernel: the callable; it imports what it needs when called.
    """

    name: str
    package: str | None
    limits: Callable[[Case], str | None]
    kernel: Kernel

    def installed(self) -> bool:
        return self.package is None or importlib.util.find_spec(self.package) is not None

    def supports(self, case: Case) -> str | None:
        """None, or the reason why the case is not run."""
        if not self.installed():
            return f"{self.package} is not installed"
        return self.limits(case)


def find_candidate(name: str) -> Candidate:
    """The candidate called `name`: ours, an entry point's, or a ``module:function``.

    Raises:
        LookupError: nothing has that name.
    """
    if name in CANDIDATES:
        return CANDIDATES[name]
    if ":" in name:
        module, _, function = name.partition(":")
        kernel = getattr(importlib.import_module(module), function)
        return Candidate(name, None, no_limits, kernel)
    for entry in importlib.metadata.entry_points(group=GROUP, name=name):
        found = entry.load()
        return found if isinstance(found, Candidate) else Candidate(name, None, no_limits, found)
    known = sorted({*CANDIDATES, *(e.name for e in importlib.metadata.entry_points(group=GROUP))})
    raise LookupError(
        f"kernel: expected one of {', '.join(known)} or module:function, got {name!r}"
    )


def no_limits(case: Case) -> str | None:
    return None


def _refuse(case: Case, **limits: bool) -> str | None:
    """The first limit that holds, in words: underscores are spaces."""
    return next((name.replace("_", " ") for name, holds in limits.items() if holds), None)


# ------------------------------------------------------------------ ours and torch's


def run_triton(tensors: Tensors) -> Result:
    from grouped_decode.attention import grouped_decode_attention, workspace_numel

    workspace = None
    if tensors.workspace_fill is not None:
        import torch

        numel = workspace_numel(*tensors.positional, **tensors.options)
        workspace = torch.full((numel,), tensors.workspace_fill, device=tensors.q.device)
    return grouped_decode_attention(  # type: ignore[return-value]
        *tensors.positional,
        **tensors.options,
        out=tensors.out,
        return_lse=True,
        workspace=workspace,
    )


def run_torch(tensors: Tensors) -> Result:
    from grouped_decode.baseline import attention_baseline

    return attention_baseline(*tensors.positional, **tensors.options)


def _padded(tensors: Tensors) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """K and V as [B, Hkv, longest, D], and which keys count, [B, longest].

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


def sdpa_limits(case: Case) -> str | None:
    return _refuse(case, no_soft_cap=case.logit_cap > 0, no_sinks=case.sinks, no_float8=case.fp8)


def run_sdpa(tensors: Tensors) -> Result:
    from torch.nn.functional import scaled_dot_product_attention

    k, v, valid = _padded(tensors)
    case = tensors.case
    q = tensors.q.view(case.batch, case.kv_heads, case.group, case.dk)
    mask = valid[:, None, None, :].expand(-1, -1, case.group, -1)
    out = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=case.dk**-0.5)
    return out.reshape(case.batch, case.q_heads, case.dv), None


def flex_limits(case: Case) -> str | None:
    power = case.dk & (case.dk - 1) == 0 and case.dv & (case.dv - 1) == 0
    return _refuse(
        case,
        no_sinks=case.sinks,
        no_float8=case.fp8,
        compiles_for_head_widths_that_are_powers_of_two_up_to_512_only=not power,
    )


def run_flex(tensors: Tensors) -> Result:
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    k, v, valid = _padded(tensors)
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


# ------------------------------------------------------------------ other projects'


def sglang_limits(case: Case) -> str | None:
    return _refuse(
        case,
        pages_of_one_slot_only=case.page_size > 1,
        no_window=case.window is not None,
        no_float8_in_this_adapter=case.fp8,
    )


def run_sglang(tensors: Tensors) -> Result:
    import torch
    from sglang.srt.layers.attention.triton_ops.decode_attention import decode_attention_fwd

    case, splits = tensors.case, 8
    options = {"dtype": torch.float32, "device": tensors.q.device}
    fill = torch.nan if tensors.workspace_fill is not None else 0.0
    logits = torch.full((case.batch, case.q_heads, splits, case.dv), fill, **options)
    lse = torch.full((case.batch, case.q_heads, splits), fill, **options)
    counts = torch.full((case.batch,), splits, dtype=torch.int32, device=tensors.q.device)
    q, k, v, indptr, indices = tensors.positional
    decode_attention_fwd(
        q, k, v, tensors.out, indptr, indices, logits, lse, counts, splits, case.dk**-0.5,
        1.0, 1.0, logit_cap=case.logit_cap, sinks=tensors.sinks,
    )  # fmt: skip
    return tensors.out, None


def vllm_limits(case: Case) -> str | None:
    return _refuse(
        case,
        no_sinks=case.sinks,
        no_window=case.window is not None,
        no_float8_in_this_adapter=case.fp8,
        pages_of_one_slot_only_in_this_adapter=case.page_size > 1,
    )


def run_vllm(tensors: Tensors) -> Result:
    import torch
    from vllm.v1.attention.ops.triton_decode_attention import decode_attention_fwd

    case, splits, device = tensors.case, 8, tensors.q.device
    q, k, v, indptr, indices = tensors.positional
    table = torch.zeros((case.batch, max(1, *case.lengths)), dtype=torch.int32, device=device)
    for row, (start, n) in enumerate(zip(indptr.tolist(), case.lengths, strict=False)):
        table[row, :n] = indices[start : start + n]
    lengths = torch.tensor(case.lengths, dtype=torch.int32, device=device)
    shape = (case.batch, case.q_heads, splits, case.dv + 1)
    fill = torch.nan if tensors.workspace_fill is not None else 0.0
    partial = torch.full(shape, fill, dtype=torch.float32, device=device)
    lse = torch.full(shape[:2], fill, dtype=torch.float32, device=device)
    one = torch.ones((), dtype=torch.float32, device=device)
    decode_attention_fwd(
        q, k, v, tensors.out, lse, table, lengths, partial, splits, case.dk**-0.5,
        page_size=1, logit_cap=case.logit_cap, k_scale=one, v_scale=one, is_mla=case.shared_v,
    )  # fmt: skip
    return tensors.out, lse


def flashinfer_limits(case: Case) -> str | None:
    mla = case.shared_v and (case.dk, case.dv) == (576, 512)
    return _refuse(
        case,
        no_float32=case.dtype == "float32",
        no_sinks=case.sinks,
        no_float8_in_this_adapter=case.fp8,
        head_widths_64_128_and_256_or_shared_576_and_512_only=not mla
        and (case.dk != case.dv or case.dk not in (64, 128, 256)),
        no_window_or_soft_cap_with_shared_V=mla and (case.window is not None or case.logit_cap > 0),
    )


def run_flashinfer(tensors: Tensors) -> Result:
    import math

    import flashinfer
    import torch

    case, device = tensors.case, tensors.q.device
    q, k, v, indptr, indices = tensors.positional
    scratch = torch.zeros(1 << 30, dtype=torch.uint8, device=device)
    page, scale = case.page_size, case.dk**-0.5

    def paged(buffer: torch.Tensor) -> torch.Tensor:
        pages = buffer.shape[0] // page
        return buffer.as_strided(
            (pages, page, *buffer.shape[1:]), (buffer.stride(0) * page, *buffer.stride())
        )

    if case.shared_v:
        wrapper = flashinfer.mla.BatchMLAPagedAttentionWrapper(scratch, backend="auto")
        steps = torch.arange(case.batch + 1, dtype=torch.int32, device=device)
        lengths = torch.tensor(case.lengths, dtype=torch.int32, device=device)
        wrapper.plan(
            steps, indptr, indices, lengths, case.q_heads, case.dv, case.dk - case.dv, page,
            False, scale, q.dtype, q.dtype,
        )  # fmt: skip
        latent = paged(k).squeeze(2)
        out, lse = wrapper.run(
            q[..., : case.dv], q[..., case.dv :], latent[..., : case.dv], latent[..., case.dv :],
            return_lse=True,
        )  # fmt: skip
    else:
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            scratch, "NHD", use_tensor_cores=True
        )
        last = tensors.last_page_len
        if last is None:
            last = torch.tensor([min(1, n) for n in case.lengths], dtype=torch.int32, device=device)
        window = -1 if case.window is None else case.window - 1
        wrapper.plan(
            indptr, indices, last, case.q_heads, case.kv_heads, case.dk, page, q_data_type=q.dtype,
            kv_data_type=q.dtype, sm_scale=scale, window_left=window,
            logits_soft_cap=case.logit_cap or None,
        )  # fmt: skip
        out, lse = wrapper.run(q, (paged(k), paged(v)), return_lse=True)
    return out, lse * math.log(2)  # its LSE is in base 2


def aiter_limits(case: Case) -> str | None:
    return _refuse(
        case,
        bfloat16_only=case.dtype != "bfloat16" or case.fp8,
        shared_V_of_576_and_512_with_one_KV_head_only=not case.shared_v
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
    steps = torch.arange(case.batch + 1, dtype=torch.int32, device=device)
    last = torch.tensor([min(1, n) for n in case.lengths], dtype=torch.int32, device=device)
    q, k, _, indptr, indices = tensors.positional
    cache = k.view(-1, 1, 1, case.dk)
    mla_decode_fwd(
        q, cache, tensors.out, steps, indptr, indices, last, 1, sm_scale=case.dk**-0.5
    )  # fmt: skip
    return tensors.out, None


def wave_limits(case: Case) -> str | None:
    return _refuse(
        case,
        float16_only=case.dtype != "float16" or case.fp8,
        pages_of_one_slot_only=case.page_size > 1,
        no_sinks=case.sinks,
        no_window=case.window is not None,
        no_soft_cap=case.logit_cap > 0,
        contiguous_K_and_V_only=case.shared_v or "interleaved" in case.traits,
        query_heads_in_16s_or_one_a_KV_head_only=case.group > 1 and case.group % 16 != 0,
    )


def run_wave(tensors: Tensors) -> Result:
    import torch
    from sglang.srt.layers.attention.wave_ops.decode_attention import decode_attention_fwd

    case, splits, device = tensors.case, 8, tensors.q.device
    q, k, v, indptr, indices = tensors.positional
    fill = torch.nan if tensors.workspace_fill is not None else 0.0
    options = {"dtype": torch.float32, "device": device}
    logits = torch.full((splits, case.batch, case.dv, case.q_heads), fill, **options)
    peaks = torch.full((splits, case.batch, case.q_heads), fill, **options)
    decode_attention_fwd(
        q, k, v, tensors.out, indptr, indices, logits, peaks, splits, splits, case.dk**-0.5
    )  # fmt: skip
    return tensors.out, None


CANDIDATES: dict[str, Candidate] = {
    candidate.name: candidate
    for candidate in (
        Candidate("triton", "triton", no_limits, run_triton),
        Candidate("torch", "torch", no_limits, run_torch),
        Candidate("sdpa", "torch", sdpa_limits, run_sdpa),
        Candidate("flex", "torch", flex_limits, run_flex),
        Candidate("sglang", "sglang", sglang_limits, run_sglang),
        Candidate("vllm", "vllm", vllm_limits, run_vllm),
        Candidate("flashinfer", "flashinfer", flashinfer_limits, run_flashinfer),
        Candidate("aiter", "aiter", aiter_limits, run_aiter),
        Candidate("wave", "wave_lang", wave_limits, run_wave),
    )
}
