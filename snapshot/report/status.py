"""The state of the suites, for people and as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from rich.console import Console

from snapshot.calibrate import POWER
from snapshot.commands.status import RecordedStatus, RuleStatus, SuiteStatus
from snapshot.model import REFERENCE


def print_status(suites: Sequence[SuiteStatus]) -> None:
    """A block a suite."""
    console = Console(highlight=False)

    def say(line: str, style: str = "") -> None:
        console.print(line, style=style, markup=False, soft_wrap=True)

    for suite in suites:
        say(f"{suite.suite}: {len(suite.cases)} cases", "bold")
        for recorded in suite.recorded:
            say(f"  {_recorded(recorded)}", "yellow" if recorded.missing else "")
        if not suite.recorded:
            say("  nothing recorded: goldens record " + suite.suite, "yellow")
        for name, held_to in suite.environments.items():
            say(f"  environment {name}: {held_to}")
        for rule in suite.rules:
            say(f"  {_rule(rule)}", "red" if rule.days_left <= 0 else "magenta")
        if not suite.rules:
            say("  strict: no relaxation, no quarantine", "dim")


def _recorded(recorded: RecordedStatus) -> str:
    whose = "" if REFERENCE in recorded.subjects else f"{' '.join(recorded.subjects)}, "
    parts = [f"{whose}{recorded.cases} of {recorded.configured} recorded"]
    if recorded.missing:
        parts.append(f"missing {_some(recorded.missing)}")
    if recorded.stale:
        parts.append(f"no longer configured {_some(recorded.stale)}")
    if recorded.power is not None:
        weak = "" if recorded.power >= POWER else ", underpowered"
        parts.append(f"adapter effect {recorded.power:.3g} times the batch drift{weak}")
    return f"{recorded.slug}: {'; '.join(parts)}"


def _some(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    return ", ".join(keys[:3]) + more


def _rule(item: RuleStatus) -> str:
    rule = item.rule
    left = f"{item.days_left} days left" if item.days_left > 0 else f"expired on {rule.expires}"
    whose = "" if rule.subject is None else f"{rule.subject} at "
    return f"{item.kind} {whose}{rule.case}: {rule.reason}; {rule.owner}, {rule.issue}; {left}"


def as_json_text(suites: Sequence[SuiteStatus]) -> str:
    """One JSON document; keys are the attributes of `SuiteStatus`."""
    return json.dumps([dataclasses.asdict(s) for s in suites], indent=2, default=str)
