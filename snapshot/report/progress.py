"""How far a run is: a bar on a terminal, a line each tenth elsewhere; on standard error."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from snapshot.progress import Advance


@contextlib.contextmanager
def progress(label: str, total: int) -> Iterator[Advance]:
    """Yields a function that takes the number of rows that have just been done."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(console, label, total)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda rows: bar.advance(task, rows)


def _lines(console: Console, label: str, total: int) -> Advance:
    done = 0
    whole = f"{total} row{'s' * (total != 1)}"

    def advance(rows: int) -> None:
        nonlocal done
        before, done = done, done + rows
        if done * 10 // total > before * 10 // total:
            console.print(f"{label}: {done} of {whole}", highlight=False, soft_wrap=True)

    console.print(f"{label}: {whole}", highlight=False, soft_wrap=True)
    return advance
