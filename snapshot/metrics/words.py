"""Word-level difference of two texts."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PIECE = re.compile(r"\s+|\w+|[^\w\s]")


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

    Words, single punctuation marks and stretches of white space are the units.
    """
    from rapidfuzz.distance import LCSseq

    a, b = _PIECE.findall(golden), _PIECE.findall(candidate)
    runs: list[Run] = []
    for code in LCSseq.opcodes(a, b):
        left = "".join(a[code.src_start : code.src_end])
        right = "".join(b[code.dest_start : code.dest_end])
        if runs and not runs[-1].equal and code.tag != "equal":
            runs[-1] = Run(runs[-1].golden + left, runs[-1].candidate + right)
        else:
            runs.append(Run(left, right))
    return runs
