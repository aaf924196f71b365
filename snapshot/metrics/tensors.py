"""How far one tensor is from another: numbers only, never a verdict.

Arrays are numpy's, of any floating dtype (ml_dtypes' too), any strides, any number of axes. A
*row* is everything along the last axis; for a kernel's output that is one head of one sequence.
Averages over a whole tensor hide one wrong head, so the worst row is what is reported.
"""

from __future__ import annotations

import decimal
import hashlib
from typing import Any

import numpy as np

from snapshot.kernel_model import LSE, Errors, LseError, Misplaced, Moved
from snapshot.metrics.ulp import bits, ulp_distance
from snapshot.model import Array

_UPWARDS = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING)


def norm(array: Array) -> float:
    """The L2 norm of the finite elements."""
    values = _float64(array)
    return four_digits(np.linalg.norm(values[np.isfinite(values)]))


def errors(array: Array, truth: Array) -> Errors:
    """The error of `array` against the float64 `truth` of the same shape, which is finite.

    Elements that are not finite are left out here; `misplaced` finds them.

    Raises:
        ValueError: the shapes differ.
    """
    _same_shape(array, truth)
    got, want = rows(_float64(array)), rows(_float64(truth))
    finite = np.isfinite(got)
    if not finite.any():
        return Errors(0, 0.0, (), 0, 0.0, 0.0, 0)
    gap = np.where(finite, np.where(finite, got, 0.0) - want, 0.0)
    size = np.linalg.norm(want, axis=1)
    relative = np.linalg.norm(gap, axis=1) / np.where(size == 0, 1.0, size)
    worst = int(relative.argmax())
    with np.errstate(over="ignore"):
        rounded = rows(_float64(truth).astype(array.dtype))
    ulps = ulp_distance(rows(array), rounded)
    return Errors(
        compared=int(finite.sum()),
        rel_l2=four_digits(relative[worst]),
        row=_coordinates(worst, array.shape[:-1]),
        row_ulp=int(ulps[worst][finite[worst]].max(initial=0)),
        max_abs=four_digits(np.abs(gap).max()),
        ulp_p50=_median(ulps[finite]),
        ulp_max=int(ulps[finite].max()),
    )


def row_errors(array: Array, truth: Array) -> Array:
    """Relative L2 error of each row, float64 of all axes but the last; NaN where a row holds
    NaN or an infinity.

    Raises:
        ValueError: the shapes differ.
    """
    _same_shape(array, truth)
    want = rows(_float64(truth))
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.linalg.norm(rows(_float64(array)) - want, axis=1)
    size = np.linalg.norm(want, axis=1)
    return np.asarray(gap / np.where(size == 0, 1.0, size)).reshape(array.shape[:-1])


def lse_error(lse: Array, truth: Array) -> LseError | None:
    """The largest error of a log-sum-exp; None where there is no finite pair and no mismatch.

    -inf is the right answer where the truth is -inf. NaN and +inf are left to `misplaced`.
    """
    _same_shape(lse, truth)
    got, want = _float64(lse), _float64(truth)
    empty = np.isneginf(want)
    with np.errstate(invalid="ignore"):
        gaps = np.abs(got - want)
    gaps = np.where(empty, np.where(np.isfinite(got), np.inf, 0.0), gaps)
    gaps = np.where(np.isnan(got) | np.isinf(got) & ~empty, 0.0, gaps)
    if gaps.size == 0:
        return None
    worst = int(gaps.argmax())
    value = float(gaps.flat[worst])
    value = four_digits(value) if np.isfinite(value) else value
    return LseError(value, _coordinates(worst, lse.shape))


def misplaced(name: str, array: Array, truth: Array) -> Misplaced | None:
    """NaN and infinities of `array` where the truth does not hold the same infinity."""
    _same_shape(array, truth)
    got, want = _float64(array), _float64(truth)
    bad = ~np.isfinite(got) & ~(np.isinf(got) & (got == want))
    count = int(bad.sum())
    if count == 0:
        return None
    first = int(bad.argmax())
    places = hashlib.sha256(f"{bad.shape}".encode() + np.packbits(bad).tobytes()).hexdigest()
    table = bad if name == LSE else bad.any(axis=-1)
    held = np.argwhere(table)
    return Misplaced(
        array=name,
        count=count,
        first=_coordinates(first, bad.shape),
        value=str(float(got.flat[first])),
        pattern=places,
        rows=len(held),
        sequences=tuple(int(i) for i in np.unique(held[:, 0])) if held.shape[1] else (),
        heads=tuple(int(i) for i in np.unique(held[:, 1])) if held.shape[1] > 1 else (),
        whole=bool(bad[table].all()),
    )


def moved(golden: Array, candidate: Array) -> Moved:
    """What differs in bits, element by element.

    Raises:
        ValueError: shapes or dtypes differ.
    """
    ulps = rows(ulp_distance(golden, candidate))
    differs = rows(bits(golden) != bits(candidate))
    finite = rows(np.isfinite(_float64(golden)) & np.isfinite(_float64(candidate)))
    distances = np.where(finite, ulps, 0)
    worst = int(distances.max(axis=1, initial=0).argmax()) if distances.size else 0
    return Moved(
        elements=int(differs.sum()),
        rows=int(differs.any(axis=1).sum()),
        of_rows=len(differs),
        compared=int(finite.sum()),
        ulp_p50=_median(ulps[finite]),
        ulp_max=int(distances.max(initial=0)),
        row=_coordinates(worst, golden.shape[:-1]),
    )


def row_digests(array: Array) -> Array:
    """The first four bytes of each row's sha256: uint32 [rows].

    They say which rows moved; whether any did is for the digest of the whole array to say.
    """
    found = [hashlib.sha256(row.tobytes()).digest()[:4] for row in rows(array)]
    return np.array([int.from_bytes(each, "little") for each in found], dtype=np.uint32)


def row_norms(array: Array) -> Array:
    """Each row's L2 norm: float32 [rows]."""
    return np.asarray(np.linalg.norm(rows(_float64(array)), axis=1).astype(np.float32))


def rows(array: Array) -> Array:
    """The array as [rows, elements of a row]; an array without axes is one row of one."""
    width = array.shape[-1] if array.ndim else 1
    return array.reshape(int(np.prod(array.shape[:-1], dtype=np.int64)), width)


def four_digits(value: Any) -> float:
    """Four significant digits, upwards, so that rounding lets nothing through a bound."""
    # By its text: the four digits that a float was rounded to are rarely its exact value.
    return float(_UPWARDS.create_decimal(repr(float(value))))


# ------------------------------------------------------------------------- private


def _float64(array: Array) -> Array:
    return np.asarray(array.astype(np.float64))


def _coordinates(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return () if 0 in shape else tuple(int(i) for i in np.unravel_index(index, shape))


def _median(values: Array) -> float:
    return float(np.median(values)) if values.size else 0.0


def _same_shape(a: Array, b: Array) -> None:
    if a.shape != b.shape:
        raise ValueError(f"expected one shape, got {list(a.shape)} and {list(b.shape)}")
