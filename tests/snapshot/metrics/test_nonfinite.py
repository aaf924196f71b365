"""NaN and infinities in any floating dtype and shape."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.metrics.nonfinite import NonFinite, nonfinite, same_pattern

FLOATING = (
    np.float16,
    np.float32,
    np.float64,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2,
)


@pytest.mark.parametrize("dtype", FLOATING)
def test_the_first_nan_is_named_by_its_coordinates(dtype: type) -> None:
    array = np.zeros((2, 78, 301), dtype)
    array[1, 77, 300] = np.nan
    assert nonfinite(array) == NonFinite(1, (1, 77, 300), "nan")


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 64), (3,)])
def test_finite_arrays_of_any_shape_have_none(dtype: type, shape: tuple[int, ...]) -> None:
    assert nonfinite(np.ones(shape, dtype)) is None


@pytest.mark.parametrize("dtype", FLOATING)
def test_a_0_d_nan_has_empty_coordinates(dtype: type) -> None:
    assert nonfinite(np.array(np.nan, dtype)) == NonFinite(1, (), "nan")


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_infinities_are_told_by_sign(dtype: type) -> None:
    found = nonfinite(np.array([1.0, -np.inf, np.inf], dtype))
    assert found == NonFinite(2, (1,), "-inf")


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_, ml_dtypes.int4])
def test_whole_numbers_are_finite(dtype: type) -> None:
    assert nonfinite(np.ones(3, dtype)) is None


def test_nan_payloads_signs_and_subnormals_do_not_confuse_it() -> None:
    payload = np.array([0x7FC00001, 0xFFC00000, 0x00000001], np.uint32).view(np.float32)
    assert nonfinite(payload) == NonFinite(2, (0,), "nan")


def test_a_view_is_read_in_its_own_order() -> None:
    array = np.zeros((3, 4), np.float32)
    array[2, 1] = np.nan
    assert nonfinite(array.T[::-1]) == NonFinite(1, (2, 2), "nan")


SPECIAL = st.sampled_from([0.0, 1.0, np.nan, np.inf, -np.inf])


@given(st.lists(st.tuples(SPECIAL, SPECIAL), min_size=1, max_size=5), st.sampled_from(FLOATING[:4]))
def test_patterns_are_the_same_where_every_special_value_is(
    pairs: list[tuple[float, float]], dtype: type
) -> None:
    a, b = (np.array(side, dtype) for side in zip(*pairs, strict=True))
    expected = all(repr(x) == repr(y) or (np.isfinite(x) and np.isfinite(y)) for x, y in pairs)
    assert same_pattern(a, b) == expected


def test_other_shapes_have_no_pattern_in_common() -> None:
    nan = np.float32(np.nan)
    assert not same_pattern(np.full(2, nan), np.full(3, nan))
    assert not same_pattern(np.full((), nan), np.full(1, nan))
    assert same_pattern(np.zeros(2, np.int32), np.ones(2, np.int32))
