"""Candidates that misbehave, each in one way; called in a worker's process."""

from __future__ import annotations

import os
import time
from typing import Any

import torch
from grouped_decode.candidates import run_sdpa
from grouped_decode.mutants import unharmed


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


def lse_zero_for_empty_rows(tensors: Any) -> Any:
    out, lse = unharmed(tensors)
    return out, torch.where(torch.isneginf(lse), 0.0, lse)


def off_at_length_8(tensors: Any) -> Any:
    """C20: finite, plausible and wrong, at one length only."""
    out, lse = unharmed(tensors)
    if tensors.case.length == 8:
        out[0, 3] += 0.13
    return out, lse


def raises(tensors: Any) -> Any:
    if tensors.case.length == 8:
        raise ValueError("no such tile")
    return unharmed(tensors)


def dies(tensors: Any) -> Any:
    if tensors.case.length == 8:
        os._exit(11)
    return unharmed(tensors)


def hangs(tensors: Any) -> Any:
    if tensors.case.length == 8:
        time.sleep(600)
    return unharmed(tensors)


def another_shape(tensors: Any) -> Any:
    out, lse = unharmed(tensors)
    return out[:, :1], lse


def no_pair(tensors: Any) -> Any:
    return unharmed(tensors)[0]


def writes_its_inputs(tensors: Any) -> Any:
    """Gives a right answer of the inputs that it has changed."""
    tensors.k_buffer.mul_(2)
    return unharmed(tensors)


def another_bit_each_process(tensors: Any) -> Any:
    out, lse = unharmed(tensors)
    bits = out.view(torch.int16)
    bits[0, 0, 0] ^= os.getpid() & 1 or int(time.time_ns()) & 1
    bits[0, 0, 1] += os.getpid() % 3
    return out, lse


def one_ulp_if_asked(tensors: Any) -> Any:
    """One ulp more in one element where FAKE_ULP is set: what another compiler does."""
    out, lse = unharmed(tensors)
    if os.environ.get("FAKE_ULP"):
        out.view(torch.int16)[0, 0, 0] += 1
    return out, lse
