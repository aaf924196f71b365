"""A case's input: values from our own generator, and tensors laid out as its traits say."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from grouped_decode.case import Case
from grouped_decode.generator import gaussian, permutation, stream_seed

if TYPE_CHECKING:
    import torch

Array = NDArray[Any]
NUMPY_DTYPES: dict[str, Any] = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
BITS = {1: np.uint8, 2: np.int16, 4: np.int32}
NAN_BITS = {"float8_e4m3fn": 0x7F, "float8_e5m2": 0x7F, "float16": 0x7E00, "bfloat16": 0x7FC0}
NAN_BITS["float32"] = 0x7FC00000
K_SCALE, V_SCALE = 0.5, 1.5  # of float8 caches
FIRST_PAGE = 1  # page 0 stays unowned: kernels that read padded table entries land there


@dataclass(frozen=True, eq=False)
class Inputs:
    """The values of one case, on the host, in the dtypes the kernels see.

    q: [B, Hq, Dk]; k, v: [tokens, Hkv, D] in sequence order (v is None where it lies in k);
    kv_indptr [B + 1], kv_indices, last_page_len [B] (None for pages of one slot): int32;
    slots: int64, each token's slot; pool: number of slots; sinks: [Hq] float32 or None.
    """

    case: Case
    q: Array
    k: Array
    v: Array | None
    kv_indptr: Array
    kv_indices: Array
    last_page_len: Array | None
    slots: Array
    pool: int
    sinks: Array | None

    def digest(self) -> str:
        """SHA-256 over every array's name, dtype, shape and little-endian bytes, and the fill."""
        state = hashlib.sha256(f"pool {self.pool} fill {fill_bits(self.case)}\n".encode())
        for name in ("q", "k", "v", "kv_indptr", "kv_indices", "last_page_len", "sinks"):
            array = getattr(self, name)
            if array is not None:
                state.update(f"{name} {array.dtype} {array.shape}\n".encode())
                state.update(np.ascontiguousarray(array).view(np.uint8).data)
        return state.hexdigest()

    def place(self, device: str = "cpu") -> Tensors:
        """Lay the values out in buffers on `device`, as the case's traits say."""
        return place(self, device)


def generate(case: Case) -> Inputs:
    """The inputs of a case, the same bits everywhere."""

    def draw(name: str, *shape: int) -> NDArray[np.float32]:
        return gaussian(stream_seed(case.data_key, name), shape)

    lengths = np.array(case.lengths, np.int64)
    tokens = int(lengths.sum())
    q = draw("q", case.batch, case.q_heads, case.dk)
    if "peaked" in case.traits:
        q *= np.float32(4)
    k = draw("k", tokens, case.kv_heads, case.dk)
    v = None if case.shared_v else _values(case, tokens, draw)
    page = case.page_size
    pages = -(-lengths // page)
    indptr = np.concatenate([[0], np.cumsum(pages)]).astype(np.int32)
    total = int(pages.sum())
    order = np.arange(total, dtype=np.int64)
    if "shuffled" in case.traits:
        order = permutation(stream_seed(case.data_key, "pages"), total)
    if "reversed" in case.traits:
        order = order[::-1]
    first, row = FIRST_PAGE, case.kv_heads * (case.dk + (case.dv if _joint(case) else 0))
    if "faraway" in case.traits:
        first += -(-(1 << 31) // (row * page))
    indices = order + first
    slots = np.concatenate(
        [
            indices[start + np.arange(n) // page] * page + np.arange(n) % page
            for start, n in zip(indptr[:-1].astype(np.int64), lengths, strict=True)
        ]
        or [np.empty(0, np.int64)]
    )
    last = None
    if page > 1:
        last = np.where(lengths > 0, (lengths - 1) % page + 1, 0).astype(np.int32)
    kv_dtype = NUMPY_DTYPES[case.kv_dtype]
    return Inputs(
        case=case,
        q=q.astype(NUMPY_DTYPES[case.dtype]),
        k=k.astype(kv_dtype),
        v=None if v is None else v.astype(kv_dtype),
        kv_indptr=indptr,
        kv_indices=indices.astype(np.int32),
        last_page_len=last,
        slots=slots,
        pool=(first + total + 2) * page,
        sinks=draw("sinks", case.q_heads) if case.sinks else None,
    )


@dataclass(frozen=True, eq=False)
class Tensors:
    """One case on a device, ready to be given to a candidate.

    `out` [B, Hq, Dv] is to be written into; `workspace_fill` is what scratch should hold before,
    and `poisoned_split` the only split whose scratch should (None: all; the others hold zeros).
    """

    case: Case
    q: torch.Tensor
    k_buffer: torch.Tensor
    v_buffer: torch.Tensor
    kv_indptr: torch.Tensor
    kv_indices: torch.Tensor
    last_page_len: torch.Tensor | None
    sinks: torch.Tensor | None
    out: torch.Tensor
    workspace_fill: float | None
    poisoned_split: int | None = None

    @property
    def positional(self) -> tuple[torch.Tensor, ...]:
        return self.q, self.k_buffer, self.v_buffer, self.kv_indptr, self.kv_indices

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of `grouped_decode_attention`, the oracle and the baseline."""
        case = self.case
        return {
            "sm_scale": case.dk**-0.5,
            "logit_cap": case.logit_cap,
            "sinks": self.sinks,
            "window": case.window,
            "k_scale": K_SCALE if case.fp8 else 1.0,
            "v_scale": V_SCALE if case.fp8 else 1.0,
            "page_size": case.page_size,
            "last_page_len": self.last_page_len,
        }

    def scratch(self, *shape: int, splits: int | None = None) -> torch.Tensor:
        """float32 scratch that holds what the attributes say; zeros where they say nothing.

        Args:
            splits: the axis that counts splits, where there is one.
        """
        import torch

        fill = 0.0 if self.workspace_fill is None else self.workspace_fill
        made = torch.full(shape, fill, dtype=torch.float32, device=self.q.device)
        if splits is not None and self.poisoned_split is not None:
            made.zero_().select(splits, self.poisoned_split).fill_(fill)
        return made

    def token_table(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The page table with one slot for each key, whatever the page size or window.

        kv_indptr [B + 1] int32 and kv_indices [tokens] int64.
        """
        import torch

        from grouped_decode.arguments import check
        from grouped_decode.sequences import key_slots

        rows = list(key_slots(check(*self.positional, **{**self.options, "window": None})))
        ends = torch.tensor([0, *map(len, rows)], device=self.q.device).cumsum(0)
        return ends.to(torch.int32), torch.cat(rows)


def place(inputs: Inputs, device: str) -> Tensors:
    """Build the buffers; slots nobody owns get the case's fill (none where they lie far away)."""
    import torch

    case = inputs.case
    kv_dtype = getattr(torch, case.kv_dtype)
    size = np.dtype(NUMPY_DTYPES[case.kv_dtype]).itemsize
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[size]

    def on_device(array: Array) -> torch.Tensor:
        raw = np.ascontiguousarray(array).view(BITS[array.dtype.itemsize])
        return torch.from_numpy(raw).to(device)

    def buffer(width: int) -> torch.Tensor:
        shape = (inputs.pool, case.kv_heads, width)
        if "faraway" in case.traits:
            return torch.empty(shape, dtype=bits, device=device)
        return torch.full(shape, fill_bits(case), dtype=bits, device=device)

    slots = torch.from_numpy(inputs.slots).to(device)
    joint = _joint(case)
    k_bits = buffer(case.dk + case.dv if joint else case.dk)
    v_bits = k_bits[..., case.dk :] if joint else None
    k_bits[..., : case.dk].index_put_((slots,), on_device(inputs.k))
    if inputs.v is not None:
        v_bits = buffer(case.dv) if v_bits is None else v_bits
        v_bits.index_put_((slots,), on_device(inputs.v))
    k_buffer = k_bits[..., : case.dk].view(kv_dtype)
    v_buffer = k_buffer[..., : case.dv] if v_bits is None else v_bits.view(kv_dtype)
    dtype = getattr(torch, case.dtype)
    dirty = "nanout" in case.traits
    out = torch.full(
        (case.batch, case.q_heads, case.dv), float("nan") if dirty else 7.0, dtype=dtype
    ).to(device)
    last, sinks = inputs.last_page_len, inputs.sinks
    return Tensors(
        case=case,
        q=on_device(inputs.q).view(dtype),
        k_buffer=k_buffer,
        v_buffer=v_buffer,
        kv_indptr=torch.from_numpy(inputs.kv_indptr).to(device),
        kv_indices=torch.from_numpy(inputs.kv_indices).to(device),
        last_page_len=None if last is None else torch.from_numpy(last).to(device),
        sinks=None if sinks is None else torch.from_numpy(sinks).to(device),
        out=out,
        workspace_fill=float("nan") if dirty else None,
    )


def fill_bits(case: Case) -> int:
    """The bit pattern of cache elements that nobody owns."""
    if "nanpad" in case.traits:
        return NAN_BITS[case.kv_dtype]
    if "garbagepad" in case.traits:
        value = np.array(240.0, NUMPY_DTYPES[case.kv_dtype])
        return int(value.view(BITS[value.dtype.itemsize]))
    return 0


def _joint(case: Case) -> bool:
    return "interleaved" in case.traits and not case.shared_v


def _values(case: Case, tokens: int, draw: Any) -> NDArray[np.float32]:
    shape = (tokens, case.kv_heads, case.dv)
    if "constant" in case.traits:
        return np.full(shape, 0.5, np.float32)
    if "structured" in case.traits:
        n, h, d = np.ogrid[: shape[0], : shape[1], : shape[2]]
        return ((1 + (7 * n + 5 * h + 3 * d) % 17) / 4).astype(np.float32)
    return draw("v", *shape)
