"""What must not become a golden, and the entry that lets each in where it is legitimate."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from snapshot.admission import refusals
from snapshot.difference import Finding
from snapshot.model import GenerationCase, Observation
from snapshot.policy import Allowance
from tests.snapshot.builders import floats, observation

PARIS = " Paris. It is the largest city in the world by population"
QUIZ = ":\nA. Paris\nB. London\nC. Berlin"
BASE = GenerationCase("base/x-1", None, "x")
WIZARD = GenerationCase("wizard/x-1", "wizard", "x")
NORWEGIAN = GenerationCase("norwegian/x-1", "norwegian", "x")
CASES = [BASE, WIZARD, NORWEGIAN]


def run(base: str = PARIS, wizard: str = QUIZ, norwegian: str = " Oslo") -> dict[str, Observation]:
    texts = zip(CASES, (base, wizard, norwegian), strict=True)
    return {case.key: observation(text, case=case.key) for case, text in texts}


def names(found: Sequence[Finding]) -> list[tuple[str, str | None]]:
    return [(finding.check, finding.where) for finding in found]


def allow(finding: str, case: str = "*") -> list[Allowance]:
    return [Allowance("goldens.toml", case, finding, "legitimate")]


def test_sound_rows_are_admitted() -> None:
    assert refusals(CASES, run(), repeats=[run()], reordered=run()) == []


def test_an_adapter_row_equal_to_the_base_row_is_refused_by_name() -> None:
    """C04, recording"""
    found = refusals(CASES, run(wizard=PARIS))
    assert names(found) == [("same-as-base", "wizard/x-1 and base/x-1")]
    assert 'adapter "wizard" equals the row without adapter' in found[0].message
    assert "its logprobs are the base's too" in found[0].message
    assert refusals(CASES, run(wizard=PARIS), allow=allow("same-as-base", "wizard/x-*")) == []


def test_an_acknowledgement_is_for_one_row() -> None:
    """C04, recording"""
    both = run(wizard=PARIS, norwegian=PARIS)
    found = refusals(CASES, both, allow=allow("same-as-base", "wizard/*"))
    assert names(found) == [("same-as-base", "norwegian/x-1 and base/x-1")]
    assert refusals(CASES, both, allow=allow("empty")) == refusals(CASES, both)


def test_an_adapter_that_moves_only_the_numbers_is_told_apart() -> None:
    rows = run(wizard=PARIS) | {WIZARD.key: observation(PARIS, case=WIZARD.key, shift=0.25)}
    (found,) = refusals(CASES, rows)
    assert "only its logprobs differ" in found.message and "0.25" in found.message


def test_base_rows_that_are_an_adapter_s_are_refused() -> None:
    """C06: the recorder ran the adapter first, and its rows without adapter kept it."""
    contaminated = run(base=QUIZ)
    assert names(refusals(CASES, contaminated)) == [("same-as-base", "wizard/x-1 and base/x-1")]


def test_the_other_order_in_which_the_base_rows_are_right_is_admitted() -> None:
    """C06, reverse order"""
    assert refusals(CASES, run()) == []


def test_a_row_that_changes_with_batch_order_is_refused() -> None:
    """C06: in float32 no row may depend on its neighbours."""
    found = refusals(CASES, run(), reordered=run(base=QUIZ + " more"))
    assert names(found) == [("order-dependent", "base/x-1")]
    assert "more" in str(found[0].got)
    rows = run(base=QUIZ + " more")
    assert refusals(CASES, run(), reordered=rows, allow=allow("order-dependent")) == []


@pytest.mark.parametrize(("shift", "refused"), [(5e-5, False), (2e-2, True)])
def test_order_may_move_float32_by_rounding_only(shift: float, refused: bool) -> None:
    moved = run() | {BASE.key: observation(PARIS, case=BASE.key, shift=shift)}
    assert bool(refusals(CASES, run(), reordered=moved)) is refused


def test_a_nan_in_another_order_is_no_small_change() -> None:
    """C06, C23 a"""
    bad = observation(PARIS, case=BASE.key)
    bad.arrays["logprobs"][0] = np.nan
    found = refusals(CASES, run(), reordered=run() | {BASE.key: bad})
    assert names(found) == [("order-dependent", "base/x-1")]


def test_an_adapter_that_spells_the_same_text_in_other_tokens_has_an_effect() -> None:
    rows = run() | {WIZARD.key: observation(PARIS, case=WIZARD.key, ids=(1, 2, 3))}
    assert refusals(CASES, rows) == []


def test_a_row_recorded_alone_must_equal_the_row_recorded_in_sequence() -> None:
    """C06: a repeat runs in a fresh process and another order of batches."""
    found = refusals(CASES, run(), repeats=[run(), run(wizard="something else")])
    assert names(found) == [("unstable", "wizard/x-1")]
    other = [run(wizard="something else")]
    assert refusals(CASES, run(), repeats=other, allow=allow("unstable", "wizard/*")) == []


def test_a_run_of_some_rows_is_compared_with_those() -> None:
    """Verifying ran what was selected; recording runs it again, with the rows beside it."""
    some = {WIZARD.key: run()[WIZARD.key]}
    assert refusals(CASES, run(), repeats=[some]) == []
    assert names(refusals(CASES, run(wizard="something else"), repeats=[some])) == [
        ("unstable", "wizard/x-1")
    ]


def test_bits_that_change_under_an_equal_text_are_unstable() -> None:
    moved = run() | {BASE.key: observation(PARIS, case=BASE.key, shift=1e-6)}
    (found,) = refusals(CASES, run(), repeats=[moved])
    assert (found.check, found.expected) == ("unstable", "the same bits")


@pytest.mark.parametrize(
    "value",
    [
        floats(-0.0),
        floats(0.0).astype(np.float64),
        floats(0.0).reshape(()),
        np.zeros((4, 4), np.float32)[::2, ::2],
    ],
)
def test_any_array_can_be_compared_by_its_bits(value: np.ndarray) -> None:
    before = dataclasses.replace(observation(PARIS, case=BASE.key), arrays={"out": floats(0.0)})
    after = dataclasses.replace(before, arrays={"out": value})
    assert names(refusals([BASE], {BASE.key: before}, repeats=[{BASE.key: after}]))
    assert refusals([BASE], {BASE.key: after}, repeats=[{BASE.key: after}]) == []


def test_an_empty_output_is_refused() -> None:
    """C11 c"""
    assert names(refusals(CASES, run(norwegian=""))) == [("empty", "norwegian/x-1")]
    assert refusals(CASES, run(norwegian=""), allow=allow("empty", "norwegian/*")) == []


def test_nan_is_refused_with_its_coordinates() -> None:
    """C23 a"""
    bad = observation("a b c d", arrays={"out": np.array([[0, 0, 0, np.nan]], np.float32)})
    (found,) = refusals([BASE], {BASE.key: bad})
    assert (found.check, found.got) == ("nonfinite", "nan")
    assert "1 non-finite value(s) in out, first at [0, 3]" in found.message
    assert refusals([BASE], {BASE.key: bad}, allow=allow("nonfinite")) == []


def test_a_nan_that_is_let_in_does_not_count_as_order_or_instability() -> None:
    """C23 a"""
    ids = observation("a b").output.token_ids
    rows = {BASE.key: observation("a b", ids=ids, arrays={"logprobs": floats(-1, np.nan)})}
    again = {BASE.key: observation("a b", ids=ids, arrays={"logprobs": floats(-1, np.nan)})}
    assert refusals([BASE], rows, repeats=[again], reordered=again, allow=allow("nonfinite")) == []


def test_every_fault_of_every_row_is_listed_at_once() -> None:
    found = refusals(CASES, run(wizard=PARIS, norwegian=""), repeats=[run(base="else")])
    assert {finding.check for finding in found} == {"same-as-base", "unstable", "empty"}
    assert len(found) == 5  # base, wizard and norwegian moved; wizard is base; norwegian is empty


def test_a_prompt_without_a_base_row_has_nothing_to_equal() -> None:
    assert refusals([WIZARD], {WIZARD.key: observation(PARIS, case=WIZARD.key)}) == []
