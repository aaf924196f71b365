"""Outputs that an engine's harness wrote down: what is read, and what every mistake says."""

from __future__ import annotations

import io
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.errors import RunError, UsageError
from snapshot.model import Observation
from snapshot.runners.engines.file import read_outputs
from snapshot.store.schemas import validator

KEYS = ["base/a-11111111", "wizard/a-11111111"]
KEY = KEYS[0]


def read(tmp_path: Path, *lines: Any) -> Any:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    path = tmp_path / "outputs.jsonl"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return read_outputs(path, KEYS)


def test_a_text_is_enough(tmp_path: Path) -> None:
    row = read(tmp_path, {"case": KEY, "text": "hei på deg\r\n"})[KEY]
    assert row.output.text == "hei på deg\r\n"
    assert (row.output.token_ids, row.output.finish_reason, row.output.prompt_ids) == (None,) * 3
    assert not row.arrays and row.workload is None and row.composition is None


def test_everything_that_can_be_told_arrives(tmp_path: Path) -> None:
    entry = {
        "case": KEY,
        "text": "hi",
        "token_ids": [3, 4],
        "finish_reason": "stop",
        "prompt_ids": [1, 2, 9],
        "logprobs": [-0.5, -1],
        "prompt_logprobs": [-2.0, -3.0],
        "top_logprobs": [[[3, -0.5], [7, -1.5]], [[4, -1], [3, -2]]],
    }
    row = read(tmp_path, entry)[KEY]
    assert (row.output.token_ids, row.output.finish_reason) == ((3, 4), "stop")
    assert row.output.prompt_ids == (1, 2, 9)
    assert row.arrays["logprobs"].tolist() == [-0.5, -1.0]
    assert row.arrays["prompt_logprobs"].dtype == np.float32
    assert row.arrays["topk_ids"].tolist() == [[3, 7], [4, 3]]
    assert row.arrays["topk_logprobs"].tolist() == [[-0.5, -1.5], [-1.0, -2.0]]


def test_null_means_not_told(tmp_path: Path) -> None:
    nothing = dict.fromkeys(
        ("error", "finish_reason", "logprobs", "prompt_ids", "token_ids", "top_logprobs")
    )
    row = read(tmp_path, {"case": KEY, "text": "x", **nothing})[KEY]
    assert isinstance(row, Observation) and not row.arrays


def test_the_published_schema_and_the_reader_agree(tmp_path: Path) -> None:
    schema = validator("outputs.v1")
    lines = [
        {"case": KEY, "text": "x", "token_ids": [1], "logprobs": None},
        {"case": KEY, "error": "out of memory"},
        {"case": KEY},
        {"case": KEY, "text": "x", "token_ids": [-1]},
        {"case": KEY, "text": "x", "finish_reason": "tool_calls"},
        {"case": KEY, "text": "x", "tokens": [1]},
        {"text": "x"},
    ]
    for line in lines:
        try:
            read(tmp_path, line)
        except UsageError:
            assert not schema.is_valid(line), line
        else:
            assert schema.is_valid(line), line


def test_an_empty_generation_has_empty_lists(tmp_path: Path) -> None:
    entry = {"case": KEY, "text": "", "token_ids": [], "logprobs": [], "top_logprobs": []}
    row = read(tmp_path, entry)[KEY]
    assert row.output.token_ids == ()
    assert row.arrays["topk_ids"].shape == (0, 0)


def test_blank_lines_crlf_and_a_byte_order_mark_do_not_matter(tmp_path: Path) -> None:
    """C26"""
    path = tmp_path / "o.jsonl"
    lines = (json.dumps({"case": key, "text": "x"}) for key in KEYS)
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n\r\n".join(lines).encode() + b"\r\n")
    assert list(read_outputs(path, KEYS)) == KEYS


def test_standard_input_is_read_for_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    data = io.BytesIO(json.dumps({"case": KEY, "text": "x"}).encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(data))
    assert list(read_outputs(Path("-"), KEYS)) == [KEY]


@pytest.mark.parametrize("error", ["CUDA out of memory", {"code": 500}, 3])
def test_an_engine_s_own_error_is_that_case_s(tmp_path: Path, error: Any) -> None:
    found = read(tmp_path, {"case": KEY, "error": error}, {"case": KEYS[1], "text": "x"})
    assert isinstance(found[KEY], RunError)
    assert str(found[KEY]).startswith("the engine reported: ")
    assert isinstance(found[KEYS[1]], Observation)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300])
def test_what_is_not_finite_is_read_for_the_verdict_to_find(tmp_path: Path, value: float) -> None:
    """C23"""
    row = read(tmp_path, {"case": KEY, "text": "x", "logprobs": [value]})[KEY]
    assert not np.isfinite(row.arrays["logprobs"]).any()


GOOD = {"case": KEY, "text": "hi", "token_ids": [3, 4], "prompt_ids": [1, 2]}
TOP = [[[3, -0.5], [7, -1.5]], [[4, -1], [3, -2]]]

MALFORMED: list[tuple[Any, str]] = [
    ("{", "not JSON"),
    ("text", "not JSON"),
    ("[" * 100_000, "not JSON"),
    ('{"case": ' + "9" * 5000 + "}", "not JSON"),
    (f'{{"case": "{KEY}", "text": "a", "text": "b"}}', "stands twice"),
    ("[1]", "not an output"),
    ("null", "not an output"),
    ({"text": "x"}, "not an output"),
    ({"case": 3, "text": "x"}, "not an output"),
    ({"case": "base/b", "text": "x"}, "no such case"),
    ({"case": "", "text": "x"}, "no such case"),
    ({**GOOD, "tokens": [1]}, "unknown key"),
    ({"case": KEY}, "no text"),
    ({**GOOD, "text": 3}, "no text"),
    ({**GOOD, "text": ["x"]}, "no text"),
    (f'{{"case": "{KEY}", "text": "\\ud800"}}', "not Unicode"),
    ({**GOOD, "finish_reason": "eos"}, "unknown finish reason"),
    ({**GOOD, "finish_reason": []}, "unknown finish reason"),
    ({**GOOD, "token_ids": "3 4"}, "token_ids is not a list"),
    ({**GOOD, "token_ids": [1.0]}, "token_ids is not a list"),
    ({**GOOD, "token_ids": [True]}, "token_ids is not a list"),
    ({**GOOD, "token_ids": [-1]}, "token_ids is not a list"),
    ({**GOOD, "token_ids": [2**31]}, "token_ids is not a list"),
    ({**GOOD, "prompt_ids": {"a": 1}}, "prompt_ids is not a list"),
    ({**GOOD, "logprobs": [-1]}, "logprobs: expected 2 entries, got 1"),
    ({**GOOD, "logprobs": -1}, "logprobs is not a list"),
    ({**GOOD, "logprobs": [None, -1]}, "logprobs is not a list"),
    ({**GOOD, "logprobs": [True, -1]}, "logprobs is not a list"),
    ({**GOOD, "logprobs": ["-1", "-1"]}, "logprobs is not a list"),
    ({**GOOD, "logprobs": [[-1], [-1]]}, "logprobs is not a list"),
    ({**GOOD, "logprobs": [10**400, -1]}, "logprobs is not a list"),
    ({**GOOD, "prompt_logprobs": [-1, -2]}, "prompt_logprobs: expected 1 entries, got 2"),
    ({**GOOD, "top_logprobs": TOP[:1]}, "topk_ids: expected 2 entries, got 1"),
    ({**GOOD, "top_logprobs": [TOP[0], TOP[1][:1]]}, "malformed top_logprobs"),
    ({**GOOD, "top_logprobs": 3}, "malformed top_logprobs"),
    ({**GOOD, "top_logprobs": [[3, -0.5], [4, -1]]}, "malformed top_logprobs"),
    ({**GOOD, "top_logprobs": [[[3, -0.5, "hi"]], [[4, -1, "x"]]]}, "malformed top_logprobs"),
    ({**GOOD, "top_logprobs": [[[3.5, -0.5]], [[4, -1]]]}, "malformed top_logprobs"),
    ({**GOOD, "top_logprobs": [[[math.nan, -0.5]], [[4, -1]]]}, "malformed top_logprobs"),
    ({**GOOD, "top_logprobs": [[[3, None]], [[4, -1]]]}, "malformed top_logprobs"),
    ({**GOOD, "top_logprobs": [[[3, -1], [3, -9]], [[4, -1], [5, -2]]]}, "malformed top_logprobs"),
    ({**GOOD, "top_logprobs": [{"3": -0.5}, {"4": -1}]}, "malformed top_logprobs"),
]


@pytest.mark.parametrize(("line", "said"), MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_line_is_refused_by_file_and_line(tmp_path: Path, line: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        read(tmp_path, {"case": KEYS[1], "text": "fine"}, line)
    assert error.value.where == f"{tmp_path}/outputs.jsonl:2"
    assert error.value.exit_code == 2
    assert len(str(error.value)) < 1000
    assert str(error.value).isascii()


def test_an_unknown_case_gets_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path, {"case": "base/a-1111111", "text": "x"})
    assert error.value.expected == f"{KEY}?"


def test_a_case_stands_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="stands twice") as error:
        read(tmp_path, GOOD, "", GOOD)
    assert str(error.value.where).endswith(":3")


@pytest.mark.parametrize("data", [b"\xff\xfe{}", b"\x80"])
def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "o.jsonl"
    path.write_bytes(data)
    with pytest.raises(UsageError, match="cannot be read"):
        read_outputs(path, KEYS)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_outputs(tmp_path / "nowhere", KEYS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    ["text", "token_ids", "prompt_ids", "logprobs", "prompt_logprobs", "top_logprobs", "error"]
)


@given(st.dictionaries(FIELDS, JSON, max_size=4))
def test_any_json_is_read_or_refused_and_never_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_text(json.dumps({"text": "x", **fields, "case": KEY}), encoding="utf-8")
    try:
        read_outputs(path, KEYS)
    except UsageError as error:
        assert str(error.where).startswith(str(path))


def test_ten_thousand_cases_take_a_moment(tmp_path: Path) -> None:
    keys = [f"base/a-{i:08x}" for i in range(10_000)]
    path = tmp_path / "o.jsonl"
    path.write_text(
        "".join(f'{{"case": "{key}", "text": "x"}}\n' for key in keys), encoding="utf-8"
    )
    start = time.process_time()
    assert len(read_outputs(path, keys)) == 10_000
    assert time.process_time() - start < 3
