"""Which wording the reference gives at which batch size: terminal, markdown and JSON."""

from __future__ import annotations

import dataclasses
import json
import string
from collections.abc import Iterator, Sequence

from rich.console import Console

from snapshot import __version__
from snapshot.outcomes.sweep import Cell, Sweep, SweptCase
from snapshot.report.plain import QUOTE, visible

_LONGEST = 160  # characters of a wording


def print_sweeps(sweeps: Sequence[Sweep]) -> None:
    """A matrix a dtype, then the wordings of every case that has more than one, and
    why a cell could not be run."""
    console = Console(highlight=False, emoji=False)
    for sweep in sweeps:
        console.print(f"\n{_title(sweep)}", style="bold", markup=False, soft_wrap=True)
        rows = [["case", *sweep.columns], *(_row(case) for case in sweep.cases)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for row, moved in zip(rows, [None, *sweep.cases], strict=True):
            cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
            style = "dim" if moved is None else "yellow" if len(moved.wordings) > 1 else ""
            line = "  " + "  ".join(cells).rstrip()
            console.print(line, style=style, markup=False, soft_wrap=True)
        for case in sweep.told:
            console.print(f"\n  {case.case}", markup=False, soft_wrap=True)
            for letter, text in _wordings(case):
                console.print(f"    {letter}  {QUOTE}{text}", markup=False, soft_wrap=True)
        console.print(f"\n{_summary(sweep)}", markup=False, soft_wrap=True)


def as_markdown(sweeps: Sequence[Sweep]) -> str:
    """A table a dtype for a pull request; wordings stand in code blocks that no text can end."""
    parts: list[str] = []
    for sweep in sweeps:
        rows = [["case", *sweep.columns], ["---"] * (len(sweep.columns) + 1)]
        rows += [[f"`{case.case}`", *map(_cell, case.cells)] for case in sweep.cases]
        parts += [f"### {_title(sweep)}", "\n".join(f"| {' | '.join(row)} |" for row in rows)]
        for case in sweep.told:
            lines = [f"    {letter}  {text}" for letter, text in _wordings(case)]
            parts += [f"`{case.case}`", "\n".join(lines)]
        parts.append(_summary(sweep))
    return "\n\n".join(parts)


def as_json_text(sweeps: Sequence[Sweep]) -> str:
    """One JSON document; keys are the attributes of `Sweep`."""
    document = {
        "schema": 1,
        "goldens": __version__,
        "sweeps": [dataclasses.asdict(sweep) for sweep in sweeps],
    }
    return json.dumps(document, indent=2)


def _title(sweep: Sweep) -> str:
    return f"{sweep.suite}, {sweep.dtype}: {sweep.slug}"


def _row(case: SweptCase) -> list[str]:
    return [case.case, *map(_cell, case.cells)]


def _cell(cell: Cell) -> str:
    """``B, step 4, margin 0.125``: the wording, and where and how surely it leaves the first."""
    if cell.wording is None:
        return "error"
    letter = _letter(cell.wording)
    if cell.parting is None:
        return letter
    at = cell.parting
    margins = [m for m in (at.golden_margin, at.candidate_margin) if m is not None]
    return f"{letter}, step {at.step}" + (f", margin {max(margins):.3g}" if margins else "")


def _letter(wording: int) -> str:
    letters = string.ascii_uppercase
    return letters[wording] if wording < len(letters) else f"W{wording}"


def _wordings(case: SweptCase) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(case.wordings):
        yield _letter(number), visible(text, _LONGEST)
    for error in dict.fromkeys(cell.error for cell in case.cells if cell.error):
        yield "error", visible(error, _LONGEST)


def _summary(sweep: Sweep) -> str:
    parted = [cell.parting for case in sweep.cases for cell in case.cells if cell.parting]
    margins = [m for at in parted for m in (at.golden_margin, at.candidate_margin) if m is not None]
    largest = f"; largest top-2 margin where they part {max(margins):.3g}" if margins else ""
    errors = f"; {sweep.failed} could not be run" if sweep.failed else ""
    keep = f"; to keep these as variants: goldens record {sweep.suite}" if parted else ""
    return f"{len(sweep.moved)} of {len(sweep.cases)} cases change{largest}{errors}{keep}"
