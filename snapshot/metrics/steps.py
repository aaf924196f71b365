"""The steps around a difference, both sides next to each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from snapshot.difference import Step
from snapshot.metrics.logprobs import subtract
from snapshot.metrics.tokens import first_difference, margins
from snapshot.model import Array, Observation

SPAN = 12
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
    first, last = max(centre - SPAN, 0), min(centre + SPAN + 1, max(len(expected), len(got)))
    sides = [_told(side, first, last, centre) for side in (golden, candidate)]
    return tuple(
        Step(index, *zip(*both, strict=True))
        for index, both in enumerate(zip(*sides, strict=True), start=first)
    )


def _most_moved(golden: Observation, candidate: Observation) -> int | None:
    a, b = golden.arrays.get("logprobs"), candidate.arrays.get("logprobs")
    if a is None or b is None or len(a) != len(b) or not len(a):
        return None
    moved = np.nan_to_num(np.abs(subtract(a, b)), nan=np.inf)
    return int(moved.argmax()) if moved.max() > 0 else None


_Best = tuple[tuple[int, float], ...]
_Told = tuple[int | None, float | None, float | None, _Best]


def _told(side: Observation, first: int, last: int, centre: int) -> list[_Told]:
    """What one side tells of each step: token, logprob, margin, and its best tokens at the
    centre. Whole stretches of arrays at once: reports look at thousands of cases."""
    tokens = (side.output.token_ids or ())[first:last]
    values = _part(side.arrays.get("logprobs"), first, last)
    gaps = margins(side, first, last)
    return [
        (
            tokens[i] if i < len(tokens) else None,
            values[i] if i < len(values) and math.isfinite(values[i]) else None,
            gaps[i] if i < len(gaps) else None,
            _best(side, centre) if first + i == centre else (),
        )
        for i in range(last - first)
    ]


def _best(side: Observation, index: int) -> _Best:
    ids, values = (
        _part(side.arrays.get(name), index, index + 1) for name in ("topk_ids", "topk_logprobs")
    )
    if not ids or not values:
        return ()
    pairs = zip(ids[0], values[0], strict=True)
    return tuple((int(token), value) for token, value in pairs if math.isfinite(value))


def _part(array: Array | None, first: int, last: int) -> list[Any]:
    return [] if array is None else array[first:last].astype(np.float64).tolist()
