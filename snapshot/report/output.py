"""``--report FORMAT:PATH``: where a report goes."""

from __future__ import annotations

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
        UsageError: the format is unknown, or the path is none that a file can have.
    """
    name, _, path = value.partition(":")
    if name not in formats or not path:
        raise UsageError(
            "no such report",
            where=f"--report {value}",
            expected=f"FORMAT:PATH, the format one of {', '.join(formats)}; - as path prints it",
            got=value,
        )
    if Path(path).is_dir():
        raise UsageError(
            "the report cannot be written: it is a folder",
            where=f"--report {value}",
            expected=f"a file, such as {Path(path) / 'report'}.{name}",
            got=path,
        )
    return Output(name, path)


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
            path.parent.mkdir(parents=True, exist_ok=True)
            # A lone surrogate of a model's text is no UTF-8; reports show such as codes.
            path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        except OSError as error:
            raise UsageError(
                f"the report cannot be written: {error.strerror}", where=f"--report {path}"
            ) from None
