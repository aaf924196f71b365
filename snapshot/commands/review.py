"""``goldens review``: pending goldens are accepted or rejected, one by one or many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from snapshot.config import Config
from snapshot.errors import GoldensError, UsageError
from snapshot.outcomes.review import KEYS, Reviewed
from snapshot.pending import Decision, Inbox, Pending, Waiting, matching
from snapshot.store import Store

DEFAULT = "pending-goldens"
"""The folder, beside goldens.toml, that is reviewed when none is named."""

BULK = 10
"""More goldens than this are not accepted at once without a reason."""

_WRITTEN = "a folder that goldens record or verify --pending DIR wrote"


def open_inbox(config: Config, folder: Path | None) -> Inbox:
    """The folder to review and the goldens it goes to.

    Raises:
        UsageError: the folder does not exist, or is the goldens themselves.
    """
    path = config.path.parent / DEFAULT if folder is None else folder
    if path.resolve() == config.store.resolve():
        raise UsageError(
            "these are the goldens, not pending ones",
            where=str(path),
            expected=_WRITTEN,
        )
    if folder is not None and not path.is_dir():
        raise UsageError(
            "there is no such folder",
            where=str(path),
            expected=_WRITTEN,
        )
    return Inbox(path, Store(config.store))


def decide(
    inbox: Inbox,
    accept: Sequence[str],
    reject: Sequence[str],
    *,
    reason: str | None = None,
    dry_run: bool = False,
) -> Reviewed:
    """Accepts and rejects by globs, without a terminal.

    Args:
        accept, reject: globs over case keys or over ``suite/slug/subject/case``.
        reason: why, kept with each accepted golden where they are more than `BULK`.

    Raises:
        UsageError: a glob names nothing, two contradict, or there is no reason for many.
    """
    waiting = inbox.look()
    if not waiting.problems:  # what cannot be read may be what a glob means
        _require_matches(waiting, [*accept, *reject])
    accepted, rejected = matching(waiting.items, accept), matching(waiting.items, reject)
    both = [item.name for item in accepted if item in rejected]
    if both:
        raise UsageError(
            f"{len(both)} pending goldens are both accepted and rejected",
            where="--accept and --reject",
            got=", ".join(both[:3]),
        )
    if len(accepted) > BULK and not reason:
        raise UsageError(
            f"{len(accepted)} goldens at once need a reason, which is kept in their files",
            where="--accept",
            expected=f"--reason TEXT, or at most {BULK}",
        )
    kept = reason if len(accepted) > BULK else None
    done = Reviewed(problems=list(waiting.problems))
    for item, decision in (
        *((item, Decision.ACCEPTED) for item in accepted),
        *((item, Decision.REJECTED) for item in rejected),
    ):
        if dry_run:
            done.decisions[item.name] = decision
        else:
            _carry_out(inbox, item, decision, kept, done)
    done.left = [item.name for item in waiting.items if item.name not in done.decisions]
    if not dry_run:
        _finish(inbox, waiting)
    return done


def converse(
    inbox: Inbox,
    show: Callable[[Pending, int, int], None],
    key: Callable[[], str],
    ask_reason: Callable[[int], str],
    say: Callable[[str], None],
) -> Reviewed:
    """Shows each item and does what its key says, at once.

    Args:
        show: shows an item; its number, from 1, and how many there are.
        key: waits for one of `KEYS`.
        ask_reason: asks why so many are accepted at once; empty: do not.
        say: says what was done.
    """
    waiting = inbox.look()
    done = Reviewed(problems=list(waiting.problems))
    undecided = list(waiting.items)
    total = len(undecided)
    while undecided:
        item = undecided[0]
        show(item, total - len(undecided) + 1, total)
        chosen = _wait(key)
        if chosen == "q":
            break
        if chosen == "s":
            chosen_items, decision = [item], Decision.SKIPPED
        else:
            decision = Decision.ACCEPTED if chosen in "agA" else Decision.REJECTED
            chosen_items = _reach(chosen, item, undecided)
        reason = None
        if decision is Decision.ACCEPTED and len(chosen_items) > BULK:
            reason = ask_reason(len(chosen_items))
            if not reason:
                say(f"not accepted: {len(chosen_items)} goldens at once need a reason")
                continue
        for one in chosen_items:
            undecided.remove(one)
            if decision is not Decision.SKIPPED:
                _carry_out(inbox, one, decision, reason, done)
        many = f"{len(chosen_items)} goldens" if len(chosen_items) > 1 else item.name
        say(f"{decision.value}: {many}")
    done.left = [item.name for item in waiting.items if item.name not in done.decisions]
    _finish(inbox, waiting)
    return done


def _wait(key: Callable[[], str]) -> str:
    while (pressed := key()) not in KEYS:
        if pressed in ("\x03", "\x04", ""):  # Ctrl-C, Ctrl-D, the terminal is gone
            return "q"
    return pressed


def _reach(key: str, item: Pending, undecided: Sequence[Pending]) -> list[Pending]:
    """The items that a key is about."""
    if key in "AR":
        return list(undecided)
    if key in "gx":
        return [other for other in undecided if other.group == item.group]
    return [item]


def _carry_out(
    inbox: Inbox, item: Pending, decision: Decision, reason: str | None, done: Reviewed
) -> None:
    try:
        if decision is Decision.ACCEPTED:
            inbox.accept(item, reason)
        else:
            inbox.clear(item)
    except GoldensError as error:
        done.problems.append(error)
    else:
        done.decisions[item.name] = decision


def _finish(inbox: Inbox, waiting: Waiting) -> None:
    for item in waiting.settled:
        inbox.clear(item)
    inbox.tidy()


def _require_matches(waiting: Waiting, globs: Sequence[str]) -> None:
    for glob in globs:
        if not matching([*waiting.items, *waiting.settled], [glob]):
            raise UsageError(
                "no pending golden matches",
                where="--accept or --reject",
                expected=", ".join(_some(waiting)) or "nothing waits",
                got=glob,
                hint="goldens review --json lists what waits",
            )


def _some(waiting: Waiting) -> Iterator[str]:
    yield from (item.name for item in waiting.items[:3])
    if waiting.items[3:]:
        yield f"and {len(waiting.items) - 3} more"
