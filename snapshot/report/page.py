"""One self-contained HTML page: a matrix of cases and environments, and what there is to say.

The page's script draws from data that stands in it as JSON, and puts every text into the
document as text: what a model wrote is never markup. A content security policy that names the
script by its hash keeps anything else from running, should that ever fail.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from snapshot.metrics.words import Run, word_diff
from snapshot.model import Json
from snapshot.report.excerpt import all_differences
from snapshot.report.plain import visible

_WEB = Path(__file__).parent / "web"
_CONTEXT, _SHOWN = 400, 20_000  # characters of a text difference


@dataclass(frozen=True)
class Status:
    """What a cell can be; listed worst first.

    Attributes:
        tone: ``good``, ``info``, ``warn``, ``bad``, ``mute`` or ``still``.
        glyph: one character, so that colour is not all there is.
    """

    name: str
    glyph: str
    tone: str
    meaning: str


@dataclass(frozen=True)
class Column:
    """An environment; neighbours of one group share a heading.

    Attributes:
        id: what links name.
        title: the whole name, shown when pointed at.
    """

    id: str
    group: str
    label: str
    title: str


@dataclass(frozen=True)
class Cell:
    """One case in one environment.

    Attributes:
        status: a status' name.
        blocks: what the detail shows; made by the functions below.
        search: text that the search looks through, besides the headline.
    """

    status: str
    headline: str = ""
    blocks: tuple[Json, ...] = ()
    search: str = ""


@dataclass(frozen=True)
class Row:
    """One case.

    Attributes:
        group: its heading.
        cells: by index of the column.
        blocks: what the detail shows under any of its cells.
    """

    group: str
    key: str
    cells: Mapping[int, Cell]
    blocks: tuple[Json, ...] = ()


@dataclass(frozen=True)
class Alert:
    """What must be read first. A line that begins with two spaces belongs to the one before."""

    tone: str
    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """A whole report.

    Attributes:
        title: of the document.
        verdict, tone: the one sentence on top.
        facts: small print beside it.
        corner: what rows and columns are.
    """

    title: str
    verdict: str
    tone: str
    facts: str
    statuses: Sequence[Status]
    columns: Sequence[Column]
    rows: Sequence[Row]
    alerts: Sequence[Alert] = ()
    corner: str = "case"
    plain: Sequence[str] = field(default=())

    def __str__(self) -> str:
        """The HTML document."""
        script, style, document = (
            (_WEB / f"page.{kind}").read_text("utf-8") for kind in ("js", "css", "html")
        )
        parts = {
            "TITLE": html.escape(self.title),
            "PLAIN": html.escape("\n".join([self.verdict, *self.plain])),
            "STYLE_HASH": _hash(style),
            "SCRIPT_HASH": _hash(script),
            "STYLE": style,
            "SCRIPT": script,
            # Inside a script element only "<" could end it; JSON lets any character be escaped.
            "DATA": json.dumps(self._data(), separators=(",", ":")).replace("<", "\\u003c"),
        }
        pieces = document.split("@")
        return "".join(parts.get(p, p) if i % 2 else p for i, p in enumerate(pieces))

    def _data(self) -> Json:
        index = {status.name: i for i, status in enumerate(self.statuses)}
        return {
            "verdict": self.verdict,
            "tone": self.tone,
            "facts": self.facts,
            "corner": self.corner,
            "statuses": [vars(status) for status in self.statuses],
            "columns": [vars(column) for column in self.columns],
            "rows": [_row(row, index) for row in self.rows],
            "alerts": [vars(alert) for alert in self.alerts],
        }


def columns(names: Sequence[tuple[str, str]]) -> list[Column]:
    """Columns for environments, labelled by what tells them apart.

    Of parts that always come together, such as a runtime and its torch, the first says it.

    Args:
        names: slug and subject of each.
    """
    parts = [[*slug.split("-"), _short(subject, names)] for slug, subject in names]
    found: dict[str, frozenset[int]] = {}
    for part in dict.fromkeys(part for of_one in parts for part in of_one):
        found[part] = frozenset(i for i, of_one in enumerate(parts) if part in of_one)
    everywhere = frozenset(range(len(names)))
    first = {where: part for part, where in reversed(found.items()) if not _is_size(part)}
    made = []
    for (slug, subject), of_one in zip(names, parts, strict=True):
        told = [p for p in of_one if first.get(found[p]) == p and found[p] != everywhere]
        label = next((p for p in of_one if _is_size(p) and found[p] != everywhere), "")
        group = " ".join(told) or of_one[-1]
        made.append(Column(f"{slug}/{subject}", group, label, f"{slug} · {subject}"))
    return made


def without_dtype(slug: str) -> str:
    """The environment of a kernel without its dtype, which each of its cases' keys says: a
    column of its own for every dtype would stand empty but for its own cases."""
    return slug.rpartition("-")[0]


def _is_size(part: str) -> bool:
    return re.fullmatch(r"bs[0-9]+", part) is not None


def _short(subject: str, names: Sequence[tuple[str, str]]) -> str:
    """``stale_page`` of ``package.module:stale_page``, where only one is called that."""
    short = subject.rpartition(":")[2]
    alike = {other for _, other in names if other.rpartition(":")[2] == short}
    return subject if len(alike) > 1 else short


# ---------------------------------------------------------------------- blocks


def words(before: str | None, after: str | None, title: str) -> Json:
    """Both texts as one, what differs marked, cut where nothing happens."""
    return {"type": "words", "title": title, "runs": marked(word_diff(before or "", after or ""))}


def marked(runs: Sequence[Run]) -> list[tuple[int, str]]:
    """Runs as the page draws them: 0 equal, -1 only before, 1 only after."""
    pieces: list[tuple[int, str]] = []
    for run in all_differences(runs, _CONTEXT, _SHOWN):
        if run.equal:
            pieces.append((0, shown(run.golden)))
        else:
            sides = ((-1, run.golden), (1, run.candidate))
            pieces += [(kind, shown(text)) for kind, text in sides if text]
    return pieces


def shown(text: str) -> str:
    """Text whose lines stay lines and whose other controls are visible as codes."""
    return "\n".join(visible(line) for line in text.split("\n"))


def lines(title: str, said: Iterable[str | None]) -> Json:
    """A list of sentences; None where there is none."""
    kept = [visible(line, 600) for line in said if line]
    return {"type": "lines", "title": title, "lines": kept} if kept else None


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Json:
    """A table of texts."""
    cells = [[visible(value, 300) for value in row] for row in rows]
    return {"type": "table", "title": title, "head": list(head), "rows": cells}


def _row(row: Row, index: Mapping[str, int]) -> Json:
    return {
        "id": f"{row.group}/{row.key}",
        "group": row.group,
        "key": row.key,
        # The heading says the folder already.
        "short": row.key.index("/") + 1 if "/" in row.key else 0,
        "cells": {str(i): _cell(cell, index) for i, cell in row.cells.items()},
        **({"blocks": row.blocks} if row.blocks else {}),
    }


def _cell(cell: Cell, index: Mapping[str, int]) -> Json:
    made: dict[str, Json] = {"status": index[cell.status]}
    if cell.headline:
        made["headline"] = visible(cell.headline, 1000)
    if cell.blocks:
        made["blocks"] = cell.blocks
    if cell.search:
        made["search"] = cell.search
    return made


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
