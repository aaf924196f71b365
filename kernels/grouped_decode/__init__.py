"""Grouped decode attention: oracle, baseline, Triton kernel, inputs and candidates.

Importing the package is light; torch and Triton load with the first name that needs them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grouped_decode.attention import grouped_decode_attention, workspace_numel
    from grouped_decode.baseline import attention_baseline
    from grouped_decode.case import Case
    from grouped_decode.dropin import decode_attention_fwd
    from grouped_decode.inputs import Inputs, Tensors, generate
    from grouped_decode.merge import merge_states
    from grouped_decode.oracle import attention_oracle

__all__ = [
    "Case",
    "Inputs",
    "Tensors",
    "attention_baseline",
    "attention_oracle",
    "decode_attention_fwd",
    "generate",
    "grouped_decode_attention",
    "merge_states",
    "workspace_numel",
]

_HOMES = {
    "Case": "case",
    "Inputs": "inputs",
    "Tensors": "inputs",
    "attention_baseline": "baseline",
    "attention_oracle": "oracle",
    "decode_attention_fwd": "dropin",
    "generate": "inputs",
    "grouped_decode_attention": "attention",
    "merge_states": "merge",
    "workspace_numel": "attention",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'grouped_decode' has no attribute {name!r}")
    return getattr(importlib.import_module(f"grouped_decode.{_HOMES[name]}"), name)
