"""The checked arguments of one attention call."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

FLOATS = (torch.float16, torch.bfloat16, torch.float32)
FP8 = tuple(
    getattr(torch, name)
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
    if hasattr(torch, name)
)
INTS = (torch.int32, torch.int64)
MIN_WIDTH, MAX_WIDTH, MAX_GROUP = 16, 576, 128
MAX_KEYS = 1 << 30  # a batch's keys are numbered in 32 bits, with room for rounding up


@dataclass(frozen=True, slots=True)
class Arguments:
    """One call's tensors and settings, checked; see `grouped_decode_attention` for each."""

    q: torch.Tensor
    k_buffer: torch.Tensor
    v_buffer: torch.Tensor
    kv_indptr: torch.Tensor
    kv_indices: torch.Tensor
    sm_scale: float
    logit_cap: float
    sinks: torch.Tensor | None
    window: int | None
    k_scale: float
    v_scale: float
    page_size: int
    last_page_len: torch.Tensor | None
    batch_invariant: bool
    num_kv_splits: int | None

    @property
    def batch(self) -> int:
        return self.q.shape[0]

    @property
    def q_heads(self) -> int:
        return self.q.shape[1]

    @property
    def kv_heads(self) -> int:
        return self.k_buffer.shape[1]

    @property
    def dk(self) -> int:
        return self.q.shape[2]

    @property
    def dv(self) -> int:
        return self.v_buffer.shape[2]

    @property
    def shared_v(self) -> bool:
        """V is the first `dv` columns of K: the same memory, which then is read once."""
        k, v = self.k_buffer, self.v_buffer
        return (
            v.data_ptr() == k.data_ptr()
            and v.dtype == k.dtype
            and v.stride() == k.stride()
            and v.shape[2] <= k.shape[2]
        )


def check(
    q: torch.Tensor,
    k_buffer: torch.Tensor,
    v_buffer: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    *,
    sm_scale: float | None = None,
    logit_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    window: int | None = None,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
    page_size: int = 1,
    last_page_len: torch.Tensor | None = None,
    batch_invariant: bool = False,
    num_kv_splits: int | None = None,
) -> Arguments:
    """Check every argument that can be checked without waiting for the device.

    Contents of ``kv_indptr``, ``kv_indices`` and ``last_page_len`` are not looked at.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: a shape, stride, device or value is wrong.
    """
    tensors = {
        "q": q,
        "k_buffer": k_buffer,
        "v_buffer": v_buffer,
        "kv_indptr": kv_indptr,
        "kv_indices": kv_indices,
        "sinks": sinks,
        "last_page_len": last_page_len,
    }
    for name, tensor in tensors.items():
        optional = name in ("sinks", "last_page_len")
        if not (isinstance(tensor, torch.Tensor) or (optional and tensor is None)):
            raise TypeError(f"{name}: expected a torch.Tensor, got {type(tensor).__name__}")
        if tensor is not None and tensor.device != q.device:
            raise ValueError(f"{name}: expected device {q.device} (q's), got {tensor.device}")
    for name in ("q", "k_buffer", "v_buffer"):
        _layout(name, tensors[name])
    batch, q_heads, dk = q.shape
    slots, kv_heads, _ = k_buffer.shape
    _dtype("q", q, FLOATS)
    _dtype("k_buffer", k_buffer, (q.dtype, *FP8))
    _dtype("v_buffer", v_buffer, (k_buffer.dtype,))
    if k_buffer.shape[2] != dk:
        raise ValueError(f"k_buffer: expected head width {dk} (q's), got {k_buffer.shape[2]}")
    if v_buffer.shape[1] != kv_heads:
        raise ValueError(f"v_buffer: expected {kv_heads} heads (K's), got {v_buffer.shape[1]}")
    if v_buffer.shape[0] != slots:
        raise ValueError(f"v_buffer: expected {slots} slots (K's), got {v_buffer.shape[0]}")
    if kv_heads == 0 or q_heads % kv_heads or not 1 <= q_heads // kv_heads <= MAX_GROUP:
        raise ValueError(
            f"q: expected 1 to {MAX_GROUP} query heads for each of the {kv_heads} KV heads, "
            f"got {q_heads} query heads"
        )
    _vector("kv_indptr", kv_indptr, batch + 1)
    _vector("kv_indices", kv_indices, None)

    _number("page_size", page_size, int, 1)
    if kv_indices.shape[0] * page_size >= MAX_KEYS:
        raise ValueError(
            f"kv_indices: expected fewer than {MAX_KEYS} keys in a batch, "
            f"got {kv_indices.shape[0]} pages of {page_size}"
        )
    if page_size > 1 and last_page_len is None:
        raise ValueError(f"last_page_len: expected a tensor of shape ({batch},) with page_size > 1")
    if page_size == 1 and last_page_len is not None:
        raise ValueError("last_page_len: expected None with page_size 1, got a tensor")
    if last_page_len is not None:
        _vector("last_page_len", last_page_len, batch)
    if sinks is not None:
        _dtype("sinks", sinks, FLOATS)
        if sinks.shape != (q_heads,) or not sinks.is_contiguous():
            raise ValueError(
                f"sinks: expected contiguous shape ({q_heads},), got {tuple(sinks.shape)} "
                f"with strides {sinks.stride()}"
            )
    if sm_scale is None:
        sm_scale = dk**-0.5
    _number("sm_scale", sm_scale, float)
    _number("k_scale", k_scale, float)
    _number("v_scale", v_scale, float)
    _number("logit_cap", logit_cap, float, 0.0)
    if window is not None:
        _number("window", window, int, 1)
    if num_kv_splits is not None:
        _number("num_kv_splits", num_kv_splits, int, 1)
        if batch_invariant:
            raise ValueError(
                "num_kv_splits: expected None with batch_invariant=True, whose split boundaries "
                f"are fixed, got {num_kv_splits}"
            )
    return Arguments(
        q=q,
        k_buffer=k_buffer,
        v_buffer=v_buffer,
        kv_indptr=kv_indptr,
        kv_indices=kv_indices,
        sm_scale=float(sm_scale),
        logit_cap=float(logit_cap),
        sinks=sinks,
        window=window,
        k_scale=float(k_scale),
        v_scale=float(v_scale),
        page_size=page_size,
        last_page_len=last_page_len,
        batch_invariant=bool(batch_invariant),
        num_kv_splits=num_kv_splits,
    )


def check_out(out: torch.Tensor, args: Arguments) -> None:
    """Check a caller's output buffer: shape [B, Hq, Dv], q's dtype, last dimension contiguous."""
    if not isinstance(out, torch.Tensor):
        raise TypeError(f"out: expected a torch.Tensor, got {type(out).__name__}")
    shape = (args.batch, args.q_heads, args.dv)
    if out.shape != shape:
        raise ValueError(f"out: expected shape {shape}, got {tuple(out.shape)}")
    _dtype("out", out, (args.q.dtype,))
    if out.device != args.q.device:
        raise ValueError(f"out: expected device {args.q.device} (q's), got {out.device}")
    if out.stride(2) != 1:
        raise ValueError(f"out: expected a contiguous last dimension, got strides {out.stride()}")


def check_workspace(workspace: torch.Tensor, numel: int, device: torch.device) -> None:
    """Check a caller's scratch: contiguous float32 on `device`, at least `numel` elements."""
    if not isinstance(workspace, torch.Tensor):
        raise TypeError(f"workspace: expected a torch.Tensor, got {type(workspace).__name__}")
    _dtype("workspace", workspace, (torch.float32,))
    if workspace.device != device:
        raise ValueError(f"workspace: expected device {device} (q's), got {workspace.device}")
    if not workspace.is_contiguous() or workspace.numel() < numel:
        raise ValueError(
            f"workspace: expected at least {numel} contiguous elements, got {workspace.numel()} "
            f"with strides {workspace.stride()}"
        )


def _layout(name: str, tensor: torch.Tensor) -> None:
    axes = {"q": "[B, Hq, Dk]", "k_buffer": "[slots, Hkv, Dk]", "v_buffer": "[slots, Hkv, Dv]"}
    if tensor.dim() != 3:
        raise ValueError(f"{name}: expected 3 dimensions {axes[name]}, got {tuple(tensor.shape)}")
    if not MIN_WIDTH <= tensor.shape[2] <= MAX_WIDTH:
        raise ValueError(
            f"{name}: expected a head width of {MIN_WIDTH} to {MAX_WIDTH}, got {tensor.shape[2]}"
        )
    if tensor.stride(2) != 1:
        raise ValueError(
            f"{name}: expected a contiguous last dimension, got strides {tensor.stride()}"
        )


def _dtype(name: str, tensor: torch.Tensor, allowed: tuple[torch.dtype, ...]) -> None:
    if tensor.dtype not in allowed:
        wanted = ", ".join(str(dtype).removeprefix("torch.") for dtype in allowed)
        got = str(tensor.dtype).removeprefix("torch.")
        raise TypeError(f"{name}: expected dtype {wanted}, got {got}")


def _vector(name: str, tensor: torch.Tensor, length: int | None) -> None:
    _dtype(name, tensor, INTS)
    if tensor.dim() != 1 or (length is not None and tensor.shape[0] != length):
        wanted = f"({length},)" if length is not None else "one dimension"
        raise ValueError(f"{name}: expected shape {wanted}, got {tuple(tensor.shape)}")
    if not tensor.is_contiguous():
        raise ValueError(f"{name}: expected contiguous memory, got strides {tensor.stride()}")


def _number(name: str, value: object, kind: type, least: float | None = None) -> None:
    accepted = (int, float) if kind is float else (int,)
    if isinstance(value, bool) or not isinstance(value, accepted):
        raise TypeError(f"{name}: expected {kind.__name__}, got {type(value).__name__}")
    if not math.isfinite(value):
        raise ValueError(f"{name}: expected a finite number, got {value}")
    if least is not None and value < least:
        raise ValueError(f"{name}: expected at least {least}, got {value}")
