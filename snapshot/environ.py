"""What the process's environment says about how to behave."""

from __future__ import annotations

import os


def in_ci() -> bool:
    """Whether this is a CI job: the variable CI is set to anything but a no."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")
