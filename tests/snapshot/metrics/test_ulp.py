"""Steps between values: against a sorted list of every value, and against numpy's own steps."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.metrics.ulp import bits, ulp_distance
from snapshot.store.blob import dtypes

FLOATS = sorted(name for name in dtypes() if "float" in name)
NARROW = [name for name in FLOATS if dtypes()[name].itemsize <= 2]
WIDE = ["float32", "float64"]


@functools.cache
def every(name: str) -> np.ndarray:
    """Every bit pattern of a dtype, as values; those with NaN left out."""
    dtype: Any = dtypes()[name]
    width = int(ml_dtypes.finfo(dtype).bits)
    values = np.arange(2**width, dtype=f"u{dtype.itemsize}").view(dtype)
    with np.errstate(invalid="ignore"):
        return values[~np.isnan(values.astype(np.float64))]


@pytest.mark.parametrize("name", NARROW)
@given(data=st.data())
def test_it_is_the_difference_of_places_among_all_values(name: str, data: st.DataObject) -> None:
    values = every(name)
    places = np.unique(values.astype(np.float64), return_inverse=True)[1]
    draw = st.lists(st.integers(0, len(values) - 1), min_size=4, max_size=4)
    one, other = np.array(data.draw(draw)), np.array(data.draw(draw))
    found = ulp_distance(values[one].reshape(2, 2), values[other].reshape(2, 2))
    assert found.dtype == np.uint64 and found.shape == (2, 2)
    assert found.reshape(-1).tolist() == np.abs(places[one] - places[other]).tolist()


@pytest.mark.parametrize("name", WIDE)
@given(data=st.data(), steps=st.integers(0, 50))
def test_it_is_the_number_of_steps_up(name: str, data: st.DataObject, steps: int) -> None:
    dtype = np.dtype(name)
    value = data.draw(st.floats(width=8 * dtype.itemsize, allow_nan=False))
    up = below = np.array([value], dtype)
    counted = 0
    for _ in range(steps):
        with np.errstate(over="ignore"):
            up = np.nextafter(up, dtype.type(np.inf))
        counted += int(up.item() != below.item())
        below = up
    start = np.array([value], dtype)
    assert ulp_distance(start, up).item() == ulp_distance(up, start).item() == counted


@pytest.mark.parametrize("name", FLOATS)
@given(data=st.data())
def test_nan_spoils_no_other_element(name: str, data: st.DataObject) -> None:
    dtype: Any = dtypes()[name]
    width = int(ml_dtypes.finfo(dtype).bits)
    patterns = st.lists(st.integers(0, 2**width - 1), min_size=3, max_size=3)
    a, b = (np.array(data.draw(patterns), f"u{dtype.itemsize}").view(dtype) for _ in range(2))
    found = ulp_distance(a, b)
    assert (found == ulp_distance(b, a)).all() and (ulp_distance(a, a) == 0).all()
    known = ~(np.isnan(a.astype(np.float64)) | np.isnan(b.astype(np.float64)))
    assert (found[known] == ulp_distance(a[known], b[known])).all()
    equal = a.astype(np.float64)[known] == b.astype(np.float64)[known]
    assert ((found[known] == 0) == equal).all()  # 0.0 and -0.0 are equal


@pytest.mark.parametrize("name", [name for name in FLOATS if "e8m0" not in name])
def test_zero_has_neighbours_on_both_sides(name: str) -> None:
    dtype: Any = dtypes()[name]
    tiny = np.array([0, 1], f"u{dtype.itemsize}").view(dtype)  # 0 and the least above
    negative = -tiny
    assert ulp_distance(tiny[:1], negative[:1]).item() == 0 or "fnuz" in name  # no -0.0 there
    assert ulp_distance(tiny[:1], tiny[1:]).item() == 1
    assert ulp_distance(negative[1:], tiny[1:]).item() == 2


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e5m2", *WIDE])
def test_an_infinity_is_one_step_beyond_the_largest(name: str) -> None:
    dtype: Any = dtypes()[name]
    largest = np.array([ml_dtypes.finfo(dtype).max], dtype)
    infinity = np.array([np.inf], dtype)
    assert ulp_distance(largest, infinity).item() == ulp_distance(-largest, -infinity).item() == 1
    # between the farthest float64 lie more values than int64 counts
    assert ulp_distance(-infinity, infinity).item() == 2 * int(bits(infinity).item())


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (np.zeros(2), np.zeros(3), r"one shape, got \[2\] and \[3\]"),
        (np.zeros(2), np.zeros(2, np.float32), "one dtype, got float64 and float32"),
        (np.zeros(2, np.int32), np.zeros(2, np.int32), "int32"),
        (np.zeros(2, np.complex64), np.zeros(2, np.complex64), "floating dtype, got complex64"),
    ],
)
def test_what_has_no_steps_is_refused(a: np.ndarray, b: np.ndarray, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ulp_distance(a, b)


@pytest.mark.parametrize("array", [np.array(1.5), np.ones((3, 4))[:, ::-2], np.ones((2, 3)).T])
def test_bits_keep_shape_and_values(array: np.ndarray) -> None:
    assert bits(array).shape == array.shape
    assert (bits(array).reshape(array.shape).view(array.dtype) == array).all()
