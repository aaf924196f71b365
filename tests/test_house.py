"""Data flows one way: what a room may not import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

MODELS = ("torch", "transformers", "peft", "triton")

# Of each room, the rooms above it; and what only `runners` may import.
ABOVE = {
    "metrics": ("store", "runners", "outcomes", "report", "commands", "cli", *MODELS),
    "store": ("metrics", "runners", "outcomes", "report", "commands", "cli", *MODELS),
    "runners": ("outcomes", "report", "commands", "cli"),
    "outcomes": ("runners", "report", "commands", "cli", *MODELS),
    "report": ("runners", "commands", "cli", *MODELS),
    "commands": ("report", "cli", *MODELS),
    "cli": MODELS,
    "": ("cli", *MODELS),
}


def imported(file: Path) -> Iterator[str]:
    """Full names of all modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("room", ABOVE)
def test_nothing_imports_upward(room: str) -> None:
    folder = ROOT / "snapshot" / room
    files = list(folder.rglob("*.py") if room else folder.glob("*.py"))
    assert files
    upward = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in files
        for name in imported(file)
        if name.removeprefix("snapshot.").partition(".")[0] in ABOVE[room]
    ]
    assert upward == []


def test_the_model_imports_nothing_of_ours() -> None:
    ours = [n for n in imported(ROOT / "snapshot" / "model.py") if n.startswith("snapshot")]
    assert ours == []
