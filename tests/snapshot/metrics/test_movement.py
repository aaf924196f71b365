"""How far arrays moved: counted by bits, placed by coordinates, for every dtype of the store."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.metrics.movement import movement
from snapshot.store.blob import dtypes


def test_one_element_of_a_kernel_s_output_has_its_place() -> None:
    before = np.ones((2, 3, 4), np.float32)
    after = before.copy()
    after[1, 2, 3] = np.nextafter(np.float32(1), np.float32(2))
    found = movement(before, after)
    assert (found.elements, found.moved) == (24, 1)
    assert found.worst_row == (1, 2) and found.rows.shape == (2, 3)
    assert found.ulp_max == 1 and found.ulp_where == (1, 2, 3) and found.ulp_p50 == 1
    assert found.rel_l2 == pytest.approx(2**-23 / 2)


def test_non_finite_values_are_counted_and_placed_and_not_averaged() -> None:
    before, after = np.ones((2, 2), np.float32), np.ones((2, 2), np.float32)
    before[0, 0], after[1, 1] = np.inf, np.nan
    found = movement(before, after)
    assert found.before is not None and found.before.first == (0, 0)
    assert found.after is not None and found.after.first == (1, 1)
    assert found.moved == 2 and found.rel_l2 == 0 and found.ulp_max is None


def test_a_zero_row_that_moves_is_infinitely_far() -> None:
    found = movement(np.zeros((2, 2)), np.array([[0, 0], [0, 1e-9]]))
    assert math.isinf(found.rel_l2) and found.worst_row == (1,)


def test_signs_of_zero_and_of_nan_are_bits() -> None:
    assert movement(np.array([0.0]), np.array([-0.0])).moved == 1
    assert movement(np.array([0.0]), np.array([-0.0])).ulp_max == 0
    assert movement(np.array([np.nan]), np.array([np.nan])).moved == 0


@pytest.mark.parametrize("name", sorted(dtypes()))
def test_every_dtype_of_the_store(name: str) -> None:
    dtype = dtypes()[name]
    array = np.zeros((2, 3), dtype) if "e8m0" not in name else np.ones((2, 3), dtype)
    assert movement(array, array.copy()).moved == 0
    other = array.copy()
    other.reshape(-1)[4] = dtype.type(1) if "e8m0" not in name else dtype.type(2)
    found = movement(array, other)
    assert found.moved == 1 and found.elements in (6, 12)
    assert str(found).startswith("1 of ")


def test_bfloat16_counts_its_own_steps() -> None:
    before = np.array([1.0], ml_dtypes.bfloat16)
    after = np.array([1.0 + 2**-7], ml_dtypes.bfloat16)
    assert movement(before, after).ulp_max == 1


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,)])
def test_other_shapes(shape: tuple[int, ...]) -> None:
    found = movement(np.zeros(shape), np.zeros(shape))
    assert found.elements == math.prod(shape)
    if not found.elements:
        assert str(found) == "0 elements compared"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (np.zeros(2), np.zeros(3), r"float64 \[2\] became float64 \[3\]"),
        (np.zeros(2), np.zeros(2, np.float32), r"float64 \[2\] became float32 \[2\]"),
    ],
)
def test_what_does_not_compare_says_why(before: object, after: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        movement(before, after)  # type: ignore[arg-type]


@given(st.lists(st.floats(width=32), min_size=1, max_size=8), st.data())
def test_it_never_fails_and_counts_bits(values: list[float], data: st.DataObject) -> None:
    before = np.array(values, np.float32)
    other = data.draw(st.lists(st.floats(width=32), min_size=len(values), max_size=len(values)))
    after = np.array(other, np.float32)
    found = movement(before, after)
    assert found.moved == int((before.view(np.uint32) != after.view(np.uint32)).sum())
    assert found.rel_l2 >= 0
