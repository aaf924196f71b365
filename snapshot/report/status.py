"""The state of the suites, for people and as JSON."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Sequence

from rich.console import Console

from snapshot.calibrate import POWER
from snapshot.ledger import Entry
from snapshot.model import REFERENCE
from snapshot.outcomes.status import RecordedStatus, SuiteStatus
from snapshot.report.plain import count, visible


def print_status(suites: Sequence[SuiteStatus], day: datetime.date) -> None:
    """A block a suite."""
    console = Console(highlight=False, emoji=False)

    def say(line: str, style: str = "") -> None:
        console.print(visible(line), style=style, markup=False, soft_wrap=True)

    for suite in suites:
        say(f"{suite.suite}: {count(suite.cases, 'case')}", "bold")
        for recorded in suite.recorded:
            say(f"  {_recorded(recorded)}", "yellow" if recorded.missing else "")
        if not suite.recorded:
            say("  nothing recorded: goldens record " + suite.suite, "yellow")
        for name, held_to in suite.environments.items():
            say(f"  environment {name}: {held_to}")
        for entry in suite.rules:
            live = entry.days_left is None or entry.days_left > 0
            say(f"  {_entry(entry, day)}", "magenta" if live else "red")
            for advice in entry.advice:
                say(f"    {advice}", "yellow")
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


def _entry(entry: Entry, day: datetime.date) -> str:
    """One line of the ledger: what, why, who, how old, how long, how much."""
    rule = entry.rule
    parts = []
    if rule is not None and entry.days_left is not None:
        left = (
            f"{entry.days_left} days left" if entry.days_left > 0 else f"expired on {rule.expires}"
        )
        parts += [rule.reason, f"{rule.owner}, {rule.issue}", left]
        age = entry.age(day)
        parts.append("not committed yet" if age is None else f"{age} days old")
    parts.append(f"covers {entry.covers} cases")
    seen = f"{entry.observed} observations, {entry.needed} needed it"
    parts.append(f"{seen}, {entry.worst}" if entry.worst else seen)
    about = "*" if rule is None else rule.case
    whose = "" if rule is None or rule.subject is None else f"{rule.subject} at "
    return f"{entry.kind} {whose}{about}: {'; '.join(parts)}"


def as_json_text(suites: Sequence[SuiteStatus]) -> str:
    """One JSON document; keys are the attributes of `SuiteStatus`."""
    return json.dumps([dataclasses.asdict(s) for s in suites], indent=2, default=str)
