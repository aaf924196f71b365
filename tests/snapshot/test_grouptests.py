"""What the rows of an adapter say together: what no single row shows, and nothing by accident."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot.attribution import GroupTest
from snapshot.grouptests import ERROR, STRENGTH, Scored, comparable, tests
from snapshot.model import Array, GenerationCase, Observation
from snapshot.statistics import holm
from tests.snapshot.builders import bare, observation

tests.__test__ = False  # type: ignore[attr-defined]  # the name of what is tested here

PROMPT, STEPS = 30, 20
NOISE = 0.02
EFFECT = 0.3


def seen(logprobs: Array, prompt: int = PROMPT) -> Observation:
    """A row whose prompt and tokens have these logprobs."""
    values = logprobs.astype(np.float32)
    return observation(
        ids=tuple(range(100, 100 + len(values) - prompt)),
        prompt_ids=tuple(range(prompt + 1)),
        arrays={"prompt_logprobs": values[:prompt], "logprobs": values[prompt:]},
    )


def row(
    seed: int,
    *,
    strength: float = 1.0,
    noise: float = NOISE,
    swapped: bool = False,
    base: bool = False,
    error: float = 1.0,
) -> Scored:
    """One prompt. The float32 base model gives ``b``, its adapter moves it by ``d``; a candidate
    applies `strength` of that, or another adapter's, and is `error` times noisier."""
    generator = np.random.default_rng(seed)
    shape = PROMPT + STEPS
    b = generator.normal(-3, 1, shape)
    d, other, n, m = (generator.normal(0, 1, shape) for _ in range(4))
    t = b if base else b + EFFECT * d
    moved = b if base else b + EFFECT * (other if swapped else strength * d)
    return Scored(
        candidate=seen(moved + error * noise * n),
        reference=seen(t + noise * m),
        truth=seen(t),
        base=None if base else seen(b),
    )


def asked(
    rows: Mapping[str, list[Scored]], *, exact: bool = False
) -> dict[str, dict[str, GroupTest]]:
    """By group and question."""
    cases, scored = [], {}
    for name, group in rows.items():
        for i, entry in enumerate(group):
            case = GenerationCase(f"{name}/{i}", None if name == "base" else name, f"prompt {i}")
            cases.append(case)
            scored[case.key] = entry
    found = tests(cases, scored, exact=exact)
    return {name: {test.question: test for test in answers} for name, answers in found.items()}


def wizard(count: int = 8, **fields: object) -> dict[str, GroupTest]:
    return asked({"wizard": [row(i, **fields) for i in range(count)]})["wizard"]  # type: ignore[arg-type]


# --------------------------------------------------------------------------- strength


@pytest.mark.parametrize(
    ("fault", "strength"),
    [({}, 1.0), ({"strength": 0.0}, 0.0), ({"strength": 1.05}, 1.05), ({"strength": 2.0}, 2.0)],
    ids=["clean", "dropped", "scaled by 5 %", "doubled"],
)
def test_the_strength_is_how_much_of_the_adapter_is_applied(
    fault: dict[str, float], strength: float
) -> None:
    found = wizard(**fault)[STRENGTH]
    assert found.estimate == pytest.approx(strength, abs=0.02)
    assert found.low <= found.estimate <= found.high
    assert found.significant == (strength != 1.0)
    assert (found.p < 0.05) == (strength != 1.0)
    assert (found.group, found.expected, found.prompts) == ("wizard", 1.0, 8)


def test_an_adapter_in_place_of_another_has_no_strength_of_its_own() -> None:
    found = wizard(swapped=True)[STRENGTH]
    assert found.estimate == pytest.approx(0.0, abs=0.2)
    assert found.significant


def test_a_fault_that_hides_in_every_row_shows_in_all_together() -> None:
    """5 % of an adapter that moves 0.3, under noise of 0.02: less than the noise of any row."""
    rows = [row(i, strength=1.05) for i in range(8)]
    for entry in rows:
        moved = entry.candidate.arrays["logprobs"] - entry.reference.arrays["logprobs"]
        clean = row(0).candidate.arrays["logprobs"] - row(0).reference.arrays["logprobs"]
        assert np.sqrt(np.mean(moved**2)) < 2 * np.sqrt(np.mean(clean**2))
    assert asked({"wizard": rows})["wizard"][STRENGTH].significant


def test_a_shift_too_small_to_matter_is_not_significant_however_sure() -> None:
    """Another attention implementation moves it by 0.02."""
    found = wizard(strength=1.02, noise=1e-4)[STRENGTH]
    assert found.estimate == pytest.approx(1.02, abs=0.001)
    assert found.p < 0.05 and not found.significant


@settings(max_examples=25, deadline=None)
@given(strength=st.floats(-2, 4), seed=st.integers(0, 1000))
def test_without_noise_the_strength_is_exact(strength: float, seed: int) -> None:
    found = asked({"w": [row(seed, strength=strength, noise=0.0)]})["w"]
    assert found[STRENGTH].estimate == pytest.approx(strength, abs=1e-4)
    assert ERROR not in found  # the reference has no error to compare with


def test_a_base_row_has_no_strength() -> None:
    found = asked({"base": [row(i, base=True) for i in range(8)]})["base"]
    assert set(found) == {ERROR}


def test_an_adapter_that_moves_nothing_has_no_strength() -> None:
    rows = [row(i) for i in range(8)]
    rows = [dataclasses.replace(entry, base=entry.truth) for entry in rows]
    assert set(asked({"wizard": rows})["wizard"]) == {ERROR}


# ------------------------------------------------------------------------ error ratio


def test_an_implementation_as_good_as_the_reference_has_a_ratio_of_one() -> None:
    found = wizard()[ERROR]
    assert found.estimate == pytest.approx(1.0, abs=0.15)
    assert found.low <= found.estimate <= found.high
    assert not found.significant


def test_twice_the_error_is_found_and_half_of_it_is_no_fault() -> None:
    assert wizard(error=2.0)[ERROR].estimate == pytest.approx(2.0, rel=0.15)
    assert wizard(error=2.0)[ERROR].significant
    better = wizard(error=0.5)[ERROR]
    assert better.estimate == pytest.approx(0.5, rel=0.15)
    assert not better.significant


@pytest.mark.parametrize(("ratio", "significant"), [(1.2, False), (1.3, True)])
def test_a_ratio_below_what_attention_does_is_no_fault(ratio: float, significant: bool) -> None:
    rows = []
    for entry in (row(i) for i in range(8)):
        sides = [
            np.concatenate([side.arrays["prompt_logprobs"], side.arrays["logprobs"]])
            for side in (entry.reference, entry.truth)
        ]
        further = seen(sides[1] + ratio * (sides[0] - sides[1]))
        rows.append(dataclasses.replace(entry, candidate=further))
    found = asked({"w": rows})["w"][ERROR]
    assert found.estimate == pytest.approx(ratio, rel=1e-3)
    assert found.significant == significant


def test_a_float32_suite_has_no_error_ratio() -> None:
    rows = {"wizard": [row(i, error=3.0) for i in range(8)], "base": [row(9, base=True)] * 8}
    found = asked(rows, exact=True)
    assert set(found["wizard"]) == {STRENGTH} and found["base"] == {}


# ------------------------------------------------------------------------- the groups


def test_few_prompts_are_never_significant_and_say_so() -> None:
    for count in range(1, 6):
        found = wizard(count, strength=0.0, error=4.0)
        assert not any(test.significant for test in found.values())
        assert all(test.detectable == math.inf for test in found.values())
        assert all(test.prompts == count for test in found.values())
    assert wizard(6, strength=0.0)[STRENGTH].significant


def test_groups_share_their_chance_to_err() -> None:
    groups = {
        "wizard": [row(i, strength=1.03) for i in range(6)],
        "norwegian": [row(50 + i) for i in range(6)],
        "base": [row(90 + i, base=True) for i in range(6)],
    }
    together = asked(groups)
    alone = {name: asked({name: rows})[name] for name, rows in groups.items()}
    for question in (STRENGTH, ERROR):
        expected = holm({n: a[question].p for n, a in alone.items() if question in a})
        assert {n: together[n][question].p for n in expected} == expected
        # Six prompts can tell something of one group, and nothing of two.
        assert all(math.isfinite(alone[n][question].detectable) for n in expected)
        assert all(together[n][question].detectable == math.inf for n in expected)
    assert together["wizard"][STRENGTH].estimate == alone["wizard"][STRENGTH].estimate


def test_a_sound_group_beside_a_broken_one_stays_sound() -> None:
    found = asked(
        {
            "wizard": [row(i, strength=0.0) for i in range(8)],
            "norwegian": [row(50 + i) for i in range(8)],
        }
    )
    assert found["wizard"][STRENGTH].significant
    assert not found["norwegian"][STRENGTH].significant


def test_the_order_of_the_cases_changes_nothing() -> None:
    rows = [row(i, strength=1.05) for i in range(14)]
    first, second = (asked({"w": order})["w"] for order in (rows, rows[::-1]))
    assert first[STRENGTH].p == second[STRENGTH].p
    assert first[STRENGTH].estimate == pytest.approx(second[STRENGTH].estimate)


def test_no_false_alarm_in_many_clean_runs() -> None:
    for run in range(20):
        found = asked({"w": [row(1000 + 8 * run + i) for i in range(8)]})["w"]
        assert not any(test.significant for test in found.values()), run


# ----------------------------------------------------------------------- shared tokens


def parted(entry: Scored, step: int) -> Scored:
    """The candidate says something else from `step` on, with logprobs that compare to nothing."""
    ids = entry.candidate.output.token_ids or ()
    logprobs = entry.candidate.arrays["logprobs"].copy()
    logprobs[step:] = -50
    output = dataclasses.replace(entry.candidate.output, token_ids=(*ids[:step], *[7] * 5))
    arrays = {**entry.candidate.arrays, "logprobs": logprobs[: step + 5]}
    return dataclasses.replace(
        entry, candidate=dataclasses.replace(entry.candidate, output=output, arrays=arrays)
    )


def cut(entry: Scored, step: int) -> Scored:
    def short(side: Observation) -> Observation:
        every = np.concatenate([side.arrays["prompt_logprobs"], side.arrays["logprobs"][:step]])
        return seen(every)

    sides = {f.name: getattr(entry, f.name) for f in dataclasses.fields(entry)}
    return Scored(**{name: short(side) for name, side in sides.items()})


@pytest.mark.parametrize("step", [0, 3, 12])
def test_only_tokens_that_all_sides_share_are_compared(step: int) -> None:
    rows = [row(i, strength=0.9) for i in range(8)]
    early = asked({"w": [parted(entry, step) for entry in rows]})["w"]
    short = asked({"w": [cut(entry, step) for entry in rows]})["w"]
    assert early == short
    assert early[STRENGTH].estimate == pytest.approx(0.9, abs=0.03)


def other_prompt(entry: Scored) -> Scored:
    """An engine that put a token more before the prompt."""
    side = entry.candidate
    longer = np.concatenate([side.arrays["prompt_logprobs"], np.float32([-1.0])])
    output = dataclasses.replace(side.output, prompt_ids=(1, *(side.output.prompt_ids or ())))
    arrays = {**side.arrays, "prompt_logprobs": longer}
    return dataclasses.replace(
        entry, candidate=dataclasses.replace(side, output=output, arrays=arrays)
    )


def without_prompt_ids(entry: Scored) -> Scored:
    """An engine that scores a prompt and does not say which tokens those are."""
    changed = other_prompt(entry)
    output = dataclasses.replace(changed.candidate.output, prompt_ids=None)
    return dataclasses.replace(
        changed, candidate=dataclasses.replace(changed.candidate, output=output)
    )


@pytest.mark.parametrize("spoil", [other_prompt, without_prompt_ids])
def test_a_row_of_another_prompt_says_nothing(spoil: object) -> None:
    rows = [row(i, strength=0.0) for i in range(8)]
    found = asked({"w": [*rows[:7], spoil(rows[7])]})["w"]  # type: ignore[operator]
    assert found == asked({"w": rows[:7]})["w"]
    assert asked({"w": [spoil(entry) for entry in rows]})["w"] == {}  # type: ignore[operator]


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_a_row_that_is_no_number_hides_nothing_of_the_others(bad: float) -> None:
    rows = [row(i, strength=0.0) for i in range(8)]
    rows[7].candidate.arrays["logprobs"][3] = bad
    found = asked({"w": rows})["w"]
    assert found == asked({"w": rows[:7]})["w"]
    assert found[STRENGTH].significant


def test_a_case_without_scores_is_left_out() -> None:
    case = GenerationCase("w/0", "w", "p")
    assert tests([case], {}) == {"w": ()}


# -------------------------------------------------------------------------- comparable


def test_comparable_needs_ids_and_logprobs_of_prompt_and_answer() -> None:
    whole = row(0).candidate
    assert comparable(whole)
    assert comparable(observation())
    assert not comparable(bare("text alone"))
    for name in ("prompt_logprobs", "logprobs"):
        arrays = {key: value for key, value in whole.arrays.items() if key != name}
        assert not comparable(dataclasses.replace(whole, arrays=arrays))
    for name in ("token_ids", "prompt_ids"):
        output = dataclasses.replace(whole.output, **{name: None})
        assert not comparable(dataclasses.replace(whole, output=output))
