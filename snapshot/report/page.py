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

    Args:
        names: slug and subject of each.
    """
    split = [slug.split("-") for slug, _ in names]
    common = set.intersection(*map(set, split)) if len(names) > 1 else set()
    subjects = {subject for _, subject in names}
    made = []
    for (slug, subject), parts in zip(names, split, strict=True):
        told = [part for part in parts if part not in common]
        label = told.pop() if told and told[-1].startswith("bs") else ""
        group = " ".join([*told, *([subject] if len(subjects) > 1 else [])])
        made.append(Column(f"{slug}/{subject}", group or subject, label, f"{slug} · {subject}"))
    return made


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
