"""The command line: options in, exit code out. What a verb does stands in its own file.

Imports are inside the commands, so that ``goldens --help`` costs nothing.
"""

from snapshot.cli import changing, reading, running
from snapshot.cli.root import main

__all__ = ["changing", "main", "reading", "running"]
