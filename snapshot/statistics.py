"""Small-sample statistics over prompts.

The tokens of one text are correlated, so a text counts once: every test here takes one value
a prompt. Seeded, so a report is the same twice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from snapshot.model import Array

SEED = 20261130
RESAMPLES = 10_000
EXACT = 12
"""Up to this many values every assignment of signs is tried, 4096 at most."""

# Standard normal quantiles: 97.5 % for a two-sided test at 5 %, and 80 % power.
_TWO_SIDED, _POWER = 1.959964, 0.841621


def sign_flip(values: Sequence[float]) -> float:
    """Two-sided p-value of a mean of zero, by flipping signs.

    Where nothing is wrong, each prompt's value is as likely to be its negative (Fisher's
    randomisation test, The Design of Experiments, 1935). Every assignment is tried up to
    `EXACT` values, `RESAMPLES` seeded ones above. The smallest possible answer is
    ``2 / 2**n``: with five prompts or fewer nothing is ever below 0.05. The order of the values
    changes nothing.

    Returns:
        1.0 for no values, and where one is not finite.
    """
    observed = np.asarray(values, dtype=np.float64)
    if observed.size == 0 or not np.isfinite(observed).all():
        return 1.0
    count = observed.size
    sizes = np.sort(np.abs(observed))  # their signs are flipped anyway
    if count <= EXACT:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=count)))
        extra = 0
    else:
        signs = np.random.default_rng(SEED).choice((1.0, -1.0), size=(RESAMPLES, count))
        extra = 1  # the observed assignment is one of them
    rounding = 1e-12 * sizes.sum()
    reached = int((np.abs(signs @ sizes) >= abs(observed.sum()) - rounding).sum())
    return float((reached + extra) / (len(signs) + extra))


def bootstrap(numerators: Array, denominators: Array) -> tuple[float, float]:
    """95 % percentile interval of ``sum(numerators) / sum(denominators)`` over prompts.

    Args:
        numerators, denominators: float64 [n], one value a prompt; denominators positive.
    """
    count = len(numerators)
    chosen = np.random.default_rng(SEED).integers(0, count, size=(RESAMPLES, count))
    ratios = numerators[chosen].sum(1) / denominators[chosen].sum(1)
    low, high = np.quantile(ratios, (0.025, 0.975))
    return float(low), float(high)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """The p-values adjusted so that all groups together err once in twenty (Holm, 1979)."""
    adjusted: dict[str, float] = {}
    largest = 0.0
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    for rank, (name, p) in enumerate(ordered):
        largest = max(largest, min(1.0, p * (len(ordered) - rank)))
        adjusted[name] = largest
    return adjusted


def detectable(values: Sequence[float], groups: int = 1) -> float:
    """The shift of the mean that a two-sided test at 5 % would find four times in five.

    ``(z_0.975 + z_0.8) * s / sqrt(n)`` with the sample's deviation s (Cohen, Statistical
    Power Analysis, 1988); infinite where so few prompts can never be significant after
    Holm's correction over `groups`.
    """
    count = len(values)
    if count < 2 or 2.0 ** (1 - count) * groups >= 0.05:
        return math.inf
    spread = float(np.std(np.asarray(values, dtype=np.float64), ddof=1))
    return (_TWO_SIDED + _POWER) * spread / math.sqrt(count)
