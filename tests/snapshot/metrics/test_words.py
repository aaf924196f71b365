"""Word-level difference: both texts come back whole, and long ones come back soon."""

from __future__ import annotations

import random
import time

from hypothesis import given
from hypothesis import strategies as st

from snapshot.metrics.words import Run, word_diff

TEXTS = st.text(alphabet="ab ,.\n\t\ré从", max_size=40)


@given(TEXTS, TEXTS)
def test_joined_runs_restore_both_texts(golden: str, candidate: str) -> None:
    runs = word_diff(golden, candidate)
    assert "".join(run.golden for run in runs) == golden
    assert "".join(run.candidate for run in runs) == candidate
    assert all(run.golden or run.candidate for run in runs)


@given(TEXTS)
def test_equal_texts_are_one_equal_run(text: str) -> None:
    assert word_diff(text, text) == ([Run(text, text)] if text else [])


def test_one_word_moved_is_two_differing_runs() -> None:
    """C01"""
    runs = word_diff("on a massive amount of", "on massive amounts of")
    assert [run for run in runs if not run.equal] == [Run("a ", ""), Run("amount", "amounts")]


def test_words_of_other_scripts_and_punctuation_are_units_of_their_own() -> None:
    assert word_diff("blåbær!", "blåbær?") == [Run("blåbær", "blåbær"), Run("!", "?")]


def _seconds(golden: str, candidate: str) -> float:
    start = time.process_time()
    runs = word_diff(golden, candidate)
    assert "".join(run.golden for run in runs) == golden
    assert "".join(run.candidate for run in runs) == candidate
    return time.process_time() - start


def test_ten_thousand_lines_with_a_word_changed_in_each_take_seconds() -> None:
    lines = [f"line {i} says that {i * i} is a square and more" for i in range(10_000)]
    moved = [line.replace("square", "circle") if i % 2 else line for i, line in enumerate(lines)]
    assert _seconds("\n".join(lines), "\n".join(moved)) < 5


def test_ten_thousand_unrelated_lines_take_seconds() -> None:
    words = random.Random(0)
    texts = [
        "\n".join(" ".join(str(words.randrange(999)) for _ in range(12)) for _ in range(10_000))
        for _ in range(2)
    ]
    assert _seconds(*texts) < 5


def test_a_line_of_two_megabytes_takes_seconds() -> None:
    assert _seconds("ab " * 700_000, "ba " * 700_000) < 5


def test_one_character_in_two_megabytes_is_one_small_difference() -> None:
    for unit in ("word after word, ", "x"):  # many words, and one word
        golden = unit * (2_000_000 // len(unit))
        candidate = golden[:1_000_000] + "Z" + golden[1_000_001:]
        assert _seconds(golden, candidate) < 5
        (run,) = (run for run in word_diff(golden, candidate) if not run.equal)
        assert len(run.golden) < 20 and "Z" in run.candidate


@given(st.text(alphabet="ab c", max_size=8), st.text(alphabet="ab c", max_size=8))
def test_a_word_of_thousands_of_characters_is_cut(golden: str, candidate: str) -> None:
    frame = "long" * 300
    runs = word_diff(frame + golden + frame, frame + candidate + frame)
    assert "".join(run.golden for run in runs) == frame + golden + frame
    assert "".join(run.candidate for run in runs) == frame + candidate + frame
