"""When a rule of goldens.toml was written. Git is asked, and never needed."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from pathlib import Path

from snapshot.errors import UsageError
from snapshot.git import git
from snapshot.policy import Rule


def since(path: Path, rules: Iterable[Rule]) -> dict[str, datetime.date]:
    """By `Rule.where`: the day on which the rule's first line was last changed by its author;
    without those that git does not know, as where a shallow clone cuts its history."""
    lines = _first_lines(path)
    days = {rule.where: _day(path, lines.get(rule.where.rsplit(": ", 1)[-1])) for rule in rules}
    return {where: day for where, day in days.items() if day is not None}


def _first_lines(path: Path) -> dict[str, int]:
    """Line numbers of the array tables, by key: ``suites.s.relax[0]``."""
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    for number, line in enumerate(path.read_text("utf-8-sig").split("\n"), start=1):
        header = re.match(r"\s*\[\[\s*(.+?)\s*\]\]", line)
        if header:
            name = header[1].replace('"', "").replace("'", "").replace(" ", "")
            found[f"{name}[{counts.setdefault(name, 0)}]"] = number
            counts[name] += 1
    return found


def _day(path: Path, line: int | None) -> datetime.date | None:
    if line is None:
        return None
    told = _git(path, "blame", "--porcelain", "-L", f"{line},{line}", "--", path.name)
    stamp = re.search(rb"^author-time (\d+)$", told, re.MULTILINE)
    if stamp is None or told.startswith(b"0" * 40):
        return None
    if b"\nboundary\n" in told and b"true" in _git(path, "rev-parse", "--is-shallow-repository"):
        return None
    return datetime.datetime.fromtimestamp(int(stamp[1]), datetime.UTC).date()


def _git(path: Path, *arguments: str) -> bytes:
    """What git says in the folder of a file; nothing where it fails."""
    try:
        return git(path.parent, *arguments, seconds=30)
    except UsageError:
        return b""
