"""Case files of kernels: they round-trip, and anything else is damaged."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.errors import DamagedGolden
from snapshot.kernel_model import Computed, Errors, LseError, Misplaced, Tensor
from snapshot.model import Fingerprint, RecordedFingerprint
from snapshot.store import Change, Store, canonical, kernelfile, migrate, schemas
from snapshot.store.casefile import encode
from tests.snapshot.kernel_builders import HERE, SUITE, golden, observe, right

sizes = st.lists(st.integers(0, 2**40), max_size=3).map(tuple)
measures = st.floats(0, 1e300)
counts = st.integers(0, 2**63 - 1)
hexes = st.text("0123456789abcdef", min_size=64, max_size=64)
tensors = st.builds(Tensor, st.sampled_from(["float16", "bfloat16"]), sizes, hexes, measures)
errors = st.builds(
    Errors, counts, measures, sizes, st.integers(0, 2**64 - 1), measures, measures, counts
)
bad = st.builds(
    Misplaced,
    st.sampled_from(["out", "lse"]),
    st.integers(1, 2**63 - 1),
    sizes,
    st.sampled_from(["nan", "inf", "-inf"]),
    hexes,
)
outputs = st.builds(
    Computed,
    sizes,
    tensors,
    st.none() | tensors,
    errors,
    errors,
    st.none() | st.builds(LseError, measures, sizes),
    st.lists(bad, max_size=2).map(tuple),
)


@given(outputs)
def test_outputs_round_trip(output: Computed) -> None:
    text = canonical.dumps(kernelfile.encode(output))
    assert kernelfile.decode(canonical.loads(text, "x"), "x") == output


def test_a_golden_comes_back_bit_for_bit_and_a_second_write_changes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_fingerprint(RecordedFingerprint(SUITE, Fingerprint(HERE)))
    whole = golden(observe(right("float16"), lse=np.full((2, 4), -np.inf, np.float32)))
    assert store.write(whole) is Change.CREATED
    assert store.write(whole) is Change.UNCHANGED
    back = store.read(SUITE, HERE.slug, "triton", whole.case)
    assert back.observation.output == whole.observation.output
    assert back.observation.workload == whole.observation.workload
    for name, array in whole.observation.arrays.items():
        stored = back.observation.arrays[name]
        assert (stored.dtype, stored.shape) == (array.dtype, array.shape)
        assert stored.tobytes() == array.tobytes()
    assert store.check() == []


def _wide() -> Any:
    return np.asfortranarray(np.arange(32000, dtype=np.float32).reshape(1000, 32))


@pytest.mark.parametrize(
    "array",
    [
        _wide(),
        _wide().T,
        _wide()[:, ::2],
        _wide()[::-1],
        np.broadcast_to(np.float32(1.5), (3, 4)),
        np.float32(2.5).reshape(()),
        np.zeros(0, np.float16),
        np.zeros((2, 0, 64), ml_dtypes.bfloat16),
        np.array([-0.0, np.nan, np.inf], ml_dtypes.bfloat16),
    ],
    ids=[
        "column-major",
        "transposed",
        "strided",
        "negative",
        "stride-0",
        "0-d",
        "0",
        "2x0",
        "bits",
    ],
)
def test_arrays_of_any_layout_come_back(array: Any, tmp_path: Path) -> None:
    """C33: value, shape and dtype; what is written is read back first."""
    store = Store(tmp_path)
    found = golden()
    arrays = {"out": array}
    found = type(found)(
        SUITE,
        HERE.slug,
        "triton",
        type(found.observation)(found.case, found.observation.output, arrays),
    )
    store.write(found)
    back = store.read(SUITE, HERE.slug, "triton", found.case).observation.arrays["out"]
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())


RECORD = encode(golden(observe(lse=np.zeros((2, 4), np.float32))), {"out": "0" * 64})

DAMAGE: dict[str, Any] = {
    "$.output.out.dtype": "float17",
    "$.output.out.shape": [2, -1],
    "$.output.out.digest": "xyz",
    "$.output.out.norm": -1.0,
    "$.output.errors.compared": 1.0,
    "$.output.errors.rel_l2": "small",
    "$.output.errors.row": 3,
    "$.output.baseline.ulp_max": -1,
    "$.output.lse_error.abs": None,
    "$.output.misplaced": {},
    "$.input.lengths": None,
}


@pytest.mark.parametrize("at", DAMAGE)
def test_what_does_not_follow_the_schema_is_damaged(at: str) -> None:
    record = copy.deepcopy(RECORD)
    *path, last = at.split(".")[1:]
    place = record
    for name in path:
        place = place[name]
    place[last] = DAMAGE[at]
    with pytest.raises(DamagedGolden) as error:
        kernelfile.decode(record, "x.json")
    assert at.rsplit(".", 1)[0] in error.value.what
    assert schemas.problem(canonical.sign(record), migrate.GOLDEN) is not None


@pytest.mark.parametrize("change", ["missing", "unknown"])
def test_no_field_is_optional_and_none_is_added(change: str) -> None:
    record = copy.deepcopy(RECORD)
    if change == "missing":
        del record["output"]["errors"]["row"]
    else:
        record["output"]["errors"]["more"] = 1
    with pytest.raises(DamagedGolden, match=r"\$\.output\.errors"):
        kernelfile.decode(record, "x.json")
    assert schemas.problem(canonical.sign(record), migrate.GOLDEN) is not None


def test_a_right_record_follows_the_schema() -> None:
    assert schemas.problem(RECORD, migrate.GOLDEN) is None
