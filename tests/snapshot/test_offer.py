"""Which failures a new golden answers, and which it would only hide."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from snapshot.model import Golden, Identity
from snapshot.offer import offers
from snapshot.resolve import Baseline
from snapshot.result import Result, Verdict
from snapshot.store import Store
from snapshot.verification import Held, Said
from tests.snapshot.builders import ROCM7, ROCM10, fingerprint, observation, recorded

NEVER = {Verdict.ERROR, Verdict.INVALID, Verdict.NONFINITE, Verdict.WRONG, Verdict.REGRESSION,
         Verdict.UNATTRIBUTED, Verdict.QUARANTINED, Verdict.FIXED}  # fmt: skip
PASSING = {Verdict.MATCH, Verdict.VARIANT, Verdict.TIE, Verdict.WITHIN}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "goldens")


def record(store: Store, identity: Identity, *cases: str, subject: str = "reference") -> None:
    store.write_fingerprint(dataclasses.replace(recorded(identity), suite="s"))
    for case in cases:
        store.write(Golden("s", identity.slug, subject, observation(case=case)))


def run(
    *verdicts: Verdict,
    here: Identity | None = ROCM7,
    golden: Identity | None = ROCM7,
    subject: str = "reference",
    held_to: str = "reference",
    said: Identity | None = ROCM7,
) -> Held:
    """Cases named by their verdict's value, held to `golden`'s goldens."""
    rows = {v.value: observation(case=v.value) for v in verdicts}
    return Held(
        "s",
        subject,
        None if here is None else here.slug,
        Baseline(golden, "", exact=golden == here),
        tuple(Result("s", v.value, subject, None, None, v, "") for v in verdicts),
        held_to=held_to,
        said=None if said is None else Said(fingerprint(said), rows),
    )


def offered(held: list[Held], store: Store, kernels: bool = False) -> dict[tuple[str, str], set]:
    found = offers(held, store, kernels=kernels)
    return {(offer.slug, offer.subject): set(offer.cases) for offer in found}


def test_drift_and_missing_goldens_are_answered_and_nothing_else(store: Store) -> None:
    record(store, ROCM7, "x")
    found = offered([run(*Verdict)], store)
    assert found == {(ROCM7.slug, "reference"): {"DRIFT", "MISSING"}}
    assert set(Verdict) == NEVER | PASSING | {Verdict.DRIFT, Verdict.MISSING}
    assert offered([run(*NEVER, *PASSING)], store) == {}


def test_a_new_environment_gets_all_that_is_sound_or_it_would_lose_what_it_inherits(
    store: Store,
) -> None:
    record(store, ROCM7, "x")
    inherited = run(*Verdict, here=ROCM10, said=ROCM10)
    everything = {v.value for v in PASSING | {Verdict.DRIFT, Verdict.MISSING}}
    assert offered([inherited], store) == {(ROCM10.slug, "reference"): everything}
    passing = run(*PASSING, *NEVER, here=ROCM10, said=ROCM10)
    assert offered([passing], store) == {}  # nothing failed that a golden answers


def test_held_to_others_a_run_is_offered_only_what_its_own_environment_lacks(store: Store) -> None:
    """Whether its own goldens still hold was not asked."""
    record(store, ROCM10, "DRIFT")
    against = run(*Verdict, here=ROCM10, said=ROCM10)
    assert offered([against], store) == {(ROCM10.slug, "reference"): {"MISSING"}}


def test_what_an_engine_gives_is_never_the_reference_s(store: Store) -> None:
    """Where the reference drifted, its own answer is offered; for a missing golden it was not
    asked."""
    record(store, ROCM7, "x")
    held = run(*Verdict, subject="vllm", here=None)
    assert offered([held], store) == {(ROCM7.slug, "reference"): {"DRIFT"}}
    unasked = run(*Verdict, subject="vllm", here=None, said=None)
    assert offered([unasked], store) == {}


def test_what_the_reference_says_elsewhere_answers_no_failure_here(store: Store) -> None:
    record(store, ROCM7, "x")
    assert offered([run(*Verdict, subject="vllm", here=None, said=ROCM10)], store) == {}


def test_an_engine_s_missing_own_golden_is_its_own_and_only_where_it_is_right(
    store: Store,
) -> None:
    record(store, ROCM7, "x", subject="vllm")
    right = run(Verdict.MATCH, Verdict.REGRESSION, subject="vllm", here=None, said=None)
    own = dataclasses.replace(
        right,
        held_to="vllm",
        results=tuple(
            dataclasses.replace(result, verdict=Verdict.MISSING) for result in right.results
        ),
    )
    assert offered([right, own], store) == {(ROCM7.slug, "vllm"): {"MATCH"}}


def test_kernels_are_offered_their_own_and_only_what_is_missing(store: Store) -> None:
    record(store, ROCM7, "x", subject="triton")
    held = [
        run(*Verdict, subject="triton", said=None),
        run(*PASSING, subject="mine:kernel", said=None),
    ]
    assert offered(held, store, kernels=True) == {(ROCM7.slug, "triton"): {"MISSING"}}


def test_one_kernel_s_first_golden_takes_the_others_out_of_inheritance(store: Store) -> None:
    record(store, ROCM7, "x", subject="triton")
    held = [
        run(Verdict.MISSING, Verdict.WRONG, here=ROCM10, subject="triton", said=None),
        run(Verdict.MATCH, Verdict.WRONG, here=ROCM10, subject="sdpa", said=None),
    ]
    assert offered(held, store, kernels=True) == {
        (ROCM10.slug, "triton"): {"MISSING"},
        (ROCM10.slug, "sdpa"): {"MATCH"},
    }
