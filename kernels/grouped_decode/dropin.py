"""SGLang's positional decode call, answered by our kernel."""

from __future__ import annotations

from typing import Any

import torch

from grouped_decode.attention import grouped_decode_attention


def decode_attention_fwd(
    q: torch.Tensor,
    k_buffer: torch.Tensor,
    v_buffer: torch.Tensor,
    o: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    attn_logits: torch.Tensor | None,
    attn_lse: torch.Tensor | None,
    num_kv_splits: torch.Tensor | None,
    max_kv_splits: int,
    sm_scale: float,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
    logit_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    **unused: Any,
) -> None:
    """Write grouped decode attention into `o` [B, Hq, Dv], with the argument order of SGLang 0.5.

    `attn_logits`, `attn_lse`, `num_kv_splits` and `max_kv_splits` (SGLang's scratch and schedule)
    are accepted and not used: the kernel has its own. The same holds for keywords that choose a
    variant of SGLang's kernel (`has_mla`, `use_pdl`). Lengths are taken from `kv_indptr`, whose
    first B + 1 entries count, so a CUDA graph's larger buffers fit.

    Raises:
        NotImplementedError: `xai_temperature_len` or `score_mod` is set.
        TypeError, ValueError: as `grouped_decode_attention`.
    """
    if unused.get("xai_temperature_len", -1) > 0 or unused.get("score_mod") is not None:
        raise NotImplementedError("xai_temperature_len and score_mod: expected to be unset")
    grouped_decode_attention(
        q,
        k_buffer,
        v_buffer,
        kv_indptr[: q.shape[0] + 1],
        kv_indices,
        sm_scale=sm_scale,
        logit_cap=logit_cap,
        sinks=sinks,
        k_scale=k_scale,
        v_scale=v_scale,
        out=o,
    )
