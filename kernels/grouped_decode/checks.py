"""Is a kernel's result right? The few measures this package's own tests need, numpy only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
REL_L2 = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 5e-3}
LSE_ABS = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-3}


@dataclass(frozen=True)
class Finding:
    """What is wrong first: kind, the row (sequence, query head), the figure and its bound."""

    kind: str
    row: tuple[int, int]
    got: float
    bound: float

    def __str__(self) -> str:
        where = f"sequence {self.row[0]}, head {self.row[1]}"
        return f"{self.kind} at {where}: {self.got:.3g}, bound {self.bound:.3g}"


def row_errors(out: Array, reference: Array) -> Array:
    """Relative L2 error of each row [B, Hq]; absolute where the reference row is zero."""
    norm = np.linalg.norm(reference, axis=-1)
    return np.linalg.norm(out - reference, axis=-1) / np.where(norm == 0, 1.0, norm)


def judge(
    dtype: str,
    out: Array,
    reference: Array,
    lse: Array | None = None,
    lse_reference: Array | None = None,
) -> Finding | None:
    """The worst finding about `out` [B, Hq, Dv] and `lse` [B, Hq], or None if all is right.

    The order is: pattern of non-finite values, rows' relative L2, LSE.
    """
    out, reference = out.astype(np.float64), reference.astype(np.float64)
    wrong = (np.isfinite(out) != np.isfinite(reference)).sum(axis=-1)
    if wrong.any():
        return _finding("non-finite values", wrong, 0)
    errors = row_errors(out, reference)
    if (errors > REL_L2[dtype]).any():
        return _finding("relative L2", errors, REL_L2[dtype])
    if lse is not None and lse_reference is not None:
        empty = np.isneginf(lse_reference)
        if (np.isneginf(lse) != empty).any() or np.isnan(lse).any():
            return _finding("LSE pattern", (np.isneginf(lse) != empty) | np.isnan(lse), 0)
        gaps = np.where(
            empty, 0.0, np.abs(np.where(empty, 0, lse) - np.where(empty, 0, lse_reference))
        )
        if (gaps > LSE_ABS[dtype]).any():
            return _finding("LSE", gaps, LSE_ABS[dtype])
    return None


def _finding(kind: str, figures: Array, bound: float) -> Finding:
    row = np.unravel_index(int(np.argmax(figures)), figures.shape)
    return Finding(kind, (int(row[0]), int(row[1])), float(figures[row]), bound)
