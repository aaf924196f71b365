"""Cases from content, batches from file order."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.errors import ConfigError
from snapshot.suite import Group, generation_cases, groups, read_prompts, select

PROMPTS = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6, unique=True)
SIZES = st.integers(1, 5)
ADAPTERS = ["wizard", "norwegian"]


@given(PROMPTS, st.randoms())
def test_keys_come_from_content_and_never_from_order(prompts: list[str], shuffle: object) -> None:
    shuffled = sorted(prompts, key=lambda _: shuffle.random())  # type: ignore[attr-defined]
    keys = {(c.prompt, c.adapter): c.key for c in generation_cases(prompts, ADAPTERS)}
    again = {(c.prompt, c.adapter): c.key for c in generation_cases(shuffled, ADAPTERS[::-1])}
    assert keys == again
    assert len(set(keys.values())) == len(keys)


@given(PROMPTS, SIZES)
def test_a_prompt_added_at_the_end_leaves_every_full_batch_as_it_was(
    prompts: list[str], size: int
) -> None:
    before = groups(generation_cases(prompts, ADAPTERS), size)
    after = groups(generation_cases([*prompts, "one more, longer than any"], ADAPTERS), size)
    full = [group for group in before if len(group.rows) == size]
    assert after[: len(full)] == full
    for old, new in zip(full, after, strict=False):
        assert [old.composition(i) for i in range(size)] == [
            new.composition(i) for i in range(size)
        ]


@given(PROMPTS, SIZES)
def test_batches_are_whole_and_hold_every_case_once_in_order(prompts: list[str], size: int) -> None:
    cases = generation_cases(prompts, ADAPTERS)
    cut = groups(cases, size)
    assert [case for group in cut for case in group.rows] == cases
    assert all(len(group.filled) == size for group in cut)


def test_the_last_batch_is_filled_with_copies_of_its_own_last_row() -> None:
    last = groups(generation_cases(["a", "b"], ["wizard"]), 3)[-1]
    (row,) = last.rows
    assert last.filled == (row, row, row)
    assert last.composition(0).rows == (row.key,) * 3


def test_the_composition_tells_rows_order_and_place() -> None:
    a, b = generation_cases(["a", "b"], [])
    one, other = Group((a, b), 2), Group((b, a), 2)
    assert one.composition(0).digest == one.composition(1).digest
    assert one.composition(0) != one.composition(1)
    assert one.composition(0).digest != other.composition(0).digest
    assert one.reversed() == other


def test_a_reversed_filled_batch_keeps_its_copies() -> None:
    a, b = generation_cases(["a", "b"], [])
    assert Group((a, b), 3).reversed().filled == (b, b, a)


def test_adapter_names_that_would_share_a_file_are_refused() -> None:
    """C28"""
    with pytest.raises(ConfigError):
        generation_cases(["a"], ["base"])
    cases = generation_cases(["a"], ["Wizard", "wizard", "a*b", "a/b", "straße", "STRASSE"])
    assert len({case.key.casefold() for case in cases}) == len(cases)


def test_selecting_is_by_glob_and_everything_without_one() -> None:
    keys = ["base/a", "base/b", "wizard/a"]
    assert select(keys, []) == keys
    assert select(keys, ["*/a"]) == ["base/a", "wizard/a"]
    assert select(keys, ["base/b", "wizard/*"]) == ["base/b", "wizard/a"]
    assert select(keys, ["Base/*"]) == []


# ------------------------------------------------------------------------ prompts


def written(tmp_path: Path, data: str | bytes) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_prompts_are_read_in_file_order(tmp_path: Path) -> None:
    lines = '{"prompt": "b"}\n\n{"prompt": "a\\nb"}\n  \n{"prompt": "从前"}'
    assert read_prompts(written(tmp_path, lines)) == ["b", "a\nb", "从前"]


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_line_endings_and_a_byte_order_mark_are_no_part_of_a_prompt(
    tmp_path: Path, ending: str
) -> None:
    """C26"""
    path = written(tmp_path, b"\xef\xbb\xbf" + f'{{"prompt": "a"}}{ending}'.encode())
    assert read_prompts(path) == ["a"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "not a prompt"),
        ('"text"', "not a prompt"),
        ('{"prompt": "a", "x": 1}', "not a prompt"),
        ('{"text": "a"}', "not a prompt"),
        ('{"prompt": ""}', "empty prompt"),
        ('{"prompt": 3}', "empty prompt"),
        ('{"prompt": null}', "empty prompt"),
        ('{"prompt": "ok"}', "stands twice"),
        ('{"prompt": "\\ud800"}', "not Unicode"),
        ("[" * 100_000, "not JSON"),
        ("9" * 5000, "not JSON"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = written(tmp_path, '{"prompt": "ok"}\n' + line + "\n")
    with pytest.raises(ConfigError, match=said) as error:
        read_prompts(path)
    assert error.value.where == f"{path}:2"
    assert error.value.expected


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xff\xfe"])
def test_a_file_without_prompts_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ConfigError) as error:
        read_prompts(written(tmp_path, data))
    assert "prompts.jsonl" in str(error.value.where)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_prompts(tmp_path / "nowhere.jsonl")
