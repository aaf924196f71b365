"""Text that a model wrote, made safe to print.

Model text is untrusted: a terminal escape, a bidirectional override or a lone carriage
return could show a reviewer something else than what was compared, and a line of a CI log
that holds ``##[``, or starts with ``::`` after any spaces, is a command to the CI service.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
    r"|(?<=#)#(?=\[)|(?<!\S):(?=:)"
)


def visible(text: str, length: int | None = None) -> str:
    """The text on one line: newlines and tabs as ``\\n`` and ``\\t``, other controls as codes.

    Args:
        length: characters of the text to keep; a cut is marked. None: all.
    """
    cut = "…" if length is not None and len(text) > length else ""
    text = text[:length].replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    return _UNSAFE.sub(_code, text) + cut


def count(things: Collection[object], noun: str) -> str:
    """``1 environment``, ``3 environments``"""
    return f"{len(things):,} {noun}{'s' * (len(things) != 1)}"


def visible_lines(text: object) -> str:
    """A message of several lines, such as an error that quotes a file: controls as codes."""
    return _UNSAFE.sub(_code, str(text))


def _code(match: re.Match[str]) -> str:
    point = ord(match[0])
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


QUOTE = "| "
"""What a line of model text starts with, so that it cannot pass for one of ours."""
