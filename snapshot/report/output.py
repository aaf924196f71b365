"""``--report FORMAT:PATH``: where a report goes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from snapshot.errors import UsageError

T = TypeVar("T")


@dataclass(frozen=True)
class Output:
    """A report that was asked for.

    Attributes:
        format: its name.
        path: a file, or ``-`` for standard output.
    """

    format: str
    path: str


def parse(value: str, formats: Sequence[str]) -> Output:
    """An output from ``FORMAT:PATH``.

    Raises:
        UsageError: the format is unknown, or no file can be written there: said before the
            work whose report it is.
    """
    name, _, path = value.partition(":")
    if name not in formats or not path:
        raise UsageError(
            "no such report",
            where=f"--report {value}",
            expected=f"FORMAT:PATH, the format one of {', '.join(formats)}; - as path prints it",
            got=value,
        )
    if os.path.isdir(path):
        raise UsageError(
            "the report cannot be written: it is a folder",
            where=f"--report {value}",
            expected=f"a file, such as {Path(path) / 'report'}.{name}",
            got=path,
        )
    if path != "-":
        _try(Path(path))
    return Output(name, path)


def _try(path: Path) -> None:
    """Opens the file for writing and leaves no trace but the folders that it needs."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        path.open("ab").close()
        if new:
            path.unlink()
    except (OSError, ValueError) as error:
        raise _refused(path, error) from None


def _refused(path: Path, error: OSError | ValueError) -> UsageError:
    why = error.strerror if isinstance(error, OSError) else error
    return UsageError(
        f"the report cannot be written: {why}",
        where=f"--report {path}",
        expected="a file in a folder that can be written to; - prints it",
    )


def write(
    outputs: Sequence[Output],
    render: Mapping[str, Callable[[T], str]],
    report: T,
    say: Callable[[str], None],
) -> None:
    """Renders and writes each report.

    Args:
        say: takes what goes to standard output.

    Raises:
        UsageError: a file cannot be written.
    """
    for output in outputs:
        text = render[output.format](report)
        if output.path == "-":
            say(text)
            continue
        path = Path(output.path)
        try:
            # A lone surrogate of a model's text is no UTF-8; reports show such as codes.
            path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        except OSError as error:
            raise _refused(path, error) from None
