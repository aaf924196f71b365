"""What changed, as a comment on a pull request: what loosens first, words before numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snapshot.changes import Changes, GoldenChange, Group
from snapshot.policy_change import Direction
from snapshot.report.changes import sentences
from snapshot.report.fence import code, fence, fit
from snapshot.report.markdown import word_lines
from snapshot.report.plain import count, visible

COMMENT = 60_000
"""Bytes that GitHub takes in a comment, with some to spare (it counts 65,536 characters)."""

_MARKS = {
    Group.LOOSEN: "🔓",
    Group.FIX: "✏️",
    Group.CREATE: "🌱",
    Group.ENVIRONMENT: "🖥️",
    Group.TRIM: "✂️",
}
_SPELLED = 100  # changes of one group; a comment has no room for more
_LONGEST = 300  # characters of any one sentence


def to_markdown(changes: Changes, limit: int = COMMENT) -> str:
    """The report, cut to size: what is left out is counted.

    Args:
        limit: bytes of UTF-8 that it may have.
    """
    head = "\n\n".join(_head(changes))
    return fit(head, list(_sections(changes)), limit, "changes: see `goldens diff --json`")


def _head(changes: Changes) -> Iterator[str]:
    yield f"### Goldens: {sentences.summary(changes)}"
    yield f"{code(changes.base)} → {code(changes.head)}"
    for problem in changes.problems:
        lines = [visible(line, _LONGEST) for line in str(problem).split("\n")]
        yield "> [!CAUTION]\n> A file cannot be trusted.\n\n" + fence(lines)
    loosened = [change for change in changes.policy if change.loosened]
    rose = [change for change in changes.environments if change.group is Group.LOOSEN]
    if loosened or rose:
        yield "> [!WARNING]\n> **Strictness went down.** Read these first:"
        yield "\n".join(
            [
                *(line for change in loosened for line in _policy_lines(changes, [change])),
                *(
                    f"- 🔓 noise floor of {code(f'{change.suite}/{change.slug}')}: "
                    + "; ".join(code(words, _LONGEST) for words in change.differences)
                    for change in rose
                ),
            ]
        )


def _policy_lines(changes: Changes, found: Sequence[object]) -> Iterator[str]:
    marks = {Direction.LOOSENED: "🔓", Direction.TIGHTENED: "🔒", Direction.CHANGED: "🔧"}
    for change in changes.policy:
        if change not in found:
            continue
        before, after = change.before or "(none)", change.after or "(none)"
        yield (
            f"- {marks[change.direction]} **{change.what}** of {code(change.where, _LONGEST)}: "
            f"{code(before, _LONGEST)} → {code(after, _LONGEST)}"
        )
        details = [d for d in (sentences.covers(change), *change.details) if d]
        yield from (f"  - {code(detail, _LONGEST)}" for detail in details)


def _sections(changes: Changes) -> Iterator[str]:
    other = [change for change in changes.policy if not change.loosened]
    if other:
        yield "\n".join(["**goldens.toml, no looser**", *_policy_lines(changes, other)])
    if changes.goldens:
        yield "\n".join(_reach(changes))
    for group in Group:
        found = changes.of(group)
        if found:
            said = f"{count(found, 'golden')}: {sentences.MEANING[group]}"
            yield f"#### {_MARKS[group]} {group.value}: {said}"
        together = sentences.gathered(found)
        spelled = [one for one in together if one[0].reworded or group is Group.FIX][:_SPELLED]
        yield from (_golden(one) for one in spelled)
        done = {id(change) for one in spelled for change in one}
        yield from _listed([change for change in found if id(change) not in done])
    for change in changes.environments:
        if change.group is not Group.LOOSEN:
            lines = [f"- {_MARKS[change.group]} {code(f'{change.suite}/{change.slug}')}"]
            lines += [f"  - {code(words, _LONGEST)}" for words in change.differences]
            yield "\n".join(lines)


def _reach(changes: Changes) -> Iterator[str]:
    yield f"**Blast radius**: {sentences.untouched(changes.reach)}\n"
    yield "| environment | subject | goldens | changed |"
    yield "|---|---|--:|---|"
    for reach in sorted(changes.reach, key=lambda reach: -reach.touched):
        counts = ", ".join(f"{n} {group.value}" for group, n in reach.counts.items() if n)
        where = f"{code(f'{reach.suite}/{reach.slug}')} | {code(reach.subject)}"
        yield f"| {where} | {reach.goldens} | {counts or '–'} |"


def _golden(together: Sequence[GoldenChange]) -> str:
    first = together[0]
    where = sentences.where(together)
    parts = [f"{code(first.place.case)} of {code(first.place.subject)} at {code(where, 600)}"]
    if first.reworded:
        before, after = first.texts
        parts.append(fence(word_lines(before or "", after or ""), "diff"))
    said = [sentences.parting(first.divergence())]
    if first.group is Group.FIX:
        said += [sentences.array(array) for array in first.arrays()]
    said += list(first.notes)
    parts.append("\n".join(f"- {code(words, _LONGEST)}" for words in said if words))
    return "\n\n".join(filter(None, parts))


def _listed(rest: Sequence[GoldenChange]) -> Iterator[str]:
    """Changes that say no other words: one line an environment."""
    for where, found in sentences.listed(rest):
        cases = ", ".join(code(change.place.case) for change in found[:8])
        more = f" and {len(found) - 8} more" if found[8:] else ""
        yield f"- {count(found, 'golden')}, {code(where, 400)}: {cases}{more}"
