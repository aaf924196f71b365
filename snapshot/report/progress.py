"""How far a run is: a bar on a terminal, a line a step elsewhere; always on standard error."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from snapshot.runners.observe import Advance


@contextlib.contextmanager
def progress(label: str, total: int) -> Iterator[Advance]:
    """Yields a function that takes the number of rows that have just been done."""
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"{label}: {total} rows", highlight=False)
        yield lambda rows: None
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
