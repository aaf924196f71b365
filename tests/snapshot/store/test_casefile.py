from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot.errors import DamagedGolden, StoreError
from snapshot.model import Generated, Golden, Json, RecordedFingerprint
from snapshot.store import casefile, fingerprintfile, migrate, schemas

BLOB = "0123456789abcdef" * 4
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2**31)
    | st.floats(allow_nan=False)
    | st.text(max_size=4)
    | st.sampled_from(["stop", "length", "base/x", "a/b/c/d/e", "con", "sha256:" + "0" * 64, BLOB])
)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=3), SCALARS)


def _places(value: Json, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    members = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [at, *(place for key, member in members for place in _places(member, (*at, key)))]


def _mutate(data: st.DataObject, record: dict[str, Json]) -> dict[str, Json]:
    """The record with one value replaced, removed or added."""
    mutant = copy.deepcopy(record)
    *above, last = data.draw(st.sampled_from(_places(mutant)[1:]))
    parent: Json = mutant
    for key in above:
        parent = parent[key]
    action = data.draw(st.sampled_from(["replace", "remove", "add"]))
    if action == "remove":
        del parent[last]
    elif action == "replace" or isinstance(parent, list):
        parent[last] = data.draw(VALUES)
    else:
        parent[data.draw(st.text(max_size=4))] = data.draw(VALUES)
    return mutant


def _golden_record(make_golden: Callable[..., Golden]) -> dict[str, Json]:
    return casefile.encode(make_golden(), {"logprobs": BLOB})


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_what_the_decoder_of_goldens_accepts_the_published_schema_accepts(
    make_golden: Callable[..., Golden], data: st.DataObject
) -> None:
    mutant = _mutate(data, _golden_record(make_golden))
    try:
        casefile.decode(mutant, "x.json", lambda digests: {})
    except DamagedGolden:
        return
    assert schemas.problem(mutant, migrate.GOLDEN) is None


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_what_the_decoder_of_fingerprints_accepts_the_published_schema_accepts(
    recorded: RecordedFingerprint, data: st.DataObject
) -> None:
    mutant = _mutate(data, fingerprintfile.encode(recorded))
    try:
        fingerprintfile.decode(mutant, "x.json")
    except DamagedGolden:
        return
    assert schemas.problem(mutant, migrate.FINGERPRINT) is None


def test_a_golden_comes_back_as_it_was(make_golden: Callable[..., Golden]) -> None:
    golden = make_golden()
    record = _golden_record(make_golden)
    assert schemas.problem(record, migrate.GOLDEN) is None
    back = casefile.decode(record, "x.json", lambda digests: golden.observation.arrays)
    assert back == golden
    assert record["arrays"] == {"logprobs": BLOB}


def test_what_a_subject_cannot_tell_is_null(make_golden: Callable[..., Golden]) -> None:
    output = Generated("", None, None, "Why?", None)
    golden = make_golden(output=output, workload=None, composition=None, arrays={})
    record = casefile.encode(golden, {})
    assert schemas.problem(record, migrate.GOLDEN) is None
    assert record["workload_digest"] is None
    assert casefile.decode(record, "x.json", lambda digests: {}) == golden


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kind", "other"),
        ("kind", []),
        ("schema", True),
        ("schema", 1.0),
        ("digest", "sha256:0"),
        ("suite", "../x"),
        ("fingerprint", "a/b"),
        ("subject", "con"),
        ("case", "/base/x"),
        ("case", "base//x"),
        ("case", "a/b/c/d/e"),
        ("arrays", {"Logprobs": BLOB}),
        ("arrays", {"logprobs": BLOB.upper()}),
        ("arrays", {f"a{index}": BLOB for index in range(65)}),
        ("recorded_by", {"goldens": 1}),
        ("workload", {"model": "another"}),
        ("workload", None),
        ("workload_digest", None),
        ("composition", []),
        ("composition.row", 3),
        ("composition.row", -1),
        ("composition.rows", []),
        ("composition.rows", ["..", "x", "y"]),
        ("input.prompt", None),
        ("input.prompt_ids", [1, -1]),
        ("output.token_ids", [1, True]),
        ("output.token_ids", [1.0]),
        ("output.token_ids", [2**31]),
        ("output.token_ids", "12"),
        ("output.finish_reason", "eos"),
        ("output.text", 1),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_naming_file_and_path(
    make_golden: Callable[..., Golden], path: str, value: Json
) -> None:
    record: Json = _golden_record(make_golden)
    *above, last = path.split(".")
    parent = record
    for key in above:
        parent = parent[key]
    parent[last] = value
    with pytest.raises(DamagedGolden) as error:
        casefile.decode(record, "goldens/x.json", lambda digests: {})
    assert error.value.where == "goldens/x.json"
    assert f"$.{path.split('.')[0]}" in error.value.what


def test_missing_and_unknown_fields_are_named(make_golden: Callable[..., Golden]) -> None:
    record = _golden_record(make_golden)
    record["output"]["txet"] = record["output"].pop("text")
    with pytest.raises(DamagedGolden, match=r"'text' missing, 'txet' unknown"):
        casefile.decode(record, "x.json", lambda digests: {})


def test_what_json_cannot_hold_is_not_recorded(make_golden: Callable[..., Golden]) -> None:
    with pytest.raises(StoreError, match="surrogates"):
        casefile.encode(make_golden(text="\ud83d\ude00"), {})


def test_an_output_of_no_known_kind_is_not_recorded(make_golden: Callable[..., Golden]) -> None:
    with pytest.raises(StoreError, match="Generated"):
        casefile.encode(make_golden(output="text"), {})


def test_another_kind_is_one_entry(
    make_golden: Callable[..., Golden], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = casefile.Kind(
        str,
        lambda output: {"input": {}, "output": {"bits": output}},
        lambda record, where: record["output"]["bits"],
    )
    monkeypatch.setitem(casefile.KINDS, "grouped-decode", kind)
    golden = make_golden(output="bits", arrays={})
    record = casefile.encode(golden, {})
    assert record["kind"] == "grouped-decode"
    assert casefile.decode(record, "x.json", lambda digests: {}) == golden


def test_a_fingerprint_comes_back_as_it_was(recorded: RecordedFingerprint) -> None:
    record = fingerprintfile.encode(recorded)
    assert schemas.problem(record, migrate.FINGERPRINT) is None
    assert fingerprintfile.decode(record, "x.json") == recorded


def test_a_fingerprint_whose_slug_is_not_its_identitys_is_refused(
    recorded: RecordedFingerprint,
) -> None:
    record = fingerprintfile.encode(recorded)
    record["identity"]["torch"] = "2.12"
    with pytest.raises(DamagedGolden, match=r"\$\.slug"):
        fingerprintfile.decode(record, "x.json")


def test_provenance_that_json_cannot_hold_is_not_recorded(recorded: RecordedFingerprint) -> None:
    for calibration in ({"rms": float("nan")}, {"rms": object()}):
        with pytest.raises(StoreError, match="cannot be written as JSON"):
            fingerprintfile.encode(dataclasses.replace(recorded, calibration=calibration))
