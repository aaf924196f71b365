"""Who moved: the truth table of what the reference says here and now."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot.attribute import attribution, deviates
from snapshot.attribution import GroupTest
from snapshot.calibrate import FOREIGN_MAX, FOREIGN_RMS
from snapshot.comparison import Comparison
from snapshot.errors import RunError
from snapshot.evidence import Evidence, Now
from snapshot.metrics.tokens import first_difference
from snapshot.model import Golden, Observation
from snapshot.policy import LogprobTolerance, Policy, Strictness, TextTolerance, Tolerance
from snapshot.policy import strictness as strictness_of
from snapshot.resolve import Baseline
from snapshot.result import Result, Verdict
from snapshot.verdict import judge
from snapshot.verification import Held, Verification
from tests.snapshot.builders import (
    CUDA,
    DAY,
    KEY,
    MASSIVE,
    MOVED,
    ROCM7,
    ROCM10,
    SUITE,
    bare,
    batch,
    evidence,
    fingerprint,
    golden,
    noise,
    observation,
    recorded,
    rule,
    token_ids,
)

OTHER = "Nobody knows what they were trained on, not even they"
FLOOR = 0.05
MEASURED = recorded(calibration=noise(repeats=0.0, batch_sizes=FLOOR))
HAIR = 2**-7  # one unit in the last place of a float16 logit of 9

UNMOVED, MOVED_HERE = observation(), observation(MOVED)


def shifted(row: Observation, by: float) -> Observation:
    """The same answer, every logprob moved."""
    arrays = {
        name: array + np.float32(by) if name.endswith("logprobs") else array
        for name, array in row.arrays.items()
    }
    return dataclasses.replace(row, arrays=arrays)


def tied(text: str, other: str, margin: float = HAIR, **fields: Any) -> Observation:
    """An answer that would have gone on as `other`, had rounding decided otherwise."""
    row = observation(text, **fields)
    step = first_difference(token_ids(text), token_ids(other))
    assert step is not None
    row.arrays["topk_ids"][step] = (token_ids(text)[step], token_ids(other)[step])
    row.arrays["topk_logprobs"][step] = (-0.7, -0.7 - margin)
    row.arrays["logprobs"][step] = -0.7
    row.arrays["top_logits"][step] = (9.0, 9.0 - margin)
    return row


def held(row: Observation) -> Golden:
    return Golden(SUITE, ROCM7.slug, "reference", row)


def group_test(question: str = "adapter strength", *, significant: bool = True) -> GroupTest:
    return GroupTest("wizard", question, 0.95, 0.94, 0.96, 1.0, 0.01, 0.02, 8, significant)


BROKEN = (group_test(),)
SOUND = (group_test(significant=False),)


def own(candidate: Observation, now: Now | None, **fields: Any) -> Result:
    """The reference's own code."""
    return judge(evidence(candidate, now=now, **{"recorded": MEASURED, **fields}))


def engine(candidate: Observation, now: Now | None, **fields: Any) -> Result:
    """Another implementation, of an unknown batch."""
    row = dataclasses.replace(candidate, composition=None, workload=None)
    usual = {"subject": "vllm", "here": None, "recorded": MEASURED}
    return judge(evidence(row, now=now, **{**usual, **fields}))


# ------------------------------------------------- the candidate is the reference itself


def test_own_code_that_moved_with_its_environment_is_drift() -> None:
    found = own(MOVED_HERE, Now(golden_batch=MOVED_HERE), here=fingerprint(ROCM10))
    assert found.verdict is Verdict.DRIFT
    assert "since the recording: runtime rocm7.2 -> rocm10.0, torch 2.9 -> 2.11" in found.headline


def test_own_code_that_moved_in_an_unchanged_environment_is_a_regression() -> None:
    found = own(MOVED_HERE, Now(golden_batch=MOVED_HERE))
    assert found.verdict is Verdict.REGRESSION
    assert found.headline.endswith("nothing in the recorded environment changed")


def test_what_a_fresh_process_gives_again_is_a_regression() -> None:
    again = observation(MOVED)
    found = own(MOVED_HERE, Now(golden_batch=MOVED_HERE, repeated=again))
    assert found.verdict is Verdict.REGRESSION
    assert found.headline.endswith("a fresh process gives the same again")


@pytest.mark.parametrize("repeated", [UNMOVED, observation(MOVED, shift=1e-6)])
def test_what_a_fresh_process_does_not_give_again_is_nobody_s(repeated: Observation) -> None:
    found = own(MOVED_HERE, Now(golden_batch=MOVED_HERE, repeated=repeated))
    assert found.verdict is Verdict.UNATTRIBUTED
    assert "not repeatable" in found.headline


def test_own_code_with_other_bits_than_the_reference_in_the_same_batch_is_a_regression() -> None:
    """Even where the golden moved as well, and even within the noise between batches."""
    alone, together = batch(), batch(KEY, "base/other")
    clean = observation(composition=together)
    for by in (1e-6, 0.02):
        faulty = shifted(clean, by)
        found = own(
            faulty,
            Now(golden_batch=observation(composition=alone), candidate_batch=clean),
            here=fingerprint(ROCM7.at(2)),
        )
        assert found.verdict is Verdict.REGRESSION
        assert "the candidate is not the reference here: logprobs rms" in found.headline


def test_own_code_with_the_reference_s_bits_in_another_batch_is_no_regression() -> None:
    together = observation(MOVED, composition=batch(KEY, "base/other"))
    now = Now(golden_batch=UNMOVED, candidate_batch=together)
    found = own(dataclasses.replace(together), now, here=fingerprint(ROCM7.at(2)))
    assert found.verdict is Verdict.DRIFT
    assert found.attribution is not None
    assert [m.name for m in found.attribution.moves] == ["environment", "batch", "candidate"]
    assert [m.still for m in found.attribution.moves] == [True, False, True]


def test_a_reference_that_could_not_be_run_here_tells_nothing_of_an_engine() -> None:
    found = engine(MOVED_HERE, Now(notes=("reference again: not run: no memory",)))
    assert found.verdict is Verdict.UNATTRIBUTED
    assert "the reference was not run here" in found.headline
    assert found.attribution is not None
    assert found.attribution.notes == ("reference again: not run: no memory",)
    assert own(MOVED_HERE, Now()).verdict is Verdict.REGRESSION


# ------------------------------------------------------------------ an engine's difference


def test_an_engine_that_follows_the_reference_which_moved_is_drift() -> None:
    for here in (MOVED_HERE, shifted(MOVED_HERE, 0.01)):
        found = engine(MOVED_HERE, Now(golden_batch=here))
        assert found.verdict is Verdict.DRIFT
        assert "the reference itself moved here, and the candidate follows it" in found.headline


def test_half_the_way_to_a_reference_that_moved_is_drift() -> None:
    moved = shifted(UNMOVED, FLOOR * 1.5)
    found = engine(moved, Now(golden_batch=shifted(UNMOVED, FLOOR * 0.7)))
    assert found.verdict is Verdict.DRIFT


def test_an_engine_that_moved_while_the_reference_did_not_is_no_drift_unmeasured() -> None:
    """Without measured noise nothing says that it left the reference, but it left the golden."""
    found = engine(NEAR, Now(golden_batch=UNMOVED), recorded=recorded())
    assert found.verdict is Verdict.REGRESSION
    assert found.headline.endswith("the reference here still gives the golden")


def test_the_reference_still_gives_the_golden_and_the_candidate_does_not() -> None:
    beyond = shifted(UNMOVED, FLOOR * 1.5)
    found = engine(beyond, Now(golden_batch=UNMOVED))
    assert found.verdict is Verdict.REGRESSION
    assert "the candidate is not the reference here: logprobs rms 0.075" in found.headline
    assert engine(shifted(UNMOVED, FLOOR * 0.9), Now(golden_batch=UNMOVED)).verdict is Verdict.MATCH


def test_other_words_without_a_near_tie_are_a_regression() -> None:
    found = engine(MOVED_HERE, Now(golden_batch=UNMOVED, forced=UNMOVED))
    assert found.verdict is Verdict.REGRESSION
    assert "parts from it at step 3" in found.headline


def test_other_words_at_a_near_tie_tell_nothing_without_forced_scoring() -> None:
    here = tied(MASSIVE, MOVED)
    found = engine(tied(MOVED, MASSIVE), Now(golden_batch=here, forced=here), golden=held(here))
    assert found.verdict is Verdict.UNATTRIBUTED
    assert "at a near-tie, and without forced scoring nothing tells" in found.headline


@pytest.mark.parametrize(
    ("by", "verdict"), [(0.01, Verdict.DRIFT), (FLOOR * 2, Verdict.REGRESSION)]
)
def test_forced_scoring_tells_whether_it_follows_a_reference_that_moved(
    by: float, verdict: Verdict
) -> None:
    """Both left the golden, and part from each other at a near-tie."""
    then = observation(OTHER)
    now = Now(golden_batch=tied(MASSIVE, MOVED), forced=then, candidate_forced=shifted(then, by))
    assert engine(tied(MOVED, MASSIVE), now, golden=held(then)).verdict is verdict


def test_beyond_the_floor_before_a_near_tie_is_a_regression_even_so() -> None:
    here = tied(MASSIVE, MOVED)
    wrong = shifted(tied(MOVED, MASSIVE), FLOOR * 2)
    found = engine(wrong, Now(golden_batch=here, forced=here), golden=held(here))
    assert found.verdict is Verdict.REGRESSION


def test_an_engine_that_tells_only_text_stays_unattributed() -> None:
    for here in (UNMOVED, observation(OTHER)):
        found = engine(bare(MOVED), Now(golden_batch=here))
        assert found.verdict is Verdict.UNATTRIBUTED
        assert "gives only text, and no answer of the reference here has these words" in (
            found.headline
        )


def test_only_text_is_enough_where_the_reference_here_has_these_words() -> None:
    assert engine(bare(MOVED), Now(golden_batch=MOVED_HERE)).verdict is Verdict.DRIFT


def test_without_measured_noise_a_near_tie_tells_nothing() -> None:
    here = tied(MASSIVE, MOVED)
    now = Now(golden_batch=here, forced=here, candidate_forced=shifted(here, 1e-4))
    found = engine(tied(MOVED, MASSIVE), now, golden=held(here), recorded=recorded())
    assert found.verdict is Verdict.UNATTRIBUTED


# --------------------------------------------------------------------------------- TIE


def at_a_tie(forced: Observation | None, margin: float = HAIR, **fields: Any) -> Result:
    """An engine that parts from the golden where the two best logits are `margin` apart."""
    here = tied(MASSIVE, MOVED, margin)
    now = Now(golden_batch=here, forced=here, candidate_forced=forced)
    return engine(tied(MOVED, MASSIVE, margin), now, **{"golden": held(here), **fields})


def test_a_near_tie_with_the_golden_s_tokens_scored_within_noise_is_a_tie() -> None:
    found = at_a_tie(shifted(tied(MASSIVE, MOVED), 0.01))
    assert found.verdict is Verdict.TIE
    assert found.headline.startswith("the tokens part at step 3, top-2 margin there 0.00781")
    assert "where up to 0.0156 is rounding; on the golden's tokens logprobs rms 0.01" in (
        found.headline
    )


@pytest.mark.parametrize(
    "forced", [None, shifted(tied(MASSIVE, MOVED), FLOOR * 2), observation(arrays={})]
)
def test_a_near_tie_is_no_tie_where_what_follows_is_unknown_or_beyond_noise(
    forced: Observation | None,
) -> None:
    assert at_a_tie(forced).verdict is not Verdict.TIE
    assert not at_a_tie(forced).verdict.passes


def test_one_bad_token_late_in_the_forced_text_is_no_tie() -> None:
    late = tied(MASSIVE, MOVED)
    late.arrays["logprobs"][7] -= 2 * FLOOR
    assert at_a_tie(late).verdict is Verdict.REGRESSION


@pytest.mark.parametrize("margin", [HAIR * 2, HAIR * 3])
def test_two_units_in_the_last_place_are_a_tie_and_three_are_not(margin: float) -> None:
    quiet = recorded(calibration=noise(batch_sizes=HAIR))  # no noise that would explain it
    found = at_a_tie(tied(MASSIVE, MOVED, margin), margin, recorded=quiet)
    assert (found.verdict is Verdict.TIE) == (margin == HAIR * 2)


def test_a_margin_at_which_the_reference_itself_parted_is_a_tie() -> None:
    calibration = noise(batch_sizes=FLOOR)
    calibration["batch_sizes"]["tie_margin"] = HAIR * 3
    found = at_a_tie(
        tied(MASSIVE, MOVED, HAIR * 3), HAIR * 3, recorded=recorded(calibration=calibration)
    )
    assert found.verdict is Verdict.TIE


@pytest.mark.parametrize("dtype", ["float32", "float8_e4m3fn"])
def test_a_margin_of_half_precision_is_no_tie_in_another_dtype(dtype: str) -> None:
    identity = dataclasses.replace(ROCM7, dtype=dtype)
    other = recorded(identity, calibration=noise(batch_sizes=HAIR))
    assert at_a_tie(tied(MASSIVE, MOVED), recorded=other).verdict is Verdict.REGRESSION


def test_a_token_that_the_other_side_never_considered_is_no_tie() -> None:
    here, there = tied(MASSIVE, MOVED), tied(MOVED, MASSIVE)
    there.arrays["topk_ids"][3, 1] = 1
    now = Now(golden_batch=here, forced=here, candidate_forced=here)
    assert engine(there, now, golden=held(here)).verdict is Verdict.REGRESSION


# --------------------------------------------------------------------------- group tests


VARIED = ((golden(MOVED, identity=ROCM7.at(3)), recorded(ROCM7.at(3), noise(0, FLOOR))),)
NEAR = shifted(UNMOVED, 0.01)
WIDE = Strictness(Tolerance(TextTolerance(0.8, "unicode-lcs"), LogprobTolerance(max=0.5)))


def passing() -> dict[str, tuple[Observation, dict[str, Any]]]:
    """Candidates of an engine that pass, by verdict, each with the fields of its evidence."""
    here = tied(MASSIVE, MOVED)
    return {
        "MATCH": (NEAR, {}),
        "VARIANT": (shifted(MOVED_HERE, 0.01), {"variants": VARIED}),
        "TIE": (tied(MOVED, MASSIVE), {"golden": held(here)}),
        "WITHIN": (MOVED_HERE, {"strictness": WIDE}),
    }


@pytest.mark.parametrize("name", ["MATCH", "VARIANT", "TIE"])
def test_a_significant_test_turns_what_passes_strictly_into_a_regression(name: str) -> None:
    candidate, fields = passing()[name]
    here = tied(MASSIVE, MOVED) if name == "TIE" else UNMOVED
    forced = tied(MASSIVE, MOVED)
    for tests in ((), SOUND):
        now = Now(golden_batch=here, forced=here, candidate_forced=forced, tests=tests)
        assert engine(candidate, now, **fields).verdict is Verdict[name]
    now = Now(golden_batch=here, forced=here, candidate_forced=forced, tests=BROKEN)
    found = engine(candidate, now, **fields)
    assert found.verdict is Verdict.REGRESSION
    assert "adapter strength of wizard 0.95 [0.94, 0.96], expected 1 (p 0.01" in found.headline
    assert found.attribution is not None and found.attribution.tests == BROKEN


def test_a_significant_test_leaves_what_was_relaxed_in_the_open() -> None:
    candidate, fields = passing()["WITHIN"]
    found = engine(candidate, Now(golden_batch=UNMOVED, tests=BROKEN), **fields)
    assert found.verdict is Verdict.WITHIN
    assert found.attribution is not None and found.attribution.tests == BROKEN


def test_a_tolerance_of_texts_excuses_nothing_where_the_texts_are_equal() -> None:
    texts = Strictness(Tolerance(TextTolerance(0.8, "unicode-lcs")))
    now = Now(golden_batch=UNMOVED, forced=UNMOVED, tests=BROKEN)
    assert engine(NEAR, now, strictness=texts).verdict is Verdict.REGRESSION


def test_the_golden_s_exact_bits_stay_a_match_whatever_the_other_rows_say() -> None:
    for here in (UNMOVED, shifted(UNMOVED, 0.01), MOVED_HERE):
        assert engine(UNMOVED, Now(golden_batch=here, tests=BROKEN)).verdict is Verdict.MATCH


def test_a_significant_test_makes_no_drift_of_a_fault() -> None:
    """The reference moved, and so did the candidate, but not along with it."""
    found = engine(shifted(MOVED_HERE, 0.01), Now(golden_batch=MOVED_HERE, tests=BROKEN))
    assert found.verdict is Verdict.REGRESSION


def test_the_reference_s_exact_bits_follow_it_whatever_the_other_rows_say() -> None:
    now = Now(golden_batch=MOVED_HERE, tests=BROKEN)
    assert engine(MOVED_HERE, now).verdict is Verdict.DRIFT


def test_a_candidate_that_gives_the_golden_did_not_move_when_the_reference_did() -> None:
    """Nothing is known against it: it is the reference here that left the golden."""
    for here in (MOVED_HERE, shifted(UNMOVED, FLOOR * 1.5), observation(OTHER)):
        assert engine(NEAR, Now(golden_batch=here)).verdict is Verdict.MATCH
        ids = observation(arrays={})
        assert engine(ids, Now(golden_batch=here), golden=held(ids)).verdict is Verdict.MATCH
        candidate, fields = passing()["VARIANT"]
        assert engine(candidate, Now(golden_batch=here), **fields).verdict is Verdict.VARIANT


# -------------------------------------------------------------------------------- C01


def rows_of_c01(moved: str) -> dict[str, Result]:
    """The three rows on ROCm 10, each with what the reference gives there now."""
    policy = Policy(
        relax=(
            rule(
                "base/*",
                when={"rocm": ">=10"},
                tolerance=Tolerance(text=TextTolerance(0.9, "sglang-char-lcs")),
            ),
        )
    )
    return {
        adapter: _row_of_c01(policy if moved == "a" else Policy(), adapter, adapter == moved)
        for adapter in ("base", "a", "b")
    }


def _row_of_c01(policy: Policy, adapter: str, moved: bool) -> Result:
    key, here = f"{adapter}/x-1", fingerprint(ROCM10)
    row = observation(MOVED if moved else MASSIVE, case=key)
    strict = strictness_of(policy, case=key, subject="reference", environment=here, day=DAY)
    return own(
        row,
        Now(golden_batch=row, forced=row, candidate_forced=row),
        case=key,
        adapter=None if adapter == "base" else adapter,
        here=here,
        golden=golden(case=key),
        strictness=strict,
    )


def test_the_base_row_drifts_and_both_adapters_match_strictly() -> None:
    """C01, first run, strictly: only drift, exit code 5."""
    found = rows_of_c01(moved="base")
    assert found["base"].verdict is Verdict.DRIFT
    assert found["a"].verdict is found["b"].verdict is Verdict.MATCH
    assert exit_code(*found.values()) == 5
    assert found["base"].attribution is not None
    (move,) = found["base"].attribution.moves
    assert (move.name, move.step, move.words) == ("environment", 3, True)


def test_the_same_drift_in_an_adapter_row_fails_under_a_rule_for_base_rows() -> None:
    """C01, second run: the rule relaxes nothing else."""
    found = rows_of_c01(moved="a")
    assert found["a"].verdict is Verdict.DRIFT and not found["a"].relaxed
    assert found["base"].verdict is found["b"].verdict is Verdict.MATCH
    assert exit_code(*found.values()) == 5


def test_another_numeric_mode_is_said_beside_the_attribution() -> None:
    """C23 d"""
    found = own(
        MOVED_HERE,
        Now(golden_batch=MOVED_HERE),
        here=fingerprint(tf32_matmul=False),
        recorded=recorded(calibration=noise(0, FLOOR), tf32_matmul=True),
    )
    assert found.verdict is Verdict.DRIFT
    assert found.notes == ("numeric mode differs from recording: TF32 on -> off",)
    assert "numeric mode: TF32 on -> off" in found.headline


# -------------------------------------------------------------------------- exit codes


def exit_code(*results: Result) -> int:
    run = Held(SUITE, "reference", None, Baseline(ROCM7, "how", True), results)
    return Verification((run,)).exit_code


NAN = shifted(UNMOVED, math.nan)
QUARANTINE = Strictness(Tolerance(), quarantine=rule())
CODES: list[tuple[Verdict, int, Mapping[str, Any]]] = [
    (Verdict.ERROR, 1, {"candidate": RunError("it died")}),
    (Verdict.INVALID, 1, {"candidate": observation(workload={"model": "sha256:other"})}),
    (Verdict.NONFINITE, 1, {"candidate": NAN}),
    (Verdict.MISSING, 3, {"golden": None}),
    (Verdict.MATCH, 0, {}),
    (
        Verdict.VARIANT,
        0,
        {"candidate": observation(MOVED, composition=None), "variants": VARIED},
    ),
    (
        Verdict.TIE,
        0,
        {
            "candidate": tied(MOVED, MASSIVE),
            "golden": held(tied(MASSIVE, MOVED)),
            "now": Now(candidate_forced=tied(MASSIVE, MOVED)),
        },
    ),
    (Verdict.WITHIN, 0, {"candidate": MOVED_HERE, "strictness": WIDE}),
    (Verdict.DRIFT, 5, {"candidate": MOVED_HERE, "here": fingerprint(CUDA)}),
    (Verdict.REGRESSION, 1, {"candidate": MOVED_HERE}),
    (Verdict.UNATTRIBUTED, 1, {"candidate": MOVED_HERE, "subject": "vllm"}),
    (Verdict.QUARANTINED, 0, {"candidate": MOVED_HERE, "strictness": QUARANTINE}),
    (Verdict.FIXED, 1, {"strictness": QUARANTINE}),
]


@pytest.mark.parametrize(("verdict", "code", "fields"), CODES, ids=[v.value for v, *_ in CODES])
def test_each_verdict_has_its_exit_code(
    verdict: Verdict, code: int, fields: Mapping[str, Any]
) -> None:
    found = judge(evidence(**fields))
    assert found.verdict is verdict
    assert exit_code(found) == code
    assert found.verdict.passes == (code == 0)


def test_every_verdict_of_a_generation_is_in_the_table() -> None:
    assert {verdict for verdict, *_ in CODES} == {*Verdict} - {Verdict.WRONG}


# ------------------------------------------------------------------------------- moves


def way(e: Evidence) -> list[str]:
    assert isinstance(e.golden, Golden) and isinstance(e.candidate, Observation)
    found = attribution(e, Comparison.of(e.golden.observation, e.candidate))
    assert found is not None
    return [f"{move.name}{' still' if move.still else ''}" for move in found.moves]


def test_the_way_from_the_golden_to_the_candidate_is_told_step_by_step() -> None:
    vllm: dict[str, Any] = {"subject": "vllm", "here": None, "recorded": MEASURED}
    together = observation(MOVED, composition=batch(KEY, KEY))
    ways: Sequence[tuple[Evidence, list[str]]] = [
        (evidence(MOVED_HERE, now=Now(golden_batch=MOVED_HERE)), ["environment"]),
        (evidence(MOVED_HERE, now=Now()), ["batch"]),
        (evidence(together, now=Now(golden_batch=UNMOVED)), ["environment still", "batch"]),
        (
            evidence(together, now=Now(golden_batch=UNMOVED, candidate_batch=UNMOVED)),
            ["environment still", "candidate"],
        ),
        (
            evidence(together, now=Now(golden_batch=UNMOVED, candidate_batch=MOVED_HERE)),
            ["environment still", "batch", "candidate still"],
        ),
        (
            evidence(MOVED_HERE, now=Now(golden_batch=UNMOVED), **vllm),
            ["environment still", "candidate"],
        ),
        (evidence(MOVED_HERE, now=Now(), **vllm), []),
    ]
    for e, expected in ways:
        assert way(e) == expected


def test_a_move_tells_where_the_tokens_part_how_far_and_what_is_allowed() -> None:
    found = engine(shifted(MOVED_HERE, 0.2), Now(golden_batch=shifted(UNMOVED, 0.1)))
    assert found.attribution is not None
    environment, candidate = found.attribution.moves
    assert environment.distance is not None and candidate.distance is not None
    assert environment.distance.max == pytest.approx(0.1, abs=1e-6)
    assert candidate.distance.max == pytest.approx(0.1, abs=1e-6)
    assert (environment.step, environment.words, environment.allowed_max) == (None, False, None)
    assert (candidate.step, candidate.words) == (3, True)
    bound = (FOREIGN_RMS * FLOOR, FOREIGN_MAX * FLOOR)
    assert (candidate.allowed_rms, candidate.allowed_max) == bound
    assert found.attribution.reference_text == MASSIVE


def test_errors_against_float32_are_of_those_sides_that_are_known() -> None:
    truth = shifted(UNMOVED, 0.5)
    now = Now(
        golden_batch=UNMOVED,
        truth=truth,
        forced=shifted(UNMOVED, 0.4),
        candidate_forced=shifted(UNMOVED, 0.2),
    )
    found = engine(MOVED_HERE, now).attribution
    assert found is not None
    assert {name: round(error, 4) for name, error in found.errors.items()} == {
        "golden": 0.5,
        "reference": 0.1,
        "candidate": 0.3,
    }
    unforced = engine(shifted(MOVED_HERE, 0.1), Now(truth=truth)).attribution
    assert unforced is not None
    assert {name: round(error, 4) for name, error in unforced.errors.items()} == {
        "golden": 0.5,
        "candidate": 0.4,
    }
    unknown = engine(bare(MOVED), Now(golden_batch=UNMOVED)).attribution
    assert unknown is not None and unknown.errors == {}


def test_a_case_that_the_reference_was_not_asked_about_has_no_attribution() -> None:
    e = evidence(MOVED_HERE)
    assert judge(e).attribution is None
    assert not deviates(e, Comparison.of(UNMOVED, MOVED_HERE))


# -------------------------------------------------------------------------- properties

ROWS = st.sampled_from(
    [
        UNMOVED,
        MOVED_HERE,
        shifted(UNMOVED, 0.01),
        shifted(UNMOVED, 0.2),
        tied(MASSIVE, MOVED),
        tied(MOVED, MASSIVE),
        observation(OTHER),
        observation("", ids=()),
        observation(composition=batch(KEY, KEY)),
        observation(MOVED, composition=batch(KEY, KEY)),
        observation(composition=None),
        observation(arrays={}),
        bare(MASSIVE),
        bare(OTHER),
    ]
)


@st.composite
def nows(draw: st.DrawFn) -> Now:
    sides = ("golden_batch", "candidate_batch", "truth", "forced", "candidate_forced", "repeated")
    return Now(
        **{side: draw(st.none() | ROWS) for side in sides},
        tests=draw(st.sampled_from([(), SOUND, BROKEN])),
    )


@st.composite
def asked(draw: st.DrawFn) -> Evidence:
    return evidence(
        draw(ROWS),
        golden=held(draw(ROWS)),
        recorded=draw(st.sampled_from([None, recorded(), MEASURED])),
        here=draw(st.sampled_from([None, fingerprint(), fingerprint(ROCM10)])),
        subject=draw(st.sampled_from(["reference", "vllm"])),
        variants=draw(st.sampled_from([(), VARIED])),
        strictness=draw(st.sampled_from([Strictness(Tolerance()), WIDE])),
        now=draw(nows()),
    )


@settings(max_examples=300, deadline=None)
@given(asked())
def test_asking_the_reference_never_makes_a_failure_pass_but_by_a_tie(e: Evidence) -> None:
    before, after = judge(dataclasses.replace(e, now=None)), judge(e)
    if not before.verdict.passes:
        assert not after.verdict.passes or after.verdict is Verdict.TIE
    assert after.headline or after.verdict is Verdict.MATCH
    assert (after.attribution is None) == (after.verdict in (Verdict.ERROR, Verdict.INVALID))


@settings(max_examples=300, deadline=None)
@given(asked())
def test_what_the_reference_decides_only_what_no_rule_decided(e: Evidence) -> None:
    after = judge(e)
    now = e.now
    assert now is not None and isinstance(e.golden, Golden) and isinstance(e.candidate, Observation)
    c = Comparison.of(e.golden.observation, e.candidate)
    if after.verdict is Verdict.TIE:
        assert now.candidate_forced is not None and c.divergence is not None
    if after.verdict in (Verdict.MATCH, Verdict.VARIANT, Verdict.TIE) and e.subject != "reference":
        assert not deviates(e, c)
    if after.verdict is Verdict.DRIFT and e.subject != "reference":
        assert now.golden_batch is not None or now.candidate_batch is not None
