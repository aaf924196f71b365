"""Canonical JSON: one value, one sequence of bytes.

The form is what `json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False)` gives, plus
one final newline, with two differences that serve the reviewer: a list that holds only numbers
stands on one line, and characters that cannot be seen or that reorder a line are escaped.

It is written by hand around the C string encoder, because `indent` switches the C encoder off.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
from json.encoder import encode_basestring
from typing import NoReturn

from snapshot.errors import DamagedGolden
from snapshot.model import Json

MAX_BYTES = 16 * 1024 * 1024
"""No JSON file under goldens/ is larger: 128k prompt tokens take about 1 MiB."""

MAX_DEPTH = 32

# A fixed list, not Unicode's categories: those grow with the version of Python, and with them
# a file's canonical bytes would change.
_HIDDEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_CONFLICT = re.compile(r"^(<{7} .*|={7}|>{7} .*|\|{7} .*)$", re.MULTILINE)
_CONSTANT = re.compile(r"(?<=[\s\[,:])-?(NaN|Infinity)(?=[\s\],}])")
_DIGEST = "digest"


def dumps(value: Json) -> bytes:
    """The canonical bytes of `value`.

    Raises:
        TypeError: something in it is not JSON (only str, int, float, bool, None, list, tuple
            and dict with str keys are).
        ValueError: NaN, an infinity, two lone surrogates that would read back as one
            character, or nesting deeper than `MAX_DEPTH`.
    """
    return (_encode(value, "\n") + "\n").encode("utf-8")


def digest(value: Json) -> str:
    """``sha256:<hex>`` over the canonical bytes of `value` without its top-level "digest" key.

    Raises:
        TypeError, ValueError: as `dumps`.
    """
    if isinstance(value, dict):
        value = {name: member for name, member in value.items() if name != _DIGEST}
    return _sha256(dumps(value))


def sign(record: dict[str, Json]) -> dict[str, Json]:
    """`record` with its digest set."""
    return {**record, _DIGEST: digest(record)}


def loads(data: bytes, where: str) -> Json:
    """Parse canonical JSON and refuse everything else.

    A file in which every line ends in CRLF is what a checkout on Windows may make of one and is
    accepted; so is one without its final newline.

    Args:
        data: the file's bytes.
        where: the file's name, for messages.

    Raises:
        DamagedGolden: naming the file and, where there is one, the line.
    """
    text, value = parse(data, where)
    check_canonical(text, value, where)
    return value


def parse(data: bytes, where: str) -> tuple[str, Json]:
    """The text of a JSON file with LF line ends and a final newline, and the value it holds.

    For a caller that must look at the value (its schema's number) before it may insist on
    today's canonical form; follow with `check_canonical` or `check_signed`.

    Raises:
        DamagedGolden: too large, not UTF-8, not JSON, duplicate keys, NaN, conflict markers.
    """
    if len(data) > MAX_BYTES:
        raise _damaged("the file is too large", where, f"at most {MAX_BYTES} bytes", len(data))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _damaged("the file is not UTF-8", where, "UTF-8", error, line) from None
    if "\r\n" in text and text.count("\r\n") == text.count("\n"):
        text = text.replace("\r\n", "\n")
    if not text.endswith("\n"):
        text += "\n"
    try:
        return text, _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        _explain(text, where, error)


def check_canonical(text: str, value: Json, where: str) -> None:
    """Refuse a text (of `parse`) that is not the canonical form of its value.

    Raises:
        DamagedGolden: naming the first line that differs.
    """
    try:
        canonical = _encode(value, "\n") + "\n"
    except ValueError as error:
        raise _damaged("the file is not canonical JSON", where, "canonical JSON", error) from None
    if text == canonical:
        return
    got, expected = text.split("\n"), canonical.split("\n")
    line = _first_difference(got, expected)
    raise _damaged(
        "the file is not canonical JSON: it was edited by hand or damaged",
        where,
        _excerpt(expected, line),
        _excerpt(got, line),
        line,
    )


def check_signed(text: str, value: Json, where: str) -> dict[str, Json]:
    """As `check_canonical`, and the value is an object whose "digest" is right. Returns it.

    Raises:
        DamagedGolden: not an object, not canonical, no digest or another one.
    """
    check_canonical(text, value, where)
    record: dict[str, Json] = value if type(value) is dict else {}
    stated = record.get(_DIGEST)
    if type(stated) is not str or len(record) == 1:
        raise _damaged("the file has no digest of anything", where, "a digest and more", stated)
    # The text is canonical, so the member can be cut out instead of encoding the rest once more:
    # no string spans lines, and only top-level members are indented by just two spaces.
    start = text.index(f'\n  "{_DIGEST}": ')
    end = text.index("\n", start + 1)
    # Commas stand between members, so the last one takes the comma before it along.
    start -= text[end - 1] != "," and text[start - 1] == ","
    actual = _sha256((text[:start] + text[end:]).encode("utf-8"))
    if stated != actual:
        raise _damaged("the file's digest is wrong", where, actual, stated)
    return record


# ---------------------------------------------------------------------- encoding


def _encode(value: Json, newline: str) -> str:
    """JSON text; `newline` is a line feed and the indentation of the value's own line."""
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, dict):
        return _object(value, newline)
    if isinstance(value, (list, tuple)):
        return _list(value, newline)
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, (int, float)):
        return _number(value)
    raise TypeError(f"{type(value).__name__} is not JSON: {value!r:.80}")


def _object(value: dict[str, Json], newline: str) -> str:
    if not value:
        return "{}"
    inner = _deeper(newline)
    members = [f"{_string(name)}: {_encode(value[name], inner)}" for name in sorted(value)]
    return f"{{{inner}{f',{inner}'.join(members)}{newline}}}"


def _list(value: list[Json] | tuple[Json, ...], newline: str) -> str:
    kinds = set(map(type, value))
    # Subclasses (numpy's float64) must give the form that their value has once it is read back.
    if all(issubclass(kind, (int, float)) and kind is not bool for kind in kinds):
        texts = map(int.__repr__, value) if kinds == {int} else map(_number, value)
        return f"[{', '.join(texts)}]"
    inner = _deeper(newline)
    return f"[{inner}{f',{inner}'.join([_encode(item, inner) for item in value])}{newline}]"


def _deeper(newline: str) -> str:
    if len(newline) > 2 * MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    return newline + "  "


def _number(value: float) -> str:
    if isinstance(value, int):
        return int.__repr__(value)
    if not math.isfinite(value):
        raise ValueError(f"{value!r} is not JSON")
    return float.__repr__(value)


def _string(value: str) -> str:
    text = encode_basestring(value)
    return text if text.isascii() and "\x7f" not in text else _HIDDEN.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    before = match.string[match.start() - 1]
    if "\udc00" <= match[0] <= "\udfff" and "\ud800" <= before <= "\udbff":
        raise ValueError("two lone surrogates in a row would read back as one character")
    return json.dumps(match[0])[1:-1]


def _sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


# --------------------------------------------------------------------- diagnosis


class _Refused(ValueError):
    """Valid for Python's parser and not for us."""


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Refused(f"the key {twice!r} twice in one object")
    return value


def _constant(name: str) -> NoReturn:
    raise _Refused(f"{name}, which is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant)


def _explain(text: str, where: str, error: ValueError | RecursionError) -> NoReturn:
    marker = _CONFLICT.search(text)
    if marker is not None:
        line = text.count("\n", 0, marker.start()) + 1
        raise _damaged(
            "the file holds the conflict markers of a merge",
            where,
            "canonical JSON",
            marker[0],
            line,
        ) from None
    if isinstance(error, RecursionError):
        raise _damaged(
            "the file is nested too deeply", where, f"{MAX_DEPTH} levels", "more"
        ) from None
    position = None
    if isinstance(error, json.JSONDecodeError):
        position = error.lineno
    elif isinstance(error, _Refused):
        position = _refused_line(text)
    raise _damaged("the file is not JSON", where, "canonical JSON", error, position) from None


def _refused_line(text: str) -> int | None:
    """The line of NaN, or that at which a duplicate key makes the file differ from its value."""
    constant = _CONSTANT.search(text)
    if constant is not None:
        return text.count("\n", 0, constant.start()) + 1
    try:
        canonical = _encode(json.loads(text), "\n")
    except (ValueError, RecursionError):  # and it is no JSON further down
        return None
    return _first_difference(text.split("\n"), canonical.split("\n"))


def _first_difference(got: list[str], expected: list[str]) -> int:
    pairs = enumerate(zip(got, expected, strict=False), start=1)
    return next((n for n, (a, b) in pairs if a != b), min(len(got), len(expected)) + 1)


def _excerpt(lines: list[str], line: int) -> str:
    text = lines[line - 1] if line <= len(lines) else "end of file"
    return ascii(text if len(text) <= 120 else text[:117] + "...")


def _damaged(
    what: str, where: str, expected: object, got: object, line: int | None = None
) -> DamagedGolden:
    return DamagedGolden(
        what,
        where=where if line is None else f"{where}:{line}",
        expected=str(expected),
        got=str(got),
        hint=restore_hint(where),
    )


def restore_hint(path: str) -> str:
    """What to try with a damaged file of the store."""
    return f"git checkout -- {shlex.quote(path)} (or delete it, and `goldens record` anew)"
