"""Outputs that an engine's own harness wrote down: JSON Lines, one case a line.

The format is `schema/outputs.v1.json`, described in docs/verify.md.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from snapshot.errors import GoldensError, RunError, UsageError
from snapshot.model import Array, Generated, Json, Observation

SUBJECT = "file"
_KEYS = frozenset(
    {
        "case",
        "error",
        "finish_reason",
        "logprobs",
        "prompt_ids",
        "prompt_logprobs",
        "text",
        "token_ids",
        "top_logprobs",
    }
)


def read_outputs(path: Path, cases: Collection[str]) -> dict[str, Observation | GoldensError]:
    """Observations by case key.

    Args:
        path: the file; ``-`` reads standard input.
        cases: the keys that may occur.

    Raises:
        UsageError: unreadable, or a line that is malformed, names an unknown case or repeats
            one.
    """
    found: dict[str, Observation | GoldensError] = {}
    try:
        text = Path("/dev/stdin" if str(path) == "-" else path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the outputs cannot be read: {error}", where=str(path)) from None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        entry = _entry(line, where)
        key = entry["case"]
        if key not in cases:
            close = difflib.get_close_matches(key, cases, n=1)
            raise UsageError(
                "no such case in the suite",
                where=where,
                expected=f"{close[0]}?" if close else "a case key of the suite",
                got=key,
                hint="goldens status",
            )
        if key in found:
            raise UsageError("the case stands twice", where=where, got=key)
        found[key] = _observation(entry, where)
    return found


def _entry(line: str, where: str) -> Mapping[str, Any]:
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise UsageError(f"not JSON: {error.msg}", where=where, got=line[:80]) from None
    if not isinstance(entry, dict) or not isinstance(entry.get("case"), str):
        raise UsageError(
            "not an output", where=where, expected='{"case": "...", "text": "..."}', got=line[:80]
        )
    unknown = sorted(entry.keys() - _KEYS)
    if unknown:
        raise UsageError(
            "unknown key",
            where=where,
            expected=f"one of {', '.join(sorted(_KEYS))}",
            got=unknown[0],
        )
    return entry


def _observation(entry: Mapping[str, Any], where: str) -> Observation | GoldensError:
    if "error" in entry:
        return RunError(f"the engine reported: {entry['error']}", where=where)
    text = entry.get("text")
    if not isinstance(text, str):
        raise UsageError("no text", where=where, expected='"text": a string', got=repr(text)[:80])
    reason = entry.get("finish_reason")
    if reason not in (None, "stop", "length"):
        raise UsageError(
            "unknown finish reason", where=where, expected="stop or length", got=repr(reason)
        )
    ids = _ids(entry, "token_ids", where)
    arrays = {
        name: _floats(entry[name], name, where)
        for name in ("logprobs", "prompt_logprobs")
        if entry.get(name) is not None
    }
    if ids is not None and "logprobs" in arrays and len(arrays["logprobs"]) != len(ids):
        raise UsageError(
            "logprobs and token_ids differ in length",
            where=where,
            expected=f"{len(ids)} logprobs, one a token",
            got=str(len(arrays["logprobs"])),
        )
    if entry.get("top_logprobs") is not None:
        arrays |= _top(entry["top_logprobs"], where)
    return Observation(
        case=entry["case"],
        output=Generated(text, ids, reason, "", _ids(entry, "prompt_ids", where)),
        arrays=arrays,
    )


def _ids(entry: Mapping[str, Any], name: str, where: str) -> tuple[int, ...] | None:
    value = entry.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(type(i) is int and 0 <= i < 2**31 for i in value):
        raise UsageError(
            f"{name} is not a list of token ids",
            where=where,
            expected="integers from 0",
            got=repr(value)[:80],
        )
    return tuple(value)


def _floats(value: Json, name: str, where: str) -> Array:
    # A plain list of numbers: null or text in it is a mistake, NaN is a finding.
    if not isinstance(value, list) or not all(type(x) in (int, float) for x in value):
        raise UsageError(
            f"{name} is not a list of numbers",
            where=where,
            expected="[-0.12, ...]",
            got=repr(value)[:80],
        )
    return np.array(value, dtype=np.float32)


def _top(value: Json, where: str) -> dict[str, Array]:
    expected = "for each token a list of [token id, logprob], best first, all of one length"
    try:
        pairs = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        pairs = np.zeros(0)
    if pairs.ndim != 3 or pairs.shape[-1] != 2:
        raise UsageError(
            "malformed top_logprobs", where=where, expected=expected, got=repr(value)[:80]
        )
    return {
        "topk_ids": pairs[:, :, 0].astype(np.int32),
        "topk_logprobs": pairs[:, :, 1].astype(np.float32),
    }
