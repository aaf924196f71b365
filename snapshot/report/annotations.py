"""The verification as GitHub workflow commands: errors and warnings beside the run.

GitHub shows ten of each a step, so the worst come first and the tenth says how many are left.
"""

from __future__ import annotations

from collections.abc import Iterator

from snapshot.report.markdown import worst_first
from snapshot.report.plain import visible
from snapshot.result import Result, Verdict
from snapshot.verification import Verification

SHOWN = 10
"""Annotations of one kind that GitHub takes from a step."""

_WARNINGS = (Verdict.MISSING, Verdict.DRIFT, Verdict.QUARANTINED)


def to_annotations(verification: Verification) -> str:
    """One command a line; empty where all pass."""
    errors = [
        *((f"DAMAGED {e.where}", e.what) for e in verification.damage),
        *(("EXPIRED", rule) for rule in verification.expired),
    ]
    warnings: list[tuple[str, str]] = []
    for result in worst_first(verification.results):
        quarantined = result.verdict is Verdict.QUARANTINED
        if not result.verdict.passes or quarantined:
            kind = warnings if result.verdict in _WARNINGS else errors
            kind.append((f"{result.verdict.value} {result.case}", _message(result)))
    lines = [*_commands("error", errors), *_commands("warning", warnings)]
    return "".join(f"{line}\n" for line in lines)


def _message(result: Result) -> str:
    return f"{result.headline} [{result.suite} at {result.place}]"


def _commands(kind: str, found: list[tuple[str, str]]) -> Iterator[str]:
    kept = found if len(found) <= SHOWN else found[: SHOWN - 1]
    for title, message in kept:
        yield f"::{kind} title={_property(visible(title, 200))}::{_data(visible(message, 2000))}"
    if len(kept) < len(found):
        yield f"::{kind} title=goldens::{len(found) - len(kept)} more: see the step's summary"


def _data(text: str) -> str:
    """What follows the second ``::``, as GitHub's own toolkit escapes it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
