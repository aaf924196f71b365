"""The store: goldens, environments and blobs below one folder."""

from __future__ import annotations

import enum
import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from snapshot.errors import DamagedGolden, MissingGolden, StoreError
from snapshot.model import Array, Golden, RecordedFingerprint
from snapshot.names import is_safe_component
from snapshot.store import blob, casefile, files, fingerprintfile, migrate, records
from snapshot.store.blobs import FOLDER, Blobs, LazyArrays
from snapshot.store.check import SUFFIX, Checker


class Change(enum.Enum):
    """What a write did."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


class Store:
    """Goldens below `root`: ``<suite>/<slug>/<subject>/<case key>.json`` and ``blobs/``.

    A root that does not exist reads as an empty store and is made by the first write. Several
    processes may write at once: a case is one file, and a file appears whole or not at all.

    Every method that takes names raises `StoreError` for one that is not safe as a folder name.

    Args:
        take: reads a file below the root; a store that is read from elsewhere than the disk
            brings its own, and lays out on the disk only what is listed.
    """

    def __init__(self, root: Path, take: files.Read = files.read_bounded) -> None:
        self.root = root
        self._take = take
        self._blobs = Blobs(root, take)

    # ------------------------------------------------------------------- environments

    def fingerprints(self, suite: str) -> list[str]:
        """Slugs of the environments that were recorded for the suite, sorted.

        A folder without its ``fingerprint.json`` is what an interrupted recording leaves: it is
        not listed, and `check` reports it.
        """
        folder = self._path(suite)
        # A link that leads nowhere is there too, and reading it refuses it.
        return [
            s for s in self._folders(folder) if os.path.lexists(folder / s / fingerprintfile.NAME)
        ]

    def orphans(self, suite: str) -> list[str]:
        """Slugs under which goldens lie without their ``fingerprint.json``, sorted."""
        known = self.fingerprints(suite)
        return [
            slug
            for slug in self._folders(self._path(suite))
            if slug not in known
            and any(self.cases(suite, slug, subject) for subject in self.subjects(suite, slug))
        ]

    def read_fingerprint(self, suite: str, slug: str) -> RecordedFingerprint:
        """The environment as it was when it was recorded.

        Raises:
            MissingGolden: nothing was recorded there.
            DamagedGolden, NewerSchema: the file cannot be trusted, or is of another place.
        """
        path = self._path(suite, slug, fingerprintfile.NAME)
        try:
            record = records.read(path, migrate.FINGERPRINT, self._take)
        except FileNotFoundError:
            raise MissingGolden(
                "this environment was never recorded",
                where=str(path),
                expected=f"fingerprint {slug}",
                got=_listing("fingerprints", self.fingerprints(suite)),
                hint=f"goldens record {shlex.quote(suite)}",
            ) from None
        recorded = fingerprintfile.decode(record, str(path))
        stated = (recorded.suite, recorded.fingerprint.slug)
        _agree(stated, (suite, slug), path)
        return recorded

    def write_fingerprint(self, recorded: RecordedFingerprint) -> Change:
        """Write ``fingerprint.json``, unless it says the same already.

        Raises:
            DamagedGolden, NewerSchema: the file that is there cannot be read; it is left alone.
            StoreError: the environment cannot be written as JSON, or the disk refuses.
        """
        suite, slug = recorded.suite, recorded.fingerprint.slug
        path = self._path(suite, slug, fingerprintfile.NAME)
        record = fingerprintfile.encode(recorded)
        fingerprintfile.decode(record, str(path))
        try:
            existing = records.read(path, migrate.FINGERPRINT)
        except FileNotFoundError:
            records.write(path, record, migrate.FINGERPRINT)
            return Change.CREATED
        if records.same(existing, record):
            return Change.UNCHANGED
        records.write(path, record, migrate.FINGERPRINT)
        return Change.UPDATED

    # ------------------------------------------------------------------------- goldens

    def subjects(self, suite: str, slug: str) -> list[str]:
        """Subjects that have goldens there, sorted."""
        return self._folders(self._path(suite, slug))

    def cases(self, suite: str, slug: str, subject: str) -> list[str]:
        """Keys of the subject's cases, sorted; what the files hold is not read."""
        folder = self._path(suite, slug, subject)
        found = []
        for parent, _, names in os.walk(folder):
            above = Path(parent).relative_to(folder).parts
            for name in names:
                if name.endswith(SUFFIX) and not files.is_temporary(name):
                    found.append("/".join((*above, name.removesuffix(SUFFIX))))
        return sorted(found)

    def path(self, suite: str, slug: str, subject: str, key: str) -> Path:
        """The file of a case, whether or not it exists."""
        *folders, name = key.split("/")
        _require_safe(suite, slug, subject, *folders, name)
        return self._path(suite, slug, subject, *folders, name + SUFFIX)

    def read(self, suite: str, slug: str, subject: str, key: str) -> Golden[Any]:
        """The golden of a case.

        Its ``observation.arrays`` is a `LazyArrays`: a blob is read and checked when its array
        is first asked for, and raises `DamagedGolden` then.

        Raises:
            MissingGolden: nothing was recorded there; says what is.
            DamagedGolden, NewerSchema: the file cannot be trusted, or is of another place.
        """
        path = self.path(suite, slug, subject, key)
        try:
            record = records.read(path, migrate.GOLDEN, self._take)
        except FileNotFoundError:
            raise self._missing(path, suite, slug, subject, key) from None

        def load(digests: Mapping[str, str]) -> Mapping[str, Array]:
            return LazyArrays(self._blobs, digests, str(path))

        golden = casefile.decode(record, str(path), load)
        stated = (golden.suite, golden.slug, golden.subject, golden.case)
        _agree(stated, (suite, slug, subject, key), path)
        return golden

    def change(self, golden: Golden[Any]) -> Change:
        """What writing a golden would do to its case file. Writes nothing.

        Raises:
            DamagedGolden, NewerSchema: the file that is there cannot be read.
            StoreError: the golden cannot be written as JSON.
        """
        return self._compared(golden)[-1]

    def write(self, golden: Golden[Any]) -> Change:
        """Write a golden: its blobs first, then its file, each only where it is not there yet.

        Equal content, `recorded_by` aside, changes no byte.

        Raises:
            DamagedGolden, NewerSchema: the file or a blob that is there cannot be read; it is
                left alone.
            StoreError: the golden cannot be written as JSON, an array's dtype or size cannot be
                stored, or the disk refuses. A blob written before that stays, unreferenced.
        """
        path, record, change = self._compared(golden)
        arrays = golden.observation.arrays
        restored = [name for name in arrays if self._blobs.write(arrays[name])]
        if change is Change.UNCHANGED:
            return Change.UPDATED if restored else Change.UNCHANGED
        records.write(path, record, migrate.GOLDEN)
        return change

    # ------------------------------------------------------------------------ the whole

    def check(self, suites: Iterable[str] | None = None) -> list[StoreError]:
        """Every problem of the files below the root, sorted by path; empty where all is well.

        Args:
            suites: only these, and the blobs they refer to; None for everything, blobs that
                nobody refers to and files that do not belong there included.
        """
        checker = Checker(self)
        checker.walk(None if suites is None else set(suites))
        checker.read_blobs()
        return sorted(checker.problems, key=lambda problem: problem.where or "")

    def unreferenced_blobs(self) -> list[Path]:
        """Blobs that no golden refers to, sorted.

        Raises:
            StoreError: something that is not in order makes it uncertain what is referred to.
        """
        checker = Checker(self)
        checker.walk(None)
        if checker.problems:
            raise checker.problems[0]
        unreferenced = checker.blobs.keys() - checker.referenced.keys()
        return [checker.blobs[digest] for digest in sorted(unreferenced)]

    # ------------------------------------------------------------------------- private

    def _compared(self, golden: Golden[Any]) -> tuple[Path, records.Record, Change]:
        """A golden's file, its record, and how that differs from what lies there."""
        path = self.path(golden.suite, golden.slug, golden.subject, golden.case)
        arrays = golden.observation.arrays
        record = casefile.encode(golden, {name: blob.digest(arrays[name]) for name in arrays})
        casefile.decode(record, str(path), lambda digests: {})
        try:
            existing = records.read(path, migrate.GOLDEN)
        except FileNotFoundError:
            return path, record, Change.CREATED
        same = records.same(existing, record)
        return path, record, Change.UNCHANGED if same else Change.UPDATED

    def _path(self, *parts: str) -> Path:
        _require_safe(*parts)
        if parts[0] == FOLDER:
            raise StoreError(
                f"a suite cannot be called {FOLDER!r}",
                where=str(self.root / FOLDER),
                hint="rename the suite in goldens.toml",
            )
        return files.contained(self.root, *parts)

    def _folders(self, folder: Path) -> list[str]:
        try:
            with os.scandir(folder) as entries:
                names = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise files.refused("cannot list a folder of the store", folder, error) from None
        return sorted(filter(is_safe_component, names))

    def _missing(self, path: Path, suite: str, slug: str, subject: str, key: str) -> MissingGolden:
        slugs = self.fingerprints(suite)
        if slug not in slugs:
            got = _listing("fingerprints", slugs)
        elif subject not in (subjects := self.subjects(suite, slug)):
            got = _listing("subjects", subjects)
        else:
            got = _listing("cases", self.cases(suite, slug, subject))
        return MissingGolden(
            "no golden was recorded for this case",
            where=str(path),
            expected=f"{key} of {subject} at {slug}",
            got=got,
            hint=f"goldens record {shlex.quote(key)}",
        )


def _require_safe(*names: str) -> None:
    for name in names:
        if not is_safe_component(name):
            raise StoreError(
                "a name is not safe as a file name on every system",
                where=ascii("/".join(names)),
                expected="letters, digits, '.', '_' and '-', and no device name of Windows",
                got=ascii(name),
            )


def _agree(stated: tuple[str, ...], place: tuple[str, ...], path: Path) -> None:
    if stated != place:
        raise DamagedGolden(
            "the file belongs to another place than it lies in",
            where=str(path),
            expected=" ".join(place),
            got=" ".join(stated),
            hint=f"git checkout -- {shlex.quote(str(path))}, or move it where it belongs",
        )


def _listing(what: str, names: list[str]) -> str:
    if not names:
        return f"no {what} at all"
    shown = ", ".join(names[:5])
    return f"{what} recorded: {shown}" + (f" and {len(names) - 5} more" if names[5:] else "")
