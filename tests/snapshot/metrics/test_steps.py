"""The steps around a difference: the right ones, and only what is known."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from snapshot.metrics.steps import SPAN, around
from tests.snapshot.builders import MASSIVE, MOVED, bare, observation, token_ids


def test_the_steps_around_the_parting_with_both_sides() -> None:
    steps = around(observation(), observation(MOVED))
    assert [step.index for step in steps] == [0, 1, 2, 3, 4, 5, 6, 7]
    parted = steps[3]
    assert parted.tokens == (token_ids(MASSIVE)[3], token_ids(MOVED)[3])
    assert parted.logprobs == (-0.5, -0.5) and parted.margins == (1.0, 1.0)
    assert parted.tops[0] == ((parted.tokens[0], -0.5), (parted.tokens[0] + 1, -1.5))  # type: ignore[operator]
    assert steps[-1].tokens == (token_ids(MASSIVE)[7], None)  # the candidate had ended


def test_equal_tokens_show_where_a_logprob_moved_most() -> None:
    moved = observation()
    moved.arrays["logprobs"][5] -= 0.5
    moved.arrays["logprobs"][1] -= 0.1
    steps = around(observation(), moved)
    assert [step.index for step in steps] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert steps[5].logprobs == (-0.5, -1.0)


def test_nothing_is_shown_where_nothing_differs_or_no_token_is_known() -> None:
    assert around(observation(), observation()) == ()
    assert around(observation(), bare(MOVED)) == ()
    assert around(bare(MASSIVE), observation()) == ()
    assert around(observation(ids=(), arrays={}), observation(ids=(), arrays={})) == ()


def test_what_a_side_does_not_tell_is_left_out() -> None:
    steps = around(observation(), observation(MOVED, arrays={}))
    assert steps[3].logprobs == (-0.5, None) and steps[3].margins == (1.0, None)
    assert steps[3].tops[1] == ()


def test_a_number_that_is_none_is_left_out_and_counts_as_most_moved() -> None:
    bad = observation()
    bad.arrays["logprobs"][2] = np.nan
    bad.arrays["topk_logprobs"][2] = (-np.inf, np.nan)
    (step,) = (step for step in around(observation(), bad) if step.index == 2)
    assert step.logprobs == (-0.5, None) and step.tops[1] == ()


def test_the_same_infinity_on_both_sides_did_not_move() -> None:
    """C23: admitted by an allow entry, and no difference."""
    sides = [observation(), observation()]
    for side in sides:
        side.arrays["logprobs"][2] = -np.inf
    assert around(*sides) == ()
    sides[1].arrays["logprobs"][5] -= 0.5
    assert [step.index for step in around(*sides)] == [0, 1, 2, 3, 4, 5, 6, 7]


def test_arrays_in_half_precision_are_shown_as_numbers() -> None:
    sides = [observation(), observation(MOVED)]
    for side in sides:
        for name in ("logprobs", "topk_logprobs", "top_logits"):
            side.arrays[name] = side.arrays[name].astype(ml_dtypes.bfloat16)  # type: ignore[index]
    step = around(*sides)[3]
    assert step.logprobs == (-0.5, -0.5) and step.margins == (1.0, 1.0)
    assert all(type(value) is float for _, value in step.tops[0])
    sides[1] = observation()
    sides[1].arrays["logprobs"] = (observation().arrays["logprobs"] - 1).astype(ml_dtypes.bfloat16)  # type: ignore[index]
    assert around(*sides)[0].logprobs == (-0.5, -1.5)


@given(st.lists(st.integers(0, 3), max_size=20), st.lists(st.integers(0, 3), max_size=20))
def test_the_parting_is_always_among_the_steps(a: list[int], b: list[int]) -> None:
    steps = around(observation(ids=a, arrays={}), observation(ids=b, arrays={}))
    assert bool(steps) == (a != b)
    if steps:
        parted = [step.index for step in steps if step.tokens[0] != step.tokens[1]]
        assert parted and a[: parted[0]] == b[: parted[0]]
        assert len(steps) <= 2 * SPAN + 1
