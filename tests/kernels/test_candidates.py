"""Candidates: one way to call them, limits declared, an unsupported case never a pass."""

from __future__ import annotations

import pytest
import torch
from grouped_decode.candidates import CANDIDATES, Candidate, find_candidate
from grouped_decode.candidates.ours import run_torch
from grouped_decode.case import Case
from grouped_decode.checks import judge
from grouped_decode.inputs import Tensors, generate
from grouped_decode.oracle import attention_oracle


def verdict(candidate: Candidate, key: str, device: str) -> object:
    case = Case.parse(key)
    assert candidate.supports(case, device) is None
    tensors = generate(case).place(device)
    out, lse = candidate.kernel(tensors)
    truth = attention_oracle(*tensors.positional, **tensors.options)
    arrays = [t.double().cpu().numpy() for t in (out, truth[0])]
    if lse is not None:
        arrays += [t.double().cpu().numpy() for t in (lse, truth[1])]
    return judge(case.dtype, *arrays)


@pytest.mark.parametrize("name", ["triton", "torch", "sdpa", "flex"])
@pytest.mark.parametrize(
    "key", ["B2-H8-2-D64-64-S40-float16", "B2-H4-4-D32-32-S20-bfloat16-page4-shuffled-window7"]
)
def test_ours_and_torchs_are_right(name: str, key: str, device: str) -> None:
    assert verdict(CANDIDATES[name], key, device) is None


def test_sdpa_is_caught_at_nan_in_padding(device: str) -> None:
    found = verdict(CANDIDATES["sdpa"], "B3-H4-2-D32-32-S20-float16-nanpad-ragged", device)
    assert "non-finite values" in str(found)


@pytest.mark.parametrize(
    ("name", "key", "reason"),
    [
        ("sdpa", "B1-H1-1-D16-16-S9-float16-cap5", "no soft cap"),
        ("sdpa", "B1-H1-1-D16-16-S9-float16-e4m3", "no float8"),
        ("flex", "B1-H1-1-D80-80-S9-float16", "powers of two"),
        ("flex", "B1-H1-1-D16-16-S9-float16-sinks", "no sinks"),
    ],
)
def test_limits_are_reasons(name: str, key: str, reason: str) -> None:
    assert reason in (CANDIDATES[name].limits(Case.parse(key)) or "")


def test_missing_module_is_a_reason() -> None:
    case = Case.parse("B1-H1-1-D16-16-S9-float16")
    for module in ("no_such_package_here", "no_such_package_here.inside", "json.nosuch"):
        absent = Candidate("x", run_torch, modules=(module,))
        assert absent.supports(case, "cpu") == f"{module} is not installed"


def constant(tensors: Tensors) -> tuple[torch.Tensor, None]:
    return torch.zeros_like(tensors.out), None


DECLARED = Candidate("declared", constant)


def test_module_function(device: str) -> None:
    candidate = find_candidate(f"{__name__}:constant")
    assert "relative L2" in str(verdict(candidate, "B1-H2-1-D16-16-S9-float16", device))
    assert find_candidate(f"{__name__}:DECLARED") is DECLARED
    with pytest.raises(TypeError, match="expected a function or a Candidate, got str"):
        find_candidate(f"{__name__}:__name__")
    with pytest.raises(LookupError, match="expected one of aiter"):
        find_candidate("nosuch")
