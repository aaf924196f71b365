"""Runs git, whose plumbing commands alone are read; nothing is ever checked out."""

from __future__ import annotations

import subprocess
from pathlib import Path

from snapshot.errors import UsageError


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
