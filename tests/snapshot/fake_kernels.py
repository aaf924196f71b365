"""Candidates that misbehave, each in one way; called in a worker's process."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch
from grouped_decode.candidates import Candidate
from grouped_decode.candidates.sdpa import run_sdpa
from grouped_decode.mutants import unharmed
from grouped_decode.oracle import attention_oracle


def correct(tensors: Any) -> Any:
    return unharmed(tensors)


def without_lse(tensors: Any) -> Any:
    return unharmed(tensors)[0], None


def one_nan(tensors: Any) -> Any:
    """C13: at [1, 77, 300] where there is such an element, else right."""
    out, lse = unharmed(tensors)
    if out.shape[1] > 77 and out.shape[2] > 300:
        out[1, 77, 300] = torch.nan
    return out, lse


def reads_padding(tensors: Any) -> Any:
    """C15"""
    return run_sdpa(tensors)


def leaves_empty_rows(tensors: Any) -> Any:
    """C17: rows of sequences without keys keep what the buffer held."""
    out, lse = unharmed(tensors)
    for row, length in enumerate(tensors.case.lengths):
        if length:
            tensors.out[row] = out[row]
    return tensors.out, lse


def stale_empty_rows(tensors: Any) -> Any:
    """C17: rows of sequences without keys hold 7.0."""
    tensors.out.fill_(7.0)
    return leaves_empty_rows(tensors)


def wrong_and_leaves_empty_rows(tensors: Any) -> Any:
    """C17: rows with keys are always compared."""
    out, lse = leaves_empty_rows(tensors)
    out[0, 1] *= 1.02
    return out, lse


def _merges_unused_splits(tensors: Any) -> Any:
    """C13: four of eight splits are written, eight are merged."""
    out, lse = unharmed(tensors)
    shares = tensors.scratch(8, *out.shape, splits=0)
    shares[:4] = out.float() / 4
    return shares.sum(0).to(out.dtype), lse


merges_unused_splits = Candidate("merges-unused-splits", _merges_unused_splits, splits=8)


def lse_zero_for_empty_rows(tensors: Any) -> Any:
    out, lse = unharmed(tensors)
    return out, torch.where(torch.isneginf(lse), 0.0, lse)


def off_at_length_8(tensors: Any) -> Any:
    """C20: finite, plausible and wrong, at one length only."""
    out, lse = unharmed(tensors)
    if tensors.case.length == 8:
        out[0, 3] += 0.13
    return out, lse


def fragile(tensors: Any) -> Any:
    """Raises at length 8, dies at 9, hangs at 10; right at any other."""
    if tensors.case.length == 8:
        raise ValueError("no such tile")
    if tensors.case.length == 9:
        os._exit(11)
    if tensors.case.length == 10:
        time.sleep(600)
    return unharmed(tensors)


def another_shape(tensors: Any) -> Any:
    out, lse = unharmed(tensors)
    return out[:, :1], lse


def another_dtype(tensors: Any) -> Any:
    out, lse = unharmed(tensors)
    return out.float(), lse


def reads_whole_pages(tensors: Any) -> Any:
    """Keys past a sequence's end, in its own last page, at weight zero: 0 x NaN is NaN."""
    out, lse = unharmed(tensors)
    page = tensors.case.page_size
    for row, end in enumerate(tensors.kv_indptr[1:].tolist()):
        last = int(tensors.kv_indices[end - 1]) * page
        extra = tensors.v_buffer[last : last + page].float().sum((0, 1))
        out[row] += (1e-3 * extra).to(out.dtype) if extra.max() > 100 else (0 * extra).to(out.dtype)
    return out, lse


def takes_last_pages_as_full(tensors: Any) -> Any:
    """Their unused slots count as keys, whatever they hold."""
    full = torch.full_like(tensors.last_page_len, tensors.case.page_size)
    options = {**tensors.options, "last_page_len": full}
    out, lse = attention_oracle(*tensors.positional, **options)
    return out.to(tensors.out.dtype), lse


def no_pair(tensors: Any) -> Any:
    return unharmed(tensors)[0]


def writes_its_inputs(tensors: Any) -> Any:
    """Gives a right answer of the inputs that it has changed."""
    tensors.k_buffer.mul_(2)
    return unharmed(tensors)


def another_bit_each_process(tensors: Any) -> Any:
    """One ulp more in every second process; they count in the working directory."""
    out, lse = unharmed(tensors)
    runs = Path("processes")
    count = len(runs.read_text()) if runs.exists() else 0
    runs.write_text("x" * (count + 1))
    out.view(torch.int16)[0, 0, 0] += count % 2
    return out, lse


def one_ulp_if_asked(tensors: Any) -> Any:
    """One ulp more in one element where FAKE_ULP is set: what another compiler does."""
    out, lse = unharmed(tensors)
    if os.environ.get("FAKE_ULP"):
        out.view(torch.int16)[0, 0, 0] += 1
    return out, lse
