"""How far one array moved from another of the same dtype and shape: numbers with coordinates.

Works on every dtype that the store holds, bfloat16 and float8 included. A row is what lies
along the last axis: of a decode output [sequence, head, element], one head of one sequence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from snapshot.difference import RowErrors
from snapshot.metrics.nonfinite import NonFinite, nonfinite
from snapshot.metrics.ulp import bits, ulp_distance
from snapshot.model import Array


@dataclass(frozen=True)
class Movement:
    """What changed between two arrays.

    Attributes:
        elements: how many there are; 0 means that nothing was compared.
        moved: how many have other bits.
        rel_l2: norm of the difference over the norm of the old row, of the worst row, over
            elements that are finite on both sides; inf where the old row was all zero.
        worst_row: coordinates of that row; ``()`` for an array of one axis or none.
        ulp_p50, ulp_max: steps between neighbouring values of the dtype, over moved elements
            that are finite on both sides; None for integers.
        ulp_where: coordinates of the largest.
        max_abs: largest absolute difference.
        before, after: NaN and infinities of each side; None where there are none.
        rows: rel-L2 of every row, float64, the shape without its last axis.
    """

    elements: int
    moved: int
    rel_l2: float
    worst_row: tuple[int, ...]
    ulp_p50: float | None
    ulp_max: int | None
    ulp_where: tuple[int, ...]
    max_abs: float
    before: NonFinite | None
    after: NonFinite | None
    rows: Array

    def __str__(self) -> str:
        if self.elements == 0:
            return "0 elements compared"
        parts = [f"{self.moved:,} of {self.elements:,} elements moved"]
        if self.moved:
            row = f" in row {list(self.worst_row)}" if self.worst_row else ""
            parts.append(f"rel-L2 {self.rel_l2:.3g}{row}, max {self.max_abs:.3g}")
        if self.ulp_max is not None:
            parts.append(
                f"ULP p50 {self.ulp_p50:.3g}, max {self.ulp_max:,} at {list(self.ulp_where)}"
            )
        for side, bad in (("before", self.before), ("after", self.after)):
            if bad is not None:
                first = f"{bad.value} at {list(bad.first)}"
                parts.append(f"non-finite {side}: {bad.count:,}, first {first}")
        return "; ".join(parts)


def movement(before: Array, after: Array) -> Movement:
    """Statistics of the difference.

    Raises:
        ValueError: the arrays have another dtype or shape; says which.
    """
    if before.dtype != after.dtype or before.shape != after.shape:
        old, new = (f"{a.dtype.name} {list(a.shape)}" for a in (before, after))
        raise ValueError(f"{old} became {new}")
    if before.dtype.kind == "c":
        part = np.float32 if before.dtype.itemsize == 8 else np.float64
        before, after = (np.stack([a.real, a.imag], -1).astype(part) for a in (before, after))
    moved = bits(before) != bits(after)
    a, b = (side.astype(np.float64) for side in (before, after))
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(over="ignore"):  # then it is infinitely far, and says so
        difference = np.where(finite, np.subtract(b, a, where=finite, out=np.zeros_like(a)), 0.0)
        rows = _rel_l2(difference, np.where(finite, a, 0.0))
    worst = int(rows.argmax()) if rows.size else 0
    p50, largest, where = _ulps(before, after, moved & finite)
    return Movement(
        elements=int(a.size),
        moved=int(moved.sum()),
        rel_l2=float(rows.reshape(-1)[worst]) if rows.size else 0.0,
        worst_row=_coordinates(worst, rows.shape) if rows.size else (),
        ulp_p50=p50,
        ulp_max=largest,
        ulp_where=where,
        max_abs=float(np.abs(difference).max(initial=0.0)),
        before=nonfinite(before),
        after=nonfinite(after),
        rows=rows,
    )


def _rel_l2(difference: Array, before: Array) -> Array:
    """Of each row; an array without axes is one row of one element."""
    if difference.ndim == 0:
        difference, before = difference.reshape(1), before.reshape(1)
    moved = np.sqrt(np.einsum("...i,...i->...", difference, difference))
    norm = np.sqrt(np.einsum("...i,...i->...", before, before))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(moved == 0, 0.0, moved / norm))


def _ulps(
    before: Array, after: Array, chosen: Array
) -> tuple[float | None, int | None, tuple[int, ...]]:
    """Median and largest count of steps between chosen elements, and where the largest is."""
    if before.dtype.kind in "iub" or "int" in before.dtype.name or not chosen.any():
        return None, None, ()
    steps = ulp_distance(before[chosen], after[chosen])
    largest = int(steps.argmax())
    where = int(np.flatnonzero(chosen)[largest])
    return float(np.median(steps)), int(steps[largest]), _coordinates(where, chosen.shape)


def _coordinates(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(index, shape)) if shape else ()


def heat_map(rows: Array, quantity: str, bound: float | None = None) -> RowErrors | None:
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
