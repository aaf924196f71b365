"""What earlier verifications observed, so that a relaxation can be weighed against it.

Kept beside goldens.toml in ``.goldens/history``, one file a run, ignored by git: it is this
machine's memory, like a test runner's cache, and never a golden.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import secrets
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from snapshot.config import Config
from snapshot.errors import StoreError
from snapshot.kernel_model import KernelResult
from snapshot.model import Json
from snapshot.result import Observed, Result, Verdict
from snapshot.store.files import write_atomic
from snapshot.verification import Verification

FOLDER = ".goldens"
KEPT = 200
"""Runs that are remembered."""

_STRICT = frozenset({Verdict.MATCH, Verdict.VARIANT, Verdict.TIE})
_COMPARED = _STRICT | {
    Verdict.WITHIN,
    Verdict.DRIFT,
    Verdict.REGRESSION,
    Verdict.UNATTRIBUTED,
    Verdict.QUARANTINED,
    Verdict.FIXED,
}


def remember(config: Config, verification: Verification) -> None:
    """Keeps what a verification observed. A folder that cannot be written is no error: the
    ledger then knows less."""
    day = datetime.date.today()
    lines = [
        json.dumps(asdict(_observed(result, day)), ensure_ascii=True)
        for result in verification.results
        if result.verdict in _COMPARED
    ]
    if not lines:
        return
    folder = config.path.parent / FOLDER
    now = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S")
    with contextlib.suppress(OSError, StoreError):
        history = folder / "history"
        history.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / ".gitignore", b"*\n")
        path = history / f"{now}-{secrets.token_hex(4)}.jsonl"
        write_atomic(path, "\n".join([*lines, ""]).encode())
        for old in sorted(history.glob("*.jsonl"))[:-KEPT]:
            old.unlink(missing_ok=True)


def recall(config: Config) -> list[Observed]:
    """All that is remembered, oldest first. A line that is not ours is skipped: nothing but
    advice rests on it."""
    folder = config.path.parent / FOLDER / "history"
    return [entry for path in sorted(folder.glob("*.jsonl")) for entry in _read(path)]


def _observed(result: Result, day: datetime.date) -> Observed:
    moved = result.distance
    return Observed(
        day=day.isoformat(),
        suite=result.suite,
        subject=result.subject,
        slug=result.slug or result.golden_slug or "",
        case=result.case,
        verdict=result.verdict.value,
        strict=_strict(result),
        rms=None if moved is None else _finite(moved.rms),
        max=None if moved is None else _finite(moved.max),
        scores={name: score for name, score in result.scores.items() if math.isfinite(score)},
    )


def _strict(result: Result) -> bool:
    """Whether it passes without any relaxation; a kernel that is right may move its bits."""
    free = _STRICT | {Verdict.WITHIN} if isinstance(result, KernelResult) else _STRICT
    return result.verdict in free and not result.relaxed


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _read(path: Path) -> Iterator[Observed]:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        with contextlib.suppress(ValueError, TypeError, OverflowError, RecursionError):
            entry = Observed(**json.loads(line))
            if _sound(entry):
                yield entry


def _sound(entry: Observed) -> bool:
    """Whether every attribute is what `Observed` says. Raises for a day that is none."""
    texts = (entry.suite, entry.subject, entry.slug, entry.case, entry.verdict)
    numbers = [n for n in (entry.rms, entry.max) if n is not None]
    datetime.date.fromisoformat(entry.day)
    return (
        all(isinstance(text, str) for text in texts)
        and isinstance(entry.strict, bool)
        and isinstance(entry.scores, dict)
        and all(map(_number, [*numbers, *entry.scores.values()]))
    )


def _number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
