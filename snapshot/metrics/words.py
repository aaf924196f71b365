"""Word-level difference of two texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

_PIECE = re.compile(r"\s+|\w+|[^\w\s]")

_CELLS = 200_000_000
"""Largest table of one alignment, in units of both sides: 25 MB, a tenth of a second."""


_WORD = 1000
"""Characters from which a differing stretch is no word any more, and is cut at any character."""


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
    for that are aligned by lines first, and a stretch that is too long even then is one run,
    without what both its sides begin and end with.
    """
    runs: list[Run] = []
    for run in _ends(golden, candidate, _words, _at_boundary):
        if runs and runs[-1].equal == run.equal:
            runs[-1] = Run(runs[-1].golden + run.golden, runs[-1].candidate + run.candidate)
        else:
            runs.append(run)
    return runs


def _ends(
    golden: str,
    candidate: str,
    between: Callable[[str, str], Iterable[Run]],
    boundary: Callable[[str, int], bool],
) -> Iterator[Run]:
    """What is equal at both ends, cut where `boundary` allows it, and what lies between.

    One word that changed in megabytes costs no table then.
    """
    longest = min(len(golden), len(candidate))
    start = _common(golden, candidate, longest)
    start = next(
        (
            at
            for at in range(start, max(start - _WORD, -1), -1)
            if boundary(golden, at) and boundary(candidate, at)
        ),
        start,
    )
    end = _common(golden[start:][::-1], candidate[start:][::-1], longest - start)
    end = next(
        (
            at
            for at in range(end, max(end - _WORD, -1), -1)
            if boundary(golden, len(golden) - at) and boundary(candidate, len(candidate) - at)
        ),
        end,
    )
    if start:
        yield Run(golden[:start], golden[:start])
    yield from between(golden[start : len(golden) - end], candidate[start : len(candidate) - end])
    if end:
        yield Run(golden[len(golden) - end :], golden[len(golden) - end :])


def _common(a: str, b: str, longest: int) -> int:
    """Length of the common beginning; compares slices, which is memory against memory."""
    low, high = 0, longest
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _at_boundary(text: str, at: int) -> bool:
    """Whether a piece ends there."""
    return at in (0, len(text)) or _PIECE.fullmatch(text[at - 1 : at + 1]) is None


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
        if left != right and min(len(left), len(right)) > _WORD:
            yield from _ends(left, right, _one, lambda text, at: True)
        elif left or right:
            yield Run(left, right)


def _one(golden: str, candidate: str) -> list[Run]:
    return [Run(golden, candidate)] if golden or candidate else []
