"""The machine-readable reports: valid, bounded, and safe whatever the model wrote."""

from __future__ import annotations

import dataclasses
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.attribution import Attribution, GroupTest, Move
from snapshot.difference import Distance, RowErrors, Step
from snapshot.errors import DamagedGolden, UsageError
from snapshot.report.annotations import SHOWN, to_annotations
from snapshot.report.fence import code, fence
from snapshot.report.formats import FORMATS
from snapshot.report.html import STATUSES, to_html
from snapshot.report.jsonreport import to_json
from snapshot.report.junit import to_junit
from snapshot.report.markdown import SUMMARY, to_markdown
from snapshot.report.output import Output, parse, write
from snapshot.resolve import Baseline
from snapshot.result import Result, Verdict
from snapshot.store.schemas import validator
from snapshot.verification import Held, Verification
from tests.snapshot.builders import ROCM7, ROCM10
from tests.snapshot.own_suites import verification as own_verification
from tests.snapshot.project import Project, reworded

HOSTILE = (
    "<script>alert(1)</script>]]>&amp;\x00\x0b\x1b[2J\u202e\u2066 ::error::no\n::add-mask::x\r\n"
    "``` ```` \U000e0041\ud800 ##[group] %0A"
)


def result(
    verdict: Verdict = Verdict.REGRESSION, case: str = "base/a-1", **fields: object
) -> Result:
    usual: dict[str, object] = {
        "suite": "s", "case": case, "subject": "reference", "slug": ROCM10.slug,
        "golden_slug": ROCM7.slug, "verdict": verdict, "headline": "it moved",
        "golden_text": "one two", "candidate_text": "one three",
    }  # fmt: skip
    return Result(**{**usual, **fields})  # type: ignore[arg-type]


def verification(*results: Result, **fields: object) -> Verification:
    held = Held("s", "reference", ROCM10.slug, Baseline(ROCM7, "inherited"), results)
    return Verification((held,), **fields)  # type: ignore[arg-type]


def everything() -> Verification:
    """Every verdict, with every attribute somewhere."""
    distance = Distance(3, 0.1, 0.2, "step 1")
    move = Move("candidate", distance, 4, True, 0.1, 0.2)
    test = GroupTest("base", "error ratio", 1.0, 0.9, 1.1, 1.0, 0.5, 0.1, 8, False)
    full = result(
        attribution=Attribution((move,), "text", {"golden": 0.1}, (test,), ("note",)),
        steps=(
            Step(3, (1, 1), (-0.1, -0.2), (1.0, 1.0), (((1, -0.1),), ())),
            Step(4, (2, None), (-0.1, None), (None, None), ((), ())),
        ),
        rows=RowErrors("rel-L2", ((0.1, None), (0.0, 2.0)), 0.5),
        distance=distance,
        scores={"unicode-lcs": 0.5},
    )
    return verification(
        full,
        *(result(verdict, f"base/{verdict.value.lower()}-1") for verdict in Verdict),
        damage=(DamagedGolden("damaged", where="goldens/x.json:3", got=HOSTILE),),
    )


@pytest.mark.parametrize("found", [everything(), verification(), own_verification()])
def test_the_json_follows_its_published_schema(found: Verification) -> None:
    document = json.loads(to_json(found))
    errors = [error.message for error in validator("report.v1").iter_errors(document)]
    assert errors == []


def test_the_json_of_a_diff_follows_its_schema(tmp_path: Path) -> None:
    project = Project.create(tmp_path / "p", ("bfloat16-bs3",))
    for golden in project.goldens("bfloat16-bs3", "pirate/"):
        project.store.write(reworded(golden, HOSTILE.replace("\ud800", "")))
    project.append("\n[suites.multi-lora.tolerance]\nlogprob = { max = 0.1 }\n")
    done = project.run("diff", "--json")
    assert done.stdout.isascii()
    errors = list(validator("changes.v1").iter_errors(json.loads(done.stdout)))
    assert errors == []


def test_every_verdict_has_a_place_in_the_reports() -> None:
    assert {status.name for status in STATUSES} == {verdict.value for verdict in Verdict}


def test_junit_counts_what_failed() -> None:
    root = ElementTree.fromstring(to_junit(everything()))
    cases = root.findall(".//testcase")
    assert len(cases) == int(root.get("tests", "")) == len(Verdict) + 2
    assert len(root.findall(".//skipped")) == 1  # quarantined
    failing = [v for v in Verdict if not v.passes]
    assert len(root.findall(".//failure")) + len(root.findall(".//error")) == len(failing) + 2


def _outside_fences(markdown: str) -> str:
    outside = re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", markdown)
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)


@given(st.text(max_size=60) | st.just(HOSTILE))
def test_no_text_breaks_any_report(text: str) -> None:
    found = verification(
        result(candidate_text=text, golden_text=text[::-1], headline=text, notes=(text,)),
        damage=(DamagedGolden(text, where=text, got=text),),
    )
    ElementTree.fromstring(to_junit(found).encode("utf-8"))
    json.loads(to_json(found))
    markdown = to_markdown(found)
    markdown.encode("utf-8")
    assert not re.search(r"(?m)^\s*::", markdown)
    assert "<" not in _outside_fences(markdown).replace("<commit>", "")
    for line in to_annotations(found).splitlines():
        assert re.match(r"::(error|warning) title=[^:,]*::", line), line
    page = to_html(found)
    page.encode("utf-8")
    assert page.count("<script") == 2 and page.count("</script") == 2


@given(st.text(alphabet="`a\n ", max_size=30))
def test_a_fence_is_longer_than_what_it_holds(text: str) -> None:
    lines = text.split("\n")
    block = fence(lines, "diff").split("\n")
    mark = block[0].removesuffix("diff")
    assert set(mark) == {"`"} and block[-1] == mark
    assert all(mark not in line for line in block[1:-1])
    span = code(text)
    ends = re.match("`+", span)
    assert ends is not None and span.endswith(ends[0])


def test_annotations_stop_at_ten_and_say_how_many_are_left() -> None:
    many = verification(
        *(result(case=f"base/c{i}-1") for i in range(25)),
        *(result(Verdict.MISSING, f"base/m{i}-1") for i in range(3)),
    )
    lines = to_annotations(many).splitlines()
    errors = [line for line in lines if line.startswith("::error")]
    assert len(errors) == SHOWN and "16 more" in errors[-1]
    assert len([line for line in lines if line.startswith("::warning")]) == 3
    assert "title=REGRESSION base/c0-1::it moved [s at " in errors[0]
    assert to_annotations(verification(result(Verdict.MATCH))) == ""


def test_an_annotation_is_escaped_as_github_wants() -> None:
    (line,) = to_annotations(verification(result(headline="100% of a:b,c"))).splitlines()
    assert "100%25 of a:b,c" in line


def test_markdown_is_worst_first_and_says_what_it_left_out() -> None:
    found = everything()
    whole = to_markdown(found)
    assert whole.index("**ERROR**") < whole.index("**REGRESSION**") < whole.index("**VARIANT**")
    assert "**MATCH**" not in whole
    many = verification(*(result(case=f"base/c{i}-1") for i in range(20_000)))
    cut = to_markdown(many)
    assert len(cut.encode()) <= SUMMARY
    left = int(re.search(r"Left out here to fit: (\d+) more cases", cut)[1])  # type: ignore[index]
    assert left + cut.count("🔴 **REGRESSION**") == 20_000


def test_reports_are_written_where_asked(tmp_path: Path) -> None:
    said: list[str] = []
    outputs = [parse(f"{name}:{tmp_path / 'a b' / name}", list(FORMATS)) for name in FORMATS]
    write([*outputs, Output("github", "-")], FORMATS, everything(), said.append)
    assert all((tmp_path / "a b" / name).stat().st_size for name in FORMATS)
    assert said[0].startswith("::error")


@pytest.mark.parametrize("value", ["html", "html:", "pdf:x", ":x", ""])
def test_a_report_that_cannot_be_is_a_usage_error(value: str) -> None:
    with pytest.raises(UsageError, match="no such report"):
        parse(value, list(FORMATS))


def test_a_folder_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is a folder"):
        parse(f"html:{tmp_path}", list(FORMATS))


def test_a_report_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    output = Output("json", str(tmp_path / "file" / "x"))
    with pytest.raises(UsageError, match="cannot be written"):
        write([output], FORMATS, verification(), print)


def test_dataclasses_of_a_result_are_all_in_the_schema() -> None:
    names = {field.name for field in dataclasses.fields(Result)}
    schema = validator("report.v1").schema
    assert isinstance(schema, dict)
    assert names == set(schema["$defs"]["result"]["properties"])
