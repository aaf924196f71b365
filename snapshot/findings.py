"""Findings and notes that are the same whatever the kind of suite: a failure, another workload,
what is worth knowing of the rules and the environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from snapshot.difference import Finding
from snapshot.errors import GoldensError, StoreError
from snapshot.fingerprint import numeric_mode_warning
from snapshot.model import Fingerprint, RecordedFingerprint
from snapshot.policy import Rule

Changes = Mapping[str, tuple[str | None, str | None]]
"""By the name of what changed: what was recorded, and what is there now."""


def failure(error: GoldensError) -> Finding:
    """Why there is no result, or no golden."""
    check = "golden" if isinstance(error, StoreError) else "run"
    return Finding(check, error.what, error.where, error.expected, error.got)


def changed_components(then: Mapping[str, str], now: Mapping[str, str]) -> Changes:
    """What differs between two workloads, each a digest by component; sorted by name."""
    names = sorted({*then, *now})
    return {
        name: (then.get(name), now.get(name)) for name in names if then.get(name) != now.get(name)
    }


def other_workload(changed: Changes) -> tuple[str, list[Finding]]:
    """One sentence, and a finding for each component."""
    findings = [
        Finding("workload", f"{name} changed since the recording", None, expected, got)
        for name, (expected, got) in changed.items()
    ]
    return f"{' and '.join(changed)} changed since the recording, so nothing was compared", findings


def standing_notes(
    expired: Iterable[Rule], recorded: RecordedFingerprint | None, here: Fingerprint | None
) -> list[str]:
    """The rules that hold nothing up any more, and another numeric mode than the recording's."""
    found = [f"rule expired on {rule.expires}: {rule.where}, {rule.owner}" for rule in expired]
    if here is not None and recorded is not None:
        warning = numeric_mode_warning(recorded.fingerprint, here)
        found += [warning] if warning else []
    return found
