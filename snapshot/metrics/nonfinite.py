"""NaN and infinities: how many, and where the first one is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from snapshot.model import Array


@dataclass(frozen=True)
class NonFinite:
    """The non-finite values of one array.

    Attributes:
        count: how many.
        first: coordinates of the first one in C order; ``()`` for a 0-d array.
        value: that value, as text (``nan``, ``inf``, ``-inf``).
    """

    count: int
    first: tuple[int, ...]
    value: str


def nonfinite(array: Array) -> NonFinite | None:
    """The NaN and infinities of an array of any floating dtype; None where there is none."""
    if array.dtype.kind in "iub":
        return None
    values = _floating(array)
    bad = ~np.isfinite(values)
    count = int(bad.sum())
    if count == 0:
        return None
    first = tuple(int(i) for i in np.unravel_index(int(bad.argmax()), bad.shape))
    return NonFinite(count, first, str(values[first]))


def same_pattern(golden: Array, candidate: Array) -> bool:
    """Whether both hold NaN, +inf and -inf at the same places of the same shape."""
    if golden.shape != candidate.shape:
        return False
    bad, other = ~np.isfinite(_floating(golden)), ~np.isfinite(_floating(candidate))
    return bool(
        np.array_equal(bad, other)
        and np.array_equal(_floating(golden)[bad], _floating(candidate)[bad], equal_nan=True)
    )


def _floating(array: Array) -> Array:
    """The same values in a dtype that numpy itself knows; ml_dtypes' own have kind V."""
    return array.astype(np.float32) if array.dtype.kind == "V" else array
