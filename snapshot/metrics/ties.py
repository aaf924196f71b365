"""Near-ties: steps at which rounding alone decides which token is greedy's."""

from __future__ import annotations

import math

from snapshot.difference import Divergence
from snapshot.model import Observation

_MANTISSA = {"bfloat16": 7, "float16": 10, "float32": 23}

ULPS = 2
"""Margins up to so many units in the last place of the top logit are a tie: each of the two
logits may be rounded by one."""


def ulp(value: float, dtype: str) -> float:
    """Distance of neighbouring numbers of a dtype at the size of `value`.

    Returns:
        0.0 for a dtype that is not known, so that nothing passes for a tie by mistake.
    """
    if dtype not in _MANTISSA or not value or not math.isfinite(value):
        return 0.0
    return float(2.0 ** (math.floor(math.log2(abs(value))) - _MANTISSA[dtype]))


def tie_bound(golden: Observation, step: int, dtype: str, measured: float) -> float:
    """The largest top-2 margin, in nats, that is a near-tie at a step of the golden.

    Args:
        dtype: what the golden was computed in.
        measured: largest margin at which the reference itself parted while its noise was
            measured; 0 where it never did.
    """
    logits = golden.arrays.get("top_logits")
    if logits is None or step >= len(logits):
        return measured
    return max(ULPS * ulp(float(logits[step, 0]), dtype), measured)


def near_tie(at: Divergence, bound: float) -> bool:
    """Whether two generations part where each one's choice was the other's near-equal.

    Both top-2 margins are known and within the bound, and each token is in the other's top-k.
    """
    margins = (at.golden_margin, at.candidate_margin)
    ranked = at.golden_rank is not None and at.candidate_rank is not None
    return ranked and all(margin is not None and margin <= bound for margin in margins)


def gap(golden: Observation, candidate: Observation, at: Divergence) -> float | None:
    """How far the gap between the two tokens of a parting moved from one side to the other, in
    nats; None where it is not known, or where the candidate's token is not its own likeliest.

    Greedy on both sides, that is the golden's lead of its token plus the candidate's of its own:
    noise that moves a logprob by that much explains the parting.
    """
    leads = [_lead(golden, at.step, at.golden_token, at.candidate_token)]
    leads.append(_lead(candidate, at.step, at.candidate_token, at.golden_token))
    return None if None in leads else sum(lead for lead in leads if lead is not None)


def _lead(side: Observation, step: int, own: int | None, other: int | None) -> float | None:
    """A side's own token above the other's; None where a token is unknown or not its best."""
    ids, logprobs = side.arrays.get("topk_ids"), side.arrays.get("topk_logprobs")
    if ids is None or logprobs is None or step >= len(ids) or ids.shape[1] == 0:
        return None
    known = dict(zip(ids[step].tolist(), logprobs[step].tolist(), strict=True))
    if own not in known or other not in known or known[own] < max(known.values()):
        return None
    return float(known[own] - known[other])
