"""What recording did, for people and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from rich.console import Console

from snapshot.calibrate import POWER, power
from snapshot.commands.record import Recorded
from snapshot.store import Change


def print_recorded(done: Sequence[Recorded]) -> None:
    """One line a fingerprint, and a warning for a suite that cannot tell adapters from noise."""
    console = Console(highlight=False)
    for item in done:
        counts = Counter(item.changes.values())
        said = [f"{counts[change]} {change.value}" for change in Change if counts[change]]
        console.print(
            f"{item.suite}/{item.slug}: {', '.join(said) or 'nothing new'}",
            soft_wrap=True,
            markup=False,
        )
        for key, change in item.changes.items():
            if change is Change.UPDATED:
                console.print(f"  updated {key}", markup=False, soft_wrap=True)
        measured = power(item.calibration)
        if measured is not None and measured < POWER:
            console.print(
                f"  underpowered: the adapters move the logprobs {measured:.1f} times what the "
                f"batch does, and under {POWER:g} a missing adapter can pass for noise",
                style="yellow",
                soft_wrap=True,
            )


def as_json_text(done: Sequence[Recorded]) -> str:
    """One JSON document."""
    document = [
        {
            "suite": item.suite,
            "fingerprint": item.slug,
            "changes": {key: change.value for key, change in item.changes.items()},
            "calibration": item.calibration,
        }
        for item in done
    ]
    return json.dumps(document, indent=2, ensure_ascii=False)
