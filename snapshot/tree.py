"""One state of a project's goldens: its goldens.toml, and which files its store holds.

Two states are compared by what their files are, so most are never read: 40,000 goldens of
which three changed cost three readings a side.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from snapshot.config import Config
from snapshot.errors import GoldensError
from snapshot.names import is_safe_component
from snapshot.store import Store, files, fingerprintfile
from snapshot.store.blobs import FOLDER
from snapshot.store.check import SUFFIX


class Place(NamedTuple):
    """Where a golden lies, whichever state it is of."""

    suite: str
    slug: str
    subject: str
    case: str

    def __str__(self) -> str:
        return "/".join(self)


def place_of(path: str) -> Place | None:
    """The place that a path below the store's root stands for; None where it is no golden's."""
    parts = path.removesuffix(SUFFIX).split("/")
    if len(parts) < 4 or parts[0] == FOLDER or not path.endswith(SUFFIX):
        return None
    if not all(map(is_safe_component, parts)):
        return None
    return Place(parts[0], parts[1], parts[2], "/".join(parts[3:]))


def environment_of_path(path: str) -> tuple[str, str] | None:
    """Suite and slug of a ``fingerprint.json``; None for any other path."""
    parts = path.split("/")
    is_one = len(parts) == 3 and parts[2] == fingerprintfile.NAME
    return (parts[0], parts[1]) if is_one and all(map(is_safe_component, parts)) else None


@dataclass(frozen=True)
class Tree:
    """One state of the goldens.

    Attributes:
        label: what to call it: ``main``, ``the work tree``.
        config: its goldens.toml; None where it has none or cannot be read.
        problem: why its goldens.toml cannot be read.
        store: reads its goldens.
        files: path below the store's root to an id of its content: equal ids, equal bytes.
    """

    label: str
    config: Config | None
    store: Store
    files: Mapping[str, str]
    problem: GoldensError | None = None


def folder(root: Path, config: Config | None, label: str, algorithm: str = "sha1") -> Tree:
    """The files below a store's root as they lie on the disk.

    Args:
        algorithm: the hash of the ids, which are git's for the same bytes.

    Raises:
        StoreError: a folder or a file cannot be read. It is not gone.
    """

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # no goldens yet
            raise files.refused("cannot list a folder of the store", Path(error.filename), error)

    found: dict[str, str] = {}
    for parent, folders, names in os.walk(root, onerror=refuse):
        folders.sort()
        above = Path(parent).relative_to(root).parts
        for name in names:
            path = "/".join((*above, name))
            if above[:1] == (FOLDER,):
                found[path] = name  # a blob's name is its content
            elif not files.is_temporary(name) and not os.path.islink(os.path.join(parent, name)):
                found[path] = content_id(_bytes(Path(parent, name)), algorithm)
    return Tree(label, config, Store(root), found)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise files.refused("cannot read a file of the store", path, error) from None


def content_id(data: bytes, algorithm: str) -> str:
    """The id that git gives to a file with these bytes."""
    return hashlib.new(algorithm, b"blob %d\0" % len(data) + data).hexdigest()
