"""Writing what was observed: the environment, then its goldens, for good or for review.

There is one way: goldens that wait for review are the files that recording would have written
into the store, in a folder of their own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from snapshot import __version__
from snapshot.errors import MissingGolden, UsageError
from snapshot.model import Fingerprint, Golden, Json, Observation, RecordedFingerprint
from snapshot.pending import as_pending
from snapshot.store import Change, Store


@dataclass(frozen=True)
class Recorded:
    """What recording did at one fingerprint for one subject.

    Attributes:
        suite, slug, subject: where.
        changes: what became of each case's golden; of a pending one: what accepting it does.
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


@dataclass(frozen=True)
class Target:
    """Where recording writes.

    Attributes:
        goldens: the store.
        pending: the folder that is written instead, for review; None: the store itself.
    """

    goldens: Store
    pending: Store | None = None

    @property
    def written(self) -> Store:
        return self.pending or self.goldens

    def check(self, suite: str) -> None:
        """Raises the first `StoreError` of a suite's files: before hours of work, not after."""
        for damage in self.goldens.check([suite]):
            raise damage
        if self.pending is not None:
            for damage in self.pending.check([suite]):
                raise as_pending(damage, self.pending.root)

    def recorded(self, suite: str, slug: str) -> RecordedFingerprint | None:
        """The environment as far as it is known; None where it is new."""
        for store in (self.written, self.goldens):
            try:
                return store.read_fingerprint(suite, slug)
            except MissingGolden:
                continue
        return None

    def write(self, golden: Golden[Any]) -> Change:
        """Writes a golden, and says what that is to the store, now or once it is accepted."""
        if self.pending is None:
            return self.goldens.write(golden)
        change = self.goldens.change(golden)
        self.pending.write(golden)
        return change


def target(store: Path, pending: Path | None, *, update_in_ci: bool = False) -> Target:
    """Where recording writes.

    Args:
        store: the folder of the goldens.
        pending: the folder for goldens that wait for review; None: the store.
        update_in_ci: write into the store although this is a CI job.

    Raises:
        UsageError: this is a CI job, or the pending folder overlaps the goldens.
    """
    goldens = Store(store)
    if pending is None:
        if _in_ci() and not update_in_ci:
            raise UsageError(
                "goldens are not recorded in CI",
                where="the environment variable CI is set",
                expected="a run that changes nothing",
                hint="record into an artifact with --pending DIR, or ask for it with "
                "--update-in-ci",
            )
        return Target(goldens)
    if _overlap(pending, store):
        raise UsageError(
            "pending goldens lie outside the goldens",
            where=f"--pending {pending}",
            expected=f"a folder that is not in {store}, nor around it",
            got=str(pending.resolve()),
        )
    if pending.exists() and not pending.is_dir():
        raise UsageError(
            "pending goldens lie in a folder", where=f"--pending {pending}", got="a file"
        )
    return Target(goldens, Store(pending))


def _in_ci() -> bool:
    """Whether this is a CI job: the variable CI is set to anything but a no."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


def _overlap(a: Path, b: Path) -> bool:
    a, b = a.resolve(), b.resolve()
    return a.is_relative_to(b) or b.is_relative_to(a)


def write_goldens(
    to: Target,
    suite: str,
    subject: str,
    here: Fingerprint,
    rows: Sequence[Observation[Any]],
    noise: Mapping[str, Json],
    *,
    whole: bool,
    by: Mapping[str, str],
) -> Recorded:
    """Writes the rows of one subject. The environment comes first: goldens without one could not
    be read.

    Args:
        noise: what was measured now; what was measured with the goldens that stay, stays.
        whole: whether the rows are all that the suite has there. A selection says nothing of
            the environment that the others were recorded in.
        by: who recorded, beside goldens itself: names and versions that each golden keeps.

    Raises:
        StoreError: an existing golden is damaged, or the disk refuses.
    """
    if not rows:
        return Recorded(suite, here.slug, subject, {}, {})
    recorded = to.recorded(suite, here.slug) or RecordedFingerprint(suite, here, noise)
    recorded = replace(recorded, calibration={**noise, **recorded.calibration})
    to.written.write_fingerprint(recorded)
    by = {"goldens": __version__, **by}
    changes = {row.case: to.write(Golden(suite, here.slug, subject, row, by)) for row in rows}
    if Change.UPDATED in changes.values() and whole:
        recorded = RecordedFingerprint(suite, here, {**recorded.calibration, **noise})
        to.written.write_fingerprint(recorded)
    return Recorded(suite, here.slug, subject, changes, recorded.calibration)


def versions(here: Fingerprint, names: Sequence[str]) -> dict[str, str]:
    """What an environment says of these packages, where it knows them."""
    return {name: str(here.provenance[name]) for name in names if name in here.provenance}
