from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import snapshot
from snapshot.store import schemas


@pytest.mark.parametrize("name", ["golden.v1", "fingerprint.v1"])
def test_a_published_schema_is_valid_and_described(name: str) -> None:
    schema = json.loads(schemas.path(name).read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    assert schema["title"] and schema["description"]
    for field in schema["properties"].values():
        assert "title" in field


def test_schemas_are_found_in_a_wheel_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "snapshot"
    (package / "schema").mkdir(parents=True)
    monkeypatch.setattr(snapshot, "__file__", str(package / "__init__.py"))
    with pytest.raises(FileNotFoundError, match="part of goldens"):
        schemas.path("golden.v1")
    (package / "schema" / "golden.v1.json").write_text("{}")
    assert schemas.path("golden.v1") == package / "schema" / "golden.v1.json"


def test_reading_imports_neither_jsonschema_nor_torch() -> None:
    code = "import sys, snapshot.store; print({'jsonschema', 'torch'} & set(sys.modules))"
    root = Path(snapshot.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
