"""A signed JSON record on disk: read whole and checked, or written only where it says more."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from snapshot.errors import StoreError
from snapshot.model import Json
from snapshot.store import canonical, files, migrate, schemas
from snapshot.store.migrate import Format

Record: TypeAlias = dict[str, Json]

_NOT_CONTENT = ("digest", "recorded_by", "schema")


def read(path: Path, form: Format, take: files.Read = files.read_bounded) -> Record:
    """The record in a file, canonical, its digest right, migrated to the current schema.

    Raises:
        FileNotFoundError: nothing is there.
        DamagedGolden, NewerSchema, StoreError: it cannot be trusted, understood, or read.
    """
    where = str(path)
    text, value = canonical.parse(take(path, canonical.MAX_BYTES), where)
    # Before the canonical form: a later version of goldens may have changed that too.
    migrate.version(value, form, where)
    return migrate.migrate(canonical.check_signed(text, value, where), form, where)


def write(path: Path, record: Record, form: Format) -> None:
    """Write a signed record that follows its schema.

    Raises:
        StoreError: it does not follow the schema, is too large, or cannot be written.
    """
    problem = schemas.problem(record, form)
    if problem is not None:
        raise StoreError(
            f"what was recorded does not follow its schema at {problem[0]}",
            where=str(path),
            expected=f"schema/{form.name}.v{form.current}.json",
            got=problem[1],
        )
    data = canonical.dumps(record)
    canonical.loads(data, str(path))  # never write what could not be read
    files.write_atomic(path, data)


def same(one: Record, other: Record) -> bool:
    """Whether two records say the same; who recorded them, and in which schema, aside."""
    return _content(one) == _content(other)


def _content(record: Record) -> Record:
    return {name: value for name, value in record.items() if name not in _NOT_CONTENT}
