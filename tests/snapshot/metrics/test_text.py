"""Similarity of texts: the published definitions, and no score where a metric is blind."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from snapshot.metrics.text import METRICS, NotScorable, rouge_l
from tests.snapshot.builders import MASSIVE, MOVED

WORDS = st.lists(st.text(alphabet="ab1", min_size=1, max_size=3), min_size=1, max_size=12)
SENTENCES = WORDS.map(" ".join)
ANY_TEXT = st.text(alphabet="aAbB1 -.,\néøสวั从前", min_size=1, max_size=16)


@given(SENTENCES, SENTENCES)
def test_rouge_score_is_the_package_s_own_figure(golden: str, candidate: str) -> None:
    expected = RougeScorer(["rougeL"]).score(golden, candidate)["rougeL"].fmeasure
    if golden == candidate:
        assert rouge_l("rouge-score", golden, candidate) == pytest.approx(1.0)
    else:
        assert rouge_l("rouge-score", golden, candidate) == pytest.approx(expected)


@given(st.sampled_from(METRICS), ANY_TEXT, ANY_TEXT)
def test_a_score_is_symmetric_and_one_only_for_what_is_equal(
    metric: str, golden: str, candidate: str
) -> None:
    try:
        score = rouge_l(metric, golden, candidate)
    except NotScorable:
        with pytest.raises(NotScorable):
            rouge_l(metric, candidate, golden)
        return
    assert 0.0 <= score <= 1.0
    assert score == rouge_l(metric, candidate, golden)
    assert (score == 1.0) == (golden.strip() == candidate.strip())


def test_the_famous_score_is_216_of_221_characters() -> None:
    """C01. sglang#38585: 108 characters in common, 221 in both."""
    same = "x" * 50 + "y" * 58
    golden, candidate = same[:50] + "a " + same[50:], same + "s z"
    assert rouge_l("sglang-char-lcs", golden, candidate) == pytest.approx(216 / 221)
    assert f"{216 / 221:.4f}" == "0.9774"


def test_character_lcs_hardly_sees_a_not_or_another_sentence() -> None:
    """Why a score is a report: facts of SGLang's own gate at 0.9."""
    golden = "the model is trained on data, and it does answer questions about the world well"
    negated = golden.replace("does answer", "does not answer")
    assert rouge_l("sglang-char-lcs", golden, negated) > 0.97
    other = "Once upon a time there was a small fox who lived in a forest near an old mill"
    assert rouge_l("sglang-char-lcs", golden, other) > 0.3


def test_each_metric_scores_one_moved_word_by_its_own_tokens() -> None:
    assert rouge_l("rouge-score", MASSIVE, MOVED) == pytest.approx(2 * 7 / (9 + 8))
    assert rouge_l("sglang-char-lcs", MASSIVE, MOVED) == pytest.approx(2 * 41 / (43 + 42))
    assert rouge_l("unicode-lcs", MASSIVE, MOVED) == pytest.approx(2 * 8 / (10 + 9))


def test_identical_thai_scores_one_where_the_tokens_are_characters() -> None:
    """C10 a"""
    assert rouge_l("unicode-lcs", "สวัสดี", "สวัสดี") == 1.0
    with pytest.raises(NotScorable, match="drops 'ส'"):
        rouge_l("rouge-score", "สวัสดี", "สวัสดี")


@pytest.mark.parametrize(
    ("golden", "candidate"),
    [
        ("papá", "papó"),
        ("foo()", "foo[]"),
        ("the answer is 3", "the answer is -3"),
        ("is NOT a camel", "is not a camel"),
        ("hår", "hør"),
        ("a b", "a\nb"),
        ("x.NOT sure", "y-not sure"),  # a change of words beside it does not hide the case
        ("yes: 3", "no: -3"),
        ("x-1", "y+1"),
        ("so  NOT", "as not"),
    ],
)
def test_rouge_score_refuses_what_its_tokenizer_eats(golden: str, candidate: str) -> None:
    """C10 b to e"""
    with pytest.raises(NotScorable, match="unicode-lcs"):
        rouge_l("rouge-score", golden, candidate)


@pytest.mark.parametrize(
    ("golden", "candidate"),
    [
        ("papá", "papó"),
        ("foo()", "foo[]"),
        ("the answer is 3", "the answer is -3"),
        ("is NOT a camel", "is not a camel"),
        ("从前有一座山", "从前有一座庙"),
    ],
)
def test_unicode_tokens_see_it(golden: str, candidate: str) -> None:
    """C10 b to e"""
    assert rouge_l("unicode-lcs", golden, candidate) < 1.0


@pytest.mark.parametrize(
    ("metric", "golden", "candidate"),
    [
        ("rouge-score", "!!!!!!!!", "????????"),
        ("rouge-score", "word", "!!!!"),
        ("sglang-char-lcs", "  ", "\n"),
        ("unicode-lcs", " ", "word"),
        ("unicode-lcs", "a b", "a  b"),
        ("unicode-lcs", "på", "pa\u030a"),  # one letter, composed and not
    ],
)
def test_a_text_without_a_token_or_a_difference_is_not_scored(
    metric: str, golden: str, candidate: str
) -> None:
    """C11 d"""
    with pytest.raises(NotScorable):
        rouge_l(metric, golden, candidate)


def test_an_unknown_metric_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError):
        rouge_l("bleu", "a", "b")


def test_texts_too_long_to_score_are_refused_at_once() -> None:
    start = time.process_time()
    with pytest.raises(NotScorable, match="too long"):
        rouge_l("sglang-char-lcs", "ab " * 700_000, "ba " * 700_000)
    assert time.process_time() - start < 2
