"""The numbers that a report plots: logprobs around a divergence, errors over (sequence, head)."""

from __future__ import annotations

import math

import numpy as np

from snapshot.metrics.tokens import first_difference
from snapshot.model import Array, Observation, RowErrors, Trace

_BEFORE, _AFTER = 16, 16  # steps shown around a divergence


def trace(golden: Observation, candidate: Observation) -> Trace | None:
    """Logprobs of the chosen tokens around where two generations part; the first steps where
    they do not. None where a side gives none."""
    a, b = golden.arrays.get("logprobs"), candidate.arrays.get("logprobs")
    if a is None or b is None or a.ndim != 1 or b.ndim != 1:
        return None
    expected, got = golden.output.token_ids, candidate.output.token_ids
    parted = None if expected is None or got is None else first_difference(expected, got)
    first = max((parted or 0) - _BEFORE, 0)
    last = first + _BEFORE + _AFTER
    return Trace(first, _values(a[first:last]), _values(b[first:last]), parted)


def row_errors(rows: Array, quantity: str, bound: float | None = None) -> RowErrors | None:
    """A heat map of per-row errors [sequence, head]; None for an array of other axes.

    More axes are folded into the sequences, so that the last one is the head.
    """
    if rows.ndim < 2 or rows.size == 0:
        return None
    table = np.asarray(rows, dtype=np.float64).reshape(-1, rows.shape[-1])
    return RowErrors(quantity, tuple(_values(line) for line in table), bound)


def _values(array: Array) -> tuple[float | None, ...]:
    values = np.asarray(array, dtype=np.float64).tolist()
    return tuple(float(f"{v:.5g}") if math.isfinite(v) else None for v in values)
