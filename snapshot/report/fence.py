"""Text in markdown that cannot leave its place: no markup, no mention, no link, no end of fence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from snapshot.report.plain import visible

_BACKTICKS = re.compile("`+")


def fence(lines: Iterable[str], language: str = "") -> str:
    """Lines as a fenced block, its fence longer than any run of backticks inside.

    Args:
        lines: single lines, controls and bidirectional marks made visible already.
        language: what the block is highlighted as.
    """
    body = "\n".join(lines)
    mark = "`" * max(3, _longest(body) + 1)
    return f"{mark}{language}\n{body}\n{mark}"


def code(text: str, length: int | None = None) -> str:
    """Any text as a code span on one line, also inside a table."""
    shown = visible(text, length).replace("|", "\\|") or " "
    mark = "`" * (_longest(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{mark}{pad}{shown}{pad}{mark}"


def fit(head: str, sections: Sequence[str], limit: int, left_out: str) -> str:
    """The head and as many sections as fit, in order, and a line for those that do not.

    Args:
        limit: bytes of UTF-8 that the whole may have.
        left_out: what the missing ones are, and where they stand: ``changes; see --json``.
    """
    kept, used = [head], len(head.encode()) + 200  # 200: the last line
    for i, section in enumerate(sections):
        used += len(section.encode()) + 2
        if used > limit:
            kept.append(f"**Left out here to fit: {len(sections) - i} more {left_out}.**")
            break
        kept.append(section)
    return "\n\n".join(kept) + "\n"


def _longest(text: str) -> int:
    return max(map(len, _BACKTICKS.findall(text)), default=0)
