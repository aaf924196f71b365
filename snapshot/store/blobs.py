"""The folder of blobs: ``blobs/<2 hex>/<sha256>.zst``, named by content and never rewritten."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from snapshot.errors import DamagedGolden
from snapshot.model import Array
from snapshot.store import blob, files

FOLDER = "blobs"
SUFFIX = ".zst"

_HEX = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """The blobs of the store at `root`."""

    def __init__(self, root: Path, take: files.Read = files.read_bounded) -> None:
        self._root, self._take = root, take

    def path(self, digest: str) -> Path:
        """Where the blob of this digest (64 hex digits) lies, whether or not it exists."""
        return files.contained(self._root, FOLDER, digest[:2], digest + SUFFIX)

    def read(self, digest: str, referrer: str) -> Array:
        """The array of this digest, read-only, every byte checked.

        Args:
            digest: 64 hex digits.
            referrer: the file that needs it, for messages.

        Raises:
            DamagedGolden: it is not there, or not intact.
        """
        path = self.path(digest)
        try:
            data = self._take(path, blob.MAX_BYTES)
        except FileNotFoundError:
            raise DamagedGolden(
                "a blob that a golden refers to is missing",
                where=str(path),
                expected=f"the blob that {referrer} names",
                got="no such file",
                hint=f"git checkout -- {shlex.quote(str(path))}",
            ) from None
        return blob.decode(data, digest, str(path))

    def write(self, array: Array) -> bool:
        """Store an array under its digest, unless it is there already.

        Returns:
            Whether a file was written.

        Raises:
            DamagedGolden: a file of this name is there and is not intact; it is left alone.
            StoreError: the array cannot be stored (see `blob.encode`), or the operating system
                refuses.
        """
        digest = blob.digest(array)
        path = self.path(digest)
        if path.exists() or path.is_symlink():
            self.read(digest, "the array to be written")
            return False
        data = blob.encode(array)
        blob.decode(data, digest, str(path))  # never write what could not be read
        files.write_atomic(path, data)
        return True


def digest_of(path: Path) -> str | None:
    """The digest that a blob file's name and folder state; None where it is no blob's path."""
    named = path.suffix == SUFFIX and _HEX.fullmatch(path.stem) is not None
    return path.stem if named and path.parent.name == path.stem[:2] else None


class LazyArrays(Mapping[str, Array]):
    """The arrays of a golden by name, each read and checked when it is first asked for.

    Comparing texts of thousands of goldens reads no blob at all; comparing bits needs only
    `digests`.

    Attributes:
        digests: name to blob digest. Equal digests mean equal dtype, shape and bits.
    """

    def __init__(self, blobs: Blobs, digests: Mapping[str, str], referrer: str) -> None:
        self.digests = digests
        self._blobs = blobs
        self._referrer = referrer
        self._loaded: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        """The array `name`, read-only.

        Raises:
            KeyError: the golden has no such array.
            DamagedGolden: its blob is missing or not intact.
        """
        if name not in self._loaded:
            self._loaded[name] = self.glance(name)
        return self._loaded[name]

    def glance(self, name: str) -> Array:
        """As ``[name]``, but not kept: for going through many large arrays one by one."""
        known = self._loaded.get(name)
        return self._blobs.read(self.digests[name], self._referrer) if known is None else known

    def __contains__(self, name: object) -> bool:
        return name in self.digests

    def __iter__(self) -> Iterator[str]:
        return iter(self.digests)

    def __len__(self) -> int:
        return len(self.digests)
