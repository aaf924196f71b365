"""FlashInfer's paged decode wrappers, as of 0.6.13: tensor cores, and MLA where V lies in K."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from grouped_decode.candidates.candidate import Candidate, Result, refuse
from grouped_decode.case import Case
from grouped_decode.inputs import Tensors

if TYPE_CHECKING:
    import torch

WORKSPACE = 1 << 30


def _mla(case: Case) -> bool:
    return case.shared_v and (case.dk, case.dv, case.kv_heads) == (576, 512, 1)


def limits(case: Case) -> str | None:
    square = case.dk == case.dv and case.dk in (64, 128, 256)
    return refuse(
        case,
        no_float32=case.dtype == "float32",
        no_sinks_but_on_Blackwell=case.sinks,
        no_float8_in_this_adapter=case.fp8,
        head_widths_64_128_and_256_or_one_KV_head_of_576_with_V_inside_only=not square
        and not _mla(case),
        no_window_or_soft_cap_with_V_inside_K=_mla(case)
        and (case.window is not None or case.logit_cap > 0),
    )


def run_flashinfer(tensors: Tensors) -> Result:
    import torch

    # It asks for zeros at first use, so this scratch cannot be poisoned.
    scratch = torch.zeros(WORKSPACE, dtype=torch.uint8, device=tensors.q.device)
    out, lse = (_run_mla if _mla(tensors.case) else _run_paged)(tensors, scratch)
    return out, lse * math.log(2)  # its LSE is in base 2


def _run_mla(tensors: Tensors, scratch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    import torch
    from flashinfer.mla import BatchMLAPagedAttentionWrapper

    case, q = tensors.case, tensors.q
    wrapper = BatchMLAPagedAttentionWrapper(scratch, backend="auto")
    wrapper.plan(
        torch.arange(case.batch + 1, dtype=torch.int32, device=q.device),
        tensors.kv_indptr,
        tensors.kv_indices,
        torch.tensor(case.lengths, dtype=torch.int32, device=q.device),
        case.q_heads,
        case.dv,
        case.dk - case.dv,
        case.page_size,
        False,
        tensors.options["sm_scale"],
        q.dtype,
        tensors.k_buffer.dtype,
    )
    latent = _pages(tensors.k_buffer, case.page_size).squeeze(2)
    found: tuple[torch.Tensor, torch.Tensor] = wrapper.run(
        q[..., : case.dv],
        q[..., case.dv :],
        latent[..., : case.dv],
        latent[..., case.dv :],
        out=tensors.out,
        return_lse=True,
    )
    return found


def _run_paged(tensors: Tensors, scratch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    from flashinfer import BatchDecodeWithPagedKVCacheWrapper

    case, q = tensors.case, tensors.q
    last = tensors.last_page_len
    wrapper = BatchDecodeWithPagedKVCacheWrapper(scratch, "NHD", use_tensor_cores=True)
    wrapper.plan(
        tensors.kv_indptr,
        tensors.kv_indices,
        tensors.kv_indptr.diff().clamp(max=1) if last is None else last,
        case.q_heads,
        case.kv_heads,
        case.dk,
        case.page_size,
        q_data_type=q.dtype,
        kv_data_type=tensors.k_buffer.dtype,
        sm_scale=tensors.options["sm_scale"],
        window_left=-1 if case.window is None else case.window - 1,
        logits_soft_cap=case.logit_cap or None,
    )
    buffers = (tensors.k_buffer, tensors.v_buffer)
    found: tuple[torch.Tensor, torch.Tensor] = wrapper.run(
        q, tuple(_pages(b, case.page_size) for b in buffers), out=tensors.out, return_lse=True
    )
    return found


def _pages(buffer: torch.Tensor, size: int) -> torch.Tensor:
    """A buffer [slots, H, D] as [pages, size, H, D], the same memory."""
    return buffer.unflatten(0, (-1, size))


FLASHINFER = Candidate("flashinfer", run_flashinfer, limits, ("flashinfer",), ("cuda",))
