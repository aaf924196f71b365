"""Near-ties: what rounding alone may decide, and nothing more."""

from __future__ import annotations

import dataclasses
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.difference import Divergence
from snapshot.metrics.ties import ULPS, near_tie, tie_bound, ulp
from tests.snapshot.builders import observation

TYPES = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float32": np.float32}


def spacing(value: float, dtype: str) -> float:
    """The distance to the next number away from zero."""
    here = TYPES[dtype](abs(value))
    return float(np.nextafter(here, TYPES[dtype](math.inf))) - float(here)


@pytest.mark.parametrize("dtype", TYPES)
@given(value=st.floats(2**-14, 2**15) | st.integers(-14, 14).map(lambda n: 2.0**n))
def test_a_unit_in_the_last_place_is_the_distance_to_the_next_number(
    dtype: str, value: float
) -> None:
    rounded = float(TYPES[dtype](value))
    assert ulp(rounded, dtype) == ulp(-rounded, dtype) == spacing(rounded, dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_just_below_a_power_of_two_the_numbers_lie_closer(dtype: str) -> None:
    below = float(np.nextafter(TYPES[dtype](16), TYPES[dtype](0)))
    assert ulp(below, dtype) == 16 - below == ulp(16.0, dtype) / 2


def test_known_units() -> None:
    assert ulp(17.5, "bfloat16") == 0.125
    assert ulp(17.5, "float16") == 2**-6
    assert ulp(17.5, "float32") == 2**-19


@pytest.mark.parametrize("dtype", ["", "float64", "float8_e4m3fn", "int8", "fp16", "torch.float16"])
def test_an_unknown_dtype_has_no_unit_so_nothing_passes_for_a_tie(dtype: str) -> None:
    assert ulp(17.5, dtype) == 0.0
    assert tie_bound(observation(), 0, dtype, 0.0) == 0.0


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf, -math.inf])
def test_what_has_no_size_has_no_unit(value: float) -> None:
    assert all(ulp(value, dtype) == 0.0 for dtype in TYPES)


def test_the_bound_is_two_units_of_the_top_logit_or_what_was_measured() -> None:
    row = observation()  # its top logit is 9
    assert tie_bound(row, 3, "float16", 0.0) == ULPS * 2**-7
    assert tie_bound(row, 3, "bfloat16", 0.0) == ULPS * 2**-4
    assert tie_bound(row, 3, "float16", 0.25) == 0.25
    assert tie_bound(row, 3, "bfloat16", 0.01) == ULPS * 2**-4


def test_without_logits_there_only_what_was_measured_is_a_tie() -> None:
    assert tie_bound(observation(arrays={}), 0, "float16", 0.0) == 0.0
    assert tie_bound(observation(arrays={}), 0, "float16", 0.1) == 0.1
    assert tie_bound(observation(), 99, "float16", 0.1) == 0.1
    row = observation()
    row.arrays["top_logits"][3] = np.nan
    assert tie_bound(row, 3, "float16", 0.0) == 0.0


TIED = Divergence(3, 11, 12, 0.1, 0.1, golden_rank=1, candidate_rank=1)


def test_both_margins_within_the_bound_and_both_tokens_ranked_are_a_tie() -> None:
    assert near_tie(TIED, 0.1)


@pytest.mark.parametrize(
    "change",
    [
        {"golden_margin": 0.11},
        {"candidate_margin": 0.11},
        {"golden_margin": None},
        {"candidate_margin": None},
        {"golden_rank": None},
        {"candidate_rank": None},
    ],
)
def test_each_condition_of_a_near_tie_is_needed(change: dict[str, float | None]) -> None:
    assert not near_tie(dataclasses.replace(TIED, **change), 0.1)  # type: ignore[arg-type]


def test_two_equal_logits_are_a_tie_under_any_bound() -> None:
    level = dataclasses.replace(TIED, golden_margin=0.0, candidate_margin=0.0)
    assert near_tie(level, 0.0)
    assert not near_tie(TIED, 0.0)
