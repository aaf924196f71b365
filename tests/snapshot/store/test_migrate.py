from __future__ import annotations

import pytest

from snapshot.errors import DamagedGolden, NewerSchema
from snapshot.model import Json
from snapshot.store import migrate
from snapshot.store.migrate import Format


def _two(record: dict[str, Json]) -> dict[str, Json]:
    return {**record, "text": record["txt"]}


def _three(record: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in record.items() if name != "txt"}


FORM = Format("fake", current=3, steps={1: _two, 2: _three})


def test_an_older_record_is_migrated_step_by_step_and_left_as_it_was() -> None:
    record = {"schema": 1, "txt": "x"}
    assert migrate.migrate(record, FORM, "x.json") == {"schema": 3, "text": "x"}
    assert record == {"schema": 1, "txt": "x"}
    assert migrate.migrate({"schema": 2, "text": "x", "txt": "x"}, FORM, "x.json")["schema"] == 3


def test_a_current_record_is_unchanged() -> None:
    record = {"schema": 3, "text": "x"}
    assert migrate.migrate(record, FORM, "x.json") is record


@pytest.mark.parametrize("form", [migrate.GOLDEN, migrate.FINGERPRINT])
def test_there_is_a_step_from_every_older_schema(form: Format) -> None:
    assert sorted(form.steps) == list(range(1, form.current))


@pytest.mark.parametrize("place", ["recorded_by", "provenance"])
def test_a_newer_schema_is_refused_naming_the_version_needed(place: str) -> None:
    record = {"schema": 4, place: {"goldens": "2.5.0"}}
    with pytest.raises(NewerSchema) as error:
        migrate.version(record, FORM, "x.json")
    assert "pip install 'goldens>=2.5.0'" in str(error.value)
    assert error.value.where == "x.json"


@pytest.mark.parametrize("versions", [None, {}, {"goldens": "1; rm -rf ~"}, {"goldens": 2}, []])
def test_a_newer_schema_by_an_unknown_version_asks_for_the_latest(versions: Json) -> None:
    with pytest.raises(NewerSchema, match="pip install -U goldens"):
        migrate.version({"schema": 9, "recorded_by": versions}, FORM, "x.json")


@pytest.mark.parametrize("record", [{}, {"schema": "1"}, {"schema": 0}, {"schema": True}, [], None])
def test_a_record_without_a_schema_number_is_damaged(record: Json) -> None:
    with pytest.raises(DamagedGolden, match="schema"):
        migrate.version(record, FORM, "x.json")
