"""Distances of logprobs: by token id, in the same context, and never close by vacuity."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.metrics.logprobs import compared, deltas, distance, prompt_deltas
from snapshot.metrics.shape import Misshapen
from snapshot.model import Array, Observation
from tests.snapshot.builders import floats, observation


def scored(ids: tuple[int, ...], **arrays: Array) -> Observation:
    return observation("x", ids=ids, arrays=arrays)


def top(*steps: dict[int, float]) -> dict[str, Any]:
    return {
        "topk_ids": np.array([list(step) for step in steps], dtype=np.int32),
        "topk_logprobs": np.array([list(step.values()) for step in steps], dtype=np.float32),
    }


def test_equal_logprobs_are_at_no_distance() -> None:
    found = distance(observation(), observation())
    assert found is not None
    assert (found.rms, found.max) == (0.0, 0.0)
    assert found.count == 2 + 8 + 16  # prompt, chosen, both of the top-k


def test_the_largest_difference_is_named_by_its_place() -> None:
    a = observation("a b c", ids=(1, 2, 3))
    arrays = {name: array.copy() for name, array in a.arrays.items()}
    arrays["topk_logprobs"][1, 1] += 0.25
    found = distance(a, observation("a b c", ids=(1, 2, 3), arrays=arrays))
    assert found is not None
    assert (found.max, found.where) == (0.25, "step 1, token 3")
    arrays["prompt_logprobs"] = a.arrays["prompt_logprobs"] - np.float32([0, 0.5])
    found = distance(a, observation("a b c", ids=(1, 2, 3), arrays=arrays))
    assert found is not None
    assert (found.max, found.where) == (0.5, "prompt token 2")
    assert str(found) == "rms 0.17, max 0.5 at prompt token 2 (11 values)"


def test_top_k_is_matched_by_token_id_and_not_by_rank() -> None:
    """A swapped near-tie is no difference: sglang compares by rank and sees one."""
    golden = scored((7,), **top({7: -0.69, 9: -0.70}))
    swapped = scored((7,), **top({9: -0.70, 7: -0.69}))
    found = distance(golden, swapped)
    assert found is not None
    assert (found.count, found.max) == (2, 0.0)


def test_rank_alone_does_not_make_values_equal() -> None:
    golden = scored((7,), **top({7: -0.5, 9: -1.5}))
    renamed = scored((7,), **top({9: -0.5, 7: -1.5}))
    found = distance(golden, renamed)
    assert found is not None
    assert found.max == 1.0


def test_only_the_shared_context_is_compared() -> None:
    """After the first difference both sides answer different questions."""
    golden = scored((1, 2, 3), logprobs=floats(-1, -1, -1), **top({1: -1}, {2: -1}, {3: -1}))
    other = scored((1, 9, 3), logprobs=floats(-1, -5, -5), **top({1: -1}, {2: -3}, {3: -5}))
    found = distance(golden, other)
    assert found is not None
    assert found.count == 1 + 2  # the first token, and the top-k there and where they part
    assert (found.max, found.where) == (2.0, "step 1, token 2")


def test_no_token_in_common_compares_nothing_and_is_not_close() -> None:
    found = distance(scored((1,), **top({1: -1.0})), scored((1,), **top({2: -1.0})))
    assert found is not None
    assert found.count == 0
    assert str(found) == "0 values compared"


def test_arrays_that_only_one_side_has_cannot_be_compared() -> None:
    assert distance(observation(), observation(arrays={})) is None
    assert deltas(observation(), observation(arrays={})).size == 0


def test_prompts_of_other_or_unknown_tokens_are_not_compared() -> None:
    other = observation(prompt_ids=(5, 6, 8))
    unknown = observation(prompt_ids=None)
    assert prompt_deltas(observation(), other).size == 0
    assert prompt_deltas(observation(), unknown).size == 0
    assert prompt_deltas(unknown, unknown).size == 0
    assert prompt_deltas(observation(), observation(shift=1.0)).tolist() == [1.0, 1.0]


def test_what_was_compared_is_counted_by_kind() -> None:
    assert compared(observation("a b"), observation("a b")) == {
        "prompt logprobs": 2,
        "logprobs": 2,
        "top-k logprobs": 4,
    }


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"logprobs": floats(-1)}, "candidate logprobs: expected 2 entries, got 1"),
        ({"prompt_logprobs": floats(-1)}, "candidate prompt_logprobs: expected 2 entries, got 1"),
        ({"logprobs": floats(-1, -1).reshape(2, 1)}, "expected 1 dimension"),
        ({"top_logits": floats(-1, -1)}, "expected 2 dimension"),
        ({"topk_ids": floats(1, 2).reshape(2, 1)}, "got float32"),
        ({"logprobs": np.array([1, 2])}, "got int64"),
        ({"logprobs": np.array(["a", "b"])}, "got <U1"),
        ({"logprobs": floats(-1).reshape(())}, "expected 1 dimension"),
        (
            {"topk_ids": np.zeros((2, 3), np.int32), "topk_logprobs": np.zeros((2, 2), np.float32)},
            "a logprob for each id",
        ),
    ],
)
def test_an_array_that_does_not_fit_its_tokens_is_refused(
    arrays: dict[str, Array], said: str
) -> None:
    golden, bad = observation("a b"), observation("a b", arrays=arrays)
    with pytest.raises(Misshapen, match=said):
        distance(golden, bad)
    with pytest.raises(Misshapen):
        deltas(bad, golden)


def test_nan_on_one_side_is_no_small_difference() -> None:
    """C23 c"""
    golden = scored((1, 2), logprobs=floats(-1, np.nan))
    found = distance(golden, scored((1, 2), logprobs=floats(-1, -1)))
    assert found is not None
    assert not found.max <= 1e9
    assert not found.rms <= 1e9


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_same_non_finite_value_is_no_difference_here(value: float) -> None:
    """Whether it may be there at all is for `nonfinite` and the verdict to say (C23 b)."""
    found = distance(scored((1,), logprobs=floats(value)), scored((1,), logprobs=floats(value)))
    assert found is not None
    assert (found.count, found.max) == (1, 0.0)


def test_opposite_infinities_differ() -> None:
    found = distance(scored((1,), logprobs=floats(np.inf)), scored((1,), logprobs=floats(-np.inf)))
    assert found is not None
    assert found.max == np.inf


@given(st.lists(st.tuples(st.floats(-9, 0), st.floats(-9, 0)), min_size=1, max_size=9))
def test_distance_is_symmetric_and_what_the_deltas_say(pairs: list[tuple[float, float]]) -> None:
    ids = tuple(range(len(pairs)))
    a, b = (scored(ids, logprobs=floats(*side)) for side in zip(*pairs, strict=True))
    there, back = distance(a, b), distance(b, a)
    assert there is not None and back is not None
    assert (there.rms, there.max) == (back.rms, back.max)
    assert there.max == np.abs(deltas(a, b)).max()
    assert there.rms <= there.max * (1 + 1e-12)


def test_a_wide_top_k_is_matched_in_moderate_time_and_memory() -> None:
    rng = np.random.default_rng(0)
    steps, k = 500, 1000
    ids = np.stack([rng.permutation(50_000)[:k] for _ in range(steps)]).astype(np.int32)
    arrays = {"topk_ids": ids, "topk_logprobs": np.zeros((steps, k), np.float32)}
    row = scored(tuple(range(steps)), **arrays)
    start = time.process_time()
    found = distance(row, row)
    assert found is not None and found.count == steps * k
    assert time.process_time() - start < 3
