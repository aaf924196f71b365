"""Writing what was observed into the store: the environment, then its goldens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from snapshot import __version__
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
