"""The conversation of ``goldens review``, and what it did, for people and as JSON."""

from __future__ import annotations

import json

import click
from rich.console import Console
from rich.text import Text

from snapshot.changes import GoldenChange
from snapshot.outcomes.review import KEYS, Reviewed
from snapshot.pending import Pending, Waiting
from snapshot.report import keyboard
from snapshot.report.changes.terminal import STYLES, golden_lines
from snapshot.report.plain import visible


class Conversation:
    """Shows items and reads keys on a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def show(self, item: Pending, number: int, total: int) -> None:
        """One item: what accepting it changes, and the keys."""
        change = item.change
        head = Text(f"\n{number} of {total}  ", "bold").append(
            change.group.value, STYLES[change.group]
        )
        self._console.print(head, soft_wrap=True)
        if isinstance(change, GoldenChange):
            for line in golden_lines([change]):
                self._console.print(line, soft_wrap=True)
        else:
            self._console.print(Text(f"  {item.name}", "cyan"), soft_wrap=True)
            for words in change.differences:
                self._console.print(Text(f"    {visible(words, 400)}", "dim"), soft_wrap=True)
        keys = Text("  ")
        for key, meaning in KEYS.items():
            keys.append(key, "bold").append(f" {meaning}   ", "dim")
        self._console.print(keys, soft_wrap=True)

    def key(self) -> str:
        """Waits for one key; a key that sends several characters gives the first."""
        return keyboard.read()

    def ask_reason(self, many: int) -> str:
        """Asks for one line."""
        question = f"Why are {many} goldens accepted at once? (kept in their files; empty: no)"
        with keyboard.line_by_line():
            return str(click.prompt(question, default="", show_default=False)).strip()

    def say(self, words: str) -> None:
        self._console.print(Text(f"  {visible(words)}"), soft_wrap=True)


def print_reviewed(done: Reviewed, dry_run: bool) -> None:
    """One line a decision, what is left, and what is wrong."""
    would = "would be " if dry_run else ""
    for name, decision in done.decisions.items():
        click.echo(f"{would}{decision.value}  {name}")
    for problem in done.problems:
        click.echo(f"\n{visible_error(problem)}", err=True)
    decided = len(done.decisions)
    if not decided and not done.left and not done.problems:
        click.echo("no pending goldens")
    else:
        click.echo(f"{decided} {would}decided, {len(done.left)} pending")


def reviewed_json(done: Reviewed) -> str:
    """One JSON document."""
    document = {
        "decisions": {name: decision.value for name, decision in done.decisions.items()},
        "pending": done.left,
        "problems": [{"what": e.what, "where": e.where} for e in done.problems],
    }
    return json.dumps(document, indent=2)


def waiting_json(waiting: Waiting) -> str:
    """What waits, as one JSON document."""
    document = {
        "pending": [
            {"name": item.name, "group": item.change.group.value} for item in waiting.items
        ],
        "problems": [{"what": e.what, "where": e.where} for e in waiting.problems],
    }
    return json.dumps(document, indent=2)


def print_waiting(waiting: Waiting) -> None:
    """One line for each thing that waits."""
    for item in waiting.items:
        click.echo(f"{item.change.group.value:<16}  {item.name}")
    for problem in waiting.problems:
        click.echo(f"\n{visible_error(problem)}", err=True)
    if waiting.items:
        click.echo(f"{len(waiting.items)} pending")
    elif waiting.problems:
        click.echo("nothing can be reviewed until that is repaired")
    else:
        click.echo("no pending goldens")


def visible_error(error: Exception) -> str:
    """An error's lines, each safe to print."""
    return "\n".join(visible(line, 600) for line in str(error).split("\n"))
