"""Bad arguments: one clear error each, naming the argument, what was expected and what came."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from grouped_decode.attention import grouped_decode_attention


def good(device: str) -> dict[str, Any]:
    make = lambda *shape: torch.zeros(shape, dtype=torch.float16, device=device)  # noqa: E731
    return {
        "q": make(2, 8, 64),
        "k_buffer": make(10, 2, 64),
        "v_buffer": make(10, 2, 48),
        "kv_indptr": torch.tensor([0, 3, 5], dtype=torch.int32, device=device),
        "kv_indices": torch.arange(5, dtype=torch.int32, device=device),
    }


H = torch.float16
BAD: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (TypeError, "q: expected a torch.Tensor, got list", {"q": [1.0]}),
    (TypeError, "sinks: expected a torch.Tensor, got float", {"sinks": 1.0}),
    (TypeError, "q: expected dtype float16, bfloat16, float32, got float64",
     {"q": torch.zeros(2, 8, 64, dtype=torch.float64)}),
    (TypeError, "k_buffer: expected dtype float16", {"k_buffer": torch.zeros(10, 2, 64)}),
    (TypeError, "v_buffer: expected dtype float16, got bfloat16",
     {"v_buffer": torch.zeros(10, 2, 48, dtype=torch.bfloat16)}),
    (ValueError, r"q: expected 3 dimensions \[B, Hq, Dk\]", {"q": torch.zeros(2, 64, dtype=H)}),
    (ValueError, "q: expected a head width of 16 to 576, got 8",
     {"q": torch.zeros(2, 8, 8, dtype=H)}),
    (ValueError, "v_buffer: expected a head width of 16 to 576, got 600",
     {"v_buffer": torch.zeros(10, 2, 600, dtype=H)}),
    (ValueError, "k_buffer: expected head width 64", {"k_buffer": torch.zeros(10, 2, 80, dtype=H)}),
    (ValueError, "v_buffer: expected 2 heads", {"v_buffer": torch.zeros(10, 1, 48, dtype=H)}),
    (ValueError, "v_buffer: expected 10 slots", {"v_buffer": torch.zeros(9, 2, 48, dtype=H)}),
    (ValueError, "k_buffer: expected a contiguous last dimension",
     {"k_buffer": torch.zeros(10, 2, 128, dtype=H)[..., ::2]}),
    (ValueError, "q: expected 1 to 128 query heads", {"q": torch.zeros(2, 7, 64, dtype=H)}),
    (ValueError, "q: expected 1 to 128 query heads", {"q": torch.zeros(2, 258, 64, dtype=H)}),
    (TypeError, "kv_indptr: expected dtype int32, int64, got float32",
     {"kv_indptr": torch.zeros(3)}),
    (ValueError, r"kv_indptr: expected shape \(3,\), got \(2,\)",
     {"kv_indptr": torch.zeros(2, dtype=torch.int32)}),
    (ValueError, "kv_indices: expected shape one dimension",
     {"kv_indices": torch.zeros(2, 2, dtype=torch.int32)}),
    (ValueError, "kv_indices: expected contiguous memory",
     {"kv_indices": torch.zeros(10, dtype=torch.int32)[::2]}),
    (ValueError, r"sinks: expected contiguous shape \(8,\)", {"sinks": torch.zeros(7)}),
    (TypeError, "window: expected int, got float", {"window": 3.0}),
    (ValueError, "window: expected at least 1, got 0", {"window": 0}),
    (TypeError, "page_size: expected int, got bool", {"page_size": True}),
    (ValueError, "page_size: expected at least 1, got 0", {"page_size": 0}),
    (ValueError, "last_page_len: expected a tensor", {"page_size": 4}),
    (ValueError, "last_page_len: expected None",
     {"last_page_len": torch.ones(2, dtype=torch.int32)}),
    (TypeError, "sm_scale: expected float, got str", {"sm_scale": "1"}),
    (ValueError, "sm_scale: expected a finite number", {"sm_scale": float("nan")}),
    (ValueError, "logit_cap: expected at least 0.0, got -1", {"logit_cap": -1}),
    (TypeError, "k_scale: expected float, got Tensor", {"k_scale": torch.ones(())}),
    (ValueError, "num_kv_splits: expected at least 1", {"num_kv_splits": 0}),
    (ValueError, "num_kv_splits: expected None with batch_invariant=True",
     {"num_kv_splits": 2, "batch_invariant": True}),
    (ValueError, "lse_base: expected 'e' or '2', got '10'", {"lse_base": "10"}),
    (ValueError, r"out: expected shape \(2, 8, 48\)", {"out": torch.zeros(2, 8, 64, dtype=H)}),
    (TypeError, "out: expected dtype float16, got float32", {"out": torch.zeros(2, 8, 48)}),
    (TypeError, "workspace: expected dtype float32", {"workspace": torch.zeros(9, dtype=H)}),
    (ValueError, "workspace: expected at least", {"workspace": torch.zeros(1)}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "message", "change"), BAD, ids=[m[:40] for _, m, _ in BAD])
def test_bad_argument(
    kind: type[Exception], message: str, change: dict[str, Any], device: str
) -> None:
    moved = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in change.items()}
    if "kv_indices" in change and change["kv_indices"].dim() == 1:
        moved = {"kv_indices": torch.zeros(10, dtype=torch.int32, device=device)[::2]}
    if "k_buffer" in change and not change["k_buffer"].is_contiguous():
        moved = {"k_buffer": torch.zeros(10, 2, 128, dtype=H, device=device)[..., ::2]}
    with pytest.raises(kind, match=message):
        grouped_decode_attention(**{**good(device), **moved})


def test_good_arguments_pass(device: str) -> None:
    out = grouped_decode_attention(**good(device), logit_cap=2, sm_scale=1)
    assert out.shape == (2, 8, 48) and out.dtype == torch.float16


def test_other_device() -> None:
    arguments = good("cpu")
    arguments["k_buffer"] = arguments["k_buffer"].to("meta")
    with pytest.raises(ValueError, match=r"k_buffer: expected device cpu \(q's\), got meta"):
        grouped_decode_attention(**arguments)
