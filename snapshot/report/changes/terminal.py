"""What changed, for a person at a terminal: what loosens first, then words, then numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from snapshot.changes import Changes, GoldenChange, Group
from snapshot.metrics.words import word_diff
from snapshot.policy_change import Direction
from snapshot.report.changes import sentences
from snapshot.report.excerpt import around_first
from snapshot.report.plain import QUOTE, count, visible

STYLES = {
    Group.LOOSEN: "bold red",
    Group.FIX: "yellow",
    Group.CREATE: "green",
    Group.ENVIRONMENT: "cyan",
    Group.TRIM: "magenta",
}
_DIRECTIONS = {
    Direction.LOOSENED: "bold red",
    Direction.TIGHTENED: "green",
    Direction.CHANGED: "yellow",
}
_SHOWN = 40  # changes of one group that are spelled out
_LONGEST = 400  # characters of any one sentence


def print_changes(changes: Changes, console: Console) -> None:
    """Writes the whole report."""
    for line in _lines(changes):
        console.print(line, soft_wrap=True)


def _lines(changes: Changes) -> Iterator[Text]:
    yield Text(f"{visible(changes.base)} .. {visible(changes.head)}", "bold")
    for problem in changes.problems:
        yield Text("\nDAMAGED  " + _safe(str(problem)), "red")
    yield from _policy(changes)
    for change in changes.environments:
        line = Text(f"\n{change.group.value}", STYLES[change.group])
        yield line.append(f"  {change.suite}/{change.slug}", "default")
        yield from (Text(f"  {visible(words, _LONGEST)}", "dim") for words in change.differences)
    for group in Group:
        yield from _group(group, changes.of(group))
    if changes.goldens:
        yield from _reach(changes)
    yield Text(f"\n{sentences.summary(changes)}", "bold")


def _policy(changes: Changes) -> Iterator[Text]:
    for direction in Direction:
        found = [change for change in changes.policy if change.direction is direction]
        if found:
            yield Text(f"\n{direction.value.upper()}  goldens.toml", _DIRECTIONS[direction])
        for change in found:
            yield Text(f"  {visible(sentences.policy(change), _LONGEST)}", _DIRECTIONS[direction])
            details = [d for d in (sentences.covers(change), *change.details) if d]
            yield from (Text(f"    {visible(detail, _LONGEST)}", "dim") for detail in details)


def _group(group: Group, found: Sequence[GoldenChange]) -> Iterator[Text]:
    if not found:
        return
    said = f"{count(found, 'golden')}: {sentences.MEANING[group]}"
    yield Text(f"\n{group.value}", STYLES[group]).append(f"  {said}", "default")
    # What says nothing new is one line an environment: the odd row must not drown in it.
    quiet: list[GoldenChange] = []
    told: list[GoldenChange] = []
    for change in found:
        silent = not change.reworded and (change.beside or group is Group.TRIM)
        (quiet if silent else told).append(change)
    together = sentences.gathered(told)
    for changes in together[:_SHOWN]:
        yield from golden_lines(changes)
    if len(together) > _SHOWN:
        yield Text(f"  and {len(together) - _SHOWN} more: --json has them all", "dim")
    for where, alike in sentences.listed(quiet):
        yield Text(f"  {count(alike, 'golden')}", STYLES[group]).append(f"  {where}", "dim")
        cases = ", ".join(change.place.case for change in alike[:4])
        more = f" and {len(alike) - 4} more" if alike[4:] else ""
        yield Text(f"    {cases}{more}", "dim")


def golden_lines(changes: Sequence[GoldenChange]) -> Iterator[Text]:
    """One change, or the same one in several environments."""
    first = changes[0]
    place = first.place
    yield Text(f"  {place.case}", STYLES[first.group]).append(
        f"  {place.suite} {place.subject} at {sentences.where(changes)}", "dim"
    )
    indent = "    "
    if first.reworded:
        yield words(first, indent)
        parting = sentences.parting(first.divergence())
        if parting is not None:
            yield Text(indent + parting, "dim")
    elif first.group is Group.CREATE and first.texts[1] is not None:
        yield Text(indent + QUOTE + visible(first.texts[1], 120))
    if first.group is Group.FIX:
        for array in first.arrays():
            yield Text(indent + visible(sentences.array(array), _LONGEST), "dim")
    yield from (Text(indent + visible(note, _LONGEST), "dim") for note in first.notes)


def words(change: GoldenChange, indent: str) -> Text:
    """The first difference of two texts in git's notation, readable without colour."""
    before, after = change.texts
    line = Text(indent + QUOTE)
    for run in around_first(word_diff(before or "", after or "")):
        if run.equal:
            line.append(visible(run.golden))
        else:
            if run.golden:
                line.append(f"[-{visible(run.golden)}-]", "red")
            if run.candidate:
                line.append(f"{{+{visible(run.candidate)}+}}", "green")
    return line


def _reach(changes: Changes) -> Iterator[Text]:
    yield Text("\nblast radius", "bold").append(
        f"  {sentences.untouched(changes.reach)}", "default"
    )
    for reach in changes.reach:
        counts = [f"{n} {group.value}" for group, n in reach.counts.items() if n]
        line = Text(f"  {reach.suite}/{reach.slug}/{reach.subject}", "" if counts else "dim")
        said = ", ".join(counts) or "untouched"
        yield line.append(f"  {said}, {reach.goldens} goldens", "yellow" if counts else "dim")


def _safe(text: str) -> str:
    return "\n".join(visible(line, _LONGEST) for line in text.split("\n"))
