"""One case in full, and who moved in plain text: always told, whatever a model wrote."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from snapshot.attribution import Attribution, GroupTest, Move
from snapshot.difference import Distance, Divergence, Finding, Step
from snapshot.report.attribution import attribution_lines, moved
from snapshot.report.explain import next_steps, print_explanation
from snapshot.report.jsonreport import to_json
from snapshot.report.terminal import print_verification
from snapshot.resolve import Baseline
from snapshot.result import Result, Verdict
from snapshot.verification import Held, Verification
from tests.snapshot.builders import KEY, MASSIVE, MOVED, ROCM7, SUITE, evidence, observation
from tests.snapshot.test_report import CI_COMMAND, HOSTILE, STEERING, verification

FAR = Distance(12, 0.021, 0.125, "step 3")


def result(verdict: Verdict = Verdict.REGRESSION, **fields: Any) -> Result:
    usual: dict[str, Any] = {"slug": ROCM7.slug, "golden_slug": ROCM7.slug, "headline": "it moved"}
    return Result(SUITE, KEY, "reference", verdict=verdict, **{**usual, **fields})


def held(*results: Result) -> Held:
    return Held(SUITE, "reference", ROCM7.slug, Baseline(ROCM7, "how", True), results)


def explained(*results: Result) -> str:
    console = Console(file=io.StringIO(), highlight=False, width=100)
    print_explanation(Verification((held(*results),)), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


# ------------------------------------------------------------------------ attribution


@pytest.mark.parametrize(
    ("move", "said"),
    [
        (Move("environment", Distance(12, 0.0, 0.0, "step 0"), None, False), "nothing moved"),
        (Move("environment", None, None, False), "nothing moved"),
        (Move("batch", FAR, 3, True), f"tokens part at step 3, logprobs {FAR}"),
        (Move("batch", None, None, True), "the words differ"),
        (
            Move("candidate", FAR, None, False, 0.05, 0.3),
            f"logprobs {FAR}, noise rms 0.05, max 0.3",
        ),
        (
            Move("candidate", Distance(1, math.nan, math.nan, "step 0"), None, False),
            "logprobs rms nan, max nan at step 0 (1 values)",
        ),
        (Move("candidate", None, 0, False), "tokens part at step 0"),
    ],
)
def test_a_move_in_words(move: Move, said: str) -> None:
    assert moved(move) == said
    assert move.still == (said == "nothing moved")


def test_the_way_the_errors_the_tests_and_what_was_not_run_are_lines() -> None:
    strength = GroupTest("wizard", "adapter strength", 0.95, 0.94, 0.96, 1.0, 0.0078, 0.02, 8, True)
    ratio = GroupTest("wizard", "error ratio", 1.02, 0.9, 1.1, 1.0, 0.5, math.inf, 5, False)
    found = Attribution(
        moves=(
            Move("environment", None, None, False),
            Move("batch", FAR, 3, True),
            Move("candidate", FAR, None, False),
        ),
        reference_text=MOVED,
        errors={"golden": 0.01, "candidate": 0.0213},
        tests=(strength, ratio),
        notes=("reference again: not run: \x1b[2J",),
    )
    assert list(attribution_lines(found)) == [
        "environment golden -> reference here, in the golden's batch: nothing moved",
        f"batch       -> reference here, in the candidate's batch: tokens part at step 3, "
        f"logprobs {FAR}",
        f"candidate   -> candidate: logprobs {FAR}",
        "float32     rms from the float32 answer on the golden's tokens: golden 0.01, "
        "candidate 0.021",
        "together    adapter strength of wizard 0.95 [0.94, 0.96], expected 1 (p 0.0078 over 8 "
        "prompts, detectable 0.02)",
        "together    error ratio of wizard 1.02 [0.9, 1.1], expected 1 (p 0.5 over 5 prompts, "
        "detectable no effect), as expected",
        "not run     reference again: not run: \\u001b[2J",
    ]


def test_nothing_looked_into_is_nothing_said() -> None:
    assert list(attribution_lines(Attribution())) == []


# ---------------------------------------------------------------------------- explain


def test_one_case_in_full() -> None:
    """C01"""
    found = verification(evidence(observation(MOVED))).held[0].results[0]
    (move,) = (Move("environment", FAR, 3, True),)
    out = explained(
        result(
            headline=found.headline,
            findings=found.findings,
            notes=("numeric mode differs from recording: TF32 off -> on",),
            golden_text=MASSIVE,
            candidate_text=MOVED,
            steps=found.steps,
            attribution=Attribution((move,), reference_text=MASSIVE),
        )
    )
    for part in (
        f"REGRESSION  {KEY}",
        f"held to {ROCM7.slug} (how)",
        f"golden     | {MASSIVE}",
        f"candidate  | {MOVED}",
        f"reference  | {MASSIVE}",
        "who moved\n    environment golden -> reference here",
        "token_ids: the tokens part at step 3",
        "golden's best: ",
        "candidate's best: ",
        "note: numeric mode differs",
        "next\n    find what changed in the candidate",
    ):
        assert part in out, part
    shown = [line.split()[0] for line in out.splitlines() if " candidate " in line and ", " in line]
    assert {"0", "1", "2", "3"} <= set(shown) and "4" not in shown


def test_a_side_that_had_ended_says_so() -> None:
    step = Step(3, (7, None), (-0.5, None), (1.0, None), (((7, -0.5),), ()))
    out = explained(result(steps=(step,)))
    assert "3  golden 7, -0.500, 1.000" in out and "candidate (ended)" in out
    assert "golden's best: 7 -0.500" in out and "candidate's best" not in out


NEXT = {
    **dict.fromkeys((Verdict.MATCH, Verdict.VARIANT, Verdict.TIE, Verdict.WITHIN), "nothing"),
    Verdict.DRIFT: f"goldens record '{KEY}'",
    Verdict.MISSING: f"goldens record {SUITE}",
    Verdict.REGRESSION: "--attribute always",
    Verdict.UNATTRIBUTED: "run this where the reference can run",
    Verdict.QUARANTINED: "repair it before then",
    Verdict.FIXED: "remove the quarantine rule",
}


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_says_what_to_do_next(verdict: Verdict) -> None:
    out = explained(result(verdict))
    assert NEXT.get(verdict, "see the findings above") in out.split("  next\n")[1]
    steps = list(next_steps(held(), result(verdict)))
    assert steps
    # Whom a rule can excuse: it cannot stand in for a golden that is not there.
    assert any("relax" in step for step in steps) == (verdict is Verdict.DRIFT)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_explained_in_codes(text: str) -> None:
    move = Move("environment", None, None, True)
    out = explained(
        result(
            headline=text,
            findings=(Finding("run", text, text, text, text, text),),
            notes=(text,),
            golden_text=text,
            candidate_text=text + "!",
            attribution=Attribution((move,), reference_text="?" + text, notes=(text,)),
        )
    )
    assert not STEERING.search(out)
    assert not CI_COMMAND.search(out)


TEXT = st.text(max_size=30)
NUMBER = st.floats(allow_nan=True, allow_infinity=True)
MAYBE = st.none() | NUMBER
IDS = st.none() | st.integers(0, 99)
DISTANCES = st.builds(Distance, st.integers(0, 9), NUMBER, NUMBER, st.just("step 1"))
TOPS = st.lists(st.tuples(st.integers(0, 99), NUMBER), max_size=3).map(tuple)


def pair(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return st.tuples(strategy, strategy)


MOVES = st.builds(
    Move,
    st.sampled_from(["environment", "batch", "candidate"]),
    st.none() | DISTANCES,
    st.none() | st.integers(0, 9),
    st.booleans(),
    MAYBE,
    MAYBE,
)
GROUP_TESTS = st.builds(
    GroupTest,
    st.sampled_from(["wizard", "base"]),
    st.sampled_from(["adapter strength", "error ratio"]),
    *[NUMBER] * 6,
    st.integers(0, 99),
    st.booleans(),
)
RESULTS = st.builds(
    Result,
    st.just(SUITE),
    st.just(KEY),
    st.just("reference"),
    st.none() | st.just(ROCM7.slug),
    st.none() | st.just(ROCM7.slug),
    st.sampled_from(list(Verdict)),
    TEXT,
    findings=st.lists(st.builds(Finding, st.just("run"), TEXT, TEXT, TEXT, TEXT), max_size=2).map(
        tuple
    ),
    notes=st.lists(TEXT, max_size=2).map(tuple),
    golden_text=st.none() | TEXT,
    candidate_text=st.none() | TEXT,
    divergence=st.none() | st.builds(Divergence, st.integers(0, 9), IDS, IDS, MAYBE, MAYBE),
    distance=st.none() | DISTANCES,
    scores=st.dictionaries(st.just("unicode-lcs"), NUMBER),
    attribution=st.none()
    | st.builds(
        Attribution,
        st.lists(MOVES, max_size=3).map(tuple),
        st.none() | TEXT,
        st.dictionaries(st.sampled_from(["golden", "reference", "candidate"]), NUMBER),
        st.lists(GROUP_TESTS, max_size=2).map(tuple),
        st.lists(TEXT, max_size=2).map(tuple),
    ),
    steps=st.lists(
        st.builds(Step, st.integers(0, 99), pair(IDS), pair(MAYBE), pair(MAYBE), pair(TOPS)),
        max_size=3,
    ).map(tuple),
)


def refuse(name: str) -> None:
    raise AssertionError(name)


@settings(max_examples=60, deadline=None)
@given(RESULTS)
def test_any_result_is_told_in_every_format(found: Result) -> None:
    out = explained(found)
    assert "  next\n    " in out
    console = Console(file=io.StringIO(), highlight=False, width=100)
    verified = Verification((held(found),))
    print_verification(verified, console)
    assert isinstance(console.file, io.StringIO)
    for text in (out, console.file.getvalue()):
        assert not STEERING.search(text)
        assert not CI_COMMAND.search(text)
    report = json.loads(to_json(verified), parse_constant=refuse)
    assert report["runs"][0]["results"][0]["case"] == KEY


def test_distances_that_are_no_number_stand_as_text_in_json() -> None:
    bad = Distance(3, math.nan, math.inf, "step 1")
    strength = GroupTest("w", "adapter strength", 1.0, 1.0, 1.0, 1.0, 1.0, math.inf, 3, False)
    found = result(
        distance=bad,
        attribution=Attribution((Move("batch", bad, None, False),), tests=(strength,)),
    )
    report = json.loads(to_json(Verification((held(found),))), parse_constant=refuse)
    (row,) = report["runs"][0]["results"]
    assert (row["distance"]["rms"], row["distance"]["max"]) == ("nan", "inf")
    assert row["attribution"]["moves"][0]["distance"]["rms"] == "nan"
    assert row["attribution"]["tests"][0]["detectable"] == "inf"
