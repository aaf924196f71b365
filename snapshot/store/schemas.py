"""The published JSON Schemas, found in a wheel and in an editable checkout alike."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

import snapshot
from snapshot.model import Json
from snapshot.store.migrate import Format

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def path(name: str) -> Path:
    """The file of a published schema (``golden.v1``).

    Raises:
        FileNotFoundError: the installation is incomplete.
    """
    package = Path(snapshot.__file__).parent
    # A wheel carries them inside the package; a checkout keeps them beside it.
    for folder in (package / "schema", package.parent / "schema"):
        if (file := folder / f"{name}.json").is_file():
            return file
    raise FileNotFoundError(f"{name}.json is part of goldens and was not found beside {package}")


@cache
def validator(name: str) -> Draft202012Validator:
    """The compiled validator of a published schema (``golden.v1``)."""
    from jsonschema import Draft202012Validator, validators  # 0.1 s, and reading needs it never

    schema = json.loads(path(name).read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    # JSON Schema takes 1.0 for an integer; range() and Python's strict readers do not.
    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, x: type(x) is int)
    strict = validators.extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, type_checker=types
    )
    return cast("Draft202012Validator", strict(schema))


def problem(record: Json, form: Format) -> tuple[str, str] | None:
    """Where and how a record of the current version breaks its schema; None where it does not.

    Returns:
        The JSON path of the first problem, and one sentence.
    """
    errors = validator(f"{form.name}.v{form.current}").iter_errors(record)
    first = min(errors, key=lambda error: error.json_path, default=None)
    return None if first is None else (first.json_path, f"{first.message:.300}")
