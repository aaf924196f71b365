"""Which wording each batch size gives: the batches, the cells, and three ways to tell it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.commands.sweep import _case, _columns
from snapshot.config import load
from snapshot.difference import Divergence
from snapshot.errors import RunError
from snapshot.outcomes.sweep import Cell, Sweep, SweptCase
from snapshot.plan import Plan, plans
from snapshot.report.sweep import as_json_text, as_markdown, print_sweeps
from snapshot.runners.observe import Rows
from tests.snapshot.builders import KEY, MASSIVE, MOVED, bare, observation, project
from tests.snapshot.test_report import CI_COMMAND, HOSTILE, STEERING

OTHER = "Nobody knows what they were trained on, not even they"

# ---------------------------------------------------------------------------- columns


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (found,) = plans(load(project(tmp_path, prompts=[f"prompt {i}" for i in range(7)])), ())
    return found


def narrowed(plan: Plan, *numbers: int) -> Plan:
    return Plan(plan.suite, plan.cases, frozenset(plan.cases[i].key for i in numbers))


def test_each_batch_size_has_a_column_and_each_shuffle_one_more(plan: Plan) -> None:
    assert list(_columns(plan, [1, 3], 0)) == ["batch 1", "batch 3"]
    assert list(_columns(plan, [1, 3, 4], 2)) == [
        "batch 1",  # the order of single rows changes nothing
        "batch 3",
        "batch 3, order 1",
        "batch 3, order 2",
        "batch 4",
        "batch 4, order 1",
        "batch 4, order 2",
    ]


def test_the_file_s_order_is_the_one_that_is_recorded(plan: Plan) -> None:
    assert _columns(plan, [3], 1)["batch 3"] == plan.groups(3)


def test_shuffles_differ_hold_every_case_once_and_repeat(plan: Plan) -> None:
    found = _columns(plan, [3], 3)
    orders = [tuple(c.key for group in run for c in group.rows) for run in found.values()]
    assert len(set(orders)) == 4
    assert all(sorted(order) == sorted(case.key for case in plan.cases) for order in orders)
    assert _columns(plan, [3], 3) == found
    assert _columns(plan, [3, 4], 2)["batch 3, order 2"] == found["batch 3, order 2"]


def test_what_is_selected_runs_in_the_batches_of_the_whole(plan: Plan) -> None:
    """So picking a case never changes its numbers, shuffled or not."""
    whole, part = (_columns(p, [3], 2) for p in (plan, narrowed(plan, 4)))
    for column, groups in part.items():
        assert len(groups) == 1 and groups[0] in whole[column]
        assert plan.cases[4] in groups[0].rows


# ------------------------------------------------------------------------------ cases


def rows(*found: object) -> list[Rows]:
    return [{KEY: row} for row in found]  # type: ignore[dict-item]


def test_a_wording_is_numbered_by_its_first_column() -> None:
    same = observation(MASSIVE)
    case = _case(KEY, rows(same, observation(MOVED), observation(MASSIVE), observation(OTHER)))
    assert case.wordings == (MASSIVE, MOVED, OTHER)
    assert [cell.wording for cell in case.cells] == [0, 1, 0, 2]
    assert [cell.parting and cell.parting.step for cell in case.cells] == [None, 3, None, 0]


def test_a_column_that_failed_costs_its_own_cell() -> None:
    failed = RunError("no memory")
    case = _case(KEY, rows(failed, observation(MASSIVE), observation(MOVED), failed))
    assert [cell.wording for cell in case.cells] == [None, 0, 1, None]
    assert [cell.error for cell in case.cells] == ["no memory", None, None, "no memory"]
    assert case.cells[2].parting is not None  # held to the first that could be run
    assert _case(KEY, rows(failed)).wordings == ()


def test_the_same_words_by_other_tokens_are_one_wording_that_parts() -> None:
    ids = (1, 2, 3)
    case = _case(KEY, rows(observation("a b c", ids=ids), observation("a b c", ids=(1, 9, 3))))
    assert case.wordings == ("a b c",)
    assert case.cells[1].wording == 0
    assert case.cells[1].parting is not None and case.cells[1].parting.step == 1


def test_wordings_without_token_ids_have_no_parting() -> None:
    case = _case(KEY, rows(bare(MASSIVE), bare(MOVED)))
    assert [(c.wording, c.parting) for c in case.cells] == [(0, None), (1, None)]


@given(st.lists(st.sampled_from([MASSIVE, MOVED, OTHER, "", None]), min_size=1, max_size=8))
def test_every_cell_leads_back_to_its_words(texts: list[str | None]) -> None:
    runs = rows(*(RunError("x") if text is None else observation(text) for text in texts))
    case = _case(KEY, runs)
    found = [None if c.wording is None else case.wordings[c.wording] for c in case.cells]
    assert found == texts
    assert len(set(case.wordings)) == len(case.wordings)
    first = next((text for text in texts if text is not None), None)
    for text, cell in zip(texts, case.cells, strict=True):
        assert (cell.parting is not None) == (text not in (None, first))


# ----------------------------------------------------------------------------- report


def swept(*cases: SweptCase, columns: tuple[str, ...] = ("batch 1", "batch 3")) -> Sweep:
    return Sweep("multi-lora", "bfloat16", "cpu-avx512-t2-torch2.14-bfloat16", columns, cases)


def moved_case(text: str = MOVED, margin: float | None = 0.125) -> SweptCase:
    at = Divergence(3, 11, 12, margin, 0.0625 if margin else None)
    return SweptCase(KEY, (MASSIVE, text), (Cell(0), Cell(1, at)))


STILL = SweptCase("wizard/still", (MASSIVE,), (Cell(0), Cell(0)))
BROKEN = SweptCase("wizard/broken", (MASSIVE,), (Cell(0), Cell(None, error="no memory \x1b[2J")))


def printed(capsys: pytest.CaptureFixture[str], *sweeps: Sweep) -> str:
    print_sweeps(sweeps)
    return capsys.readouterr().out


def test_the_matrix_and_the_wordings_of_what_moved(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, swept(moved_case(), STILL, BROKEN)).splitlines() == [
        "",
        "multi-lora, bfloat16: cpu-avx512-t2-torch2.14-bfloat16",
        "  case                                 batch 1  batch 3",
        f"  {KEY:<35}  A        B, step 3, margin 0.125",
        "  wizard/still                         A        A",
        "  wizard/broken                        A        error",
        "",
        f"  {KEY}",
        f"    A  | {MASSIVE}",
        f"    B  | {MOVED}",
        "",
        "  wizard/broken",
        f"    A  | {MASSIVE}",
        r"    error  | no memory \u001b[2J",
        "",
        "1 of 3 cases change; largest top-2 margin where they part 0.125; 1 could not be run; "
        "to keep these as variants: goldens record multi-lora",
    ]


def test_a_case_that_could_not_be_run_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where it has but one wording, or none."""
    none = SweptCase("wizard/none", (), (Cell(None, error="it died"),) * 2)
    for text in (printed(capsys, swept(BROKEN, none)), as_markdown([swept(BROKEN, none)])):
        assert r"no memory \u001b[2J" in text
        assert text.count("it died") == 1


def test_nothing_that_moved_is_nothing_to_record(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, swept(STILL))
    assert out.splitlines()[-1] == "0 of 1 cases change"
    unknown = printed(capsys, swept(moved_case(margin=None)))
    assert "B, step 3\n" in unknown and "margin" not in unknown


def test_more_wordings_than_letters_have_names_all_the_same() -> None:
    texts = tuple(f"text {i}" for i in range(30))
    columns = tuple(f"batch {i + 1}" for i in range(30))
    case = SweptCase(KEY, texts, tuple(Cell(i) for i in range(30)))
    out = as_markdown([swept(case, columns=columns)])
    assert "    Z  text 25" in out and "    W26  text 26" in out and "| W29 |" in out


MARKDOWN = [
    "```\n# owned",
    "    \n\n# owned\n\n| a | b |",
    "</code></pre><img src=x onerror=alert(1)>",
    "|",
    "~~~",
    "@someone #1 owned",
    "-->",
]


@pytest.mark.parametrize("text", [*HOSTILE, *MARKDOWN])
def test_no_text_breaks_out_of_its_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    broken = SweptCase("wizard/broken", (MASSIVE,), (Cell(0), Cell(None, error=text)))
    tame = SweptCase("wizard/broken", (MASSIVE,), (Cell(0), Cell(None, error="x")))
    hostile, harmless = swept(moved_case(text), broken), swept(moved_case("x"), tame)
    markdown, lines = as_markdown([hostile]), as_markdown([harmless]).splitlines()
    assert len(markdown.splitlines()) == len(lines)
    for line, expected in zip(markdown.splitlines(), lines, strict=True):
        assert line == expected or (line.startswith("    ") and line.strip())
    for out in (markdown, printed(capsys, hostile)):
        assert not STEERING.search(out)
        assert not CI_COMMAND.search(out)


@given(st.text(max_size=40))
def test_any_wording_stays_in_its_code_block(text: str) -> None:
    lines = as_markdown([swept(moved_case(text))]).splitlines()
    assert len(lines) == len(as_markdown([swept(moved_case("x"))]).splitlines())
    assert sum(line.startswith("    B  ") for line in lines) == 1


def test_words_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, swept(moved_case("a :fire: [bold]b[/bold]")))
    assert "B  | a :fire: [bold]b[/bold]" in out


def test_a_long_wording_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    case = moved_case("word " * 1000)
    for out in (printed(capsys, swept(case)), as_markdown([swept(case)])):
        assert "word …" in out and len(out) < 2000


def test_markdown_has_a_table_and_a_block_for_what_moved() -> None:
    assert as_markdown([swept(moved_case(), STILL)]).split("\n\n") == [
        "### multi-lora, bfloat16: cpu-avx512-t2-torch2.14-bfloat16",
        "| case | batch 1 | batch 3 |\n| --- | --- | --- |\n"
        f"| `{KEY}` | A | B, step 3, margin 0.125 |\n| `wizard/still` | A | A |",
        f"`{KEY}`",
        f"    A  {MASSIVE}\n    B  {MOVED}",
        "1 of 2 cases change; largest top-2 margin where they part 0.125; "
        "to keep these as variants: goldens record multi-lora",
    ]


def test_the_json_report_holds_every_cell_whole() -> None:
    text = "\ud800 \x1b[2J :fire:" + "x" * 1000
    report = as_json_text([swept(moved_case(text), BROKEN)])
    assert report.isascii()
    (sweep,) = json.loads(report)["sweeps"]
    assert sweep["columns"] == ["batch 1", "batch 3"]
    first, second = sweep["cases"]
    assert first["wordings"] == [MASSIVE, text]
    assert first["cells"][1]["parting"]["golden_margin"] == 0.125
    assert second["cells"][1] == {"wording": None, "parting": None, "error": "no memory \x1b[2J"}


def test_the_json_report_never_holds_nan() -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    bad = observation(MOVED)
    bad.arrays["top_logits"][:] = np.nan
    bad.arrays["topk_logprobs"][:] = np.nan
    case = _case(KEY, rows(observation(MASSIVE), bad))
    (sweep,) = json.loads(as_json_text([swept(case)]), parse_constant=refuse)["sweeps"]
    assert sweep["cases"][0]["cells"][1]["parting"]["candidate_margin"] is None
