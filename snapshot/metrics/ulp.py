"""Units in the last place: how many values of a dtype lie between two of its values.

For every floating dtype that the store holds, ml_dtypes' own included.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from snapshot.model import Array


def bits(array: Array) -> Array:
    """The elements as unsigned integers of their size, in the array's shape."""
    packed = np.require(array, requirements="C").reshape(array.shape)
    return packed.view(np.dtype(f"u{array.dtype.itemsize}"))


def ulp_distance(a: Array, b: Array) -> Array:
    """Units in the last place between the elements of two arrays of one floating dtype and shape.

    Counts steps between neighbouring values, across zero too: 0 for equal values, 0.0 and -0.0
    among them, and 1 from the largest value to an infinity. What it says of NaN means nothing:
    leave those out.

    Returns:
        uint64, in the arrays' shape; the distance of the farthest float64 still fits.

    Raises:
        ValueError: shapes or dtypes differ, or the dtype is not a floating one.
    """
    if a.shape != b.shape:
        raise ValueError(f"expected one shape, got {list(a.shape)} and {list(b.shape)}")
    if a.dtype != b.dtype:
        raise ValueError(f"expected one dtype, got {a.dtype} and {b.dtype}")
    (sign, one), (other_sign, other) = _sign_and_magnitude(a), _sign_and_magnitude(b)
    apart = np.maximum(one, other) - np.minimum(one, other)
    return np.asarray(np.where(sign == other_sign, apart, one + other))


def _sign_and_magnitude(array: Array) -> tuple[Array, Array]:
    """Both as uint64; magnitudes count the dtype's values from 0."""
    if array.dtype.kind == "c":
        raise ValueError(f"expected a floating dtype, got {array.dtype}")
    width = int(ml_dtypes.finfo(array.dtype).bits)  # type: ignore[no-untyped-call]
    signed = "e8m0" not in array.dtype.name  # powers of two alone: all of its bits are exponent
    magnitude = np.uint64((1 << (width - signed)) - 1)
    wide = bits(array).astype(np.uint64)
    return wide & (magnitude + np.uint64(1)), wide & magnitude
