"""Asks the reference, here and now, what judging a difference needs to know."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from snapshot import grouptests
from snapshot.attribute import changes
from snapshot.attribution import GroupTest
from snapshot.comparison import Comparison
from snapshot.errors import StoreError
from snapshot.evidence import Evidence, Now
from snapshot.metrics.shape import Misshapen
from snapshot.model import BASE, Golden, Observation
from snapshot.plan import Plan
from snapshot.runners.rerun import FLOAT32, Rerun

Evidences = Mapping[str, Evidence]


def of_reference(
    rerun: Rerun, evidences: Evidences, keys: Iterable[str], dtype: str, size: int
) -> dict[str, Now]:
    """For candidates that are the reference's own run at a dtype and batch size."""
    compared = _compared(evidences, keys)
    tokens = _tokens(evidences)
    forced = rerun.forced(dtype, size, compared, tokens)
    truth = _truth(rerun, compared, tokens, dtype, size)
    found: dict[str, Now] = {}
    for key, c in compared.items():
        recorded = evidences[key].recorded
        golden_size = None if recorded is None else recorded.fingerprint.identity.batch_size
        at_golden: Observation | None = c.candidate
        if golden_size is not None and golden_size != size:
            at_golden = rerun.free(dtype, golden_size, compared).get(key)
        found[key] = Now(
            golden_batch=at_golden,
            truth=truth.get(key),
            forced=forced.get(key),
            candidate_forced=forced.get(key),
            repeated=_repeated(rerun, evidences, compared, dtype, size).get(key),
        )
    return _with_notes(rerun, found)


def of_engine(
    rerun: Rerun,
    plan: Plan,
    evidences: Evidences,
    keys: Iterable[str],
    dtype: str,
    size: int,
    scores: Mapping[str, Observation] | None = None,
) -> dict[str, Now]:
    """For candidates of another implementation; its batches are not known, so the reference
    runs in the golden's.

    Args:
        scores: the candidate on the goldens' tokens, by case key, where it could be asked; one
            that said them itself has scored them too.
    """
    compared = _compared(evidences, keys)
    tokens = _tokens(evidences)
    free = rerun.free(dtype, size, compared)
    everything = _compared(evidences, evidences)
    forced = rerun.forced(dtype, size, everything, tokens)
    truth = _truth(rerun, everything, tokens, dtype, size)
    scores = {
        **{key: c.candidate for key, c in everything.items() if c.same_output},
        **(scores or {}),
    }
    candidates = {key: scores.get(key, c.candidate) for key, c in everything.items()}
    tests = _tests(rerun, plan, candidates, forced, truth, tokens, dtype, size)
    adapters = {case.key: case.adapter or BASE for case in plan.cases}
    found = {
        key: Now(
            golden_batch=free.get(key),
            truth=truth.get(key),
            forced=forced.get(key),
            candidate_forced=scores.get(key),
            tests=tests.get(adapters[key], ()),
        )
        for key, c in compared.items()
    }
    return _with_notes(rerun, found)


def _tests(
    rerun: Rerun,
    plan: Plan,
    candidates: Mapping[str, Observation],
    forced: Mapping[str, Observation],
    truth: Mapping[str, Observation],
    tokens: Mapping[str, Sequence[int]],
    dtype: str,
    size: int,
) -> dict[str, tuple[GroupTest, ...]]:
    """What all rows of each adapter say together; see `snapshot.grouptests`."""
    exact = dtype == FLOAT32
    truth = forced if exact else truth
    keys = [
        key
        for key, candidate in candidates.items()
        if grouptests.comparable(candidate) and key in forced and key in truth
    ]
    base = rerun.as_base(FLOAT32, size, keys, tokens) if keys else {}
    scored = {
        key: grouptests.Scored(candidates[key], forced[key], truth[key], base.get(key))
        for key in keys
    }
    return grouptests.tests(plan.cases, scored, exact=exact)


def _compared(evidences: Evidences, keys: Iterable[str]) -> dict[str, Comparison]:
    """The cases in which there is something to ask about; one that cannot be compared fails by
    its own verdict and costs the others nothing."""
    found: dict[str, Comparison] = {}
    for key in keys:
        golden, candidate = evidences[key].golden, evidences[key].candidate
        if isinstance(golden, Golden) and isinstance(candidate, Observation):
            with contextlib.suppress(Misshapen, StoreError):
                found[key] = Comparison.of(golden.observation, candidate)
    return found


def _tokens(evidences: Evidences) -> dict[str, tuple[int, ...]]:
    """The goldens' tokens, by case key."""
    return {
        key: e.golden.observation.output.token_ids
        for key, e in evidences.items()
        if isinstance(e.golden, Golden) and e.golden.observation.output.token_ids is not None
    }


def _truth(
    rerun: Rerun,
    keys: Iterable[str],
    tokens: Mapping[str, Sequence[int]],
    dtype: str,
    size: int,
) -> Mapping[str, Observation]:
    """The float32 answers, where the run is not float32 itself."""
    return {} if dtype == FLOAT32 else rerun.forced(FLOAT32, size, keys, tokens)


def _repeated(
    rerun: Rerun, evidences: Evidences, compared: Mapping[str, Comparison], dtype: str, size: int
) -> Mapping[str, Observation]:
    """The rows that moved though nothing around them did, once more in a fresh process."""
    keys = [
        key
        for key, c in compared.items()
        if (e := evidences[key]).here is not None
        and e.recorded is not None
        and not changes(e.recorded.fingerprint, e.here, c)
    ]
    return rerun.afresh(dtype, size, keys) if keys else {}


def _with_notes(rerun: Rerun, found: Mapping[str, Now]) -> dict[str, Now]:
    notes = tuple(rerun.notes)
    return {key: dataclasses.replace(now, notes=notes) for key, now in found.items()}
