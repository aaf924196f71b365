"""What a runner needs and cannot import, said in words."""

from __future__ import annotations

import sys

from snapshot.errors import RunError

Broken = (ImportError, OSError)
"""What an import raises: nothing there, another version, or a library that it loads is missing."""


def unimportable(who: str, error: Exception, hint: str) -> RunError:
    """The error for the user: `who` ("the reference needs") and what is wrong."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        what, got = f"{who} {error.name}, which is not installed", None
    else:
        what, got = f"{who} a package that cannot be imported", f"{type(error).__name__}: {error}"
    return RunError(what, where=sys.executable, got=got, hint=hint)
