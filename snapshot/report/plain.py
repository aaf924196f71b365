"""Text that a model wrote, made safe to print.

Model text is untrusted: a terminal escape, a bidirectional override or a lone carriage
return could show a reviewer something else than what was compared.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text on one line: newlines and tabs as ``\\n`` and ``\\t``, other controls as codes."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
