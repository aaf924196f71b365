"""Small-sample statistics: against their definitions, and where they must stay silent."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot.statistics import EXACT, RESAMPLES, bootstrap, detectable, holm, sign_flip

# Exact in binary, so that a definition written down in a test rounds nowhere.
EIGHTHS = st.integers(-800, 800).map(lambda n: n / 8)
NUMBERS = st.floats(-1e3, 1e3, allow_nan=False)
P_VALUES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1), max_size=8)

# -------------------------------------------------------------------------- sign_flip


def brute_force(values: list[float]) -> float:
    """The share of all assignments of signs whose mean is as far from zero as the observed."""
    target = abs(sum(values))
    sums = [
        abs(sum(sign * value for sign, value in zip(signs, values, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]
    return sum(total >= target for total in sums) / len(sums)


@given(st.lists(EIGHTHS, min_size=1, max_size=8))
def test_every_assignment_of_signs_is_counted(values: list[float]) -> None:
    assert sign_flip(values) == brute_force(values)


@pytest.mark.parametrize("count", range(1, EXACT + 1))
def test_values_of_one_sign_give_the_smallest_answer_there_is(count: int) -> None:
    assert sign_flip([0.5 + i for i in range(count)]) == 2 / 2**count


def test_five_prompts_are_never_significant() -> None:
    assert sign_flip([1.0] * 5) >= 0.05 > sign_flip([1.0] * 6)


def test_what_is_zero_or_cancels_is_as_expected_as_can_be() -> None:
    """0.1 + 0.2 - 0.3 is not zero in binary, and no evidence of anything."""
    for values in ([], [0.0] * 4, [1.0, -1.0], [0.1, 0.2, -0.3], [0.1, 0.2, -0.3] * 5):
        assert sign_flip(values) == 1.0


@given(st.lists(NUMBERS, min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_neither_order_nor_sign_nor_scale_changes_the_answer(
    values: list[float], shuffler: random.Random
) -> None:
    shuffled = shuffler.sample(values, len(values))
    p = sign_flip(values)
    assert sign_flip(shuffled) == p
    assert sign_flip([-value for value in values]) == p
    assert sign_flip([value * 1024 for value in values]) == p


@settings(max_examples=10, deadline=None)
@given(st.lists(NUMBERS, min_size=EXACT + 1, max_size=EXACT + 4), st.randoms(use_true_random=False))
def test_above_the_exact_count_a_report_is_the_same_twice_in_any_order(
    values: list[float], shuffler: random.Random
) -> None:
    p = sign_flip(values)
    assert sign_flip(values) == sign_flip(shuffler.sample(values, len(values))) == p
    assert 1 / (RESAMPLES + 1) <= p <= 1.0


def test_the_sampled_answer_is_near_the_exact_one() -> None:
    draws = np.random.default_rng(1).normal(0.3, 1.0, 14).tolist()
    assert sign_flip(draws) == pytest.approx(brute_force(draws), abs=0.02)


def test_a_sample_that_never_reaches_the_observed_still_holds_it() -> None:
    assert sign_flip([1.0] * 40) == 1 / (RESAMPLES + 1)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("count", [6, EXACT + 3])
def test_a_value_that_is_no_number_proves_nothing(bad: float, count: int) -> None:
    assert sign_flip([1.0] * count + [bad]) == 1.0


def test_where_nothing_is_wrong_it_errs_as_often_as_it_says() -> None:
    draws = np.random.default_rng(7).normal(0, 1, (400, 8))
    assert np.mean([sign_flip(row.tolist()) < 0.05 for row in draws]) <= 0.08


# ------------------------------------------------------------------------------- holm


@given(P_VALUES)
def test_holm_is_the_step_down_of_its_definition(p_values: dict[str, float]) -> None:
    adjusted = holm(p_values)
    assert adjusted.keys() == p_values.keys()
    for name, p in p_values.items():
        # Holm (1979): the largest of (m - j + 1) * p_(j) over all j up to this one's rank.
        smaller = sorted(other for other in p_values.values() if other <= p)
        steps = [(len(p_values) - rank) * other for rank, other in enumerate(smaller)]
        assert adjusted[name] == min(1.0, max(steps))


@given(P_VALUES)
def test_holm_keeps_the_order_and_never_helps(p_values: dict[str, float]) -> None:
    adjusted = holm(p_values)
    for (a, p), (b, q) in itertools.combinations(p_values.items(), 2):
        assert (p > q) or adjusted[a] <= adjusted[b]
    assert all(p <= adjusted[name] <= 1.0 for name, p in p_values.items())


def test_one_group_alone_needs_no_correction() -> None:
    assert holm({"wizard": 0.03}) == {"wizard": 0.03}
    assert holm({}) == {}


# ------------------------------------------------------------------------- detectable


def test_so_few_prompts_that_nothing_is_significant_detect_nothing() -> None:
    spread = [0.1, -0.1, 0.2, -0.2, 0.3, -0.3, 0.1]
    assert detectable(spread[:5]) == math.inf
    assert math.isfinite(detectable(spread[:6]))
    assert detectable(spread[:6], groups=2) == math.inf
    assert math.isfinite(detectable(spread[:7], groups=3))
    assert detectable([]) == detectable([1.0]) == math.inf


@pytest.mark.parametrize("count", range(1, EXACT + 1))
@pytest.mark.parametrize("groups", [1, 2, 5])
def test_what_is_detectable_agrees_with_what_can_be_significant(count: int, groups: int) -> None:
    names = [str(i) for i in range(groups)]
    best = holm(dict.fromkeys(names, sign_flip([1.0] * count)))["0"]
    assert math.isfinite(detectable([1.0] * count, groups)) == (best < 0.05)


def test_the_detectable_shift_is_found_four_times_in_five() -> None:
    generator = np.random.default_rng(3)
    values = generator.normal(0, 1, 11)
    values = (values - values.mean()) / values.std(ddof=1)
    shift = detectable(values.tolist())
    found = [sign_flip((generator.normal(0, 1, 11) + shift).tolist()) < 0.05 for _ in range(300)]
    assert 0.7 <= np.mean(found) <= 0.9


def test_a_thousand_prompts_are_not_too_many() -> None:
    values = [0.0, 1.0] * 600
    assert detectable(values) == pytest.approx(2.8016 * 0.5 / math.sqrt(1200), rel=1e-3)


# -------------------------------------------------------------------------- bootstrap


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(EIGHTHS, st.integers(1, 50)), min_size=1, max_size=20))
def test_the_interval_holds_the_estimate_and_lies_among_the_ratios(
    pairs: list[tuple[float, int]],
) -> None:
    numerators, denominators = (
        np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True)
    )
    low, high = bootstrap(numerators, denominators)
    estimate, ratios = numerators.sum() / denominators.sum(), numerators / denominators
    slack = 1e-9
    assert ratios.min() - slack <= low <= estimate + slack
    assert estimate - slack <= high <= ratios.max() + slack
    assert bootstrap(numerators, denominators) == (low, high)


def test_prompts_that_agree_leave_no_doubt_and_others_leave_less_the_more_there_are() -> None:
    assert bootstrap(np.array([2.0]), np.array([4.0])) == (0.5, 0.5)
    assert bootstrap(np.full(9, 2.0), np.full(9, 4.0)) == (0.5, 0.5)
    draws = np.random.default_rng(5).normal(0, 1, 200)
    few, many = (bootstrap(draws[:n], np.ones(n)) for n in (20, 200))
    assert many[1] - many[0] < (few[1] - few[0]) / 2
    assert few[0] < few[1]


def test_nineteen_intervals_in_twenty_hold_the_truth() -> None:
    draws = np.random.default_rng(11).normal(0.5, 1, (100, 30))
    intervals = [bootstrap(row, np.ones(30)) for row in draws]
    assert 0.88 <= np.mean([low <= 0.5 <= high for low, high in intervals]) <= 0.99
