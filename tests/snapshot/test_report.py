"""What a person and a script read: safe whatever the model wrote, short, and soon there."""

from __future__ import annotations

import io
import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from snapshot.errors import DamagedGolden, RunError
from snapshot.report.jsonreport import to_json
from snapshot.report.plain import visible
from snapshot.report.terminal import print_verification
from snapshot.resolve import Baseline
from snapshot.result import Verdict
from snapshot.verdict import Evidence, judge
from snapshot.verification import Held, Verification
from tests.snapshot.builders import (
    KEY,
    MASSIVE,
    MOVED,
    ROCM7,
    bare,
    evidence,
    golden,
    observation,
)

# Escapes that steer a terminal, characters that cannot be seen or reorder a line.
STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
CI_COMMAND = re.compile(r"(?m)^\s*::|##\[(error|warning|add-mask|group|command)")


def verification(*items: Evidence, **fields: Any) -> Verification:
    results = tuple(judge(e) for e in items)
    held = Held("multi-lora", "reference", ROCM7.slug, Baseline(ROCM7, "how", True), results)
    return Verification((held,), **fields)


def printed(found: Verification, color: bool = False) -> str:
    console = Console(file=io.StringIO(), highlight=False, width=100, force_terminal=color)
    print_verification(found, console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def differing(before: str, after: str) -> Verification:
    return verification(evidence(bare(after), golden=golden(before), here=None))


# ------------------------------------------------------------------------- terminal


def test_a_case_that_passes_is_one_line() -> None:
    out = printed(verification(evidence()))
    assert out.splitlines()[1:] == [
        f"multi-lora  reference on {ROCM7.slug}",
        f"  held to {ROCM7.slug} (how)",
        f"  MATCH         {KEY}",
        "",
        "1 case: 1 MATCH",
    ]


def test_a_difference_is_shown_by_words_in_git_s_notation() -> None:
    """C01"""
    out = printed(verification(evidence(observation(MOVED))))
    assert "on [-a -]massive [-amount-]{+amounts+} of data" in out
    assert "REGRESSION" in out and "the tokens part at step 3" in out
    assert "1 case: 1 REGRESSION" in out


def test_model_text_cannot_pass_for_a_line_of_the_report() -> None:
    out = printed(differing("note: all is well", "note: all is fine"))
    (line,) = (line for line in out.splitlines() if "[-well-]" in line)
    assert line.lstrip().startswith("| note: all is ")


def test_colour_adds_nothing_that_plain_text_does_not_say() -> None:
    found = verification(evidence(observation(MOVED)))
    coloured = printed(found, color=True)
    assert "\x1b[31m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == printed(found)


def test_a_long_common_beginning_is_cut() -> None:
    out = printed(differing("x " * 5000 + "end", "x " * 5000 + "END"))
    assert "…" in out and "[-end-]{+END+}" in out
    assert len(out) < 2000


def test_line_feeds_and_carriage_returns_are_told_apart() -> None:
    """C26 b and c"""
    out = printed(differing("foo\nbar", "foo\r\nbar"))
    assert r"foo[-\n-]{+\u000d\n+}bar" in out


def test_missing_and_drift_say_what_to_do_next() -> None:
    out = printed(verification(evidence(golden=None, looked_for="looked for x")))
    assert "MISSING" in out and "looked for x" in out and "goldens record --new-only" in out


def test_an_invalid_case_shows_no_words_since_nothing_was_compared() -> None:
    changed = observation(MOVED, workload={"model": "sha256:other"})
    out = printed(verification(evidence(changed)))
    assert "INVALID" in out and "[-" not in out


def test_notes_damage_and_expired_rules_are_shown() -> None:
    found = verification(
        evidence(bare(MASSIVE)),
        damage=(DamagedGolden("its digest is wrong", where="goldens/s/a.json", got="x\x1b[2J"),),
    )
    held = found.held[0]
    found = Verification(
        (Held(held.suite, held.subject, None, held.baseline, held.results, ("rule 3 expired",)),),
        found.damage,
    )
    out = printed(found)
    assert "note: not checked, a side does not tell: workload, token ids" in out
    assert "DAMAGED  its digest is wrong\n  where:    goldens/s/a.json" in out
    assert "EXPIRED  rule 3 expired" in out
    assert "1 damaged files" in out
    assert not STEERING.search(out)


HOSTILE = [
    "\x1b[2J\x1b]0;title\x07 all tests passed",
    "admin\u202e}MATCH{ \u2066 \u200b zero\ufeff width",
    "::error file=a.py,line=1::owned",
    "text\n::add-mask::secret\n##[error]owned",
    "line\rMATCH overwritten",
    "\x9b31m C1 \x85 next line\u2028separator",
    "tags \U000e0041\U000e007f and soft\xadhyphens",
    "[bold red]markup[/] [link=file:///etc/passwd]x[/link]",
    "back\\slash \\u202e",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("side", ["golden", "candidate"])
def test_hostile_text_reaches_the_terminal_as_codes(text: str, side: str) -> None:
    pair = (text, "harmless") if side == "golden" else ("harmless", text)
    for found in (differing(*pair), verification(evidence(RunError(text, where=text, got=text)))):
        out = printed(found)
        assert not STEERING.search(out)
        assert not CI_COMMAND.search(out)


def test_markup_in_model_text_is_text() -> None:
    out = printed(differing("plain", "[bold red]markup[/]"))
    assert "[bold red]markup[/]" in out


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_steers_a_terminal_or_a_ci_service(before: str, after: str) -> None:
    out = printed(differing(before, after))
    assert not STEERING.search(out)
    assert not CI_COMMAND.search(out)


@given(st.text(max_size=40))
def test_visible_text_is_one_line_and_unambiguous(text: str) -> None:
    shown = visible(text)
    assert "\n" not in shown and "\r" not in shown
    assert re.sub(r"\\u[0-9a-f]{4}|\\U[0-9a-f]{8}|\\[nt\\]", "", shown).count("\\") == 0


def test_a_cut_is_marked() -> None:
    assert visible("abc", 2) == "ab…"
    assert visible("abc", 3) == "abc"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "\n".join(f"line {i}" for i in range(10_000)),
            "\n".join(f"row {i}" for i in range(10_000)),
        ),
        ("a" * 2_000_000, "a" * 1_000_000 + "b" * 1_000_000),
        ("ab " * 700_000, "ba " * 700_000),
        ("", "x" * 2_000_000),
    ],
    ids=["lines", "word", "words", "empty"],
)
def test_long_texts_give_short_reports_soon(before: str, after: str) -> None:
    start = time.process_time()
    out = printed(differing(before, after))
    assert time.process_time() - start < 5
    assert len(out) < 4000


# ----------------------------------------------------------------------------- JSON


def test_the_json_report_holds_every_result() -> None:
    found = verification(
        evidence(observation(MOVED)),
        evidence(golden=None),
        damage=(DamagedGolden("its digest is wrong", where="a.json"),),
    )
    report = json.loads(to_json(found))
    assert (report["schema"], report["exit_code"]) == (1, 1)
    (run,) = report["runs"]
    assert (run["suite"], run["fingerprint"], run["golden"]) == (
        "multi-lora",
        ROCM7.slug,
        ROCM7.slug,
    )
    first, second = run["results"]
    assert (first["verdict"], first["golden_text"], first["candidate_text"]) == (
        "REGRESSION",
        MASSIVE,
        MOVED,
    )
    assert first["divergence"]["step"] == 3
    assert second["verdict"] == Verdict.MISSING.value
    assert report["damaged"][0]["where"] == "a.json"


@pytest.mark.parametrize("text", [*HOSTILE, "\ud800 alone", "nul \x00"])
def test_the_json_report_is_ascii_and_parses_back(text: str) -> None:
    report = to_json(differing("before", text))
    assert report.isascii()
    assert not STEERING.search(report)
    assert json.loads(report)["runs"][0]["results"][0]["candidate_text"] == text


def test_the_json_report_never_holds_nan() -> None:
    import numpy as np

    row = observation(MOVED)
    row.arrays["top_logits"][:] = np.nan
    same = observation(MASSIVE)
    same.arrays["top_logits"][:] = np.nan
    found = verification(
        evidence(row, golden=golden(arrays=same.arrays), allowed=frozenset({"nonfinite"}))
    )

    def refuse(name: str) -> None:
        raise AssertionError(name)

    report = json.loads(to_json(found), parse_constant=refuse)
    assert report["runs"][0]["results"]
