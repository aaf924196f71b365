"""The sentences that every format says about a change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from snapshot.changes import ArrayChange, Changes, GoldenChange, Group, Reach
from snapshot.difference import Divergence
from snapshot.payload import DIGESTS, SAMPLE
from snapshot.policy_change import PolicyChange
from snapshot.report.plain import count

MEANING = {
    Group.LOOSEN: "strictness went down",
    Group.FIX: "recorded before, something else now",
    Group.CREATE: "new goldens",
    Group.ENVIRONMENT: "recorded again; no output changed",
    Group.TRIM: "goldens that are gone",
}


def summary(changes: Changes) -> str:
    """``1 loosen, 2 fix, 24 create``, or that nothing changed."""
    counts = [f"{count} {group.value}" for group, count in changes.counts.items() if count]
    other = sum(not change.loosened for change in changes.policy)
    if other:
        counts.append(f"{other} other in goldens.toml")
    if changes.problems:
        counts.append(f"{count(changes.problems, 'file')} that cannot be trusted")
    return ", ".join(counts) or "no golden and no rule changed"


def policy(change: PolicyChange) -> str:
    """``relax suites.s base/*: (none) → until 2027-03-01``"""
    before, after = change.before or "(none)", change.after or "(none)"
    return f"{change.what} of {change.where}: {before} → {after}"


def covers(change: PolicyChange) -> str | None:
    """How many recorded goldens a rule is about."""
    if change.cases is None:
        return None
    where = f" in {count(change.environments, 'environment')}" if change.environments else ""
    return f"covers {change.cases} recorded golden{'s' * (change.cases != 1)}{where}"


def parting(found: Divergence | None) -> str | None:
    """Where the tokens part, and by how much the model preferred what it said there."""
    if found is None:
        return None
    sides = (("before", found.golden_margin), ("after", found.candidate_margin))
    margins = [f"{value:.3g} {side}" for side, value in sides if value is not None]
    known = f", top-2 margin there {' and '.join(margins)}" if margins else ""
    return f"the tokens part at step {found.step}{known}"


def array(change: ArrayChange) -> str:
    """``logprobs: 12 of 24 elements moved; ...``"""
    moved = change.movement
    if moved is not None and change.name == DIGESTS:
        return f"{moved.moved:,} of {moved.elements:,} rows of out have other bits"
    if moved is not None and change.name == SAMPLE:
        return f"{len(moved.rows)} sampled rows of out, numbered from 0: {moved}"
    return f"{change.name}: {change.movement if change.movement is not None else change.why}"


def untouched(reach: Sequence[Reach]) -> str:
    """The blast radius in one sentence: batch sizes that changed and those that did not."""
    touched = [r for r in reach if r.touched]
    still = [r for r in reach if not r.touched]
    parts = [f"{count(touched, 'environment')} touched{_sizes(touched)}"]
    parts.append(f"{count(still, 'environment')} untouched{_sizes(still)}")
    return "; ".join(parts)


def gathered(changes: Iterable[GoldenChange]) -> list[list[GoldenChange]]:
    """Changes of the same words of the same case together: one thing to read, not one for
    every environment. A change without words stands alone."""
    found: dict[object, list[GoldenChange]] = {}
    for change in changes:
        place = change.place
        same = (place.suite, place.subject, place.case, change.texts, change.group)
        key: object = same if change.reworded else place
        found.setdefault(key, []).append(change)
    return list(found.values())


def listed(changes: Iterable[GoldenChange]) -> list[tuple[str, list[GoldenChange]]]:
    """Changes that say no other words, by environment; each with one phrase on where."""
    found: dict[str, list[GoldenChange]] = {}
    for change in changes:
        place = change.place
        at = f"{place.suite} {place.subject} at {place.slug}"
        same = f", the same words as {change.beside}" if change.beside else ""
        found.setdefault(at + same, []).append(change)
    return list(found.items())


def where(changes: Sequence[GoldenChange]) -> str:
    """The environments of changes that say the same."""
    slugs = [change.place.slug for change in changes]
    beside = {change.beside for change in changes} - {None}
    shown = ", ".join(slugs[:4]) + (f" and {len(slugs) - 4} more" if slugs[4:] else "")
    return shown + (f", beside {', '.join(sorted(map(str, beside)))}" if beside else "")


def _sizes(reach: Sequence[Reach]) -> str:
    sizes = sorted({r.identity.batch_size for r in reach if r.identity and r.identity.batch_size})
    return f" (batch {', '.join(map(str, sizes))})" if sizes else ""
