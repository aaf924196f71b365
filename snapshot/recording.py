"""Writing what was observed into a store: which one, the environment, then its goldens."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from snapshot import __version__
from snapshot.errors import UsageError
from snapshot.model import Fingerprint, Golden, Json, Observation, RecordedFingerprint
from snapshot.store import Change, Store


@dataclass(frozen=True)
class Recorded:
    """What recording did at one fingerprint for one subject.

    Attributes:
        suite, slug, subject: where.
        changes: what became of each case's golden.
        calibration: the environment's noise, as it now stands beside the goldens.
        refused: by case: why it must not become a golden; the others were written.
        not_run: by case: why it was not run, or not asked for.
    """

    suite: str
    slug: str
    subject: str
    changes: Mapping[str, Change]
    calibration: Mapping[str, Json]
    refused: Mapping[str, str] = field(default_factory=dict)
    not_run: Mapping[str, str] = field(default_factory=dict)


def target(store: Path, pending: Path | None, *, update_in_ci: bool) -> Store:
    """The store that recording writes into.

    Args:
        store: the folder of the goldens.
        pending: write there instead.
        update_in_ci: whether a CI job may write into the goldens themselves.

    Raises:
        UsageError: this is a CI job, or the pending folder overlaps the goldens.
    """
    if pending is not None and _overlap(pending, store):
        raise UsageError(
            "pending goldens lie outside the goldens",
            where=f"--pending {pending}",
            expected=f"a folder that is not in {store}, nor around it",
            got=str(pending.resolve()),
        )
    if _in_ci() and pending is None and not update_in_ci:
        raise UsageError(
            "goldens are not recorded in CI",
            where="the environment variable CI is set",
            expected="a run that changes nothing",
            hint="record into an artifact with --pending DIR, or ask for it with --update-in-ci",
        )
    return Store(store if pending is None else pending)


def _in_ci() -> bool:
    """Whether this is a CI job: the variable CI is set to anything but a no."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


def _overlap(a: Path, b: Path) -> bool:
    a, b = a.resolve(), b.resolve()
    return a.is_relative_to(b) or b.is_relative_to(a)


def write_goldens(
    store: Store,
    suite: str,
    subject: str,
    here: Fingerprint,
    rows: Sequence[Observation[Any]],
    noise: Mapping[str, Json],
    *,
    whole: bool,
    versions: Iterable[str],
) -> Recorded:
    """Writes the rows of one subject. The environment comes first: goldens without one could not
    be read.

    Args:
        noise: what was measured now; what was measured with the goldens that stay, stays.
        whole: whether the rows are all that the suite has there. A selection says nothing of
            the environment that the others were recorded in.
        versions: names in the provenance that each golden keeps.

    Raises:
        StoreError: an existing golden is damaged, or the disk refuses.
    """
    if not rows:
        return Recorded(suite, here.slug, subject, {}, {})
    known = here.slug in store.fingerprints(suite)
    recorded = (
        store.read_fingerprint(suite, here.slug)
        if known
        else RecordedFingerprint(suite, here, noise)
    )
    recorded = replace(recorded, calibration={**noise, **recorded.calibration})
    store.write_fingerprint(recorded)
    by = {"goldens": __version__} | {
        name: str(here.provenance[name]) for name in versions if name in here.provenance
    }
    changes = {row.case: store.write(Golden(suite, here.slug, subject, row, by)) for row in rows}
    if Change.UPDATED in changes.values() and whole:
        recorded = RecordedFingerprint(suite, here, {**recorded.calibration, **noise})
        store.write_fingerprint(recorded)
    return Recorded(suite, here.slug, subject, changes, recorded.calibration)
