"""The Triton kernel against the float64 oracle, over shapes, dtypes and traits."""

from __future__ import annotations

import pytest
import torch
from decode_matrix import CASES, LONG
from grouped_decode.attention import grouped_decode_attention, workspace_numel
from grouped_decode.case import Case
from grouped_decode.checks import judge
from grouped_decode.inputs import Tensors, generate
from grouped_decode.oracle import attention_oracle

SPLITS = (None, 1, 2, 4)


def run(tensors: Tensors, **more: object) -> tuple[torch.Tensor, torch.Tensor]:
    workspace = None
    if tensors.workspace_fill is not None:
        numel = workspace_numel(*tensors.positional, **tensors.options, **more)
        workspace = torch.full((numel,), tensors.workspace_fill, device=tensors.q.device)
    return grouped_decode_attention(
        *tensors.positional,
        **tensors.options,
        **more,
        out=tensors.out,
        return_lse=True,
        workspace=workspace,
    )


@pytest.mark.parametrize("key", CASES + LONG * torch.cuda.is_available())
def test_agrees_with_the_oracle(key: str, device: str) -> None:
    case = Case.parse(key)
    tensors = generate(case).place(device)
    splits = SPLITS[sum(key.encode()) % len(SPLITS)]
    out, lse = run(tensors, num_kv_splits=splits)
    assert out.data_ptr() == tensors.out.data_ptr()
    reference, lse_reference = attention_oracle(*tensors.positional, **tensors.options)
    finding = judge(
        case.dtype,
        out.double().cpu().numpy(),
        reference.cpu().numpy(),
        lse.double().cpu().numpy(),
        lse_reference.cpu().numpy(),
    )
    assert finding is None, f"{key} with {splits} splits: {finding}"


@pytest.mark.parametrize("splits", [1, 2, 3, 5, 7, 16, 33])
@pytest.mark.parametrize("shape", ["B3-H6-2-D64-64-S129", "B2-H16-1-D80-80-S64"])
def test_every_number_of_splits(shape: str, splits: int, device: str) -> None:
    tensors = generate(Case.parse(f"{shape}-float32-ragged-sinks")).place(device)
    out, lse = run(tensors, num_kv_splits=splits)
    reference, lse_reference = attention_oracle(*tensors.positional, **tensors.options)
    found = judge(
        "float32", *(t.double().cpu().numpy() for t in (out, reference, lse, lse_reference))
    )
    assert found is None, str(found)
