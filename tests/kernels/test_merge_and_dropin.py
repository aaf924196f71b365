"""Merging of partial results, LSE bases, and SGLang's positional call."""

from __future__ import annotations

import math

import pytest
import torch
from grouped_decode.attention import grouped_decode_attention
from grouped_decode.case import Case
from grouped_decode.dropin import decode_attention_fwd
from grouped_decode.inputs import generate
from grouped_decode.merge import merge_states
from grouped_decode.oracle import attention_oracle


def test_halves_merge_to_the_whole(device: str) -> None:
    case = Case.parse("B1-H8-2-D64-64-S90-float32")
    q, k, v, _, indices = generate(case).place(device).positional

    def over(table: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        indptr = torch.tensor([0, len(table)], dtype=torch.int32, device=device)
        return grouped_decode_attention(q, k, v, indptr, table, return_lse=True)

    out, lse = merge_states(*over(indices[:31]), *over(indices[31:]))
    whole, whole_lse = over(indices)
    torch.testing.assert_close(out, whole, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(lse, whole_lse, atol=2e-6, rtol=1e-5)
    same, same_lse = merge_states(*over(indices), *over(indices[:0]))
    assert torch.equal(same, whole) and torch.equal(same_lse, whole_lse)


def test_two_empty_states() -> None:
    nothing = torch.full((2, 3, 4), math.nan), torch.full((2, 3), -math.inf)
    out, lse = merge_states(*nothing, *nothing)
    assert not out.any() and torch.isneginf(lse).all()


def test_merge_states_of_large_lse() -> None:
    a, b = torch.full((1, 1, 4), 1.0), torch.full((1, 1, 4), 3.0)
    out, lse = merge_states(a, torch.full((1, 1), 2000.0), b, torch.full((1, 1), 2000.0))
    assert torch.equal(out, torch.full((1, 1, 4), 2.0))
    assert float(lse) == pytest.approx(2000 + math.log(2))


def test_merge_states_checks_shapes() -> None:
    out, lse = torch.zeros(2, 3, 4), torch.zeros(2, 3)
    with pytest.raises(ValueError, match="out_b: expected shape"):
        merge_states(out, lse, out[:1], lse)
    with pytest.raises(ValueError, match="lse_b: expected shape"):
        merge_states(out, lse, out, lse[:1])


@pytest.mark.parametrize("splits", [1, 3])
def test_lse_bases(splits: int, device: str) -> None:
    tensors = generate(Case.parse("B3-H4-2-D64-64-S40-float32-ragged-sinks")).place(device)
    _, natural = grouped_decode_attention(
        *tensors.positional, **tensors.options, return_lse=True, num_kv_splits=splits
    )
    _, binary = grouped_decode_attention(
        *tensors.positional, **tensors.options, return_lse=True, lse_base="2", num_kv_splits=splits
    )
    torch.testing.assert_close(binary * math.log(2), natural)
    _, truth = attention_oracle(*tensors.positional, **tensors.options, lse_base="2")
    torch.testing.assert_close(binary.double(), truth, atol=1e-5, rtol=1e-6)


def test_sglang_drop_in(device: str) -> None:
    """The call as SGLang makes it, with room left over in its tables."""
    tensors = generate(Case.parse("B3-H8-2-D64-64-S40-float16-cap20-ragged-sinks")).place(device)
    q, k, v, indptr, indices = tensors.positional
    longer = torch.cat([indptr, indptr[-1:].expand(4)])
    scratch = torch.empty((3, 8, 8, 64), device=device), torch.empty((3, 8, 8), device=device)
    counts = torch.full((3,), 8, dtype=torch.int32, device=device)
    decode_attention_fwd(
        q, k, v, tensors.out, longer, indices, *scratch, counts, 8, 64**-0.5, 1.0, 1.0, 20.0,
        tensors.sinks, has_mla=False, use_pdl=False,
    )  # fmt: skip
    expected = grouped_decode_attention(*tensors.positional, **tensors.options)
    torch.testing.assert_close(tensors.out, expected, atol=1e-3, rtol=1e-3)
    with pytest.raises(NotImplementedError, match="xai_temperature_len"):
        decode_attention_fwd(
            q, k, v, tensors.out, longer, indices, *scratch, counts, 8, 1.0, xai_temperature_len=9
        )  # fmt: skip
