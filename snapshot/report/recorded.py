"""What recording did, for people and as JSON."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console

from snapshot.calibrate import POWER, power
from snapshot.model import REFERENCE
from snapshot.outcomes.offered import Offered
from snapshot.recording import Recorded
from snapshot.report.plain import visible_lines
from snapshot.store import Change


def print_recorded(done: Sequence[Recorded], console: Console) -> None:
    """One line a fingerprint, and a warning for a suite that cannot tell adapters from noise."""
    for item in done:
        counts = Counter(item.changes.values())
        said = [f"{counts[change]} {change.value}" for change in Change if counts[change]]
        subject = "" if item.subject == REFERENCE else f" {item.subject}"
        said += [f"{len(keys)} {what}" for keys, what in _others(item) if keys]
        console.print(
            f"{item.suite}/{item.slug}{subject}: {', '.join(said) or 'nothing new'}",
            soft_wrap=True,
            markup=False,
        )
        for key, change in item.changes.items():
            if change is Change.UPDATED:
                console.print(f"  updated {key}", markup=False, soft_wrap=True)
        for key, why in item.refused.items():
            console.print(f"  refused {key}: {why}", style="red", markup=False, soft_wrap=True)
        for why, count in Counter(item.not_run.values()).items():
            console.print(f"  not recorded: {why} ({count})", markup=False, soft_wrap=True)
        measured = power(item.calibration)
        if measured is not None and measured < POWER:
            console.print(
                f"  underpowered: the adapters move the logprobs {measured:.1f} times what the "
                f"batch does, and under {POWER:g} a missing adapter can pass for noise",
                style="yellow",
                soft_wrap=True,
            )


def print_offered(offered: Offered, console: Console) -> None:
    """What waits for review after a verification, and what must not or cannot become a golden."""
    print_recorded(offered.recorded, console)
    for problem in offered.problems:
        said = visible_lines(problem)
        console.print(f"not pending: {said}", style="red", markup=False, soft_wrap=True)
    folder = shlex.quote(str(offered.folder))
    if offered.count:
        said = f"{offered.count} goldens wait in {folder}: goldens review {folder}"
    elif offered.failed:
        said = "no pending goldens: what failed must not become one"
    else:
        said = "no pending goldens: nothing failed that a new golden answers"
    console.print(said, markup=False, soft_wrap=True)


def _others(item: Recorded) -> list[tuple[Mapping[str, str], str]]:
    return [(item.refused, "refused"), (item.not_run, "not recorded")]


def as_json_text(done: Sequence[Recorded]) -> str:
    """One JSON document."""
    document = [
        {
            "suite": item.suite,
            "fingerprint": item.slug,
            "subject": item.subject,
            "changes": {key: change.value for key, change in item.changes.items()},
            "calibration": item.calibration,
            "refused": dict(item.refused),
            "not_run": dict(item.not_run),
        }
        for item in done
    ]
    return json.dumps(document, indent=2, ensure_ascii=False)
