"""Goldens that wait for a decision: a folder shaped like a store, beside the goldens.

Each decision takes effect at once and leaves every file whole: an accepted golden is written
first and then taken out of the folder, so whoever is killed in between finds it there, equal
to what was accepted, and it is cleared away.
"""

from __future__ import annotations

import contextlib
import enum
import fnmatch
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from snapshot.changes import (
    EnvironmentChange,
    GoldenChange,
    Group,
    environment_change,
    golden_change,
)
from snapshot.errors import (
    DamagedGolden,
    GoldensError,
    MissingGolden,
    RecordRefused,
    StoreError,
)
from snapshot.model import GENERATION, REFERENCE, Generated, Golden, RecordedFingerprint
from snapshot.store import Store, fingerprintfile
from snapshot.store.blobs import FOLDER, SUFFIX
from snapshot.tree import Place

REASON = "accepted_because"
"""Name under which a case file's ``recorded_by`` keeps why it was accepted with many others."""

_AGAIN = "unpack the artifact again, or remove the folder and goldens record --pending DIR"


class Decision(enum.Enum):
    """What became of a pending golden."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Pending:
    """One thing to decide.

    Attributes:
        name: ``suite/slug/subject/case``, or ``suite/slug/fingerprint.json``.
        change: what accepting it would change.
        place: the golden's; None for an environment.
    """

    name: str
    change: GoldenChange | EnvironmentChange
    place: Place | None

    @property
    def group(self) -> tuple[str, Group]:
        """What is decided together: one environment's changes of one kind."""
        environment = "/".join(self.name.split("/")[: 3 if self.place else 2])
        return environment, self.change.group


@dataclass
class Waiting:
    """What lies in a folder of pending goldens.

    Attributes:
        items: what there is to decide, by environment.
        settled: what says the same as its golden already.
        problems: what cannot be reviewed, and why.
    """

    items: list[Pending] = field(default_factory=list)
    settled: list[Pending] = field(default_factory=list)
    problems: list[GoldensError] = field(default_factory=list)


class Inbox:
    """The folder of pending goldens, and the store that they would go to.

    Args:
        folder: of the pending goldens.
        store: the goldens.
    """

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder = folder
        self._pending = Store(folder)
        self._store = store

    def look(self) -> Waiting:
        """What waits. Changes nothing."""
        waiting = Waiting()
        for suite in self._folders():
            for slug in self._pending.orphans(suite):
                waiting.problems.append(self._orphan(suite, slug))
            for slug in self._pending.fingerprints(suite):
                try:
                    self._environment(suite, slug, waiting)
                    self._goldens(suite, slug, waiting)
                except StoreError as error:
                    waiting.problems.append(as_pending(error, self.folder))
        return waiting

    def accept(self, item: Pending, reason: str | None = None) -> None:
        """Makes a pending golden a golden.

        Args:
            reason: why it was accepted together with many others; kept in its file.

        Raises:
            DamagedGolden: the golden that is there cannot be read; it is left alone.
            RecordRefused: it cannot be of the subject it says it is of.
            StoreError: it cannot be written.
        """
        try:
            self._accept(item, reason)
        except StoreError as error:
            raise as_pending(error, self.folder) from None

    def _accept(self, item: Pending, reason: str | None) -> None:
        if item.place is None:
            suite, slug, _ = item.name.split("/")
            recorded = self._pending.read_fingerprint(suite, slug)
            self._store.write_fingerprint(_onto(self._recorded(suite, slug), recorded))
            self.clear(item)
            return
        golden = self._pending.read(*item.place)
        _require_own(golden)
        if reason is not None:
            golden = replace(golden, recorded_by={**golden.recorded_by, REASON: reason})
        with contextlib.suppress(MissingGolden):
            self._store.read(*item.place)  # raises where it is damaged, before anything is written
        place = item.place
        if place.slug not in self._store.fingerprints(place.suite):
            self._store.write_fingerprint(self._pending.read_fingerprint(place.suite, place.slug))
        self._store.write(golden)
        self.clear(item)

    def clear(self, item: Pending) -> None:
        """Takes an item out of the folder: it was rejected, or was accepted before."""
        if item.place is not None:
            self._pending.path(*item.place).unlink(missing_ok=True)
            return
        # The file says which environment the other pending goldens are of: they still need it.
        suite, slug, _ = item.name.split("/")
        recorded = self._recorded(suite, slug)
        if recorded is not None:
            self._pending.write_fingerprint(recorded)

    def tidy(self) -> None:
        """Removes what nothing refers to any more once every golden is decided."""
        if any(self._pending.cases(*key) for key in self._subjects()):
            return
        for parent, _, names in os.walk(self.folder, topdown=False):
            for name in names:
                if name.endswith((SUFFIX, ".tmp")) or name == fingerprintfile.NAME:
                    Path(parent, name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # something of somebody else lies in it
                Path(parent).rmdir()

    # ------------------------------------------------------------------------- private

    def _environment(self, suite: str, slug: str, waiting: Waiting) -> None:
        before = self._recorded(suite, slug)
        after = _onto(before, self._pending.read_fingerprint(suite, slug))
        # A new environment comes with its first golden: alone there is nothing to decide.
        change = None if before is None else environment_change(before, after)
        if change is not None:
            name = f"{suite}/{slug}/{fingerprintfile.NAME}"
            waiting.items.append(Pending(name, change, None))

    def _goldens(self, suite: str, slug: str, waiting: Waiting) -> None:
        for subject in self._pending.subjects(suite, slug):
            for case in self._pending.cases(suite, slug, subject):
                place = Place(suite, slug, subject, case)
                try:
                    after = self._pending.read(*place)
                    _require_own(after)
                    change = golden_change(place, self._before(place), after)
                except GoldensError as error:
                    waiting.problems.append(as_pending(error, self.folder))
                    continue
                if change is None or change.group is Group.ENVIRONMENT:
                    waiting.settled.append(Pending(str(place), _nothing(place, after), place))
                else:
                    waiting.items.append(Pending(str(place), change, place))

    def _before(self, place: Place) -> Golden | None:
        try:
            return self._store.read(*place)
        except MissingGolden:
            return None

    def _recorded(self, suite: str, slug: str) -> RecordedFingerprint | None:
        try:
            return self._store.read_fingerprint(suite, slug)
        except MissingGolden:
            return None

    def _folders(self) -> list[str]:
        if not self.folder.is_dir():
            return []
        names = sorted(path.name for path in self.folder.iterdir() if path.is_dir())
        return [name for name in names if name != FOLDER and not name.startswith(".")]

    def _subjects(self) -> list[tuple[str, str, str]]:
        return [
            (suite, slug, subject)
            for suite in self._folders()
            for slug in (*self._pending.fingerprints(suite), *self._pending.orphans(suite))
            for subject in self._pending.subjects(suite, slug)
        ]

    def _orphan(self, suite: str, slug: str) -> StoreError:
        path = Path(self.folder, suite, slug, fingerprintfile.NAME)
        subjects = self._pending.subjects(suite, slug)
        count = sum(len(self._pending.cases(suite, slug, subject)) for subject in subjects)
        return DamagedGolden(
            f"pending goldens lie here without their {fingerprintfile.NAME}",
            where=str(path),
            expected="the environment that they were recorded in, with its noise floor",
            got=f"no such file, and {count} goldens beside it",
            hint=_AGAIN,
        )


def matching(items: Sequence[Pending], globs: Sequence[str]) -> list[Pending]:
    """The items that a glob names, by case key or by the whole name."""
    return [
        item
        for item in items
        if any(
            fnmatch.fnmatchcase(name, glob)
            for glob in globs
            for name in ([item.name, item.place.case] if item.place else [item.name])
        )
    ]


def as_pending(error: GoldensError, folder: Path) -> GoldensError:
    """The error, with a hint that holds in a folder of pending goldens: git has none of them."""
    if isinstance(error, DamagedGolden) and Path(error.where or "").is_relative_to(folder):
        error.hint = _AGAIN
    return error


def _onto(before: RecordedFingerprint | None, after: RecordedFingerprint) -> RecordedFingerprint:
    """The environment once `after` is accepted: noise that only `before` knows stays known."""
    if before is None:
        return after
    return replace(after, calibration={**before.calibration, **after.calibration})


def _require_own(golden: Golden) -> None:
    """Raises `RecordRefused` for a reference's golden that no reference made.

    The file's place and content agree, or it could not be read; but both can be edited. The
    reference always knows what it ran and in which batch, and says which versions did; an
    engine's outputs never tell all of that.
    """
    observation = golden.observation
    if golden.subject != REFERENCE or not isinstance(observation.output, Generated):
        return
    known = observation.workload is not None and observation.composition is not None
    if not known or "transformers" not in golden.recorded_by:
        raise RecordRefused(
            "what an engine gave can never become the reference's golden",
            where=f"{golden.suite}/{golden.slug}/{golden.subject}/{golden.case}",
            expected=f"a {GENERATION} recorded by the reference: its workload, its batch, and "
            "its versions of torch, transformers and peft",
            got=", ".join(sorted(golden.recorded_by)) or "no versions at all",
            hint="goldens record --pending DIR",
        )


def _nothing(place: Place, golden: Golden) -> GoldenChange:
    return GoldenChange(place, Group.ENVIRONMENT, golden, golden)
