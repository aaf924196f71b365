"""Looks at every file of a store. Damage is collected, never raised."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from snapshot.errors import DamagedGolden, StoreError
from snapshot.names import fold
from snapshot.store import files, fingerprintfile, migrate, records, schemas
from snapshot.store.blobs import FOLDER, Blobs, digest_of
from snapshot.store.canonical import restore_hint
from snapshot.store.migrate import Format

if TYPE_CHECKING:
    from snapshot.store.store import Store

SUFFIX = ".json"

_BESIDE = frozenset({".gitattributes", ".gitignore", "README.md"})
_ABANDONED = 3600.0  # seconds after which a temporary file is no write in progress


class Checker:
    """One walk over a store.

    Attributes:
        problems: what was found, in the order of the walk.
        blobs: digest to path of every blob file found; filled when all suites are walked.
        referenced: digest to the first case file that refers to it.
    """

    def __init__(self, store: Store) -> None:
        self.problems: list[StoreError] = []
        self.blobs: dict[str, Path] = {}
        self.referenced: dict[str, str] = {}
        self._store = store

    def walk(self, suites: set[str] | None) -> None:
        """Read all JSON of the suites given, or of the whole root for None; find all blobs."""
        for entry in self._entries(self._store.root):
            if entry.name == FOLDER and entry.is_dir():
                if suites is None:
                    self._find_blobs(Path(entry.path))
            elif not entry.is_dir():
                if suites is None and entry.name not in _BESIDE:
                    self._stray(entry, "folders of suites")
            elif suites is None or entry.name in suites:
                self._suite(entry)

    def read_blobs(self) -> None:
        """Read every blob that `walk` found or found a reference to."""
        blobs = Blobs(self._store.root)
        for digest in sorted(self.blobs.keys() | self.referenced.keys()):
            self._attempt(blobs.read, digest, self.referenced.get(digest, "no golden"))

    def _suite(self, suite: os.DirEntry[str]) -> None:
        for slug in self._entries(suite):
            if not slug.is_dir():
                self._stray(slug, "folders of fingerprints")
                continue
            self._attempt(self._fingerprint, suite.name, slug)
            for entry in self._entries(slug):
                if entry.is_dir():
                    self._cases(suite.name, slug.name, entry.name, entry, ())
                elif entry.name != fingerprintfile.NAME:
                    self._stray(entry, f"{fingerprintfile.NAME} and folders of subjects")

    def _fingerprint(self, suite: str, slug: os.DirEntry[str]) -> None:
        self._store.read_fingerprint(suite, slug.name)
        self._schema(Path(slug.path, fingerprintfile.NAME), migrate.FINGERPRINT)

    def _cases(
        self,
        suite: str,
        slug: str,
        subject: str,
        folder: os.DirEntry[str],
        above: tuple[str, ...],
    ) -> None:
        for entry in self._entries(folder):
            if entry.is_dir():
                self._cases(suite, slug, subject, entry, (*above, entry.name))
            elif not entry.name.endswith(SUFFIX):
                self._stray(entry, f"case files that end in {SUFFIX}")
            else:
                key = "/".join((*above, entry.name.removesuffix(SUFFIX)))
                self._attempt(self._case, suite, slug, subject, key, Path(entry.path))

    def _case(self, suite: str, slug: str, subject: str, key: str, path: Path) -> None:
        self._store.read(suite, slug, subject, key)
        for digest in self._schema(path, migrate.GOLDEN)["arrays"].values():
            self.referenced.setdefault(digest, str(path))

    def _schema(self, path: Path, form: Format) -> records.Record:
        record = records.read(path, form)
        problem = schemas.problem(record, form)
        if problem is not None:
            raise DamagedGolden(
                f"the file does not follow its schema at {problem[0]}",
                where=str(path),
                expected=f"schema/{form.name}.v{form.current}.json",
                got=problem[1],
                hint=restore_hint(str(path)),
            )
        return record

    def _find_blobs(self, folder: Path) -> None:
        for shard in self._entries(folder):
            if not shard.is_dir():
                self._stray(shard, "folders of two hex digits")
                continue
            for entry in self._entries(shard):
                digest = digest_of(Path(entry.path))
                if digest is None or not entry.is_file(follow_symlinks=False):
                    self._stray(entry, "<sha256>.zst in the folder of its first two digits")
                else:
                    self.blobs[digest] = Path(entry.path)

    def _entries(self, folder: os.DirEntry[str] | Path) -> Iterator[os.DirEntry[str]]:
        """What lies in a folder, sorted; links, and names that fold to one, are problems."""
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        except OSError as error:
            # Never "remove it": what cannot be seen may be sound.
            self.problems.append(files.refused("a folder cannot be listed", Path(folder), error))
            return
        seen: dict[str, str] = {}
        for entry in entries:
            if entry.is_symlink():
                self._problem("a link lies in the store", entry.path, "files", "a symbolic link")
            elif files.is_temporary(entry.name):
                self._temporary(entry)
            else:
                other = seen.setdefault(fold(entry.name), entry.name)
                if other != entry.name:
                    self._problem(
                        "two names are one on some file systems",
                        entry.path,
                        "names that differ in more than case or Unicode normalisation",
                        f"{other!a} and {entry.name!a}",
                    )
                yield entry

    def _temporary(self, entry: os.DirEntry[str]) -> None:
        try:
            age = time.time() - entry.stat(follow_symlinks=False).st_mtime
        except OSError:  # it took its name meanwhile
            return
        if age > _ABANDONED:
            self._stray(entry, "no file that a killed write left behind")

    def _stray(self, entry: os.DirEntry[str], expected: str) -> None:
        self._problem(
            "a file that is no golden lies in the store", entry.path, expected, ascii(entry.name)
        )

    def _problem(self, what: str, path: str, expected: str, got: str) -> None:
        hint = f"remove or rename {shlex.quote(path)}"
        self.problems.append(
            StoreError(what, where=path, expected=expected or None, got=got, hint=hint)
        )

    def _attempt(self, check: Callable[..., object], *args: object) -> None:
        try:
            check(*args)
        except StoreError as error:
            self.problems.append(error)
