"""Other projects' kernels are called as their sources of today want it.

None of them is installed here. In each one's place stands a function with its signature that
answers by the oracle from what it is given, so that a wrong argument gives a wrong result.
"""

from __future__ import annotations

import math
import sys
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch
from grouped_decode.candidates import CANDIDATES
from grouped_decode.case import Case
from grouped_decode.checks import judge
from grouped_decode.inputs import generate
from grouped_decode.oracle import attention_oracle

Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a module with these attributes in place, and the packages that it lies in."""

    def put(name: str, **attributes: Any) -> None:
        parts = name.split(".")
        for i in range(1, len(parts) + 1):
            monkeypatch.setitem(sys.modules, ".".join(parts[:i]), ModuleType(parts[i - 1]))
        for i in range(1, len(parts)):
            package = sys.modules[".".join(parts[:i])]
            monkeypatch.setattr(package, parts[i], sys.modules[".".join(parts[: i + 1])], False)
        for key, value in attributes.items():
            monkeypatch.setattr(sys.modules[name], key, value, raising=False)

    return put


def result(name: str, key: str) -> object:
    """The finding about a candidate's answer; None where it is right."""
    case = Case.parse(key)
    assert CANDIDATES[name].limits(case) is None
    tensors = replace(generate(case).place("cpu"), workspace_fill=math.nan)
    out, lse = CANDIDATES[name].kernel(tensors)
    truth = attention_oracle(*tensors.positional, **tensors.options)
    arrays = [t.double().numpy() for t in (out, truth[0])]
    if lse is not None:
        arrays += [t.double().numpy() for t in (lse, truth[1])]
    return judge(case.dtype, *arrays)


def poisoned(*scratch: torch.Tensor) -> None:
    assert all(s.dtype == torch.float32 and s.isnan().all() for s in scratch)


SGLANG = "sglang.kernels.ops.attention.decode_attention"
PAGED = "B3-H4-2-D16-16-S13-float16-page4-ragged-shuffled"


def sglang_kernel(
    q: Any, k_buffer: Any, v_buffer: Any, o: Any, kv_indptr: Any, kv_indices: Any,
    attn_logits: Any, attn_lse: Any, num_kv_splits: Any, max_kv_splits: int, sm_scale: float,
    k_scale: float, v_scale: float, logit_cap: float = 0.0, sinks: Any = None,
    xai_temperature_len: int = -1, has_mla: bool = False, use_pdl: bool = False,
    page_size: int = 1,
) -> None:  # fmt: skip
    assert max_kv_splits == attn_logits.shape[2] == num_kv_splits.max()
    assert attn_logits.shape == (*q.shape[:2], max_kv_splits, v_buffer.shape[-1])
    assert kv_indices.dtype == torch.int64 and kv_indptr.dtype == torch.int32
    assert not use_pdl and xai_temperature_len == -1 and page_size >= 1
    assert has_mla is (k_buffer.data_ptr() == v_buffer.data_ptr())
    poisoned(attn_logits, attn_lse)
    o[:] = attention_oracle(
        q, k_buffer, v_buffer, kv_indptr, kv_indices, sm_scale=sm_scale, logit_cap=logit_cap,
        sinks=sinks, k_scale=k_scale, v_scale=v_scale,
    )[0].to(o.dtype)  # fmt: skip


@pytest.mark.parametrize(
    "key", [PAGED, "B2-H4-1-D24-16-S9-float16-mla", "B2-H4-2-D16-16-S9-float16-cap5-e4m3-sinks"]
)
def test_sglang(install: Install, key: str) -> None:
    install(SGLANG, decode_attention_fwd=sglang_kernel)
    assert result("sglang", key) is None


def vllm_kernel(
    q: Any, k_buffer: Any, v_buffer: Any, o: Any, lse: Any, req_to_token: Any, b_seq_len: Any,
    attn_logits: Any, num_kv_splits: int, sm_scale: float, page_size: int = 1,
    logit_cap: float = 0.0, k_scale: Any = None, v_scale: Any = None, is_mla: bool = False,
) -> None:  # fmt: skip
    assert attn_logits.shape == (*q.shape[:2], num_kv_splits, v_buffer.shape[-1] + 1)
    assert k_scale.dtype == v_scale.dtype == torch.float32 and k_scale.ndim == 0
    assert is_mla is (k_buffer.data_ptr() == v_buffer.data_ptr())
    poisoned(attn_logits, lse)
    pages = -(-b_seq_len // page_size)
    indptr = torch.tensor([0, *pages.tolist()]).cumsum(0).to(torch.int32)
    rows = [row[:n] for row, n in zip(req_to_token, pages.tolist(), strict=True)]
    last = torch.where(b_seq_len > 0, (b_seq_len - 1) % page_size + 1, 0).to(torch.int32)
    found = attention_oracle(
        q, k_buffer, v_buffer, indptr, torch.cat(rows), sm_scale=sm_scale, logit_cap=logit_cap,
        k_scale=float(k_scale), v_scale=float(v_scale), page_size=page_size,
        last_page_len=last if page_size > 1 else None,
    )  # fmt: skip
    o[:], lse[:] = found[0].to(o.dtype), found[1].float()


@pytest.mark.parametrize(
    "key", [PAGED, "B2-H4-1-D24-16-S9-float16-mla", "B2-H4-2-D16-16-S9-float16-cap5-e4m3"]
)
def test_vllm(install: Install, key: str) -> None:
    install("vllm.v1.attention.ops.triton_decode_attention", decode_attention_fwd=vllm_kernel)
    assert result("vllm", key) is None


def in_base_2(found: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    return found[0].to(torch.float16), (found[1] / math.log(2)).float()


class FlashInferDecode:
    def __init__(
        self, float_workspace_buffer: Any, kv_layout: str = "NHD", use_cuda_graph: bool = False,
        use_tensor_cores: bool = False,
    ) -> None:  # fmt: skip
        assert kv_layout == "NHD" and use_tensor_cores and not float_workspace_buffer.any()

    def plan(
        self, indptr: Any, indices: Any, last_page_len: Any, num_qo_heads: int, num_kv_heads: int,
        head_dim: int, page_size: int, pos_encoding_mode: str = "NONE", window_left: int = -1,
        logits_soft_cap: Any = None, q_data_type: Any = "float16", kv_data_type: Any = None,
        o_data_type: Any = None, data_type: Any = None, sm_scale: Any = None,
    ) -> None:  # fmt: skip
        assert indptr.dtype == indices.dtype == last_page_len.dtype == torch.int32
        assert q_data_type == kv_data_type == torch.float16
        self.heads = (num_qo_heads, num_kv_heads, head_dim)
        self.table = (indptr, indices)
        self.options = {
            "sm_scale": sm_scale, "window": None if window_left < 0 else window_left + 1,
            "logit_cap": logits_soft_cap or 0.0, "page_size": page_size,
            "last_page_len": last_page_len if page_size > 1 else None,
        }  # fmt: skip

    def run(self, q: Any, paged_kv_cache: Any, *, out: Any = None, return_lse: bool = False) -> Any:
        k, v = paged_kv_cache
        assert k.shape[1] == self.options["page_size"] and return_lse
        assert (q.shape[1], k.shape[2], q.shape[2]) == self.heads
        flat = [c.flatten(0, 1) for c in (k, v)]
        return in_base_2(attention_oracle(q, *flat, *self.table, **self.options))


class FlashInferMla:
    def __init__(self, float_workspace_buffer: Any, backend: str = "auto") -> None:
        assert not float_workspace_buffer.any()

    def plan(
        self, qo_indptr: Any, kv_indptr: Any, kv_indices: Any, kv_len_arr: Any, num_heads: int,
        head_dim_ckv: int, head_dim_kpe: int, page_size: int, causal: bool, sm_scale: float,
        q_data_type: Any, kv_data_type: Any,
    ) -> None:  # fmt: skip
        assert qo_indptr.tolist() == list(range(len(kv_len_arr) + 1)) and not causal
        assert (head_dim_ckv, head_dim_kpe) == (512, 64)
        self.table, self.scale, self.page = (kv_indptr, kv_indices), sm_scale, page_size
        self.last = (kv_len_arr - 1) % page_size + 1 if page_size > 1 else None

    def run(
        self, q_nope: Any, q_pe: Any, ckv_cache: Any, kpe_cache: Any, out: Any = None,
        lse: Any = None, return_lse: bool = False,
    ) -> Any:  # fmt: skip
        assert ckv_cache.shape[1:] == (self.page, 512) and kpe_cache.shape[1:] == (self.page, 64)
        k = torch.cat([ckv_cache, kpe_cache], 2).flatten(0, 1).unsqueeze(1)
        q = torch.cat([q_nope, q_pe], 2)
        found = attention_oracle(
            q, k, k[..., :512], *self.table, sm_scale=self.scale, page_size=self.page,
            last_page_len=self.last,
        )  # fmt: skip
        return in_base_2(found)


@pytest.mark.parametrize(
    "key",
    [
        "B3-H4-2-D64-64-S13-float16-page4-ragged-shuffled",
        "B3-H4-2-D64-64-S13-float16-cap5-window4",
        "B2-H16-1-D576-512-S7-float16-mla-page4",
        "B2-H16-1-D576-512-S7-float16-mla",
    ],
)
def test_flashinfer(install: Install, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from grouped_decode.candidates import flashinfer

    monkeypatch.setattr(flashinfer, "WORKSPACE", 1 << 10)
    install("flashinfer", BatchDecodeWithPagedKVCacheWrapper=FlashInferDecode)
    mla = ModuleType("flashinfer.mla")
    mla.BatchMLAPagedAttentionWrapper = FlashInferMla  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flashinfer.mla", mla)
    assert result("flashinfer", key) is None


def aiter_kernel(
    q: Any, kv_buffer: Any, o: Any, qo_indptr: Any, kv_indptr: Any, kv_indices: Any,
    kv_last_page_lens: Any, max_seqlen_q: int, page_size: int = 1, nhead_kv: int = 1,
    sm_scale: Any = None, logit_cap: float = 0.0,
) -> None:  # fmt: skip
    pages, size, heads, width = kv_buffer.shape
    assert (size, heads, width) == (page_size, nhead_kv, 576) and max_seqlen_q == 1
    assert qo_indptr.tolist() == list(range(len(kv_last_page_lens) + 1))
    assert kv_last_page_lens.tolist() == kv_indptr.diff().clamp(max=1).tolist()
    k = kv_buffer.view(pages, 1, width)
    found = attention_oracle(q, k, k[..., :512], kv_indptr, kv_indices, sm_scale=sm_scale)
    o[:] = found[0].to(o.dtype)


def test_aiter(install: Install) -> None:
    install("aiter.mla", mla_decode_fwd=aiter_kernel)
    assert result("aiter", "B3-H16-1-D576-512-S9-bfloat16-mla-ragged") is None


WAVE = "sglang.srt.layers.attention.wave_ops.decode_attention"
Shape = namedtuple(
    "Shape", "num_query_heads num_kv_heads head_size head_size_kv block_size num_seqs"
)


def wave_shapes(num_seqs: int, head_size_kv: int, num_query_heads: int, max_kv_splits: int) -> Any:
    peaks = (max_kv_splits, num_seqs, num_query_heads)
    return (*peaks, head_size_kv), peaks


def wave_kernels(
    shape: Any, max_kv_splits: int, input_dtype: Any, output_dtype: Any, logit_cap: float
) -> Any:
    """Everything goes through the first split."""

    def phase_0(q: Any, k: Any, v: Any, indptr: Any, indices: Any, out: Any, peaks: Any) -> None:
        assert shape == (q.shape[1], k.shape[1], q.shape[2], v.shape[2], 32, q.shape[0])
        assert len(indptr) == shape.num_seqs + 1 and q.dtype == input_dtype
        poisoned(out, peaks)
        found, lse = attention_oracle(
            q, k, v, indptr, indices, sm_scale=shape.head_size**-0.5, logit_cap=logit_cap
        )
        out.zero_()
        out[0], peaks[0] = found, lse

    def phase_1(partial: Any, peaks: Any, indptr: Any, output: Any) -> None:
        output[:] = partial.sum(0).to(output_dtype)

    return phase_0, phase_1


def test_wave(install: Install) -> None:
    """Its own kernel, also at the one shape where SGLang runs its Triton kernel instead."""
    install(
        WAVE,
        decode_attention_intermediate_arrays_shapes=wave_shapes,
        paged_decode_attention_shape=Shape,
        get_wave_kernel=wave_kernels,
    )
    for key in ("B3-H4-4-D16-24-S9-float16-cap5-ragged", "B2-H128-1-D576-512-S5-float16"):
        assert result("wave", key) is None


@pytest.mark.parametrize(
    ("name", "key", "reason"),
    [
        ("wave", "B2-H16-1-D64-64-S9-float16", None),
        ("wave", "B2-H16-1-D64-64-S9-float16-cap5", None),
        ("wave", "B2-H16-1-D64-64-S9-bfloat16", "float16 only"),
        ("wave", "B2-H16-1-D64-64-S9-float16-page4", "pages of one slot only"),
        (
            "wave",
            "B2-H40-2-D64-64-S9-float16",
            "query heads in 16s or one a KV head only",
        ),
        ("wave", "B2-H16-1-D64-64-S9-float16-sinks", "no sinks"),
        ("wave", "B2-H16-1-D64-48-S9-float16-mla", "contiguous K and V only"),
        ("sglang", "B2-H48-2-D64-64-S9-float16", None),  # what it gets wrong is no limit
        ("sglang", "B2-H4-2-D64-64-S9-float16-window3", "no window"),
        ("vllm", "B2-H4-2-D64-64-S9-float16-sinks", "no sinks"),
        ("flashinfer", "B2-H4-2-D64-64-S9-float32", "no float32"),
        (
            "flashinfer",
            "B2-H4-2-D80-80-S9-float16",
            "head widths 64 128 and 256 or one KV head of 576 with V inside only",
        ),
        ("aiter", "B2-H32-1-D576-512-S9-bfloat16-mla", "query heads 16 or 128 only"),
    ],
)
def test_limits(name: str, key: str, reason: str | None) -> None:
    assert CANDIDATES[name].limits(Case.parse(key)) == reason


@pytest.mark.parametrize("name", ["sglang", "vllm"])
def test_bfloat16_is_not_run_in_the_interpreter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case.parse("B2-H4-2-D64-64-S9-bfloat16")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert CANDIDATES[name].limits(case) == "no bfloat16 in the interpreter"
    monkeypatch.delenv("TRITON_INTERPRET")
    assert CANDIDATES[name].limits(case) is None


def test_elsewhere_they_are_not_run() -> None:
    case = Case.parse("B2-H16-1-D64-64-S9-float16")
    assert CANDIDATES["wave"].supports(case, "cuda") == "runs on rocm only"
    assert CANDIDATES["flashinfer"].supports(case, "cpu") == "runs on cuda only"
