"""The public call: grouped decode attention over a paged KV cache."""

from __future__ import annotations

import contextlib
from typing import Any, Literal

import torch

from grouped_decode import launch
from grouped_decode.arguments import check, check_out, check_workspace


def grouped_decode_attention(
    q: torch.Tensor,
    k_buffer: torch.Tensor,
    v_buffer: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    *,
    sm_scale: float | None = None,
    logit_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    window: int | None = None,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
    page_size: int = 1,
    last_page_len: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
    return_lse: bool = False,
    lse_base: Literal["e", "2"] = "e",
    batch_invariant: bool = False,
    num_kv_splits: int | None = None,
    workspace: torch.Tensor | None = None,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Attention of one new token a sequence over a paged KV cache.

    For query head h of sequence b, over the L cached keys n of the sequence::

        s[n] = q[b, h] . k[slot(n), h // (Hq / Hkv)] * sm_scale * k_scale
        s[n] = logit_cap * tanh(s[n] / logit_cap)                  if logit_cap > 0
        only the last `window` keys count                          if window is given
        Z    = sum exp(s[n])  (+ exp(sinks[h]), uncapped)
        out  = sum exp(s[n]) / Z * v[slot(n), h // (Hq / Hkv)] * v_scale
        lse  = log(Z)

    A sequence without keys gives out = 0 and lse = -inf (its sink, with sinks). Inputs are never
    written, every row of the output is, and memory of slots that no sequence owns is never read.

    Args:
        q: [B, Hq, Dk] float16, bfloat16 or float32. Last dimension contiguous, as for all below.
        k_buffer: [slots, Hkv, Dk], q's dtype or a float8; 1 to 128 query heads a KV head.
        v_buffer: [slots, Hkv, Dv], k_buffer's dtype. Where it is a view of the first Dv columns
            of k_buffer (absorbed MLA) the memory is read once.
        kv_indptr: [B + 1] int32 or int64; sequence b's entries in kv_indices are
            kv_indptr[b] ... kv_indptr[b + 1] - 1.
        kv_indices: slots (pages, with page_size > 1) int32 or int64. Its length is an upper bound
            of the entries in use.
        sm_scale: defaults to Dk ** -0.5.
        logit_cap: tanh cap of the scores, in logits; 0 for none.
        sinks: [Hq] logits, float.
        window: number of most recent keys that count, the new token's among them.
        k_scale, v_scale: what the stored K and V are to be multiplied with (float8 caches).
        page_size: slots of a page; slot = page * page_size + offset.
        last_page_len: [B] int, keys in each sequence's last page; with page_size > 1 only.
        out: [B, Hq, Dv], q's dtype, to write into.
        return_lse: return (out, lse), lse [B, Hq] float32, in units of log base `lse_base`.
        batch_invariant: a sequence's result has the same bits in whatever batch and wherever
            its keys lie. Splits then begin at fixed multiples, whatever the batch.
        num_kv_splits: cut a sequence of average length into this many splits instead of choosing.
        workspace: float32 scratch of at least `workspace_numel` elements, any contents.

    Raises:
        TypeError, ValueError: for the first argument found wrong; `arguments.check` lists them.
        RuntimeError: CPU tensors without TRITON_INTERPRET=1.
    """
    args = check(
        q,
        k_buffer,
        v_buffer,
        kv_indptr,
        kv_indices,
        sm_scale=sm_scale,
        logit_cap=logit_cap,
        sinks=sinks,
        window=window,
        k_scale=k_scale,
        v_scale=v_scale,
        page_size=page_size,
        last_page_len=last_page_len,
        batch_invariant=batch_invariant,
        num_kv_splits=num_kv_splits,
    )
    if lse_base not in ("e", "2"):
        raise ValueError(f"lse_base: expected 'e' or '2', got {lse_base!r}")
    if q.device.type == "cpu" and not launch.INTERPRETED:
        raise RuntimeError(
            "q: expected a GPU tensor, got one on the CPU; Triton's interpreter takes CPU tensors "
            "if TRITON_INTERPRET=1 is set before grouped_decode is imported"
        )
    if out is None:
        out = torch.empty((args.batch, args.q_heads, args.dv), dtype=q.dtype, device=q.device)
    else:
        check_out(out, args)
    plan = launch.plan(args)
    if workspace is not None:
        check_workspace(workspace, plan.workspace_numel(args), q.device)
    lse = None
    if return_lse:
        lse = torch.empty((args.batch, args.q_heads), dtype=torch.float32, device=q.device)
    with torch.cuda.device(q.device) if q.is_cuda else contextlib.nullcontext():
        launch.run(args, plan, out, lse, lse_base, workspace)
    return out if lse is None else (out, lse)


def workspace_numel(*tensors: torch.Tensor, **options: Any) -> int:
    """Float32 elements of scratch that a `grouped_decode_attention` call with these arguments uses.

    Takes the call's five tensors and its options other than `out`, `return_lse`, `lse_base` and
    `workspace`, and raises what the call does.
    """
    args = check(*tensors, **options)
    return launch.plan(args).workspace_numel(args)
