"""Distances between log-probabilities of the same tokens in the same context, in nats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from snapshot.metrics.tokens import first_difference
from snapshot.model import Array, Observation


@dataclass(frozen=True)
class Distance:
    """How far two sets of logprobs are apart.

    Attributes:
        count: values compared; 0 means that nothing was, which is never "close".
        rms: root mean square of the differences, in nats.
        max: largest absolute difference, in nats.
        where: which value that is: ``prompt token 3``, ``step 5``, ``step 5, token 198``.
    """

    count: int
    rms: float
    max: float
    where: str

    def __str__(self) -> str:
        if self.count == 0:
            return "0 values compared"
        return f"rms {self.rms:.2g}, max {self.max:.2g} at {self.where} ({self.count} values)"


class LengthMismatch(ValueError):
    """An array does not have one entry a token."""


def deltas(golden: Observation, candidate: Observation) -> Array:
    """Differences candidate - golden of all that both scored in the same context, float64 [n].

    That is: every prompt token, every generated token before the first difference, and,
    there and before, each token id in both top-k lists. Values are matched by token id,
    never by rank: at a near-tie the ranks swap and the probabilities do not.

    Raises:
        LengthMismatch: an array that does not have one entry a token.
    """
    return np.concatenate([part.values for part in _parts(golden, candidate)] or [np.zeros(0)])


def distance(golden: Observation, candidate: Observation) -> Distance | None:
    """Size of the `deltas`; None where the two sides have no scored array in common.

    Raises:
        LengthMismatch: an array that does not have one entry a token.
    """
    parts = _parts(golden, candidate)
    if not parts:
        return None
    values = np.concatenate([part.values for part in parts])
    if values.size == 0:
        return Distance(0, 0.0, 0.0, "")
    worst = index = int(np.abs(values).argmax())
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


def prompt_deltas(golden: Observation, candidate: Observation) -> Array:
    """Differences candidate - golden of the prompt's logprobs, float64 [P-1]; empty if unknown.

    The prompt is the one text that every row of a prompt was made to score, whatever it
    then generated: so it measures an adapter's effect and a batch's drift alike.
    """
    part = _prompt(golden, candidate)
    return np.zeros(0) if part is None else part.values


@dataclass(frozen=True)
class _Part:
    values: Array
    label: Callable[[int], str]  # made for the worst value only: there are thousands


def _parts(golden: Observation, candidate: Observation) -> list[_Part]:
    found = (part(golden, candidate) for part in (_prompt, _chosen, _topk))
    return [part for part in found if part is not None]


def _prompt(golden: Observation, candidate: Observation) -> _Part | None:
    a, b = golden.arrays.get("prompt_logprobs"), candidate.arrays.get("prompt_logprobs")
    if a is None or b is None:
        return None
    if golden.output.prompt_ids != candidate.output.prompt_ids:
        return None
    _fits("candidate prompt_logprobs", b, len(a))
    return _Part(_subtract(a, b), lambda i: f"prompt token {i + 1}")


def _chosen(golden: Observation, candidate: Observation) -> _Part | None:
    a, b = golden.arrays.get("logprobs"), candidate.arrays.get("logprobs")
    expected, got = golden.output.token_ids, candidate.output.token_ids
    if a is None or b is None or expected is None or got is None:
        return None
    _fits("golden logprobs", a, len(expected))
    _fits("candidate logprobs", b, len(got))
    same = _shared(expected, got)
    return _Part(_subtract(a[:same], b[:same]), lambda i: f"step {i}")


def _topk(golden: Observation, candidate: Observation) -> _Part | None:
    a_ids, b_ids = golden.arrays.get("topk_ids"), candidate.arrays.get("topk_ids")
    a, b = golden.arrays.get("topk_logprobs"), candidate.arrays.get("topk_logprobs")
    expected, got = golden.output.token_ids, candidate.output.token_ids
    if a_ids is None or b_ids is None or a is None or b is None or expected is None or got is None:
        return None
    _fits("golden top-k", a, len(expected))
    _fits("candidate top-k", b, len(got))
    steps = min(_shared(expected, got) + 1, len(a), len(b))
    # [steps, k, k]: the pairs that name one token.
    step, i, j = np.nonzero(a_ids[:steps, :, None] == b_ids[:steps, None, :])
    return _Part(
        _subtract(a[step, i], b[step, j]),
        lambda n: f"step {step[n]}, token {a_ids[step[n], i[n]]}",
    )


def _shared(expected: tuple[int, ...], got: tuple[int, ...]) -> int:
    step = first_difference(expected, got)
    return len(expected) if step is None else step


def _subtract(a: Array, b: Array) -> Array:
    return np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)


def _fits(name: str, array: Array, length: int) -> None:
    if len(array) != length:
        raise LengthMismatch(f"{name}: expected {length} entries, got {len(array)}")
