"""What a quarantine makes of a verdict: a failure is counted, a pass says that the rule can go."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

from snapshot.policy import Rule
from snapshot.result import Result, Verdict

R = TypeVar("R", bound=Result)


def quarantined(result: R, rule: Rule | None, *, fixed: bool) -> R:
    """The result under a live quarantine rule; as it is without one.

    Args:
        fixed: whether nothing is wrong any more.
    """
    if rule is None:
        return result
    was = result.verdict.value
    if fixed:
        verdict, headline = Verdict.FIXED, f"sound now ({was}): remove the quarantine {rule}"
    else:
        verdict = Verdict.QUARANTINED
        headline = f"{was}: {result.headline}; quarantined: {rule}"
    return dataclasses.replace(result, verdict=verdict, headline=headline)
