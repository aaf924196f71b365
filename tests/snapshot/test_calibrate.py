"""The noise floor: measured, rounded upwards, and zero where it was not measured."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.calibrate import _round, adapter_effect, calibration, floor, power, tie_margin
from snapshot.comparison import Comparison
from snapshot.model import GenerationCase, Observation
from tests.snapshot.builders import MOVED, floats, observation

BASE = GenerationCase("base/x-1", None, "x")
WIZARD = GenerationCase("wizard/x-1", "wizard", "x")
CASES = [BASE, WIZARD]


def run(base: float = 0.0, wizard: float = 0.5) -> dict[str, Observation]:
    return {
        BASE.key: observation(case=BASE.key, shift=base),
        WIZARD.key: observation("other words", case=WIZARD.key, shift=wizard),
    }


def test_each_kind_of_noise_that_was_measured_is_kept() -> None:
    noise = calibration(CASES, run(), repeats=[run()], batch_sizes=[run(base=0.25)])
    assert set(noise) == {"repeats", "batch_sizes", "adapter_effect", "power"}
    assert noise["repeats"]["max"] == noise["repeats"]["row_rms"] == 0.0
    drift = noise["batch_sizes"]
    assert drift["max"] == drift["row_rms"] == pytest.approx(0.25, abs=1e-3)
    assert 0 < drift["rms"] < drift["row_rms"]  # one of two rows moved
    assert drift["count"] == 2 + 8 + 16 + 2 + 2 + 4
    assert noise["adapter_effect"] == {"wizard": pytest.approx(0.5, abs=1e-3)}
    json.dumps(noise, allow_nan=False)


def test_what_was_measured_lies_within_its_own_floor() -> None:
    """The floor is taken of the same deltas that it bounds: no row that made it exceeds it."""
    rng = np.random.default_rng(0)
    moved = {
        case.key: observation(
            "other words" if case.adapter else "some words",
            case=case.key,
            ids=(1, 2),
            arrays={"logprobs": floats(*(-1 + 0.01 * rng.standard_normal(2)))},
        )
        for case in CASES
    }
    still = {
        key: observation(row.output.text, case=key, ids=(1, 2), arrays={"logprobs": floats(-1, -1)})
        for key, row in moved.items()
    }
    bound = floor(calibration(CASES, still, batch_sizes=[moved]), same_batch=False)
    for key in still:
        assert Comparison.of(still[key], moved[key]).within(bound)


def test_the_floor_of_the_same_batch_is_that_of_repeats() -> None:
    noise = calibration(CASES, run(), repeats=[run()], batch_sizes=[run(base=0.25)])
    assert floor(noise, same_batch=True).max == 0.0
    assert floor(noise, same_batch=False).max >= 0.25
    assert floor(noise, same_batch=True).name == "noise floor over repeats"


@pytest.mark.parametrize("noise", [{}, {"repeats": {}}, {"repeats": {"count": 3, "rms": 0.1}}])
def test_a_floor_that_was_not_measured_is_zero(noise: dict[str, object]) -> None:
    found = floor(noise, same_batch=True)
    assert (found.rms, found.max) == (0.0, 0.0)


@given(st.floats(1e-40, 1e6))
def test_rounding_is_upwards_and_small(value: float) -> None:
    assert value <= _round(value) <= value * 1.0011


def test_zero_and_what_is_not_finite_stay_what_they_are() -> None:
    assert _round(0.0) == 0.0
    assert math.isinf(_round(math.inf))


def test_non_finite_logprobs_measure_nothing() -> None:
    """C23: a NaN that an allow entry lets in must not make the floor infinite."""
    bad = observation(case=BASE.key)
    arrays = {**bad.arrays, "logprobs": np.full(8, np.nan, np.float32)}
    other = {**run(), BASE.key: observation(case=BASE.key, arrays=arrays)}
    noise = calibration(CASES, run(), batch_sizes=[other])
    assert noise["batch_sizes"]["max"] == 0.0
    json.dumps(noise, allow_nan=False)


def parting(margin: float) -> dict[str, Observation]:
    """The base row says something else, where its two best logits are `margin` apart."""
    row = observation("other ones", case=BASE.key)
    row.arrays["top_logits"][:] = (9.0, 9.0 - margin)
    return {**run(), BASE.key: row}


def test_the_largest_margin_at_which_the_reference_parted_is_kept() -> None:
    first = parting(0.25)
    first[BASE.key] = observation("some ones", case=BASE.key)
    first[BASE.key].arrays["top_logits"][:] = (9.0, 8.75)
    noise = calibration(
        CASES, first, repeats=[first], orders=[parting(0.125)], batch_sizes=[first, parting(0.5)]
    )
    assert noise["repeats"]["tie_margin"] == 0.0
    assert noise["orders"]["tie_margin"] == 0.25  # the golden's own, which is the larger one
    assert noise["batch_sizes"]["tie_margin"] == 0.5
    assert tie_margin(noise) == 0.5


def test_a_parting_without_margins_or_after_an_end_measures_no_tie() -> None:
    ended = {**run(), BASE.key: observation("", ids=(), case=BASE.key)}
    unknown = {**run(), BASE.key: observation(MOVED, arrays={}, case=BASE.key)}
    noise = calibration(CASES, run(), batch_sizes=[ended, unknown])
    assert noise["batch_sizes"]["tie_margin"] == 0.0


@pytest.mark.parametrize(
    ("noise", "margin"),
    [
        ({}, 0.0),
        ({"orders": {}, "batch_sizes": {"rms": 1.0}}, 0.0),
        ({"orders": {"tie_margin": 0.25}}, 0.25),
        ({"repeats": {"tie_margin": 9.0}, "batch_sizes": {"tie_margin": 0.125}}, 0.125),
    ],
)
def test_repeats_of_one_batch_measure_no_tie(noise: dict[str, object], margin: float) -> None:
    assert tie_margin(noise) == margin


def test_the_adapters_effect_is_measured_on_the_prompt() -> None:
    assert adapter_effect(CASES, run(wizard=0.125)) == {"wizard": pytest.approx(0.125)}
    assert adapter_effect([WIZARD], run()) == {}


def test_an_effect_that_cannot_be_measured_is_left_out() -> None:
    """A prompt of one token has no logprobs: that is not an effect of zero."""
    rows = {
        case.key: observation(text, case=case.key, prompt_ids=(5,), arrays={})
        for case, text in zip(CASES, ("a", "b"), strict=True)
    }
    assert adapter_effect(CASES, rows) == {}


def test_power_is_the_weakest_adapter_over_the_drift() -> None:
    noise = {"adapter_effect": {"a": 0.5, "b": 0.2}, "batch_sizes": {"prompt_rms": 0.05}}
    assert power(noise) == pytest.approx(4.0)


@pytest.mark.parametrize(
    "noise",
    [
        {},
        {"adapter_effect": {"a": 0.5}},
        {"adapter_effect": {"a": 0.5}, "batch_sizes": {"rms": 0.1}},
        {"adapter_effect": {"a": 0.5}, "batch_sizes": {"prompt_rms": 0.0}},
    ],
)
def test_power_is_unknown_without_both(noise: dict[str, object]) -> None:
    assert power(noise) is None
