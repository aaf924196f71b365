"""What of an output is recorded, and what can still be told from it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.kernel_model import LSE, OUT
from snapshot.metrics.tensors import moved
from snapshot.payload import DIGESTS, NORMS, SAMPLE, SAMPLED, compare, trimmed
from tests.snapshot.kernel_builders import golden, observe, right


def test_within_the_budget_all_of_it_is_kept() -> None:
    observation = observe()
    assert trimmed(observation, observation.arrays[OUT].nbytes) is observation


@given(st.integers(1, 400), st.integers(1, 40), st.integers(1, 9))
def test_over_the_budget_a_sketch_is(budget: int, heads: int, width: int) -> None:
    out = right(shape=(2, heads, width))
    observation = observe(out, lse=np.zeros((2, heads), np.float32))
    kept = trimmed(observation, budget)
    assert kept.output == observation.output and LSE in kept.arrays
    if out.nbytes <= budget:
        return
    assert set(kept.arrays) == {LSE, DIGESTS, NORMS, SAMPLED, SAMPLE}
    assert len(kept.arrays[DIGESTS]) == len(kept.arrays[NORMS]) == 2 * heads
    chosen, sample = kept.arrays[SAMPLED], kept.arrays[SAMPLE]
    assert len(set(chosen.tolist())) == len(chosen) >= 1
    assert sample.nbytes <= max(budget, sample[0].nbytes)
    assert (out.reshape(-1, width)[chosen] == sample).all()


def test_a_whole_golden_counts_elements_and_a_sketch_counts_rows() -> None:
    out = right()
    out.view(np.int16)[1, 2, 3] += 4
    whole = compare(golden(), out)
    assert (whole.elements, whole.rows, whole.ulp_max, whole.row) == (1, 1, 4, (1, 2))
    sketch = compare(golden(budget=64), out)
    assert (sketch.elements, sketch.rows, sketch.of_rows, sketch.compared) == (None, 1, 8, 32)
    # Rows 0, 2, 4, 6 are kept: row 6 is sequence 1, head 2.
    assert (sketch.ulp_max, sketch.row) == (4, (1, 2))
    assert (whole.distance, whole.sampled) == ("up to 4 ulp", None)
    assert (sketch.distance, sketch.sampled) == ("up to 4 ulp in the worst of 4 sampled rows", 4)


def test_a_moved_row_that_is_not_kept_is_counted_all_the_same() -> None:
    out = right()
    out.view(np.int16)[0, 1, 0] += 1
    found = compare(golden(budget=64), out)
    assert (found.rows, found.ulp_max) == (1, 0)
    assert found.distance == "how far is not known: no bit moved in any of 4 sampled rows"


def test_another_shape_or_dtype_is_an_error() -> None:
    for out in (right("bfloat16"), right(shape=(2, 4, 9))):
        with pytest.raises(ValueError, match="expected the golden's float16"):
            compare(golden(), out)


@pytest.mark.parametrize("shape", [(2, 0, 64), (0, 4, 8)])
def test_nothing_is_kept_and_compared_as_nothing(shape: tuple[int, ...]) -> None:
    """C33"""
    out = right(shape=shape)
    assert math.prod(shape) == 0 and compare(golden(observe(out)), out) == moved(out, out)
