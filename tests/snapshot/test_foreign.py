"""Candidates of another implementation: their noise, their near-ties, their own goldens."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from snapshot.calibrate import FOREIGN_RMS
from snapshot.evidence import Now
from snapshot.metrics.ties import gap
from snapshot.metrics.tokens import divergence
from snapshot.model import Observation
from snapshot.result import Result, Verdict
from snapshot.verdict import judge
from tests.snapshot.builders import evidence, golden, noise, observation, recorded

FLOOR = recorded(calibration=noise(0.0, 0.2))


def judged(candidate: Observation, **fields: Any) -> Result:
    usual = {"subject": "vllm", "here": None, "recorded": FLOOR}
    return judge(evidence(candidate, **{**usual, **fields}))


def engine(ids: tuple[int, ...], shift: float = 0.0, **fields: Any) -> Observation:
    return observation("x", ids=ids, shift=shift, workload=None, composition=None, **fields)


def test_another_implementation_may_be_further_off_than_another_batch() -> None:
    same = observation(shift=0.2 * FOREIGN_RMS - 0.01, workload=None, composition=None)
    assert judged(same).verdict is Verdict.MATCH
    # The reference itself, in another batch, may not.
    assert judged(same, subject="reference").verdict is not Verdict.MATCH
    further = observation(shift=0.2 * FOREIGN_RMS + 0.01, workload=None, composition=None)
    assert judged(further).verdict is Verdict.UNATTRIBUTED


def parted(lead: float, other_lead: float) -> tuple[Observation, Observation]:
    """A golden and a candidate that part at step 1, each with its own token this far ahead."""

    def side(ids: tuple[int, ...], own: int, other: int, ahead: float) -> Observation:
        made = engine(ids)
        logprobs = np.array([[-0.5, -1.5], [-0.9, -0.9 - ahead]], dtype=np.float32)
        names = np.array([[1, 2], [own, other]], dtype=np.int32)
        arrays = {**made.arrays, "topk_ids": names, "topk_logprobs": logprobs}
        arrays["logprobs"] = logprobs[:, 0].copy()
        arrays["top_logits"] = logprobs + 9.9
        return dataclasses.replace(made, arrays=arrays)

    return side((1, 5), 5, 6, lead), side((1, 6), 6, 5, other_lead)


@pytest.mark.parametrize(("leads", "tie"), [((0.1, 0.05), True), ((0.15, 0.15), False)])
def test_a_parting_that_noise_explains_is_a_tie(leads: tuple[float, float], tie: bool) -> None:
    a, b = parted(*leads)
    own = dataclasses.replace(golden(), observation=a)
    found = judged(b, golden=own, now=Now(candidate_forced=a))
    assert (found.verdict is Verdict.TIE) == tie, found.headline
    at = divergence(a, b)
    assert at is not None and gap(a, b, at) == pytest.approx(sum(leads), abs=1e-6)
    # Without the engine's scores of the golden's tokens, what follows could hide anything.
    assert judged(b, golden=own).verdict is Verdict.UNATTRIBUTED


def test_a_token_that_is_not_its_own_likeliest_is_no_tie() -> None:
    """Sampling, or a penalty that the logprobs do not show."""
    a, b = parted(0.1, -0.1)
    at = divergence(a, b)
    assert at is not None and gap(a, b, at) is None


def test_the_prompt_s_logprobs_name_a_swapped_adapter_whatever_the_words() -> None:
    siblings = {"haiku": golden("other words here", shift=-1.0)}
    found = judged(engine((7, 8, 9), shift=-1.1), siblings=siblings, adapter="pirate")
    assert found.verdict is Verdict.REGRESSION
    assert found.headline == 'matches the golden of adapter "haiku": adapters swapped'
    near = judged(engine((7, 8, 9), shift=-0.1), siblings=siblings, adapter="pirate")
    assert "swapped" not in near.headline


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        (Now(reference_moved=False), Verdict.REGRESSION),
        (Now(reference_moved=True, follows=True), Verdict.DRIFT),
        (Now(reference_moved=True, follows=False), Verdict.UNATTRIBUTED),
        (Now(), Verdict.UNATTRIBUTED),
    ],
)
def test_who_moved_where_an_engine_parts_from_its_own_golden(now: Now, verdict: Verdict) -> None:
    own = golden(subject="vllm", shift=-1.0, workload=None)
    moved = observation(shift=-0.5, workload=None, composition=None)
    assert judged(moved, golden=own, now=now).verdict is verdict
    still = observation(shift=-1.0, workload=None, composition=None)
    assert judged(still, golden=own, now=now).verdict is Verdict.MATCH
