"""Candidates: one way to call them, limits declared, an unsupported case never a pass."""

from __future__ import annotations

import pytest
import torch
from grouped_decode.candidates import CANDIDATES, Candidate, find_candidate, no_limits
from grouped_decode.case import Case
from grouped_decode.checks import judge
from grouped_decode.inputs import Tensors, generate
from grouped_decode.oracle import attention_oracle


def verdict(candidate: Candidate, key: str, device: str) -> object:
    case = Case.parse(key)
    assert candidate.supports(case) is None
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
    assert reason in (CANDIDATES[name].supports(Case.parse(key)) or "")


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("B2-H16-1-D64-64-S9-float16", None),
        ("B2-H16-1-D64-64-S9-bfloat16", "float16 only"),
        ("B2-H16-1-D64-64-S9-float16-page4", "pages of one slot only"),
        ("B2-H40-2-D64-64-S9-float16", "query heads in 16s or one a KV head only"),
        ("B2-H16-1-D64-64-S9-float16-sinks", "no sinks"),
        ("B2-H16-1-D64-48-S9-float16-mla", "contiguous K and V only"),
    ],
)
def test_wave_contract(key: str, reason: str | None) -> None:
    """Wave runs on its own hardware only; what it documents is held here."""
    assert CANDIDATES["wave"].limits(Case.parse(key)) == reason


def test_missing_package_is_a_reason() -> None:
    absent = Candidate("x", "no_such_package_here", no_limits, lambda tensors: None)
    assert absent.supports(Case.parse("B1-H1-1-D16-16-S9-float16")) == (
        "no_such_package_here is not installed"
    )


def constant(tensors: Tensors) -> tuple[torch.Tensor, None]:
    return torch.zeros_like(tensors.out), None


def test_module_function(device: str) -> None:
    candidate = find_candidate(f"{__name__}:constant")
    assert "relative L2" in str(verdict(candidate, "B1-H2-1-D16-16-S9-float16", device))
    with pytest.raises(LookupError, match="expected one of aiter"):
        find_candidate("nosuch")
