"""The part of a word difference that a reader needs, however long the texts are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snapshot.metrics.words import Run

_BEFORE, _AFTER = 48, 96  # characters shown around a difference


def around_first(runs: Sequence[Run], before: int = _BEFORE, after: int = _AFTER) -> Iterator[Run]:
    """The first difference with what stands around it, cut to fit.

    Args:
        before, after: characters to keep on either side of where the difference begins.
    """
    runs = joined(runs)
    first = next((i for i, run in enumerate(runs) if not run.equal), len(runs))
    left = after
    for i, run in enumerate(runs[max(first - 1, 0) :], start=max(first - 1, 0)):
        if i < first:
            text = run.golden
            kept = text if len(text) <= before else "…" + text[-before:]
            yield Run(kept, kept)
        elif left <= 0:
            yield Run("…", "…")
            return
        elif run.equal:
            kept = run.golden if len(run.golden) <= left else run.golden[:left] + "…"
            left -= len(kept)
            yield Run(kept, kept)
        else:
            sides = [
                side if len(side) <= left else side[:left] + "…"
                for side in (run.golden, run.candidate)
            ]
            left -= max(map(len, sides))
            yield Run(*sides)


def all_differences(runs: Sequence[Run], context: int, limit: int) -> Iterator[Run]:
    """Every difference with its surroundings; what is equal in between is cut, and so is
    what is beyond the limit. A cut says how much it left out.

    Args:
        context: characters of equal text to keep on either side of a difference.
        limit: characters to keep in all.
    """
    runs = joined(runs)
    left = limit
    for i, run in enumerate(runs):
        if left <= 0:
            rest = sum(max(len(r.golden), len(r.candidate)) for r in runs[i:])
            yield _same(f" … {rest:,} more characters … ")
            return
        if run.equal:
            ends = (0 if i == 0 else context, context if runs[i + 1 :] else 0)
            kept = _head(run.golden, left) if len(runs) == 1 else _middle(run.golden, *ends)
            left -= len(kept)
            yield _same(kept)
        else:
            sides = [_head(side, left) for side in (run.golden, run.candidate)]
            left -= max(map(len, sides))
            yield Run(*sides)


def joined(runs: Sequence[Run]) -> list[Run]:
    """Differences that only white space or punctuation parts, as one: easier to read."""
    found: list[Run] = []
    for i, run in enumerate(runs):
        between = run.equal and 0 < i < len(runs) - 1 and not any(map(str.isalnum, run.golden))
        if found and not found[-1].equal and (between or not run.equal):
            last = found[-1]
            found[-1] = Run(last.golden + run.golden, last.candidate + run.candidate)
        else:
            found.append(run)
    return found


def _middle(text: str, head: int, tail: int) -> str:
    """The text without its middle, if that is much."""
    left_out = len(text) - head - tail
    if left_out <= 40:
        return text
    return f"{text[:head]} … {left_out:,} characters … {text[len(text) - tail :]}"


def _head(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    return f"{text[:length]} … {len(text) - length:,} more characters … "


def _same(text: str) -> Run:
    return Run(text, text)
