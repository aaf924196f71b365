"""The verdict on a case: which rule matches, which comes first, and what is never excused."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot.comparison import Comparison
from snapshot.errors import DamagedGolden, RunError
from snapshot.model import Golden, Observation
from snapshot.policy import (
    LogprobTolerance,
    Policy,
    Strictness,
    TextTolerance,
    Tolerance,
    strictness,
)
from snapshot.result import Result, Verdict
from snapshot.store import Store
from snapshot.verdict import Evidence, judge
from tests.snapshot.builders import (
    CUDA,
    DAY,
    KEY,
    MASSIVE,
    MOVED,
    ROCM7,
    ROCM10,
    bare,
    batch,
    evidence,
    fingerprint,
    floats,
    golden,
    noise,
    observation,
    recorded,
    rule,
    token_ids,
)

LOOSE = Strictness(Tolerance(TextTolerance(0.8, "unicode-lcs"), LogprobTolerance(max=0.5)))
OTHER = "Nobody knows what they were trained on, not even they"


def verdict(e: Evidence) -> Verdict:
    return judge(e).verdict


# ---------------------------------------------------------------- each verdict alone


def test_equal_everything_is_a_match() -> None:
    found = judge(evidence())
    assert (found.verdict, found.headline, found.findings) == (Verdict.MATCH, "", ())
    assert found.verdict.passes
    assert (found.slug, found.golden_slug) == (ROCM7.slug, ROCM7.slug)


def test_a_run_that_failed_is_an_error_with_its_particulars() -> None:
    error = RunError("the batch timed out", where="batch 3", expected="600 s", got="601 s")
    found = judge(evidence(error))
    assert (found.verdict, found.headline) == (Verdict.ERROR, "the batch timed out")
    assert found.findings[0].where == "batch 3" and found.findings[0].got == "601 s"
    assert "\n" not in found.headline


def test_a_damaged_golden_is_an_error_and_never_missing() -> None:
    found = judge(evidence(golden=DamagedGolden("its digest is wrong", where="a.json")))
    assert found.verdict is Verdict.ERROR
    assert found.headline == "the golden cannot be read: its digest is wrong"
    assert found.findings[0].where == "a.json"


def test_a_blob_that_is_damaged_is_an_error_of_that_case(tmp_path: Path) -> None:
    """Blobs are read late: the damage shows while a case is judged."""
    store = Store(tmp_path)
    store.write_fingerprint(recorded())
    store.write(golden())
    for blob in (tmp_path / "blobs").rglob("*.zst"):
        blob.write_bytes(b"damaged")
    found = judge(evidence(golden=store.read("multi-lora", ROCM7.slug, "reference", KEY)))
    assert found.verdict is Verdict.ERROR
    assert "cannot be read" in found.headline
    assert ".zst" in str(found.findings[0].where)


@pytest.mark.parametrize(
    "arrays",
    [
        {"logprobs": floats(-1)},
        {"logprobs": floats(-1).reshape(())},
        {"topk_ids": np.zeros((8, 2), np.float32)},
        {"topk_logprobs": np.zeros((8, 2), np.int32)},
        {"top_logits": floats(-1)},
        {"prompt_logprobs": floats(-1, -1, -1)},
        {"logprobs": np.array(["a"] * 8)},
        {"logprobs": np.array([None] * 8)},
        {"topk_ids": np.zeros((8, 3), np.int32), "topk_logprobs": np.zeros((8, 2), np.float32)},
    ],
)
def test_a_candidate_whose_arrays_do_not_fit_is_an_error(arrays: dict[str, Any]) -> None:
    found = judge(evidence(observation(arrays=arrays)))
    assert found.verdict is Verdict.ERROR
    assert "malformed observation: candidate" in found.headline


def test_a_golden_whose_arrays_do_not_fit_is_an_error_that_says_so() -> None:
    found = judge(evidence(golden=golden(arrays={"logprobs": floats(-1)})))
    assert found.verdict is Verdict.ERROR
    assert "golden logprobs" in found.headline


def test_a_changed_workload_is_invalid_and_names_what_changed() -> None:
    other = {"model": "sha256:m", "adapter": "sha256:new", "prompt": "sha256:p"}
    before = {"model": "sha256:m", "adapter": "sha256:old", "prompt": "sha256:p"}
    candidate = observation(OTHER, workload=other)
    found = judge(evidence(candidate, adapter="wizard", golden=golden(workload=before)))
    assert found.verdict is Verdict.INVALID
    assert found.headline.startswith('adapter "wizard" changed since the recording')
    (finding,) = found.findings
    assert (finding.expected, finding.got) == ("sha256:old", "sha256:new")


def test_a_subject_that_tells_only_its_prompt_can_be_invalid() -> None:
    found = judge(evidence(bare(MASSIVE, prompt_ids=(5, 6, 8))))
    assert found.verdict is Verdict.INVALID
    assert found.headline.startswith("prompt changed")
    assert found.findings[0].expected != found.findings[0].got


def test_a_prompt_that_a_side_does_not_tell_is_not_a_changed_one() -> None:
    assert verdict(evidence(bare(MASSIVE))) is Verdict.MATCH
    unknown = golden(prompt_ids=None, workload=None, arrays={})
    assert verdict(evidence(bare(MASSIVE, prompt_ids=(1, 2)), golden=unknown)) is Verdict.MATCH


def test_nan_needs_no_golden() -> None:
    bad = observation("a b c d", arrays={"logprobs": floats(-1, -1, -1, np.nan)})
    found = judge(evidence(bad, golden=None, recorded=None))
    assert found.verdict is Verdict.NONFINITE
    assert found.headline == "candidate logprobs: 1 non-finite value(s), first at [3]"


def test_no_golden_is_missing_and_says_what_was_looked_for() -> None:
    found = judge(evidence(golden=None, recorded=None, looked_for="looked for rocm10"))
    assert (found.verdict, found.headline) == (Verdict.MISSING, "no golden: looked for rocm10")


def test_the_reference_that_moved_where_nothing_changed_is_a_regression() -> None:
    found = judge(evidence(observation(MOVED)))
    assert found.verdict is Verdict.REGRESSION
    assert found.headline.startswith("the tokens part at step 3, top-2 margin there 1 in the")
    assert found.headline.endswith("nothing in the recorded environment changed")
    assert found.divergence is not None and found.divergence.step == 3


def test_the_reference_that_moved_with_its_environment_is_drift() -> None:
    found = judge(evidence(observation(MOVED), here=fingerprint(ROCM10)))
    assert found.verdict is Verdict.DRIFT
    assert "runtime rocm7.2 -> rocm10.0" in found.headline


def test_provenance_that_moves_no_number_is_no_drift() -> None:
    here = fingerprint(python="3.13", transformers="5.24.0")
    then = recorded(python="3.12", transformers="5.24.0")
    found = judge(evidence(observation(MOVED), here=here, recorded=then))
    assert found.verdict is Verdict.REGRESSION


def test_other_rows_in_its_batch_are_a_change_too() -> None:
    moved = observation(MOVED, composition=batch(KEY, "base/other"))
    found = judge(evidence(moved, golden=golden(composition=batch(KEY, "base/before"))))
    assert found.verdict is Verdict.DRIFT
    assert "the other rows of its batch" in found.headline


@pytest.mark.parametrize("unknown", [{"subject": "vllm"}, {"here": None}, {"recorded": None}])
def test_a_difference_that_the_reference_was_not_run_for_is_unattributed(
    unknown: dict[str, Any],
) -> None:
    found = judge(evidence(observation(MOVED), **unknown))
    assert found.verdict is Verdict.UNATTRIBUTED
    assert "the reference was not run here" in found.headline


# ---------------------------------------------------------------------- the order

# Evidence that one rule wants, and changes that make a later rule match as well.
Change = dict[str, Any]


def _nan(row: Observation) -> Observation:
    arrays = {
        **row.arrays,
        "logprobs": np.full(len(token_ids(row.output.text)), np.nan, np.float32),
    }
    return dataclasses.replace(row, arrays=arrays)


def _reweighed(row: Observation) -> Observation:
    return dataclasses.replace(row, workload={"model": "sha256:other"})


LADDER: list[tuple[str, Verdict, Callable[[dict[str, Any]], None]]] = [
    # From the last rule to the first: each one is made to match on top of all before it.
    ("within", Verdict.WITHIN, lambda e: e.update(candidate=observation(MOVED), strictness=LOOSE)),
    (
        "variant",
        Verdict.VARIANT,
        lambda e: e.update(
            variants=[(golden(MOVED, identity=ROCM7.at(3)), recorded(ROCM7.at(3)))],
            candidate=observation(MOVED, composition=None),
        ),
    ),
    (
        "identity",
        Verdict.REGRESSION,
        lambda e: e.update(adapter="wizard", siblings={"base": golden(MOVED, case="base/x")}),
    ),
    ("match", Verdict.MATCH, lambda e: e.update(golden=golden(MOVED))),
    ("missing", Verdict.MISSING, lambda e: e.update(golden=None)),
    ("nonfinite", Verdict.NONFINITE, lambda e: e.update(candidate=_nan(e["candidate"]))),
    (
        "invalid",
        Verdict.INVALID,
        lambda e: e.update(golden=golden(MOVED), candidate=_reweighed(e["candidate"])),
    ),
    ("error", Verdict.ERROR, lambda e: e.update(candidate=RunError("it died"))),
]


@pytest.mark.parametrize("upto", range(1, len(LADDER) + 1), ids=[name for name, _, _ in LADDER])
def test_the_earliest_rule_that_matches_wins(upto: int) -> None:
    """Design's order, each rule against all later ones at once."""
    fields: dict[str, Any] = {}
    for _, _, add in LADDER[:upto]:
        add(fields)
    assert verdict(evidence(**fields)) is LADDER[upto - 1][1]


PAIRS = [
    (earlier, later)
    for later, earlier in itertools.combinations(range(len(LADDER)), 2)
    # MISSING excludes whatever compares; INVALID brings a golden of its own.
    if not (LADDER[earlier][0] == "missing" and LADDER[later][0] != "missing")
    and not (LADDER[earlier][0] == "invalid" and LADDER[later][0] == "missing")
]


@pytest.mark.parametrize(
    ("earlier", "later"), PAIRS, ids=[f"{LADDER[a][0]}-before-{LADDER[b][0]}" for a, b in PAIRS]
)
def test_of_two_rules_that_both_match_the_earlier_one_wins(earlier: int, later: int) -> None:
    fields: dict[str, Any] = {"candidate": observation(MOVED, composition=None)}
    LADDER[later][2](fields)
    assert verdict(evidence(**fields)) is LADDER[later][1]
    LADDER[earlier][2](fields)
    assert verdict(evidence(**fields)) is LADDER[earlier][1]


@pytest.mark.parametrize("name", [name for name, _, _ in LADDER])
def test_quarantine_comes_last_and_covers_every_failure(name: str) -> None:
    fields: dict[str, Any] = {}
    for rung, _, add in LADDER:
        add(fields)
        if rung == name:
            break
    alone = judge(evidence(**fields))
    strict = dataclasses.replace(
        fields.get("strictness", Strictness(Tolerance())), quarantine=rule()
    )
    found = judge(evidence(**{**fields, "strictness": strict}))
    if alone.verdict.passes:
        assert found.verdict is Verdict.FIXED and not found.verdict.passes
        assert f"sound now ({alone.verdict.value}): remove the quarantine" in found.headline
    else:
        assert found.verdict is Verdict.QUARANTINED and found.verdict.passes
        assert found.headline.startswith(f"{alone.verdict.value}: {alone.headline}; quarantined: ")
        assert "@amd-ci" in found.headline


# ------------------------------------------------------------------- rows of practice

DRIFTS = noise(batch_sizes=0.3)


def rows_of_c01(moved: str) -> dict[str, Result]:
    """Three rows of one batch on ROCm 10, held to ROCm 7's goldens; one of them moved."""
    relax = rule(
        "base/*",
        when={"rocm": ">=10"},
        tolerance=Tolerance(text=TextTolerance(0.9, "sglang-char-lcs")),
    )
    policy, here = Policy(relax=(relax,)), fingerprint(ROCM10)
    results = {}
    for adapter in ("base", "a", "b"):
        key = f"{adapter}/x-1"
        text = MOVED if adapter == moved else MASSIVE
        results[adapter] = judge(
            evidence(
                observation(text, case=key),
                case=key,
                adapter=None if adapter == "base" else adapter,
                here=here,
                golden=golden(case=key),
                recorded=recorded(calibration=DRIFTS),
                strictness=strictness(
                    policy, case=key, subject="reference", environment=here, day=DAY
                ),
            )
        )
    return results


def test_a_drifting_base_row_is_within_its_own_rule_and_adapters_match_strictly() -> None:
    """C01, first run"""
    found = rows_of_c01(moved="base")
    assert found["base"].verdict is Verdict.WITHIN
    assert "sglang-char-lcs ROUGE-L 0.9647, 0.0647 left" in found["base"].headline
    assert "base/* (drifts by one word; @amd-ci" in found["base"].headline
    assert found["a"].verdict is found["b"].verdict is Verdict.MATCH
    assert found["a"].notes == ()


def test_the_same_drift_in_an_adapter_row_fails() -> None:
    """C01, second run: the rule for base/* relaxes nothing else."""
    found = rows_of_c01(moved="a")
    assert found["a"].verdict is Verdict.DRIFT and not found["a"].verdict.passes
    assert found["base"].verdict is found["b"].verdict is Verdict.MATCH


def test_a_loosened_text_does_not_loosen_the_logprobs() -> None:
    """C01: and the headline says which of the two failed."""
    text_only = Strictness(Tolerance(text=TextTolerance(0.8, "unicode-lcs")))
    found = judge(evidence(observation(MOVED, shift=0.2), strictness=text_only))
    assert found.verdict is Verdict.REGRESSION
    assert "the logprobs moved: rms 0.2, max 0.2" in found.headline
    assert "allowed rms 0, max 0" in found.headline
    assert {finding.check for finding in found.findings} == {"token_ids", "logprobs"}


def test_an_adapter_without_effect_is_a_regression_with_its_diagnosis() -> None:
    """C04, comparing"""
    paris = " Paris. It is the largest city in the world by population"
    quiz = ":\nA. Paris\nB. London\nC. Berlin"
    key = "wizard/x-1"
    found = judge(
        evidence(
            observation(paris, case=key),
            adapter="wizard",
            golden=golden(quiz, case=key),
            siblings={"norwegian": golden(" Oslo"), "base": golden(paris, case="base/x-1")},
            strictness=Strictness(Tolerance(TextTolerance(0.01, "unicode-lcs"))),
        )
    )
    assert found.verdict is Verdict.REGRESSION
    assert found.headline == "matches the base golden: adapter had no effect"
    assert found.findings[0].where == "base/x-1"


def test_an_engine_s_bare_text_is_enough_for_the_diagnosis() -> None:
    """C04, comparing"""
    found = judge(
        evidence(
            bare(MOVED),
            subject="vllm",
            here=None,
            adapter="wizard",
            siblings={"base": golden(MOVED)},
        )
    )
    assert found.headline == "matches the base golden: adapter had no effect"


@pytest.mark.parametrize(
    ("adapter", "sibling", "said"),
    [
        ("wizard", "norwegian", 'matches the golden of adapter "norwegian": adapters swapped'),
        (None, "wizard", 'matches the golden of adapter "wizard": it leaked into the base row'),
    ],
)
def test_swapped_and_leaking_adapters_are_told_apart(
    adapter: str | None, sibling: str, said: str
) -> None:
    """C04, C06"""
    found = judge(evidence(observation(MOVED), adapter=adapter, siblings={sibling: golden(MOVED)}))
    assert (found.verdict, found.headline) == (Verdict.REGRESSION, said)


def test_rows_that_are_equal_by_right_are_no_identity() -> None:
    """An adapter whose golden was admitted equal to the base's (C04's opt-in)."""
    siblings = {"base": golden(case="base/x-1")}
    assert verdict(evidence(adapter="wizard", siblings=siblings)) is Verdict.MATCH
    moved = judge(evidence(observation(MOVED), adapter="wizard", siblings=siblings))
    assert "no effect" not in moved.headline


ADMITTED = {"base": golden(case="base/x-1", shift=0.5)}


def test_a_lost_adapter_is_seen_by_numbers_where_the_words_are_equal_by_right() -> None:
    """C04: also where a tolerance of logprobs would have let it pass."""
    lost = observation(shift=0.5)
    for strict in (Strictness(Tolerance()), LOOSE):
        found = judge(evidence(lost, adapter="wizard", siblings=ADMITTED, strictness=strict))
        assert found.headline == "matches the base golden: adapter had no effect"
        assert found.verdict is Verdict.REGRESSION


def test_numbers_that_are_nobody_s_are_no_identity() -> None:
    for shift in (0.1, 0.4):
        moved = observation(shift=shift)
        found = judge(evidence(moved, adapter="wizard", siblings=ADMITTED, strictness=LOOSE))
        assert found.verdict is Verdict.WITHIN


def test_within_the_noise_of_both_it_is_its_own() -> None:
    then = recorded(calibration=noise(repeats=0.5))
    found = evidence(observation(shift=0.4), adapter="wizard", siblings=ADMITTED, recorded=then)
    assert verdict(found) is Verdict.MATCH


def test_a_prompt_scored_as_its_own_is_its_own_whatever_came_after() -> None:
    then = recorded(calibration=noise(repeats=0.3))
    row = observation(shift=0.4)
    row.arrays["prompt_logprobs"][:] = observation().arrays["prompt_logprobs"]
    siblings = {"base": golden(case="base/x-1", shift=0.2)}
    found = judge(evidence(row, adapter="wizard", siblings=siblings, recorded=then))
    assert found.headline.startswith("the logprobs moved")


def test_equal_numbers_and_words_favour_no_other_row() -> None:
    siblings = {"base": golden(case="base/x-1")}
    moved = judge(evidence(observation(shift=0.1), adapter="wizard", siblings=siblings))
    assert moved.headline.startswith("the logprobs moved")


def test_words_that_coincide_are_no_identity_where_the_numbers_say_otherwise() -> None:
    """A near-tie falls as it does in the base row; the prompt's logprobs are still its own."""
    sibling = golden(MOVED, case="base/x-1", shift=0.5)
    found = judge(evidence(observation(MOVED), adapter="wizard", siblings={"base": sibling}))
    assert "no effect" not in found.headline
    lost = observation(MOVED, shift=0.5)
    found = judge(evidence(lost, adapter="wizard", siblings={"base": sibling}))
    assert found.headline == "matches the base golden: adapter had no effect"


TOKYO, HUMAN = " Tokyo.", " Tokyo.Human: What is the capital of"
TOKYO_IDS = (26194, 13, 151643)
HUMAN_IDS = (26194, 13, 151643, 33975, 25, 3555, 374, 279, 6722, 315)


@pytest.mark.parametrize("strict", [Strictness(Tolerance()), LOOSE])
def test_over_generation_is_a_stop_difference_that_no_tolerance_covers(strict: Strictness) -> None:
    """C08"""
    found = judge(
        evidence(
            observation(HUMAN, ids=HUMAN_IDS),
            golden=golden(TOKYO, ids=TOKYO_IDS, finish="stop"),
            strictness=strict,
        )
    )
    assert found.verdict is Verdict.REGRESSION
    assert found.headline.startswith(
        "stop condition: golden is a full prefix, candidate over-generated by 7; no word differed"
    )
    assert found.findings[0].expected == "3 tokens, stop"
    assert found.findings[0].got == "10 tokens, length"


def test_truncation_is_the_mirror_case() -> None:
    """C08, mirrored"""
    found = judge(
        evidence(
            observation(TOKYO, ids=TOKYO_IDS),
            golden=golden(HUMAN, ids=HUMAN_IDS),
            strictness=LOOSE,
        )
    )
    assert found.verdict is Verdict.REGRESSION
    assert "candidate is a full prefix, stopped early or truncated, 7 short" in found.headline


def test_a_truncated_text_is_seen_without_token_ids() -> None:
    """C08: ten words of eleven would score 0.95."""
    whole = "one two three four five six seven eight nine ten eleven"
    cut = bare(whole.removesuffix(" eleven"))
    found = judge(evidence(cut, golden=golden(whole), here=None, strictness=LOOSE))
    assert found.verdict is Verdict.UNATTRIBUTED
    assert "stopped early or truncated, 7 characters short" in found.headline


def test_another_finish_reason_is_a_difference_whatever_the_text() -> None:
    """C08"""
    same = judge(evidence(observation(finish="stop"), strictness=LOOSE))
    assert same.verdict is Verdict.REGRESSION
    assert same.headline.startswith("the finish reason differs")
    ids = token_ids(MASSIVE)
    moved = judge(evidence(observation(MOVED, finish="stop"), strictness=LOOSE))
    assert not moved.verdict.passes
    assert {f.check for f in moved.findings} >= {"token_ids", "stop"}
    assert len(ids) == 8


def test_a_text_that_differs_is_said_before_the_finish_reason() -> None:
    found = judge(evidence(bare(OTHER, finish="stop"), here=None))
    assert found.headline.startswith("the texts differ")
    assert [f.check for f in found.findings] == ["text", "stop"]


def test_identical_text_matches_before_any_score() -> None:
    """C10 a"""
    thai = Strictness(Tolerance(TextTolerance(0.9, "rouge-score")))
    assert verdict(evidence(bare("สวัสดี"), golden=golden("สวัสดี"), strictness=thai)) is Verdict.MATCH


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("papá", "papó"),
        ("foo()", "foo[]"),
        ("the answer is 3", "the answer is -3"),
        ("is NOT a camel", "is not a camel"),
    ],
)
def test_what_a_metric_cannot_see_does_not_pass_by_its_score(before: str, after: str) -> None:
    """C10 b to e"""
    loose = Strictness(Tolerance(TextTolerance(0.01, "rouge-score"), LogprobTolerance(max=9.0)))
    found = judge(evidence(bare(after), golden=golden(before), here=None, strictness=loose))
    assert found.verdict is Verdict.UNATTRIBUTED
    assert "not scored: rouge-score" in found.headline


def test_an_empty_output_fails_by_that_name() -> None:
    """C11 a"""
    for candidate in (observation("", ids=()), observation("", ids=(2,)), bare("")):
        found = judge(evidence(candidate, golden=golden(" Paris."), strictness=LOOSE))
        assert not found.verdict.passes
        assert found.headline.startswith("empty output")


def test_two_empty_outputs_pass_only_where_that_is_expected() -> None:
    """C11 b"""
    pair: dict[str, Any] = {"candidate": observation("", ids=(2,)), "golden": golden("", ids=(2,))}
    found = judge(evidence(**pair))
    assert found.verdict is Verdict.REGRESSION
    assert "only where an allow entry expects it" in found.headline
    assert verdict(evidence(**pair, allowed=frozenset({"empty"}))) is Verdict.MATCH


def test_two_empty_outputs_with_other_logprobs_are_not_within_a_tolerance() -> None:
    """C11 b: never scored, and never let through by another tolerance either."""
    pair = {"candidate": observation("", ids=(2,), shift=0.1), "golden": golden("", ids=(2,))}
    assert verdict(evidence(**pair, strictness=LOOSE)) is Verdict.REGRESSION


def test_an_expected_emptiness_is_not_scored_either() -> None:
    """C11 b: both empty, and not by the same token."""
    found = evidence(
        observation("", ids=(3,), arrays={}),
        golden=golden("", ids=(2,), arrays={}),
        allowed=frozenset({"empty"}),
        strictness=LOOSE,
    )
    assert verdict(found) is Verdict.REGRESSION


def test_an_empty_variant_excuses_no_empty_output() -> None:
    """C11 a"""
    empty = (golden("", ids=(2,), identity=ROCM7.at(3)), recorded(ROCM7.at(3)))
    candidate = observation("", ids=(2,), composition=None)
    found = judge(evidence(candidate, golden=golden(" Paris."), variants=[empty]))
    assert found.verdict is Verdict.REGRESSION


def test_text_without_a_word_is_compared_exactly() -> None:
    """C11 d"""
    loose = Strictness(Tolerance(TextTolerance(0.01, "rouge-score"), LogprobTolerance(max=9.0)))
    pair: dict[str, Any] = {"candidate": bare("????????"), "golden": golden("!!!!!!!!")}
    assert not verdict(evidence(**pair, here=None, strictness=loose)).passes
    assert verdict(evidence(bare("!!!!!!!!"), golden=golden("!!!!!!!!"), here=None)).passes


NAN = floats(-1, -1, -1, np.nan)


def with_logprobs(values: Any, text: str = "a b c d") -> Observation:
    return observation(text, arrays={"logprobs": values})


def held_to_nan(candidate: Observation, **fields: Any) -> Result:
    return judge(evidence(candidate, golden=golden("a b c d", arrays={"logprobs": NAN}), **fields))


def test_nan_in_both_fails_and_passes_only_under_the_mask() -> None:
    """C23 b"""
    found = held_to_nan(with_logprobs(NAN))
    assert found.verdict is Verdict.NONFINITE
    assert [f.message.split()[0] for f in found.findings] == ["candidate", "golden"]
    masked = held_to_nan(with_logprobs(NAN), allowed=frozenset({"nonfinite"}))
    assert masked.verdict is Verdict.MATCH


def test_the_mask_covers_only_its_own_places() -> None:
    """C23 b"""
    elsewhere = with_logprobs(floats(np.nan, -1, -1, -1))
    assert held_to_nan(elsewhere, allowed=frozenset({"nonfinite"})).verdict is Verdict.NONFINITE
    moved = with_logprobs(floats(-2, -1, -1, np.nan))
    assert held_to_nan(moved, allowed=frozenset({"nonfinite"})).verdict is Verdict.REGRESSION


@pytest.mark.parametrize("allowed", [frozenset(), frozenset({"nonfinite"})])
def test_a_number_where_the_golden_has_nan_fails_always(allowed: frozenset[str]) -> None:
    """C23 c"""
    found = held_to_nan(with_logprobs(floats(-1, -1, -1, -1)), allowed=allowed)
    assert found.verdict is Verdict.NONFINITE
    assert found.headline.startswith("golden logprobs: 1 non-finite")


def test_another_numeric_mode_is_shown_on_the_case() -> None:
    """C23 d"""
    found = judge(
        evidence(here=fingerprint(tf32_matmul=True), recorded=recorded(tf32_matmul=False))
    )
    assert found.verdict is Verdict.MATCH
    assert found.notes == ("numeric mode differs from recording: TF32 off -> on",)


# --------------------------------------------------------------------------- VARIANT


def variant(text: str = MOVED, **fields: Any) -> tuple[Golden, Any]:
    return golden(text, identity=ROCM7.at(3), **fields), recorded(ROCM7.at(3))


def test_the_reference_s_answer_at_another_batch_size_is_a_variant() -> None:
    for composition in (None, batch(KEY, KEY, KEY)):
        moved = observation(MOVED, composition=composition)
        found = judge(evidence(moved, variants=[variant()]))
        assert found.verdict is Verdict.VARIANT and found.verdict.passes
        assert found.headline.startswith("the reference's own answer at batch size 3; the tokens")


def test_the_golden_s_own_batch_has_no_variant() -> None:
    assert verdict(evidence(observation(MOVED), variants=[variant()])) is Verdict.REGRESSION


def test_a_variant_must_agree_in_logprobs_as_well() -> None:
    moved = observation(MOVED, composition=None, shift=0.2)
    assert verdict(evidence(moved, variants=[variant()])) is Verdict.REGRESSION


def test_a_variant_of_other_weights_is_none() -> None:
    """Batch 1 was recorded anew with a new adapter; batch 3's goldens are of the old one."""
    stale = variant(workload={"model": "sha256:m", "adapter": "sha256:old"})
    moved = observation(MOVED, composition=None)
    assert verdict(evidence(moved, variants=[stale])) is Verdict.REGRESSION


# ----------------------------------------------------------------------- noise floors


def test_a_run_in_the_golden_s_own_batch_is_held_to_the_floor_of_repeats() -> None:
    then = recorded(calibration=noise(repeats=0.0, batch_sizes=0.3))
    moved = observation(shift=0.1)
    assert verdict(evidence(moved, recorded=then)) is Verdict.REGRESSION
    elsewhere = dataclasses.replace(moved, composition=batch(KEY, KEY))
    assert verdict(evidence(elsewhere, recorded=then)) is Verdict.MATCH
    assert verdict(evidence(moved, recorded=then, here=fingerprint(CUDA))) is Verdict.MATCH
    assert verdict(evidence(moved, recorded=then, here=None, subject="vllm")) is Verdict.MATCH


def test_a_floor_that_was_never_measured_is_strict() -> None:
    for calibration in ({}, {"repeats": {}, "batch_sizes": {"rms": 1.0}}):
        moved = evidence(observation(shift=1e-6), recorded=recorded(calibration=calibration))
        found = judge(moved)
        assert found.verdict is Verdict.REGRESSION
        assert found.headline.startswith("the logprobs moved: rms")


def test_a_logprob_tolerance_says_what_it_let_through() -> None:
    found = judge(evidence(observation(shift=0.1), strictness=LOOSE))
    assert found.verdict is Verdict.WITHIN
    assert "max 0.1" in found.headline and "max 0.5; the suite's tolerance" in found.headline
    beyond = judge(evidence(observation(shift=0.6), strictness=LOOSE))
    assert beyond.verdict is Verdict.REGRESSION
    assert "max 0.5 (tolerance)" in beyond.headline


def test_only_the_rules_that_were_needed_are_named() -> None:
    rules = (
        rule(where="text", tolerance=Tolerance(text=LOOSE.tolerance.text)),
        rule(where="logprob", tolerance=Tolerance(logprob=LOOSE.tolerance.logprob)),
    )
    strict = Strictness(LOOSE.tolerance, rules)
    assert judge(evidence(observation(shift=0.1), strictness=strict)).relaxed == ("logprob",)
    assert judge(evidence(observation(MOVED), strictness=strict)).relaxed == ("text",)
    found = judge(evidence(observation(MOVED, shift=0.1), strictness=strict))
    assert found.verdict is Verdict.WITHIN and found.relaxed == ("text", "logprob")
    suite = judge(
        evidence(
            observation(shift=0.1),
            strictness=Strictness(LOOSE.tolerance, rules, suite=LOOSE.tolerance),
        )
    )
    assert not suite.relaxed and suite.headline.endswith("the suite's tolerance")


def test_both_bounds_of_a_logprob_tolerance_hold() -> None:
    both = Strictness(Tolerance(logprob=LogprobTolerance(max=1.0, rms=0.05)))
    assert verdict(evidence(observation(shift=0.1), strictness=both)) is Verdict.REGRESSION
    assert verdict(evidence(observation(shift=0.04), strictness=both)) is Verdict.WITHIN


def test_a_score_of_exactly_the_bound_is_within_it() -> None:
    half = Strictness(Tolerance(text=TextTolerance(0.5, "unicode-lcs")))
    found = evidence(bare("a c"), golden=golden("a b"), here=None, strictness=half)
    assert verdict(found) is Verdict.WITHIN


def test_a_tolerance_of_text_is_a_gate_of_its_own() -> None:
    found = judge(evidence(observation(OTHER), strictness=LOOSE))
    assert found.verdict is Verdict.REGRESSION
    assert "ROUGE-L (unicode-lcs): 0." in found.headline
    assert "allowed at least 0.8" in found.headline


def test_equal_texts_of_other_tokens_are_not_a_match() -> None:
    other = observation(ids=[i + 1 for i in token_ids(MASSIVE)])
    found = judge(evidence(other))
    assert found.verdict is Verdict.REGRESSION
    assert any("the texts are equal" in finding.message for finding in found.findings)


def test_equal_tokens_of_other_text_are_not_a_match() -> None:
    found = judge(evidence(observation(MOVED, ids=token_ids(MASSIVE))))
    assert found.verdict is Verdict.REGRESSION
    assert "the tokenizers disagree" in found.headline


# ------------------------------------------------------------------------------ notes


def test_a_check_that_could_not_run_is_named() -> None:
    found = judge(evidence(bare(MASSIVE), subject="file", here=None))
    assert found.verdict is Verdict.MATCH
    assert found.notes == (
        "not checked, a side does not tell: workload, token ids, finish reason, "
        "prompt logprobs, logprobs, top-k logprobs",
    )


def test_fewer_arrays_than_the_golden_s_are_named_one_by_one() -> None:
    row = observation()
    del row.arrays["prompt_logprobs"]  # type: ignore[attr-defined]
    assert judge(evidence(row)).notes == ("not checked, a side does not tell: prompt logprobs",)


def test_a_top_k_without_a_token_in_common_was_not_checked() -> None:
    row = observation()
    row.arrays["topk_ids"][:] = 1_000_000
    found = judge(evidence(row))
    assert found.notes == ("not checked, a side does not tell: top-k logprobs",)
    alone = observation(arrays={n: row.arrays[n] for n in ("topk_ids", "topk_logprobs")})
    assert Comparison.of(observation(), alone).distance is None  # nothing compared is not close


def test_an_expired_rule_is_noted_on_the_case_it_covered() -> None:
    gone = rule(expires=datetime.date(2026, 11, 30))
    policy = Policy(quarantine=(gone,))
    strict = strictness(policy, case=KEY, subject="reference", environment=fingerprint(), day=DAY)
    found = judge(evidence(observation(MOVED), strictness=strict))
    assert found.verdict is Verdict.REGRESSION
    assert found.notes[0].startswith("rule expired on 2026-11-30")


# ------------------------------------------------------------------------- properties

TEXTS = st.sampled_from([MASSIVE, MOVED, OTHER, "", "!!!", "สวัสดี", MASSIVE + " and more"])


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    text = draw(TEXTS)
    row = observation(
        text,
        ids=draw(st.sampled_from(["of the text", None, (), (1, 2)])),
        finish=draw(st.sampled_from(["stop", "length", None])),
        prompt_ids=draw(st.sampled_from([(5, 6, 7), (5,), None])),
        workload=draw(st.sampled_from(["the usual", None])),
        composition=draw(st.sampled_from(["alone", None])),
    )
    shift = draw(st.sampled_from([0.0, 0.1, float("nan")]))
    size = None if row.output.token_ids is None else len(row.output.token_ids)
    lengths = {"logprobs": size, "prompt_logprobs": len(row.output.prompt_ids or (0,)) - 1}
    arrays = {
        name: np.full(length or 0, -1 + shift, np.float32)
        for name, length in lengths.items()
        if draw(st.booleans())
    }
    return dataclasses.replace(row, arrays=arrays)


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    def recorded_row(row: Observation) -> Golden:
        return Golden("multi-lora", ROCM7.slug, "reference", row)

    tolerance = Tolerance(
        draw(st.sampled_from([None, TextTolerance(0.5, "unicode-lcs"), TextTolerance(0.1)])),
        draw(st.sampled_from([None, LogprobTolerance(max=0.2), LogprobTolerance(rms=9.0)])),
    )
    return evidence(
        draw(observations()),
        golden=draw(st.none() | observations().map(recorded_row)),
        recorded=draw(st.sampled_from([None, recorded(), recorded(calibration=noise(0, 0.2))])),
        here=draw(st.sampled_from([None, fingerprint(), fingerprint(ROCM10)])),
        subject=draw(st.sampled_from(["reference", "vllm"])),
        adapter=draw(st.sampled_from([None, "wizard"])),
        siblings=draw(st.sampled_from([{}, {"base": golden(MOVED)}])),
        variants=draw(st.sampled_from([(), (variant(),), (variant(OTHER),)])),
        strictness=Strictness(tolerance, quarantine=draw(st.sampled_from([None, None, rule()]))),
        allowed=draw(
            st.sampled_from([frozenset(), frozenset({"empty"}), frozenset({"nonfinite"})])
        ),
    )


@settings(max_examples=400, deadline=None)
@given(evidences())
def test_judging_never_raises_and_a_match_is_equal(e: Evidence) -> None:
    found = judge(e)
    assert found.headline or found.verdict is Verdict.MATCH
    if found.verdict is Verdict.MATCH:
        assert isinstance(e.golden, Golden) and isinstance(e.candidate, Observation)
        a, b = e.golden.observation.output, e.candidate.output
        assert a.text == b.text
        assert a.token_ids == b.token_ids or None in (a.token_ids, b.token_ids)
        assert a.finish_reason == b.finish_reason or None in (a.finish_reason, b.finish_reason)


@settings(max_examples=400, deadline=None)
@given(evidences())
def test_strictly_only_what_is_equal_passes(e: Evidence) -> None:
    """Without a tolerance, a variant or a quarantine, a pass is a match."""
    strict = dataclasses.replace(e, strictness=Strictness(Tolerance()), variants=())
    found = judge(strict)
    assert found.verdict is Verdict.MATCH or not found.verdict.passes


@settings(max_examples=400, deadline=None)
@given(evidences())
def test_no_tolerance_passes_nan_emptiness_or_another_stop(e: Evidence) -> None:
    found = judge(dataclasses.replace(e, allowed=frozenset()))
    if not found.verdict.passes or found.verdict is Verdict.QUARANTINED:
        return
    assert isinstance(e.golden, Golden) and isinstance(e.candidate, Observation)
    for array in e.candidate.arrays.values():
        assert np.isfinite(array).all()
    assert e.candidate.output.text
    if found.verdict is Verdict.WITHIN:
        reasons = {e.golden.observation.output.finish_reason, e.candidate.output.finish_reason}
        assert len(reasons - {None}) <= 1
