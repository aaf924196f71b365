"""The steps around a difference, both sides next to each other."""

from __future__ import annotations

import math

import numpy as np

from snapshot.difference import Step
from snapshot.metrics.logprobs import subtract
from snapshot.metrics.tokens import first_difference, margin
from snapshot.model import Observation

SPAN = 4
"""Steps shown on either side."""


def around(golden: Observation, candidate: Observation) -> tuple[Step, ...]:
    """The steps around where two generations part, or around the step whose logprob moved most.

    Returns:
        Nothing where a side tells no token ids, or where nothing differs.
    """
    expected, got = golden.output.token_ids, candidate.output.token_ids
    if expected is None or got is None:
        return ()
    centre = first_difference(expected, got)
    if centre is None:
        centre = _most_moved(golden, candidate)
    if centre is None:
        return ()
    last = min(centre + SPAN + 1, max(len(expected), len(got)))
    return tuple(_step(golden, candidate, i) for i in range(max(centre - SPAN, 0), last))


def _most_moved(golden: Observation, candidate: Observation) -> int | None:
    a, b = golden.arrays.get("logprobs"), candidate.arrays.get("logprobs")
    if a is None or b is None or len(a) != len(b) or not len(a):
        return None
    moved = np.nan_to_num(np.abs(subtract(a, b)), nan=np.inf)
    return int(moved.argmax()) if moved.max() > 0 else None


def _step(golden: Observation, candidate: Observation, index: int) -> Step:
    return Step(
        index=index,
        tokens=(_token(golden, index), _token(candidate, index)),
        logprobs=(_value(golden, index), _value(candidate, index)),
        margins=(margin(golden, index), margin(candidate, index)),
        tops=(_top(golden, index), _top(candidate, index)),
    )


def _token(side: Observation, index: int) -> int | None:
    ids = side.output.token_ids or ()
    return ids[index] if index < len(ids) else None


def _value(side: Observation, index: int) -> float | None:
    array = side.arrays.get("logprobs")
    if array is None or index >= len(array) or not math.isfinite(array[index]):
        return None
    return float(array[index])


def _top(side: Observation, index: int) -> tuple[tuple[int, float], ...]:
    ids, values = side.arrays.get("topk_ids"), side.arrays.get("topk_logprobs")
    if ids is None or values is None or index >= min(len(ids), len(values)):
        return ()
    pairs = zip(ids[index].tolist(), values[index].tolist(), strict=True)
    return tuple((int(token), float(value)) for token, value in pairs if math.isfinite(value))
