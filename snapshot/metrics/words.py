"""Word-level difference of two texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_PIECE = re.compile(r"\s+|\w+|[^\w\s]")

_CELLS = 200_000_000
"""Largest table of one alignment, in units of both sides: 25 MB, a tenth of a second."""


@dataclass(frozen=True)
class Run:
    """A stretch of both texts: equal, or what stands on each side instead."""

    golden: str
    candidate: str

    @property
    def equal(self) -> bool:
        return self.golden == self.candidate


def word_diff(golden: str, candidate: str) -> list[Run]:
    """Both texts as alternating equal and differing runs; joined, each side is whole again.

    Words, single punctuation marks and stretches of white space are the units. Texts too long
    for that are aligned by lines first, and a stretch that is too long even then is one run.
    """
    runs: list[Run] = []
    for run in _words(golden, candidate):
        if runs and runs[-1].equal == run.equal:
            runs[-1] = Run(runs[-1].golden + run.golden, runs[-1].candidate + run.candidate)
        else:
            runs.append(run)
    return runs


def _words(golden: str, candidate: str) -> Iterator[Run]:
    a, b = _PIECE.findall(golden), _PIECE.findall(candidate)
    if _fits(a, b):
        yield from _aligned(a, b)
        return
    a, b = golden.splitlines(keepends=True), candidate.splitlines(keepends=True)
    if not _fits(a, b):
        yield Run(golden, candidate)
        return
    left = _CELLS  # for all stretches together
    for run in _aligned(a, b):
        a, b = _PIECE.findall(run.golden), _PIECE.findall(run.candidate)
        if run.equal or len(a) * len(b) > left:
            yield run
        else:
            left -= len(a) * len(b)
            yield from _aligned(a, b)


def _fits(a: Sequence[str], b: Sequence[str]) -> bool:
    return len(a) * len(b) <= _CELLS


def _aligned(a: Sequence[str], b: Sequence[str]) -> Iterator[Run]:
    from rapidfuzz.distance import LCSseq

    for code in LCSseq.opcodes(a, b):
        left = "".join(a[code.src_start : code.src_end])
        right = "".join(b[code.dest_start : code.dest_end])
        if left or right:
            yield Run(left, right)
