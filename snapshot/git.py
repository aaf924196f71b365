"""Runs git, whose plumbing commands alone are read; nothing is ever checked out."""

from __future__ import annotations

import subprocess
from pathlib import Path

from snapshot.errors import UsageError
from snapshot.store import files


def git(
    folder: Path, *arguments: str, stdin: bytes | None = None, seconds: float | None = None
) -> bytes:
    """What git says in a folder.

    Args:
        seconds: how long it may take; None: as long as it does.

    Raises:
        UsageError: git is not installed or cannot be run, takes too long, or says that it failed.
    """
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, input=stdin, capture_output=True, timeout=seconds
        )
    except FileNotFoundError:
        raise UsageError(
            "git is not installed: it is needed to read another revision",
            where="PATH",
            hint="goldens review compares two folders without git",
        ) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError("git cannot be run", where=str(folder), got=str(error)) from None
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError(
            "git cannot tell",
            where=f"git {' '.join(arguments)}",
            got=said[0] if said else f"exit code {done.returncode}",
            hint="a shallow clone lacks history: git fetch --deepen=100",
        )
    return done.stdout


class Objects:
    """Contents by object id, of one ``git cat-file`` that runs until `close`."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, content: str, limit: int, path: Path) -> bytes:
        """Raises: DamagedGolden: it is larger than `limit`. UsageError: git has no such object."""
        if self._process is None:
            self._process = subprocess.Popen(
                ["git", "cat-file", "--batch"],
                cwd=self._cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        asked, answer = self._process.stdin, self._process.stdout
        assert asked is not None and answer is not None
        try:
            asked.write(f"{content}\n".encode("ascii"))
            asked.flush()
        except BrokenPipeError:  # it is gone, and says nothing more
            pass
        said = answer.readline()
        found = said.split()
        if len(found) != 3:
            raise UsageError(
                "git lacks an object of this revision",
                where=content,
                got=said.decode("ascii", "replace").strip() or "nothing",
                hint="git fsck; git fetch --refetch",
            )
        size = int(found[2])
        if size > limit:
            self.close()  # rather than reading on: the next one is asked of a new process
            raise files.too_large(path, limit, f"{size} bytes")
        data = answer.read(size + 1)
        if len(data) != size + 1:
            raise UsageError("git broke off within an object", where=content, hint="git fsck")
        return data[:size]

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
