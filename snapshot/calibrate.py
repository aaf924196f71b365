"""The noise floor of an environment, measured while recording in it.

Two floors are kept apart. Run the same batch again and most machines give the same bits: the
floor is then zero, and any change is news. Run it at another batch size and half precision
moves every logprob: a candidate whose batch is another one can only be held to that floor.
Faults hide in the second, so the adapters' effect is stored beside it: a suite whose adapters
move less than the batch does cannot tell one from the other.
"""

from __future__ import annotations

import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from snapshot.metrics.logprobs import deltas, prompt_deltas
from snapshot.metrics.tokens import divergence
from snapshot.model import Array, GenerationCase, Json, Observation

REPEATS = "repeats"
ORDERS = "orders"
BATCH_SIZES = "batch_sizes"
ADAPTER_EFFECT = "adapter_effect"

POWER = 3.0
"""Adapters must move the logprobs by this many times what the batch does, or a suite cannot
tell a missing adapter from another batch."""

Run = Mapping[str, Observation]

FOREIGN_RMS, FOREIGN_MAX = 1.5, 2.0
"""Another implementation may be this many times further from the reference than the reference
is from itself at another batch size: it rounds in other places, batch sizes share most of them.
Measured in bfloat16, over all values: vLLM on a CPU rms 0.089 for 0.059, largest 0.75 for 0.58;
eager attention largest 0.87, one unlikely token of 3,600 values."""

_UPWARDS = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING)


@dataclass(frozen=True)
class Floor:
    """How much of a difference is noise, in nats.

    Attributes:
        name: where it comes from.
        rms, max: bounds over a case's logprob differences.
    """

    name: str
    rms: float
    max: float

    def covers(self, values: Array) -> bool:
        """Whether differences, in nats, are no more than this."""
        return _rms(values) <= self.rms and bool(np.abs(values).max(initial=0.0) <= self.max)

    @property
    def foreign(self) -> Floor:
        """The floor for another implementation than the one that it was measured on."""
        name = f"{self.name}, for another implementation"
        return Floor(name, FOREIGN_RMS * self.rms, FOREIGN_MAX * self.max)


def calibration(
    cases: Sequence[GenerationCase],
    first: Run,
    *,
    repeats: Sequence[Run] = (),
    orders: Sequence[Run] = (),
    batch_sizes: Sequence[Run] = (),
) -> dict[str, Json]:
    """What ``fingerprint.json`` keeps of one fingerprint's noise.

    Args:
        first: the observations that become goldens.
        repeats: the same batches again.
        orders: the same rows in other orders within their batches.
        batch_sizes: the same cases at the suite's other batch sizes.

    Returns:
        For each kind of noise that was measured: ``count`` of values, their ``rms``, ``q99``,
        ``q999`` and ``max`` in nats, ``row_rms``, the largest rms of any one case,
        ``prompt_rms``, over the prompts' tokens alone, and ``tie_margin``, the largest top-2
        margin at which two runs parted; ``adapter_effect``, by adapter: the rms change of the
        prompts' logprobs against the base rows; and ``power``, the weakest such effect over
        ``prompt_rms`` between batch sizes.
    """
    kinds = {REPEATS: repeats, ORDERS: orders, BATCH_SIZES: batch_sizes}
    noise: dict[str, Json] = {}
    for kind, runs in kinds.items():
        shared = [(c.key, run) for run in runs for c in cases if c.key in run and c.key in first]
        rows = [_finite(deltas(first[key], run[key])) for key, run in shared]
        rows = [row for row in rows if row.size]
        prompts = [_finite(prompt_deltas(first[key], run[key])) for key, run in shared]
        if rows:
            noise[kind] = _summary(rows) | {
                "prompt_rms": _round(_rms(np.concatenate(prompts))),
                "tie_margin": _round(max(_parting_margin(first[k], run[k]) for k, run in shared)),
            }
    effect = adapter_effect(cases, first)
    if effect:
        noise[ADAPTER_EFFECT] = effect
    ratio = power(noise)
    if ratio is not None:
        noise["power"] = _round(ratio)
    return noise


def _parting_margin(a: Observation, b: Observation) -> float:
    """The larger of the two top-2 margins where the runs part; 0.0 where they do not, or where
    one had ended."""
    at = divergence(a, b)
    if at is None or at.golden_margin is None or at.candidate_margin is None:
        return 0.0
    return max(at.golden_margin, at.candidate_margin)


def adapter_effect(cases: Sequence[GenerationCase], run: Run) -> dict[str, float]:
    """By adapter: rms change of the prompts' logprobs against the base rows, in nats."""
    base = {c.prompt: run[c.key] for c in cases if c.adapter is None and c.key in run}
    effect: dict[str, list[Array]] = {}
    for case in cases:
        if case.adapter is not None and case.key in run and case.prompt in base:
            part = _finite(prompt_deltas(base[case.prompt], run[case.key]))
            if part.size:
                effect.setdefault(case.adapter, []).append(part)
    return {name: _round(_rms(np.concatenate(parts))) for name, parts in sorted(effect.items())}


def floor(recorded: Mapping[str, Json], *, same_batch: bool) -> Floor:
    """The floor for a candidate that ran in the golden's own batch, or in another one.

    Where that noise was never measured the floor is zero: strict, until it is.
    """
    kind = REPEATS if same_batch else BATCH_SIZES
    noise = recorded.get(kind) or {}
    rms, largest = noise.get("row_rms", 0.0), noise.get("max", 0.0)
    return Floor(f"noise floor over {kind.replace('_', ' ')}", rms, largest)


def tie_margin(recorded: Mapping[str, Json]) -> float:
    """The largest top-2 margin, in nats, at which the reference itself was seen to part while
    its noise was measured; 0.0 where it never parted."""
    kinds = (recorded.get(kind) or {} for kind in (ORDERS, BATCH_SIZES))
    return float(max(noise.get("tie_margin", 0.0) for noise in kinds))


def power(recorded: Mapping[str, Json]) -> float | None:
    """Weakest adapter's effect over the drift between batch sizes; None where not measured."""
    effect, drift = recorded.get(ADAPTER_EFFECT), recorded.get(BATCH_SIZES, {})
    if not effect or not drift.get("prompt_rms"):
        return None
    return float(min(effect.values()) / drift["prompt_rms"])


def _summary(rows: Sequence[Array]) -> dict[str, Json]:
    values = np.concatenate(rows)
    size = np.abs(values)
    return {
        "count": int(size.size),
        "rms": _round(_rms(values)),
        "row_rms": _round(max(_rms(row) for row in rows)),
        "q99": _round(np.quantile(size, 0.99)),
        "q999": _round(np.quantile(size, 0.999)),
        "max": _round(size.max()),
    }


def _finite(values: Array) -> Array:
    """Without NaN and infinities, which an ``allow`` entry lets in and which measure nothing."""
    return np.asarray(values[np.isfinite(values)])


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0


def _round(value: float) -> float:
    """Four digits, upwards, so that the value that set a bound stays within it."""
    return float(_UPWARDS.create_decimal(float(value)))
