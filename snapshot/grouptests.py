"""What all rows of an adapter say together, prompt by prompt, where no single row can.

In half precision a fault can hide in one row's rounding. Over many rows less of it does: one of
the adapter moves every logprob along the direction in which the adapter itself moved it, and one
of the model takes the rows further from their float32 answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from snapshot.attribution import GroupTest
from snapshot.metrics.tokens import shared_steps
from snapshot.model import BASE, Array, GenerationCase, Observation
from snapshot.statistics import bootstrap, detectable, holm, sign_flip

STRENGTH, ERROR = "adapter strength", "error ratio"

LEVEL = 0.05
LEAST_STRENGTH = 0.03
"""An adapter's strength may differ by this much before it counts. Measured: eager in place of
sdpa attention moves it by 0.02 in bfloat16."""

WORSE = 1.25
"""The factor by which an implementation may be further from float32 than the reference is.
Measured in bfloat16, mean over eight prompts: eager attention up to 1.29 and not significant
against this; int8 weights 1.5 to 2.7."""


@dataclass(frozen=True)
class Scored:
    """One case, scored on its golden's tokens.

    Attributes:
        candidate: what is asked about; where it was not forced, up to its parting.
        reference: the reference here and now.
        truth: the reference in float32.
        base: the base model in float32 on the same tokens; None for a base row.
    """

    candidate: Observation
    reference: Observation
    truth: Observation
    base: Observation | None = None


def tests(
    cases: Sequence[GenerationCase], scored: Mapping[str, Scored], *, exact: bool = False
) -> dict[str, tuple[GroupTest, ...]]:
    """By adapter or ``base``: what its rows say of the candidate.

    The adapter's strength is the least-squares coefficient of the candidate's move along the
    adapter's own: with logprobs c, r, t, b of candidate, reference, float32 with and without
    adapter, ``1 + sum((c - r) * (t - b)) / sum((t - b)**2)``. The error ratio is the geometric
    mean over prompts of ``rms(c - t) / rms(r - t)``.

    Args:
        cases: in any order.
        scored: by case key; a case without is left out, and one whose sides did not all score
            the same prompt, or not in numbers.
        exact: whether the reference is float32 itself, so that it has no error to compare with.
    """
    groups: dict[str, list[Scored]] = {}
    for case in cases:
        rows = groups.setdefault(case.adapter or BASE, [])
        if case.key in scored and _sound(scored[case.key]):
            rows.append(scored[case.key])
    found: dict[str, list[_Answer]] = {name: [] for name in groups}
    for name, rows in groups.items():
        if name != BASE:
            found[name] += _strength(name, rows)
        if not exact:
            found[name] += _error(name, rows)
    return _judged(found)


@dataclass(frozen=True)
class _Answer:
    """A question answered for one group, before the groups are judged together."""

    group: str
    question: str
    estimate: float
    low: float
    high: float
    values: tuple[float, ...]
    least: float


def _strength(name: str, rows: Sequence[Scored]) -> list[_Answer]:
    moves, sizes = [], []
    for row in rows:
        if row.base is None:
            continue
        c, r, t, b = _aligned(row.candidate, row.reference, row.truth, row.base)
        if (size := float(((t - b) ** 2).sum())) > 0:
            moves.append(float(((c - r) * (t - b)).sum()))
            sizes.append(size)
    if not moves:
        return []
    numerators, denominators = np.array(moves), np.array(sizes)
    low, high = bootstrap(numerators, denominators)
    estimate = 1 + float(numerators.sum() / denominators.sum())
    values = tuple(float(v) for v in numerators / denominators)
    return [_Answer(name, STRENGTH, estimate, 1 + low, 1 + high, values, LEAST_STRENGTH)]


def _error(name: str, rows: Sequence[Scored]) -> list[_Answer]:
    logs = []
    for row in rows:
        c, r, t = _aligned(row.candidate, row.reference, row.truth)
        far, near = float(((c - t) ** 2).sum()), float(((r - t) ** 2).sum())
        if near > 0 and far > 0:
            logs.append(0.5 * math.log(far / near))
    if not logs:
        return []
    values = np.array(logs)
    low, high = bootstrap(values, np.ones(len(values)))
    beyond = tuple(float(v) for v in values - math.log(WORSE))
    ratio = math.exp(float(values.mean()))
    return [_Answer(name, ERROR, ratio, math.exp(low), math.exp(high), beyond, 0.0)]


def _judged(found: Mapping[str, Sequence[_Answer]]) -> dict[str, tuple[GroupTest, ...]]:
    """Holm over the groups, question by question."""
    adjusted: dict[str, dict[str, float]] = {}
    for question in (STRENGTH, ERROR):
        answers = [a for group in found.values() for a in group if a.question == question]
        adjusted[question] = holm({a.group: sign_flip(a.values) for a in answers})
    return {
        name: tuple(_test(a, adjusted[a.question]) for a in answers)
        for name, answers in found.items()
    }


def _test(answer: _Answer, adjusted: Mapping[str, float]) -> GroupTest:
    p = adjusted[answer.group]
    off = float(np.mean(answer.values))
    least = detectable(answer.values, len(adjusted))
    if answer.question == ERROR:
        # Only worse than the reference is wrong; the values are logarithms beyond `WORSE`.
        wrong, least = (
            p < LEVEL and off > 0,
            WORSE * math.exp(least) - 1 if least < 50 else math.inf,
        )
    else:
        wrong = p < LEVEL and abs(answer.estimate - 1) > answer.least
    return GroupTest(
        group=answer.group,
        question=answer.question,
        estimate=answer.estimate,
        low=answer.low,
        high=answer.high,
        expected=1.0,
        p=p,
        detectable=least,
        prompts=len(answer.values),
        significant=wrong,
    )


def _sound(row: Scored) -> bool:
    sides = [row.candidate, row.reference, row.truth, *([] if row.base is None else [row.base])]
    if len({side.output.prompt_ids for side in sides}) > 1:
        return False
    return all(np.isfinite(values).all() for values in _aligned(*sides))


def _aligned(first: Observation, *others: Observation) -> list[Array]:
    """Logprobs of the prompt and of the tokens that all sides have in common, float64 [n]."""
    sides = (first, *others)
    steps = min(_shared(first, side) for side in others)
    return [
        np.concatenate(
            [
                np.asarray(side.arrays["prompt_logprobs"], dtype=np.float64),
                np.asarray(side.arrays["logprobs"][:steps], dtype=np.float64),
            ]
        )
        for side in sides
    ]


def _shared(a: Observation, b: Observation) -> int:
    expected, got = a.output.token_ids, b.output.token_ids
    return 0 if expected is None or got is None else shared_steps(expected, got)


def comparable(observation: Observation) -> bool:
    """Whether a candidate tells enough to be tested: the ids and logprobs of prompt and answer."""
    output, arrays = observation.output, observation.arrays
    return (
        None not in (output.token_ids, output.prompt_ids)
        and "prompt_logprobs" in arrays
        and "logprobs" in arrays
    )
