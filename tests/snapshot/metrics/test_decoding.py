"""Equal tokens, other text: what tokenizers are known to disagree on."""

from __future__ import annotations

import pytest

from snapshot.metrics.decoding import disagreement
from snapshot.result import Verdict
from snapshot.verdict import judge
from tests.snapshot.builders import bare, evidence, golden, observation, token_ids


@pytest.mark.parametrize(
    ("a", "b", "named"),
    [
        (" Paris.", "Paris.", "white space before the text"),
        ("我们可以\ufffd", "我们可以", "U+FFFD where the tokens split a character"),
        ("done", "done<|im_end|>", "special tokens shown as text"),
        (" x</s>", "x", "white space before the text and special tokens shown as text"),
        ("one", "two", None),
        (" one", "two", None),
        ("a b", "ab", None),
    ],
)
def test_a_disagreement_is_named(a: str, b: str, named: str | None) -> None:
    assert disagreement(a, b) == named
    assert disagreement(b, a) == named


def test_token_ids_decide_and_the_note_names_it() -> None:
    found = judge(evidence(observation(" Paris.", ids=(5, 6)), golden=golden("Paris.", ids=(5, 6))))
    assert found.verdict is Verdict.MATCH
    assert found.notes == (
        "the tokens are equal, the tokenizers disagree on white space before the text",
    )


def test_without_token_ids_nothing_is_excused_and_the_finding_names_it() -> None:
    found = judge(evidence(bare(" Paris."), golden=golden("Paris."), subject="file", here=None))
    assert not found.verdict.passes
    assert "only in white space before the text" in found.findings[0].message
    assert token_ids("Paris.")
