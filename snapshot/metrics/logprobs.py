"""Distances between log-probabilities of the same tokens in the same context, in nats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from snapshot.difference import Distance
from snapshot.metrics.shape import require_shape
from snapshot.metrics.tokens import shared_steps
from snapshot.model import Array, Observation


def deltas(golden: Observation, candidate: Observation) -> Array:
    """Differences candidate - golden of all that both scored in the same context, float64 [n].

    That is: every prompt token, every generated token before the first difference, and,
    there and before, each token id in both top-k lists. Values are matched by token id,
    never by rank: at a near-tie the ranks swap and the probabilities do not. A value that is
    not finite differs from all but itself.

    Raises:
        Misshapen: an array that does not have one entry a token.
    """
    return np.concatenate([np.zeros(0), *(part.values for part in _parts(golden, candidate))])


def distance(golden: Observation, candidate: Observation) -> Distance | None:
    """Size of the `deltas`; None where the two sides have no scored array in common.

    Raises:
        Misshapen: an array that does not have one entry a token.
    """
    parts = _parts(golden, candidate)
    if not parts:
        return None
    values = np.concatenate([part.values for part in parts])
    if values.size == 0:
        return Distance(0, 0.0, 0.0, "")
    worst = index = int(np.abs(values).argmax())  # a NaN counts as the largest
    for part in parts:
        if index < len(part.values):
            break
        index -= len(part.values)
    return Distance(
        count=int(values.size),
        rms=float(np.sqrt(np.mean(values**2))),
        max=float(abs(values[worst])),
        where=part.label(index),
    )


def compared(golden: Observation, candidate: Observation) -> dict[str, int]:
    """How many values of each kind the `deltas` hold."""
    return {part.name: len(part.values) for part in _parts(golden, candidate)}


def prompt_deltas(golden: Observation, candidate: Observation) -> Array:
    """Differences candidate - golden of the prompt's logprobs, float64 [P-1]; empty if unknown.

    The prompt is the one text that every row of a prompt was made to score, whatever it
    then generated: so it measures an adapter's effect and a batch's drift alike.
    """
    part = _prompt(golden, candidate)
    return np.zeros(0) if part is None else part.values


@dataclass(frozen=True)
class _Part:
    name: str
    values: Array
    label: Callable[[int], str]  # made for the worst value only: there are thousands


PROMPT, CHOSEN, TOPK = "prompt logprobs", "logprobs", "top-k logprobs"


def _parts(golden: Observation, candidate: Observation) -> list[_Part]:
    require_shape(golden, "golden")
    require_shape(candidate, "candidate")
    if not golden.arrays or not candidate.arrays:
        return []
    found = (part(golden, candidate) for part in (_prompt, _chosen, _topk))
    return [part for part in found if part is not None]


def _prompt(golden: Observation, candidate: Observation) -> _Part | None:
    a, b = golden.arrays.get("prompt_logprobs"), candidate.arrays.get("prompt_logprobs")
    expected, got = golden.output.prompt_ids, candidate.output.prompt_ids
    if a is None or b is None or expected is None or expected != got:
        return None
    return _Part(PROMPT, subtract(a, b), lambda i: f"prompt token {i + 1}")


def _chosen(golden: Observation, candidate: Observation) -> _Part | None:
    a, b = golden.arrays.get("logprobs"), candidate.arrays.get("logprobs")
    expected, got = golden.output.token_ids, candidate.output.token_ids
    if a is None or b is None or expected is None or got is None:
        return None
    same = shared_steps(expected, got)
    return _Part(CHOSEN, subtract(a[:same], b[:same]), lambda i: f"step {i}")


def _topk(golden: Observation, candidate: Observation) -> _Part | None:
    a_ids, b_ids = golden.arrays.get("topk_ids"), candidate.arrays.get("topk_ids")
    a, b = golden.arrays.get("topk_logprobs"), candidate.arrays.get("topk_logprobs")
    expected, got = golden.output.token_ids, candidate.output.token_ids
    if a_ids is None or b_ids is None or a is None or b is None or expected is None or got is None:
        return None
    steps = min(shared_steps(expected, got) + 1, len(a), len(b))
    a_names, b_names = _names(a_ids[:steps]), _names(b_ids[:steps])
    names, i, j = np.intersect1d(a_names, b_names, return_indices=True)
    values = subtract(a[:steps].reshape(-1)[i], b[:steps].reshape(-1)[j])
    return _Part(TOPK, values, lambda n: f"step {names[n] >> 32}, token {names[n] & 0xFFFFFFFF}")


def _names(ids: Array) -> Array:
    """One number for each (step, token id) of a top-k array, flat, in order of step then id."""
    steps = np.arange(len(ids), dtype=np.int64)[:, None]
    return np.asarray((steps << 32) | (ids.astype(np.int64) & 0xFFFFFFFF)).reshape(-1)


def subtract(a: Array, b: Array) -> Array:
    """``b - a`` in float64; zero where both are the same, be it infinite or NaN."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))  # inf - inf is not zero
    return np.where(same, 0.0, np.subtract(b, a, where=~same, out=np.zeros_like(a)))
