"""Older schemas are brought up to date in memory, by one pure function a step.

To change a format: freeze its schema file and a fixture of it, write the function from n to
n+1, add it to `steps` and raise `current`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import snapshot
from snapshot.errors import NewerSchema
from snapshot.model import Json
from snapshot.store import strict

Step = Callable[[dict[str, Json]], dict[str, Json]]


@dataclass(frozen=True)
class Format:
    """One kind of JSON file and its versions.

    Attributes:
        name: as in ``schema/<name>.v<current>.json``.
        current: the version that is written.
        steps: from version n, the function that makes n+1 of it without changing its argument.
    """

    name: str
    current: int
    steps: Mapping[int, Step] = field(default_factory=dict)


GOLDEN = Format("golden", current=1)
FINGERPRINT = Format("fingerprint", current=1)


def version(record: Json, form: Format, where: str) -> int:
    """The schema number of a parsed file.

    Raises:
        NewerSchema: it is above `form.current`; names the version of goldens that is needed.
        DamagedGolden: it has none.
    """
    number = record.get("schema") if isinstance(record, dict) else None
    number = strict.integer(number, "$.schema", where, 1, 2**31)
    if number > form.current:
        wanted = _written_by(record)
        raise NewerSchema(
            "the file was written by a later version of goldens",
            where=where,
            expected=f"{form.name} schema {form.current} or older, which is what goldens "
            f"{snapshot.__version__} reads",
            got=f"schema {number}" + (f", written by goldens {wanted}" if wanted else ""),
            hint=f"pip install 'goldens>={wanted}'" if wanted else "pip install -U goldens",
        )
    return number


def migrate(record: dict[str, Json], form: Format, where: str) -> dict[str, Json]:
    """`record` in the current version of its format; the argument is left as it is.

    Raises:
        NewerSchema, DamagedGolden: as `version`.
    """
    for step in range(version(record, form, where), form.current):
        record = {**form.steps[step](record), "schema": step + 1}
    return record


def _written_by(record: dict[str, Json]) -> str | None:
    for place in ("recorded_by", "provenance"):
        versions = record.get(place)
        tool = versions.get("goldens") if isinstance(versions, dict) else None
        # The file is not trusted: only what looks like a version gets into a command to run.
        if isinstance(tool, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)*([a-z]+[0-9]+)?", tool):
            return tool
    return None
