"""What injected faults say of the tolerances, and how that is told."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.detection import (
    ASKED,
    ENGINE,
    OTHER,
    OWN,
    SCENARIOS,
    Cell,
    Detection,
    Loosest,
    loosest,
)
from snapshot.difference import Distance
from snapshot.outcomes.audit import Audit
from snapshot.report.audit import as_json_text, outcome, print_audit
from snapshot.result import Verdict

SLUG = "cpu-avx512-t2-torch2.14-bfloat16-bs3"
RULE = "goldens.toml: suites.s.relax[0]"


def cell(
    fault: str = "adapter dropped",
    verdict: Verdict = Verdict.REGRESSION,
    *,
    scenario: str = OWN,
    case: str = "wizard/a-1",
    rms: float | None = 0.1,
    most: float | None = None,
    score: float = 1.0,
    relaxed: tuple[str, ...] = (),
) -> Cell:
    moved = None if rms is None else Distance(9, rms, rms * 3 if most is None else most, "step 1")
    return Cell(scenario, fault, case, verdict, moved, score, relaxed)


def detection(*cells: Cell, **fields: Any) -> Detection:
    return Detection("s", SLUG, SLUG, cells, **fields)


# ----------------------------------------------------------------------------- scores


def test_the_score_is_the_share_of_cells_that_fail() -> None:
    found = detection(
        cell(),
        cell(case="wizard/b-1"),
        cell("scaled", Verdict.MATCH),
        cell("scaled", Verdict.DRIFT, case="wizard/b-1"),
        cell("scaled", Verdict.WITHIN, scenario=ENGINE),
    )
    assert found.score(OWN) == 0.75
    assert found.score(ENGINE) == 0.0
    assert found.score(ASKED) is None
    assert found.missed(OWN) == [found.cells[2]]
    assert found.faults == ["adapter dropped", "scaled"]
    assert found.scenarios == [OWN, ENGINE]
    assert found.of(OWN, "scaled") == list(found.cells[2:4])


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_fault_is_caught_where_its_case_fails(verdict: Verdict) -> None:
    assert cell(verdict=verdict).caught == (not verdict.passes)


def test_rules_that_let_a_fault_through_are_named_with_what_they_let_through() -> None:
    let = cell("scaled", Verdict.WITHIN, relaxed=(RULE, "other"))
    found = detection(
        let,
        cell("scaled", Verdict.WITHIN),  # by the suite's tolerance
        cell("scaled", Verdict.REGRESSION, relaxed=(RULE,)),
        cell("scaled", Verdict.WITHIN, scenario=ENGINE, relaxed=("elsewhere",)),
    )
    assert found.let_through == {RULE: [let], "other": [let]}


# ---------------------------------------------------------------------------- loosest


def test_the_loosest_bound_is_the_smallest_of_each_fault_s_largest_move() -> None:
    found = loosest(
        [
            cell("dropped", rms=0.1, most=0.5, score=0.7),
            cell("dropped", rms=0.2, most=0.4, score=0.9),
            cell("scaled", rms=0.03, most=0.6, score=0.95),
        ]
    )
    assert found == Loosest(rms=0.03, max=0.5, rouge_l=0.95)


def test_a_fault_that_moves_no_text_is_blind_to_text() -> None:
    found = loosest([cell("dropped", score=0.5), cell("scaled", score=1.0)])
    assert found.blind == ("scaled",) and found.rouge_l is None


def test_without_faults_or_numbers_nothing_is_known() -> None:
    assert loosest([]) == Loosest(None, None, None)
    unscored = loosest([cell(rms=None, score=0.5)])
    assert (unscored.rms, unscored.max, unscored.rouge_l) == (None, None, 0.5)
    infinite = loosest([cell(rms=math.nan, score=0.5)])
    assert (infinite.rms, infinite.max) == (math.inf, math.inf)


CELLS = st.lists(
    st.builds(
        cell,
        fault=st.sampled_from(["dropped", "scaled", "int4"]),
        case=st.sampled_from(["a", "b", "c"]),
        rms=st.floats(1e-6, 10),
        score=st.floats(0, 1),
    ),
    min_size=1,
    max_size=12,
)


def everywhere_within(cells: list[Cell], name: str, bound: float) -> set[str]:
    """The faults that a bound lets through in every case."""
    faults: dict[str, list[Cell]] = {}
    for entry in cells:
        faults.setdefault(entry.fault, []).append(entry)
    return {f for f, own in faults.items() if all(getattr(c.distance, name) <= bound for c in own)}


@given(CELLS, st.sampled_from(["rms", "max"]))
def test_just_below_the_loosest_bound_every_fault_fails_somewhere_and_at_it_one_does_not(
    cells: list[Cell], name: str
) -> None:
    bound = getattr(loosest(cells), name)
    assert not everywhere_within(cells, name, math.nextafter(bound, 0))
    assert everywhere_within(cells, name, bound)


@given(CELLS)
def test_just_above_the_loosest_score_every_fault_fails_somewhere_and_at_it_one_does_not(
    cells: list[Cell],
) -> None:
    found = loosest(cells)
    scores = {c.fault: min(o.score for o in cells if o.fault == c.fault) for c in cells}
    assert set(found.blind) == {fault for fault, score in scores.items() if score == 1.0}
    if found.rouge_l is not None:
        assert all(score < math.nextafter(found.rouge_l, 2) for score in scores.values())
        assert any(score >= found.rouge_l for score in scores.values())


# ------------------------------------------------------------------------- exit codes

CAUGHT, MISSED = detection(cell()), detection(cell(), cell("scaled", Verdict.MATCH))


@pytest.mark.parametrize(
    ("audit", "code"),
    [
        (Audit((CAUGHT,)), 0),
        (Audit((CAUGHT, MISSED)), 1),
        (Audit((detection(cell(), cell(verdict=Verdict.TIE, scenario=OTHER)),)), 0),
        (Audit((detection(cell(verdict=Verdict.DRIFT)),)), 0),
        (Audit((dataclasses.replace(CAUGHT, power=2.99),)), 1),
        (Audit((dataclasses.replace(CAUGHT, power=3.0),)), 0),
        (Audit((CAUGHT,), expired=("rule: expired",)), 1),
        (Audit((CAUGHT,), advice=("narrow it",)), 0),
        (Audit((detection(unreached={"swapped": "it needs 2"}),)), 4),
        (Audit(()), 4),
    ],
)
def test_the_exit_code_of_an_audit(audit: Audit, code: int) -> None:
    assert audit.exit_code == code


# ----------------------------------------------------------------------------- report

WHOLE = Audit(
    (
        detection(
            cell(rms=0.2),
            cell(case="wizard/b-1", rms=0.3),
            cell("scaled", Verdict.WITHIN, rms=0.04, relaxed=(RULE,)),
            cell("scaled", Verdict.DRIFT, case="wizard/b-1", rms=0.05, score=0.9),
            cell(scenario=ENGINE),
            cell("scaled", Verdict.VARIANT, scenario=ENGINE),
            unreached={"swapped": "it needs 2 adapter(s), the suite has 1 \x1b[2J :fire:"},
            clean={OWN: Counter({Verdict.MATCH: 2}), ENGINE: {Verdict.VARIANT: 2}},
            power=2.5,
        ),
    ),
    expired=("suites.s.relax[0]: expired on 2026-11-30, owner @amd-ci",),
    advice=("suites.s.relax[0]: narrow it to [red]x[/red] :fire:",),
)


def shown(audit: Audit, capsys: pytest.CaptureFixture[str]) -> str:
    print_audit(audit)
    return capsys.readouterr().out


def test_the_table_has_a_row_a_fault_and_a_column_a_scenario(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = shown(WHOLE, capsys).splitlines()
    assert lines[1:3] == [f"s  {SLUG}", f"  held to {SLUG}"]
    columns = [re.split(r"\s{2,}", line.strip()) for line in lines[3:7]]
    assert columns == [
        ["fault", OWN, ENGINE],
        ["adapter dropped", "2 of 2", "1 of 1"],
        ["scaled", "1 of 2 (1 WITHIN, 1 DRIFT)", "0 of 1 (1 VARIANT)"],
        ["none", "2 MATCH", "2 VARIANT"],
    ]


def test_what_follows_from_the_table_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(WHOLE, capsys)
    for part in (
        f"{OWN}: 75.0% caught ({SCENARIOS[OWN]})",
        f"{ENGINE}: 50.0% caught",
        "swapped: says nothing here: it needs 2 adapter(s), the suite has 1",
        "MISSED  scaled in wizard/a-1: WITHIN",
        f"this rule lets faults through: {RULE}: scaled",
        "every fault somewhere: rms below 0.05, or max below 0.15",
        "text alone catches no adapter dropped",
        "underpowered: adapters move the logprobs 2.5 times what the batch does",
        "EXPIRED  suites.s.relax[0]: expired on 2026-11-30, owner @amd-ci",
    ):
        assert part in out


def test_no_text_in_an_audit_is_taken_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(WHOLE, capsys)
    assert "\x1b" not in out
    assert "[red]x[/red] :fire:" in out and r"\u001b[2J :fire:" in out


def test_many_missed_cells_are_cut_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    cells = [cell(f"fault {i}", Verdict.MATCH) for i in range(10)]
    out = shown(Audit((detection(*cells),)), capsys)
    assert out.count("MISSED") == 6 and "and 4 more" in out


def test_a_score_that_catches_all_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(Audit((detection(cell(score=0.75)),)), capsys)
    assert "the loosest ROUGE-L (unicode-lcs) that does: above 0.75" in out
    assert "text alone" not in out and "MISSED" not in out and "underpowered" not in out


def test_an_outcome_tells_drift_from_a_failure() -> None:
    cells = [cell(), cell(verdict=Verdict.DRIFT), cell(verdict=Verdict.MATCH)]
    assert outcome(cells) == "2 of 3 (1 MATCH, 1 DRIFT)"
    assert outcome([]) == "0 of 0"


def test_the_json_report_holds_every_cell() -> None:
    report = json.loads(as_json_text(WHOLE))
    assert (report["schema"], report["exit_code"]) == (1, 1)
    (found,) = report["detections"]
    assert found["scores"] == {OWN: 0.75, ENGINE: 0.5}
    assert found["loosest"]["rms"] == 0.05 and found["loosest"]["blind"] == ["adapter dropped"]
    assert found["let_through"] == {RULE: ["scaled"]}
    assert found["clean"] == {OWN: {"MATCH": 2}, ENGINE: {"VARIANT": 2}}
    assert len(found["cells"]) == 6
    assert found["cells"][2] == {
        "scenario": OWN,
        "fault": "scaled",
        "case": "wizard/a-1",
        "verdict": "WITHIN",
        "caught": False,
        "rms": 0.04,
        "max": 0.12,
        "score": 1.0,
        "relaxed": [RULE],
    }


def test_the_json_report_has_no_infinity() -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    audit = Audit((detection(cell(rms=math.nan), cell("scaled", rms=None)),))
    (found,) = json.loads(as_json_text(audit), parse_constant=refuse)["detections"]
    assert found["cells"][0]["rms"] is None and found["cells"][1]["max"] is None
    alone = Audit((detection(cell(rms=math.inf)),))
    (found,) = json.loads(as_json_text(alone), parse_constant=refuse)["detections"]
    assert found["loosest"]["rms"] is None
