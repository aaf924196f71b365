"""Bounded reading, atomic writing, and paths that cannot leave their folder."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shlex
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from snapshot.errors import DamagedGolden, StoreError

# Windows has neither; there a symlink is refused by `contained` alone.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_SEPARATOR = re.compile(r"[/\\:\0]")
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")


Read: TypeAlias = Callable[[Path, int], bytes]
"""Gives the bytes of a file, at most so many; raises as `read_bounded`, the usual one, does."""


def read_bounded(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes.

    Raises:
        FileNotFoundError: nothing is there.
        DamagedGolden: it is a link, a folder, a device, or larger than `limit`.
        StoreError: the operating system refuses.
    """
    try:
        handle = os.open(path, os.O_RDONLY | _NO_FOLLOW | _BINARY)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _not_regular(path, "a symbolic link") from None
        if error.errno == errno.EISDIR:
            raise _not_regular(path, "a folder") from None
        raise refused("cannot read a file of the store", path, error) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            got = "a folder" if stat.S_ISDIR(status.st_mode) else "a special file"
            raise _not_regular(path, got)
        if status.st_size > limit:
            raise too_large(path, limit, f"{status.st_size} bytes")
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(status.st_size + 1)
    except OSError as error:
        raise refused("cannot read a file of the store", path, error) from None
    finally:
        os.close(handle)
    if len(data) > status.st_size:
        raise too_large(path, status.st_size, "a file that grows while it is read")
    return data


def write_atomic(path: Path, data: bytes) -> None:
    """Write a whole file or nothing: no reader ever sees a part of it.

    The bytes go to a temporary file in the same folder, are flushed to the disk and read back
    before they take the name. Folders are made as needed. A killed process may leave its
    temporary behind (see `is_temporary`); a failure does not.

    Raises:
        StoreError: the operating system refuses; what was there before is unchanged.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(
            temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _BINARY, 0o666
        )
        try:
            with os.fdopen(handle, "r+b") as file:
                file.write(data)
                file.flush()
                os.fsync(handle)
                file.seek(0)
                if file.read() != data:
                    raise OSError(errno.EIO, "what was written does not read back", str(path))
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    except OSError as error:
        raise refused("cannot write into the store", path, error) from None


def is_temporary(name: str) -> bool:
    """Whether a file of this name is (or was) a write in progress."""
    return _TEMPORARY.fullmatch(name) is not None


def contained(root: Path, *parts: str) -> Path:
    """The path of `parts` below `root`, which neither a part nor a symbolic link leaves.

    The root itself may be a link. The last part need not exist; if it is a link, reading it is
    refused by `read_bounded`.

    Raises:
        StoreError: a part is absolute, ``..``, empty or holds a separator, or a folder on the
            way is a link.
    """
    for part in parts:
        if part in ("", ".", "..") or _SEPARATOR.search(part):
            raise StoreError(
                "a name leaves the store",
                where=str(root),
                expected="plain folder and file names",
                got=ascii("/".join(parts)),
            )
    folder = os.fspath(root)
    for part in parts[:-1]:
        folder = os.path.join(folder, part)
        if os.path.islink(folder):
            raise StoreError(
                "a folder of the store is a symbolic link",
                where=folder,
                expected="a folder",
                got=f"a link to {os.readlink(folder)}",
                hint="replace the link by the folder itself",
            )
    return Path(folder, parts[-1])


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY | _BINARY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _not_regular(path: Path, got: str) -> DamagedGolden:
    return DamagedGolden(
        "a file of the store is not a regular file",
        where=str(path),
        expected="a regular file",
        got=got,
        hint=f"git checkout -- {shlex.quote(str(path))}",
    )


def too_large(path: Path, limit: int, got: str) -> DamagedGolden:
    """A file that is larger than any that is written."""
    return DamagedGolden(
        "a file of the store is too large",
        where=str(path),
        expected=f"at most {limit} bytes",
        got=got,
        hint=f"git checkout -- {shlex.quote(str(path))}",
    )


def refused(what: str, path: Path, error: OSError) -> StoreError:
    """What the operating system refused, with what to do about it."""
    hints = {
        errno.EACCES: "check the owner and the permissions of the folder and the file",
        errno.EPERM: "check the owner and the permissions of the folder and the file",
        errno.EROFS: "the file system is read-only; record into a writable folder",
        errno.ENOSPC: "free some space on the disk",
        errno.EDQUOT: "free some of your disk quota",
        errno.ENAMETOOLONG: "use a shorter suite, engine or adapter name",
    }
    return StoreError(
        what,
        where=str(path),
        got=f"{error.strerror or error} (errno {error.errno})",
        hint=hints.get(error.errno or 0),
    )
