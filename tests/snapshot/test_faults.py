"""Forced scoring and injected faults, on the real model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from snapshot.errors import RunError
from snapshot.metrics.logprobs import distance
from snapshot.model import Observation
from snapshot.runners.faults import FAULTS
from snapshot.runners.worker import Worker
from snapshot.suite import Group
from tests.snapshot.test_reference import batches, suite

pytest.importorskip("torch", reason="the base install has no reference")
pytestmark = pytest.mark.model

ADAPTER_FAULTS = [name for name, fault in FAULTS.items() if fault.adapters]
Rows = tuple[Observation, ...]


@pytest.fixture(scope="module")
def worker(smollm2: Path) -> Iterator[Worker]:
    with Worker(suite(smollm2), "float32") as loaded:
        yield loaded


@pytest.fixture(scope="module")
def batch() -> Group:
    (group,) = batches(6, "pirate", "haiku")
    return group


@pytest.fixture(scope="module")
def clean(worker: Worker, batch: Group) -> Rows:
    return worker.run(batch)


def bits(rows: Rows) -> list[bytes]:
    return [b"".join(row.arrays[name].tobytes() for name in sorted(row.arrays)) for row in rows]


def ids(row: Observation) -> tuple[int, ...]:
    assert row.output.token_ids is not None
    return row.output.token_ids


def test_forced_to_say_its_own_words_a_row_gives_its_own_bits(
    worker: Worker, batch: Group, clean: Rows
) -> None:
    forced = worker.run(batch, {row.case: ids(row) for row in clean})
    assert bits(forced) == bits(clean) and [r.output for r in forced] == [r.output for r in clean]


def test_a_forced_row_says_what_it_is_told_and_scores_it(
    worker: Worker, batch: Group, clean: Rows
) -> None:
    base, pirate = clean[0], clean[1]
    forced = worker.run(batch, {pirate.case: ids(base)})
    said = forced[1]
    assert ids(said) == ids(base) != ids(pirate)
    # The logprobs are of the tokens it was made to say: the first are found in its own top-k.
    first = pirate.arrays["topk_ids"][0].tolist()
    assert np.array_equal(said.arrays["topk_logprobs"][0], pirate.arrays["topk_logprobs"][0])
    if ids(base)[0] in first:
        expected = pirate.arrays["topk_logprobs"][0][first.index(ids(base)[0])]
        assert said.arrays["logprobs"][0] == expected
    assert said.arrays["logprobs"].sum() < pirate.arrays["logprobs"].sum()
    assert bits(forced[2:]) == bits(clean[2:])  # the other rows are left free


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_reaches_the_rows_it_is_about_and_leaves_no_trace(
    worker: Worker, batch: Group, clean: Rows, fault: str
) -> None:
    faulty = worker.run(batch, fault=fault)
    changed = [a != b for a, b in zip(bits(faulty), bits(clean), strict=True)]
    base, adapters = changed[0::3], changed[1::3] + changed[2::3]
    assert all(adapters) and any(base) == (fault not in ADAPTER_FAULTS)
    assert [row.workload for row in faulty] == [row.workload for row in clean]
    assert bits(worker.run(batch)) == bits(clean)


def test_faults_are_what_they_say(worker: Worker, batch: Group, clean: Rows) -> None:
    dropped = worker.run(batch, fault="adapter-dropped")
    assert ids(dropped[1]) == ids(dropped[2]) == ids(clean[0])
    swapped = worker.run(batch, fault="adapters-swapped")
    assert ids(swapped[1]) == ids(clean[2]) and ids(swapped[2]) == ids(clean[1])


def test_faults_are_ordered_as_they_are_big(worker: Worker, batch: Group, clean: Rows) -> None:
    """facts: in float32 a real fault stands far above rounding."""

    def far(fault: str) -> float:
        moved = distance(clean[1], worker.run(batch, fault=fault)[1])
        assert moved is not None
        return moved.rms

    assert 1e-3 < far("alpha-1.05") < far("alpha-2")
    assert 1e-3 < far("int8-weights") < far("int4-weights")
    assert far("rope-1pct") > 1e-3


def test_a_fault_that_cannot_be_injected_costs_a_row_and_not_the_worker(
    worker: Worker, batch: Group, clean: Rows
) -> None:
    with pytest.raises(RunError, match="KeyError"):
        worker.run(batch, fault="no such fault")
    assert bits(worker.run(batch)) == bits(clean)
