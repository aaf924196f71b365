"""Numbers about tensors: every dtype, stride and shape, against plain arithmetic."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from snapshot.metrics.tensors import (
    errors,
    four_digits,
    lse_error,
    misplaced,
    moved,
    norm,
    row_digests,
    row_norms,
    rows,
)

FLOATS: list[Any] = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


STRIDES = {
    "column-major": lambda a: np.asfortranarray(a),
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "every second column": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "reversed": lambda a: np.ascontiguousarray(a[..., ::-1])[..., ::-1],
}


@pytest.mark.parametrize("name", STRIDES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_strides_change_no_number(name: str, dtype: Any) -> None:
    """C33"""
    values = np.random.default_rng(3).standard_normal((10, 32))
    plain = values.astype(dtype)
    other = STRIDES[name](plain)
    assert moved(plain, other).elements == 0
    assert errors(plain, values) == errors(other, values)
    assert (row_digests(plain) == row_digests(other)).all()
    assert (row_norms(plain) == row_norms(other)).all() and norm(plain) == norm(other)


def test_a_broadcast_array_is_compared_as_what_it_shows() -> None:
    """C33: stride 0."""
    shown = np.broadcast_to(np.float32(1.5), (3, 4))
    assert moved(shown, np.full((3, 4), 1.5, np.float32)).elements == 0


@pytest.mark.parametrize("shape", [(0,), (2, 0, 64), (0, 3), (2, 0)])
def test_nothing_compared_says_so(shape: tuple[int, ...]) -> None:
    """C33: an empty tensor is never close by vacuity; whoever judges sees the 0."""
    empty = np.zeros(shape, np.float32)
    assert errors(empty, empty).compared == 0
    assert moved(empty, empty).compared == 0
    assert lse_error(empty, empty) is None and misplaced("out", empty, empty) is None


def test_no_axes_are_one_row_of_one() -> None:
    """C33: shape () is not (1,)."""
    value, truth = np.array(1.25, np.float16), np.array(1.0)
    found = errors(value, truth)
    assert (found.compared, found.row, found.rel_l2) == (1, (), 0.25)
    assert rows(value).shape == (1, 1) and moved(value, value).row == ()
    with pytest.raises(ValueError, match=r"\[\] and \[1\]"):
        moved(value, value.reshape(1))


def test_the_worst_row_is_found_and_an_average_would_not_show_it() -> None:
    """C20"""
    truth = np.ones((2, 100, 64))
    out = truth.astype(np.float16)
    out[1, 77] *= np.float16(1.13)
    found = errors(out, truth)
    assert found.row == (1, 77) and found.rel_l2 == pytest.approx(0.13, abs=1e-3)
    assert found.row_ulp == found.ulp_max == 133 and found.ulp_p50 == 0
    cosine = (out * truth).sum() / math.sqrt((out.astype(float) ** 2).sum() * (truth**2).sum())
    assert cosine > 0.9999


@given(
    hnp.arrays(np.float64, (3, 5), elements=st.floats(-100, 100)),
    hnp.arrays(np.float64, (3, 5), elements=st.floats(-100, 100)),
)
def test_errors_are_what_their_words_say(out: Any, truth: Any) -> None:
    found = errors(out, truth)
    sizes = np.linalg.norm(truth, axis=1)
    gaps = np.linalg.norm(out - truth, axis=1)
    relative = gaps / np.where(sizes == 0, 1, sizes)
    assert found.rel_l2 == four_digits(relative.max())
    assert relative[found.row[0]] == relative.max()
    assert found.max_abs == four_digits(np.abs(out - truth).max())
    assert found.compared == 15


def test_errors_leave_out_what_is_not_finite_and_misplaced_finds_it() -> None:
    """C13"""
    truth = np.ones((2, 128, 512))
    out = truth.astype(np.float16)
    out[1, 77, 300] = np.nan
    found = misplaced("out", out, truth)
    assert found is not None and (found.count, found.first, found.value) == (1, (1, 77, 300), "nan")
    assert errors(out, truth).compared == out.size - 1 and errors(out, truth).rel_l2 == 0
    out[0, 0, 0] = -np.inf
    other = misplaced("out", out, truth)
    assert other is not None and (other.count, other.value) == (2, "-inf")
    assert other.pattern != found.pattern


def test_an_lse_of_minus_infinity_belongs_where_the_truths_is() -> None:
    """C17"""
    truth = np.array([1.0, -np.inf])
    good = np.array([1.0, -np.inf], np.float32)
    assert misplaced("lse", good, truth) is None
    assert lse_error(good, truth) is not None and lse_error(good, truth).abs == 0  # type: ignore[union-attr]
    finite = lse_error(np.array([1.0, 0.0], np.float32), truth)
    assert finite is not None and (finite.abs, finite.row) == (math.inf, (1,))
    nan = misplaced("lse", np.array([1.0, np.nan], np.float32), truth)
    assert nan is not None and nan.first == (1,)
    wrong_sign = misplaced("lse", np.array([1.0, np.inf], np.float32), truth)
    assert wrong_sign is not None and wrong_sign.value == "inf"
    missing = misplaced("lse", np.array([-np.inf, -np.inf], np.float32), truth)
    assert missing is not None and missing.first == (0,)


@pytest.mark.parametrize("dtype", FLOATS)
def test_moved_counts_bits(dtype: Any) -> None:
    golden = np.ones((4, 8)).astype(dtype)
    candidate = golden.copy()
    bits = candidate.view(f"i{golden.dtype.itemsize}")
    bits[2, 3] += 5
    bits[2, 4] -= 1
    candidate[0, 0] = np.nan
    found = moved(golden, candidate)
    assert (found.elements, found.rows, found.of_rows, found.compared) == (3, 2, 4, 31)
    assert (found.ulp_max, found.row) == (5, (2,))


def test_zero_and_minus_zero_are_moved_bits_at_no_distance() -> None:
    found = moved(np.array([[0.0]], np.float32), np.array([[-0.0]], np.float32))
    assert (found.elements, found.ulp_max) == (1, 0)


@given(st.floats(1e-300, 1e300))
def test_rounding_goes_up_and_keeps_four_digits(value: float) -> None:
    assert value <= four_digits(value) <= value * 1.0011
    assert four_digits(four_digits(value)) == four_digits(value)
