"""Exact types for parsed JSON: what is not just as the schema says is a damaged file.

Written by hand because reading is the hot path: jsonschema takes 7.5 us for an integer.
`at` is always the JSON path of the value, ``$.output.text``.
"""

from __future__ import annotations

import re
from typing import Never

from snapshot.errors import DamagedGolden
from snapshot.model import Json
from snapshot.names import is_safe_component
from snapshot.store.canonical import restore_hint

MAX_TOKEN_ID = 2**31 - 1  # as in the int32 arrays
MAX_KEY_PARTS = 4

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def fields(value: Json, names: frozenset[str], at: str, where: str) -> dict[str, Json]:
    """An object with exactly these keys."""
    if type(value) is not dict:
        refuse(where, at, "an object", value)
    if value.keys() != names:
        missing, unknown = sorted(names - value.keys()), sorted(value.keys() - names)
        problems = [f"{n!r} missing" for n in missing] + [f"{n!r} unknown" for n in unknown]
        refuse(where, at, f"the fields {', '.join(sorted(names))}", ", ".join(problems), False)
    return value


def text(value: Json, at: str, where: str) -> str:
    """A string, whatever it holds."""
    if type(value) is not str:
        refuse(where, at, "a string", value)
    return value


def one_of(value: Json, allowed: tuple[str | None, ...], at: str, where: str) -> Json:
    """One of a few strings, or null where None is among them."""
    if (value is not None and type(value) is not str) or value not in allowed:
        refuse(where, at, " or ".join("null" if a is None else repr(a) for a in allowed), value)
    return value


def component(value: Json, at: str, where: str) -> str:
    """A string that is one safe folder name (see `snapshot.names.is_safe_component`)."""
    if not is_safe_component(text(value, at, where)):
        refuse(where, at, "a name of letters, digits, '.', '_' and '-'", value)
    return str(value)


def key(value: Json, at: str, where: str) -> str:
    """A case key: one to four safe names joined by ``/``."""
    parts = text(value, at, where).split("/")
    if len(parts) > MAX_KEY_PARTS or not all(map(is_safe_component, parts)):
        refuse(where, at, f"up to {MAX_KEY_PARTS} safe names joined by '/'", value)
    return str(value)


def integer(value: Json, at: str, where: str, low: int, high: int) -> int:
    """An integer from `low` to `high`; neither true nor 1.0 is one."""
    if type(value) is not int or not low <= value <= high:
        refuse(where, at, f"an integer from {low} to {high}", value)
    return value


def token_ids(value: Json, at: str, where: str) -> tuple[int, ...] | None:
    """A list of token ids, or null."""
    if value is None:
        return None
    if type(value) is not list:
        refuse(where, at, "a list of token ids or null", value)
    # Whole-list tests first: they run in C.
    if value and (set(map(type, value)) != {int} or min(value) < 0 or max(value) > MAX_TOKEN_ID):
        for index, item in enumerate(value):
            integer(item, f"{at}[{index}]", where, 0, MAX_TOKEN_ID)
    return tuple(value)


def digest(value: Json, at: str, where: str) -> str:
    """``sha256:`` and 64 hex digits."""
    if type(value) is not str or _DIGEST.fullmatch(value) is None:
        refuse(where, at, "sha256: and 64 hex digits", value)
    return value


def texts(value: Json, at: str, where: str) -> dict[str, str]:
    """An object whose values are strings."""
    if type(value) is not dict:
        refuse(where, at, "an object", value)
    for name, member in value.items():
        if type(member) is not str:
            refuse(where, f"{at}.{name}", "a string", member)
    return value


def refuse(where: str, at: str, expected: str, got: Json, quote: bool = True) -> Never:
    """Raise `DamagedGolden` for the value at the JSON path `at` of the file `where`."""
    shown = ascii(got) if quote else str(got)
    raise DamagedGolden(
        f"the file does not follow its schema at {at}",
        where=where,
        expected=expected,
        got=shown if len(shown) <= 200 else shown[:197] + "...",
        hint=restore_hint(where),
    )
