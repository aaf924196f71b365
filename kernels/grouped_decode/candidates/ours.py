"""Our Triton kernel, and plain torch in the same dtype."""

from __future__ import annotations

from grouped_decode.candidates.candidate import Candidate, Result
from grouped_decode.inputs import Tensors


def run_triton(tensors: Tensors) -> Result:
    from grouped_decode.attention import grouped_decode_attention, workspace_numel

    workspace = None
    if tensors.workspace_fill is not None:
        workspace = tensors.scratch(workspace_numel(*tensors.positional, **tensors.options))
    return grouped_decode_attention(  # type: ignore[return-value]
        *tensors.positional,
        **tensors.options,
        out=tensors.out,
        return_lse=True,
        workspace=workspace,
    )


def run_torch(tensors: Tensors) -> Result:
    from grouped_decode.baseline import attention_baseline

    return attention_baseline(*tensors.positional, **tensors.options)


TRITON = Candidate("triton", run_triton, modules=("triton",))
TORCH = Candidate("torch", run_torch, modules=("torch",))
