"""The candidates that are built in, and how others are found."""

from __future__ import annotations

import importlib
import importlib.metadata

from grouped_decode.candidates import (
    aiter,
    flashinfer,
    flex,
    ours,
    sdpa,
    sglang,
    vllm,
    wave,
)
from grouped_decode.candidates.candidate import Candidate

GROUP = "goldens.kernels"

CANDIDATES: dict[str, Candidate] = {
    candidate.name: candidate
    for candidate in (
        ours.TRITON,
        ours.TORCH,
        sdpa.SDPA,
        flex.FLEX,
        sglang.SGLANG,
        vllm.VLLM,
        flashinfer.FLASHINFER,
        aiter.AITER,
        wave.WAVE,
    )
}


def find_candidate(name: str) -> Candidate:
    """The candidate called `name`: a built-in one, an entry point's, or a ``module:function``.

    Raises:
        LookupError: nothing has that name.
    """
    if name in CANDIDATES:
        return CANDIDATES[name]
    if ":" in name:
        module, _, function = name.partition(":")
        return _named(name, getattr(importlib.import_module(module), function))
    for entry in importlib.metadata.entry_points(group=GROUP, name=name):
        return _named(name, entry.load())
    known = sorted({*CANDIDATES, *(e.name for e in importlib.metadata.entry_points(group=GROUP))})
    raise LookupError(
        f"kernel: expected one of {', '.join(known)} or module:function, got {name!r}"
    )


def _named(name: str, found: object) -> Candidate:
    if isinstance(found, Candidate):
        return found
    if not callable(found):
        raise TypeError(f"expected a function or a Candidate, got {type(found).__name__}")
    return Candidate(name, found)
