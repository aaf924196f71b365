"""What changed, as one HTML page: the blast radius is the matrix."""

from __future__ import annotations

from collections.abc import Iterator

from snapshot import __version__
from snapshot.changes import Changes, GoldenChange, Group, Reach
from snapshot.metrics.movement import heat_map
from snapshot.metrics.steps import around
from snapshot.model import Json
from snapshot.policy_change import Direction
from snapshot.report.changes import sentences
from snapshot.report.html import heat, plot
from snapshot.report.page import (
    Alert,
    Cell,
    Page,
    Row,
    Status,
    columns,
    lines,
    shown,
    without_dtype,
    words,
)
from snapshot.report.plain import visible

_STATUSES = (
    Status("fix", "✎", "warn", sentences.MEANING[Group.FIX]),
    Status("trim", "−", "mute", sentences.MEANING[Group.TRIM]),
    Status("create", "+", "good", sentences.MEANING[Group.CREATE]),
    Status("environment-only", "e", "info", sentences.MEANING[Group.ENVIRONMENT]),
    Status("untouched", "·", "still", "not changed"),
)
_TONES = {Direction.LOOSENED: "bad", Direction.TIGHTENED: "good", Direction.CHANGED: "warn"}
_SEARCHED = 2000  # characters of a text that the search looks through


def to_html(changes: Changes) -> str:
    """The document: self-contained, works from a file."""
    return str(page(changes))


def page(changes: Changes) -> Page:
    """The page that `to_html` writes."""
    column = {(r.suite, r.slug, r.subject): _column(r) for r in changes.reach}
    names = list(dict.fromkeys(column.values()))
    index = {name: i for i, name in enumerate(names)}
    by_case: dict[tuple[str, str], dict[int, Cell]] = {}
    for change in changes.goldens:
        place = change.place
        cells = by_case.setdefault((place.suite, place.case), {})
        cells[index[column[place[:3]]]] = _cell(change)
    untouched = Cell("untouched")
    for (suite, _), cells in by_case.items():
        for reach in changes.reach:
            i = index[column[reach.suite, reach.slug, reach.subject]]
            if reach.suite == suite and i not in cells and reach.goldens:
                cells[i] = untouched
    rows = [
        Row(suite + (f" / {case.split('/')[0]}" if "/" in case else ""), case, cells)
        for (suite, case), cells in by_case.items()
    ]
    loosened = changes.counts[Group.LOOSEN]
    return Page(
        title=f"goldens diff: {sentences.summary(changes)}",
        verdict=sentences.summary(changes),
        tone="bad" if loosened or changes.problems else "warn" if changes.of(Group.FIX) else "good",
        facts=f"{visible(changes.base)} → {visible(changes.head)}, goldens {__version__}",
        statuses=_STATUSES,
        columns=columns(names),
        rows=sorted(rows, key=lambda row: row.group),
        alerts=tuple(_alerts(changes)),
        corner=sentences.untouched(changes.reach),
        plain=[sentences.policy(change) for change in changes.policy],
    )


def _column(reach: Reach) -> tuple[str, str]:
    kernel = reach.identity is not None and reach.identity.batch_size is None
    return without_dtype(reach.slug) if kernel else reach.slug, reach.subject


def _alerts(changes: Changes) -> Iterator[Alert]:
    if changes.problems:
        said = (f"{error.what}: {error.where}" for error in changes.problems)
        yield Alert("bad", "Files that cannot be trusted", tuple(visible(s, 400) for s in said))
    for direction in Direction:
        found: list[str] = []
        for change in changes.policy:
            if change.direction is direction:
                found.append(visible(sentences.policy(change), 400))
                details = (sentences.covers(change), *change.details)
                found += [f"  {visible(detail, 400)}" for detail in details if detail]
        if found:
            title = {
                Direction.LOOSENED: "Strictness went down",
                Direction.TIGHTENED: "Held more strictly",
                Direction.CHANGED: "Changed in goldens.toml",
            }[direction]
            yield Alert(_TONES[direction], title, tuple(found))
    found = []
    for moved in changes.environments:
        found.append(f"{moved.group.value}: {moved.suite}/{moved.slug}")
        found += [f"  {visible(words, 400)}" for words in moved.differences]
    if found:
        rose = any(moved.group is Group.LOOSEN for moved in changes.environments)
        yield Alert("bad" if rose else "info", "Environments", tuple(found))


def _cell(change: GoldenChange) -> Cell:
    before, after = change.texts
    blocks: list[Json] = []
    headline = ""
    if change.beside:
        same = "other words than" if change.reworded else "the same words as"
        headline = f"new here: {same} {change.beside}"
    if change.reworded:
        blocks.append(words(before, after, "Before → after"))
    elif after is not None or before is not None:
        text = after if after is not None else before
        blocks.append(words(text, text, "Text"))
    blocks.append(lines("Where they part", [sentences.parting(change.divergence())]))
    if change.before is not None and change.after is not None:
        blocks += _numbers(change)
    blocks.append(lines("Notes", change.notes))
    return Cell(
        change.group.value,
        headline,
        tuple(block for block in blocks if block is not None),
        shown(f"{(after or '')[:_SEARCHED]}\n{(before or '')[:_SEARCHED]}"),
    )


def _numbers(change: GoldenChange) -> Iterator[Json]:
    assert change.before is not None and change.after is not None
    if change.reworded:
        steps = around(change.before.observation, change.after.observation)
        yield plot(steps, "before", "after") if steps else None
    arrays = change.arrays()
    yield lines("Numbers", map(sentences.array, arrays))
    for array in arrays:
        if array.movement is not None and array.movement.moved:
            rows = heat_map(array.movement.rows, f"rel-L2 of {array.name}, row by row")
            yield None if rows is None else heat(rows)
