from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.errors import DamagedGolden
from snapshot.model import Json
from snapshot.store import canonical

HIDDEN = (
    "\x00\x1b\x7f\x85\xad\u061c\u200b\u200d\u200e\u2028\u2029\u202e\u2066\ufeff\ud83d\U000e0041"
)
TEXTS = st.text(
    st.one_of(
        st.sampled_from('\r\n\t"\\/ é日\U0001f999' + HIDDEN),
        st.characters(codec=None, exclude_categories=()),
    ),
    max_size=20,
).filter(lambda text: text == json.loads(json.dumps(text)))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_any_json_round_trips_through_one_form(value: Json) -> None:
    data = canonical.dumps(value)
    back = canonical.loads(data, "x.json")
    assert back == value
    assert repr(back) == repr(json.loads(json.dumps(value, sort_keys=True))) or type(value) is dict
    assert canonical.dumps(back) == data
    assert data.endswith(b"\n") and b"\r" not in data


@given(JSON)
def test_only_lists_of_numbers_differ_from_pythons_own_indented_form(value: Json) -> None:
    text = canonical.dumps(value).decode()
    plain = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False)
    assert json.loads(text) == json.loads(plain)
    if "[" not in plain and canonical._HIDDEN.search(plain) is None:
        assert text == plain + "\n"


def test_what_a_reviewer_sees() -> None:
    value = {"b": [1, 2.5], "a": "blåbær 日本 \U0001f999\u202e\u200b\r\n", "c": {"z": [], "y": {}}}
    assert canonical.dumps(value).decode() == (
        '{\n  "a": "blåbær 日本 \U0001f999\\u202e\\u200b\\r\\n",\n  "b": [1, 2.5],\n'
        '  "c": {\n    "y": {},\n    "z": []\n  }\n}\n'
    )


@pytest.mark.parametrize("character", HIDDEN)
def test_characters_that_nobody_sees_are_escaped(character: str) -> None:
    data = canonical.dumps({"text": f"a{character}b"})
    assert data.isascii()
    assert canonical.loads(data, "x.json") == {"text": f"a{character}b"}


def test_floats_of_numpy_take_the_form_they_are_read_back_in() -> None:
    data = canonical.dumps([np.float64(0.5), 1])
    assert data == b"[0.5, 1]\n"
    canonical.loads(data, "x.json")


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": -float("inf")}])
def test_what_is_not_json_is_not_written(value: Json) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        canonical.dumps(value)


@pytest.mark.parametrize("value", [b"x", {1: 2}, {"a": object()}, np.float32(1)])
def test_other_types_are_not_written(value: Json) -> None:
    with pytest.raises(TypeError):
        canonical.dumps(value)


def test_two_lone_surrogates_that_would_read_back_as_one_character_are_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        canonical.dumps("\ud83d\ude00")
    assert canonical.loads(canonical.dumps("\ude00\ud83d"), "x") == "\ude00\ud83d"


def test_a_whole_file_in_crlf_is_no_difference() -> None:
    """C26 (a)"""
    data = canonical.dumps({"text": "foo\r\nbar", "more": [1, 2]})
    assert canonical.loads(data.replace(b"\n", b"\r\n"), "x.json")["text"] == "foo\r\nbar"


@pytest.mark.parametrize("text", ["foo\r\nbar", "foo\rbar", "foo\nbar", "\r", "\n"])
def test_line_ends_inside_a_text_round_trip_exactly(text: str) -> None:
    """C26 (b) and (c)"""
    data = canonical.dumps({"text": text})
    assert canonical.loads(data, "x.json") == {"text": text}
    assert canonical.digest({"text": "foo\nbar"}) != canonical.digest({"text": "foo\r\nbar"})


def test_a_missing_final_newline_is_no_difference() -> None:
    """C26 (d)"""
    data = canonical.dumps({"a": 1, "b": 2})
    assert canonical.loads(data[:-1], "x.json") == {"a": 1, "b": 2}
    assert canonical.loads(data.replace(b"\n", b"\r\n")[:-2], "x.json") == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("data", "line", "says"),
    [
        (b'{\n  "a": 1,\n  "a": 2\n}\n', 2, "twice"),
        (b'{\n  "a": NaN\n}\n', 2, "NaN"),
        (b'{\n  "a": [1,\n    -Infinity]\n}\n', 3, "Infinity"),
        (b'{\n  "a": 1e999\n}\n', None, "inf"),
        (b'{\n  "a": 1,\n}\n', 3, "not JSON"),
        (b'{\n  "b": 1,\n  "a": 2\n}\n', 2, "not canonical"),
        (b'{\n  "a": 1.0e0\n}\n', 2, "not canonical"),
        (b'{"a": 1}\n', 1, "not canonical"),
        (b'{\r\n  "a": 1,\n  "b": 2\r\n}\r\n', 1, "not canonical"),
        (b'{\n  "a": 1\n}\n\n', 5, "not canonical"),
        (b'{\n  "a": "\\u0041"\n}\n', 2, "not canonical"),
        (b'{\n  "a": "\xe2\x80\xae"\n}\n', 2, "not canonical"),
        (b'{\n  "a": "\xff"\n}\n', 2, "UTF-8"),
        (b'\xef\xbb\xbf{\n  "a": 1\n}\n', 1, "not JSON"),
        (b'{\n<<<<<<< ours\n  "a": 1\n=======\n  "a": 2\n>>>>>>> theirs\n}\n', 2, "merge"),
        (b'{\n  "a": 1,\n||||||| 1a2b3c4\n', 3, "merge"),
        (b"", 2, "not JSON"),
        (b"[" * 100_000, None, "nested"),
        (b"1" * 10_000, None, "not JSON"),
    ],
)
def test_everything_else_is_refused_naming_file_and_line(
    data: bytes, line: int | None, says: str
) -> None:
    with pytest.raises(DamagedGolden) as error:
        canonical.loads(data, "goldens/x.json")
    assert says in str(error.value)
    assert error.value.where == ("goldens/x.json" if line is None else f"goldens/x.json:{line}")
    assert "git checkout -- goldens/x.json" in str(error.value)


def test_depth_and_size_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    value: Json = 1
    for _ in range(canonical.MAX_DEPTH):
        value = {"a": value}
    assert canonical.loads(canonical.dumps(value), "x.json") == value
    with pytest.raises(ValueError, match="deeper"):
        canonical.dumps({"a": value})
    deeper = json.dumps({"a": value}, indent=2).encode() + b"\n"
    with pytest.raises(DamagedGolden, match="canonical"):
        canonical.loads(deeper, "x.json")
    monkeypatch.setattr(canonical, "MAX_BYTES", 8)
    with pytest.raises(DamagedGolden, match="too large"):
        canonical.loads(b"[1, 2, 3]\n", "x.json")


@given(st.dictionaries(TEXTS, JSON, max_size=5))
def test_a_signed_record_is_accepted_and_its_digest_leaves_itself_out(value: Json) -> None:
    record = canonical.sign({"z": 1} | value)
    assert record["digest"] == canonical.digest(record)
    text, parsed = canonical.parse(canonical.dumps(record), "x.json")
    assert canonical.check_signed(text, parsed, "x.json") == record


@pytest.mark.parametrize("value", [[], "x", {}, {"a": 1}, {"digest": 1}, {"digest": "sha256:0"}])
def test_a_record_without_its_right_digest_is_refused(value: Json) -> None:
    text, parsed = canonical.parse(canonical.dumps(value), "x.json")
    with pytest.raises(DamagedGolden, match="digest"):
        canonical.check_signed(text, parsed, "x.json")
