"""Outputs that an engine's own harness wrote down: JSON Lines, one case a line.

The format is `schema/outputs.v1.json`, described in docs/verify.md.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from snapshot.errors import GoldensError, RunError, UsageError
from snapshot.metrics.shape import Misshapen, require_shape
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
    known = frozenset(cases)
    found: dict[str, Observation | GoldensError] = {}
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        entry = _entry(line, where)
        key = entry["case"]
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            raise UsageError(
                "no such case in the suite",
                where=where,
                expected=f"{close[0]}?" if close else "a case key of the suite",
                got=_shown(key),
                hint="goldens status --json",
            )
        if key in found:
            raise UsageError("the case stands twice", where=where, got=_shown(key))
        found[key] = _observation(entry, where)
    return found


def _text(path: Path) -> str:
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the outputs cannot be read: {error}", where=str(path)) from None


def _shown(value: Json) -> str:
    return ascii(value)[:80]


def _entry(line: str, where: str) -> Mapping[str, Json]:
    try:
        entry = json.loads(line, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise UsageError(f"not JSON: {what}", where=where, got=_shown(line)) from None
    if not isinstance(entry, dict) or not isinstance(entry.get("case"), str):
        raise UsageError(
            "not an output",
            where=where,
            expected='{"case": "...", "text": "..."}',
            got=_shown(line),
        )
    unknown = sorted(entry.keys() - _KEYS)
    if unknown:
        raise UsageError(
            "unknown key",
            where=where,
            expected=f"one of {', '.join(sorted(_KEYS))}",
            got=_shown(unknown[0]),
        )
    return {key: value for key, value in entry.items() if value is not None}


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    entry = dict(pairs)
    if len(entry) != len(pairs):
        raise ValueError("a key stands twice")
    return entry


def _observation(entry: Mapping[str, Json], where: str) -> Observation | GoldensError:
    if "error" in entry:
        error = entry["error"]
        return RunError(
            f"the engine reported: {error if isinstance(error, str) else _shown(error)}"
        )
    text = entry.get("text")
    if not isinstance(text, str):
        raise UsageError("no text", where=where, expected='"text": a string', got=_shown(text))
    if not _is_unicode(text):
        raise UsageError(
            "the text is not Unicode", where=where, expected="pairs of surrogates", got=_shown(text)
        )
    reason = entry.get("finish_reason")
    if reason not in (None, "stop", "length"):
        raise UsageError(
            "unknown finish reason", where=where, expected="stop or length", got=_shown(reason)
        )
    arrays = {
        name: _floats(entry[name], name, where)
        for name in ("logprobs", "prompt_logprobs")
        if name in entry
    }
    if "top_logprobs" in entry:
        arrays |= _top(entry["top_logprobs"], where)
    token_ids, prompt_ids = (_ids(entry, name, where) for name in ("token_ids", "prompt_ids"))
    observation = Observation(
        case=entry["case"],
        output=Generated(text, token_ids, reason, "", prompt_ids),
        arrays=arrays,
    )
    try:
        require_shape(observation, "candidate")
    except Misshapen as error:
        raise UsageError(str(error), where=where, expected="one entry a token") from None
    return observation


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ids(entry: Mapping[str, Json], name: str, where: str) -> tuple[int, ...] | None:
    value = entry.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not _are_ids(value):
        raise UsageError(
            f"{name} is not a list of token ids",
            where=where,
            expected="whole numbers from 0",
            got=_shown(value),
        )
    return tuple(value)


def _are_ids(values: list[Json]) -> bool:
    return not values or (
        {*map(type, values)} == {int} and min(values) >= 0 and max(values) < 2**31
    )


def _is_id(value: Json) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_number(value: Json) -> bool:
    # null or text is a mistake of whoever wrote the file; NaN is a finding about the engine.
    return type(value) is float or (type(value) is int and abs(value) < 2**53)


def _floats(value: Json, name: str, where: str) -> Array:
    if not isinstance(value, list) or not all(map(_is_number, value)):
        raise UsageError(
            f"{name} is not a list of numbers",
            where=where,
            expected="[-0.12, ...]",
            got=_shown(value),
        )
    return _float32(value)


def _float32(values: Json) -> Array:
    with np.errstate(over="ignore"):  # what float32 cannot hold is an infinity: a finding too
        return np.array(values, dtype=np.float64).astype(np.float32)


def _top(value: Json, where: str) -> dict[str, Array]:
    if not isinstance(value, list) or not all(map(_is_step, value)) or len({*map(len, value)}) > 1:
        raise UsageError(
            "malformed top_logprobs",
            where=where,
            expected="for each token a list of [token id, logprob], each id once, best first, "
            "all of one length",
            got=_shown(value),
        )
    shape = (len(value), len(value[0]) if value else 0)
    ids = [pair[0] for step in value for pair in step]
    logprobs = [pair[1] for step in value for pair in step]
    return {
        "topk_ids": np.array(ids, dtype=np.int32).reshape(shape),
        "topk_logprobs": _float32(logprobs).reshape(shape),
    }


def _is_step(step: Json) -> bool:
    return (
        isinstance(step, list)
        and all(
            isinstance(pair, list) and len(pair) == 2 and _is_id(pair[0]) and _is_number(pair[1])
            for pair in step
        )
        and len({pair[0] for pair in step}) == len(step)
    )
