"""The verification as markdown, for a step summary: worst first, cut to size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from snapshot.metrics.words import word_diff
from snapshot.report.attribution import attribution_lines
from snapshot.report.excerpt import around_first
from snapshot.report.fence import code, fence, fit
from snapshot.report.finding import sentence
from snapshot.report.html import STATUSES
from snapshot.report.plain import visible
from snapshot.result import Result, Verdict
from snapshot.verification import Verification

SUMMARY = 1024 * 1024
"""Bytes that GitHub takes in a step summary."""

_MARKS = {"bad": "🔴", "warn": "🟡", "mute": "🟣", "info": "🔵", "good": "🟢"}
_TONES = {status.name: status.tone for status in STATUSES}
_ORDER = {status.name: i for i, status in enumerate(STATUSES)}
_LONGEST = 400  # characters of any one sentence


def to_markdown(verification: Verification, limit: int = SUMMARY) -> str:
    """The report.

    Args:
        limit: bytes of UTF-8 that it may have; what does not fit is counted.
    """
    loud = [r for r in worst_first(verification.results) if r.verdict is not Verdict.MATCH]
    return fit("\n\n".join(_head(verification)), list(map(_case, loud)), limit, "cases")


def worst_first(results: Iterable[Result]) -> list[Result]:
    """Results by verdict, worst first; otherwise in their order."""
    return sorted(results, key=lambda result: _ORDER[result.verdict.value])


def _head(verification: Verification) -> Iterator[str]:
    results = verification.results
    failing = sum(not result.verdict.passes for result in results)
    code_ = verification.exit_code
    said = f"all {len(results)} pass" if code_ == 0 else f"{failing} of {len(results)} need a look"
    if not results:
        said = "nothing was run"
    yield f"## Goldens: {said} (exit code {code_})"
    for error in verification.damage:
        lines = [visible(line, _LONGEST) for line in str(error).split("\n")]
        yield "> [!CAUTION]\n> A file cannot be trusted.\n\n" + fence(lines)
    for rule in verification.expired:
        yield f"> [!CAUTION]\n> A rule has expired: {code(rule, _LONGEST)}"
    if verification.held:
        yield "\n".join(_table(verification))
    if matching := _matching_notes(results):
        yield "Said of cases that match:\n\n" + matching


def _matching_notes(results: Iterable[Result]) -> str:
    """What was not checked or was masked there, though nothing differs: each note once."""
    notes = Counter(
        note for result in results if result.verdict is Verdict.MATCH for note in result.notes
    )
    return _list(f"{note} ({count} case{'s' * (count != 1)})" for note, count in notes.items())


def _table(verification: Verification) -> Iterator[str]:
    present = {result.verdict.value for result in verification.results}
    names = [status.name for status in STATUSES if status.name in present]
    marks = " | ".join(f"{_MARKS[_TONES[name]]} {name}" for name in names)
    yield f"| environment | held to | {marks} |"
    yield f"|---|---|{'--:|' * len(names)}"
    for held in verification.held:
        counts = Counter(result.verdict.value for result in held.results)
        where = f"{held.suite} {held.subject} {held.place}"
        where += ", did it move?" if held.own else ""
        golden = "its own" if held.baseline.exact else code(f"{held.baseline.slug}")
        if held.baseline.slug is None:
            golden = "nothing recorded"
        cells = " | ".join(str(counts[name] or "") for name in names)
        yield f"| {code(where)} | {golden} | {cells} |"


def _case(result: Result) -> str:
    name = result.verdict.value
    parts = [
        f"{_MARKS[_TONES[name]]} **{name}** {code(result.case)} of {code(result.suite)} "
        f"at {code(result.place)}"
    ]
    if result.headline:
        parts.append(code(result.headline, _LONGEST))
    before, after = result.golden_text, result.candidate_text
    compared = before is not None and after is not None and result.verdict is not Verdict.INVALID
    if compared and before != after:
        parts.append(fence(word_lines(before or "", after or ""), "diff"))
    if result.attribution is not None:
        parts.append(fence(attribution_lines(result.attribution)))
    if not result.verdict.passes:
        parts.append(_list(map(sentence, result.findings)))
    parts.append(_list(result.notes))
    return "\n\n".join(filter(None, parts))


def word_lines(before: str, after: str) -> list[str]:
    """The first difference as a line before and a line after, the words marked in each."""
    old, new = "- ", "+ "
    for run in around_first(word_diff(before, after), 80, 200):
        if run.equal:
            old, new = old + visible(run.golden), new + visible(run.golden)
        else:
            old += f"[-{visible(run.golden)}-]" if run.golden else ""
            new += f"{{+{visible(run.candidate)}+}}" if run.candidate else ""
    return [old, new]


def _list(said: Iterable[str]) -> str:
    lines: Sequence[str] = list(said)
    shown = [f"- {code(line, _LONGEST)}" for line in lines[:12]]
    if len(lines) > 12:
        shown.append(f"- and {len(lines) - 12} more")
    return "\n".join(shown)
