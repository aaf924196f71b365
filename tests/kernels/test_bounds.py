"""The bounds see every kernel that is wrong on purpose, and name the row."""

from __future__ import annotations

import numpy as np
import pytest
from grouped_decode.case import Case
from grouped_decode.checks import judge, row_errors
from grouped_decode.inputs import Tensors, generate
from grouped_decode.mutants import MUTANTS
from grouped_decode.oracle import attention_oracle

KEYS = [
    "B3-H8-2-D64-64-S200-float32-sinks",
    "B3-H8-2-D64-64-S200-float16-page4-sinks",
    "B3-H8-2-D64-64-S200-bfloat16-sinks",
]


def found(tensors: Tensors, result: tuple) -> object:
    truth = attention_oracle(*tensors.positional, **tensors.options)
    arrays = (t.double().cpu().numpy() for pair in zip(result, truth, strict=True) for t in pair)
    return judge(tensors.case.dtype, *arrays)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name: str, key: str, device: str) -> None:
    tensors = generate(Case.parse(key)).place(device)
    finding = found(tensors, MUTANTS[name](tensors))
    assert finding is not None, name
    assert str(finding).startswith(("relative L2 at sequence", "LSE at sequence"))


def test_the_oracle_passes_its_own_bounds(device: str) -> None:
    for key in KEYS:
        tensors = generate(Case.parse(key)).place(device)
        out, lse = attention_oracle(*tensors.positional, **tensors.options)
        assert found(tensors, (out.to(tensors.q.dtype), lse.float())) is None


def test_worst_row_is_named() -> None:
    """C20 and C13: one row off, one value NaN."""
    reference = np.ones((2, 4, 8))
    out = reference.copy()
    out[1, 2] *= 1.13
    assert str(judge("bfloat16", out, reference)) == (
        "relative L2 at sequence 1, head 2: 0.13, bound 0.005"
    )
    out[0, 3, 5] = np.nan
    assert "non-finite values at sequence 0, head 3" in str(judge("bfloat16", out, reference))
    assert row_errors(np.full((1, 1, 4), 2.0), np.zeros((1, 1, 4)))[0, 0] == 4.0


def test_lse_patterns() -> None:
    out = np.zeros((1, 2, 4))
    empty = np.full((1, 2), -np.inf)
    assert judge("float16", out, out, empty, empty) is None
    assert "LSE pattern" in str(judge("float16", out, out, np.zeros((1, 2)), empty))
