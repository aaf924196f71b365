"""From checked arguments to kernel launches."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch
import triton

from grouped_decode import triton_decode
from grouped_decode.arguments import Arguments
from grouped_decode.tuning import (
    INTERPRETER_MERGE,
    WIDE_TILES,
    MergeTiles,
    Shape,
    Tiles,
    auto_split,
    choose_merge,
    choose_tiles,
    invariant_merge,
    power_of_two,
    shortened,
)

INTERPRETED = not isinstance(triton_decode.attend_split, triton.JITFunction)
LOG2_E = 1.4426950408889634
GLUON_FROM, GLUON_TO = (3, 6), (3, 9)  # Triton versions whose Gluon compiles `hopper_decode`


@dataclass(frozen=True, slots=True)
class Device:
    """arch as in `tuning`; units: SMs or CUs; pdl: programmatic dependent launch (sm_90 on)."""

    arch: str
    units: int
    cuda: bool
    pdl: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """One call's launch.

    split: keys between two split boundaries; items: an upper bound of the batch's splits; wide:
    the Hopper kernel for wide heads computes them; merge: how partials are merged.
    """

    device: Device
    tiles: Tiles
    split: int
    items: int
    wide: bool
    merge: MergeTiles

    def workspace_numel(self, args: Arguments) -> int:
        """Float32 elements of scratch for every item's partial result."""
        return self.items * args.q_heads * (args.dv + 2)


@functools.cache
def describe_device(device: torch.device) -> Device:
    """What the launch needs to know about `device`; a CPU stands for the interpreter."""
    if device.type != "cuda":
        return Device("interpreter", 1, False, False)
    properties = torch.cuda.get_device_properties(device)
    units = properties.multi_processor_count
    if torch.version.hip:
        return Device(properties.gcnArchName.split(":")[0], units, False, False)
    major, minor = torch.cuda.get_device_capability(device)
    return Device(f"sm_{major}{minor}", units, True, major >= 9)


def plan(args: Arguments) -> Plan:
    """Choose tiles and splits from shapes and the device alone, never from a tensor's contents."""
    device = describe_device(args.q.device)
    shape = Shape(
        group=args.q_heads // args.kv_heads,
        kv_heads=args.kv_heads,
        dk=args.dk,
        dv=args.dv,
        kv_bytes=args.k_buffer.element_size(),
    )
    batch, keys = max(args.batch, 1), args.kv_indices.numel() * args.page_size
    wide = suits_wide_kernel(args, device)
    if wide and not args.batch_invariant:
        # Its tiles are too large to spread a small batch over the device.
        steps = WIDE_TILES.columns(shape) * (keys // WIDE_TILES.block_n)
        wide = steps >= 2 * device.units
    tiles = WIDE_TILES if wide else choose_tiles(device.arch, shape)
    if args.batch_invariant:
        split = tiles.invariant_split
    elif args.num_kv_splits is not None:
        split = max(1, -(-keys // (batch * args.num_kv_splits)))
    else:
        split = auto_split(shape, tiles, device.units, batch, keys)
    tiles = shortened(tiles, split)
    if INTERPRETED:
        merge = INTERPRETER_MERGE
    elif args.batch_invariant:
        merge = invariant_merge(shape)
    else:
        merge = choose_merge(shape, batch * args.q_heads, -(-keys // (batch * split)))
    return Plan(device, tiles, split, keys // split + batch, wide, merge)


@dataclass(frozen=True, slots=True)
class HopperKernels:
    """wide: K and V apart; latent: V is K's first columns, num_warps is 4 (it adds its own)."""

    wide: Any
    latent: Any


@functools.cache
def hopper_kernels() -> HopperKernels | None:
    """The kernels written in Gluon, or None: it is experimental, other versions differ."""
    version = tuple(map(int, triton.__version__.split(".")[:2]))
    if not GLUON_FROM <= version <= GLUON_TO:
        return None
    from grouped_decode.hopper_decode import attend_split_wide
    from grouped_decode.hopper_latent import attend_split_latent

    return HopperKernels(attend_split_wide, attend_split_latent)


def suits_wide_kernel(args: Arguments, device: Device) -> bool:
    """Widths, group, dtype and 16-byte alignment are what the Hopper kernel was written for."""
    tensors = (args.q, args.k_buffer, args.v_buffer)
    return (
        device.arch == "sm_90"
        and not INTERPRETED
        and args.dv == 512
        and args.dk in (512, 576)
        and args.q_heads // args.kv_heads > 32
        and args.q.dtype in (torch.float16, torch.bfloat16)
        and args.k_buffer.dtype == args.q.dtype
        and all(t.data_ptr() % 16 == 0 for t in tensors)
        and all(stride % 16 == 0 for t in tensors for stride in t.stride()[:2])
        and hopper_kernels() is not None
    )


def run(
    args: Arguments,
    plan: Plan,
    out: torch.Tensor,
    lse: torch.Tensor | None,
    lse_base: str,
    workspace: torch.Tensor | None,
) -> None:
    """Launch; fills every row of `out` [B, Hq, Dv] and of `lse` [B, Hq] float32 if given."""
    if args.batch == 0:
        return
    q, k, v = args.q, args.k_buffer, args.v_buffer
    tiles, device = plan.tiles, plan.device
    if workspace is None:
        workspace = torch.empty(plan.workspace_numel(args), dtype=torch.float32, device=q.device)
    stats_size = plan.items * args.q_heads
    stats, partials = workspace, workspace[2 * stats_size :]
    dk1, dk2 = width_parts(args.dk)
    dv1, dv2 = width_parts(args.dv)
    # The interpreter's bf16 dots and its fp32 -> bf16 and fp8 stores are wrong: float32 there.
    written = torch.empty_like(out, dtype=torch.float32) if INTERPRETED else out
    dot = torch.float32 if INTERPRETED else q.dtype
    scale = args.sm_scale * args.k_scale
    common = {
        "Q_HEADS": args.q_heads,
        "DV": args.dv,
        "BLOCK_B": power_of_two(args.batch),
        "PAGE": args.page_size,
        "WINDOWED": args.window is not None,
        "SINKS": args.sinks is not None,
        "LSE": 0 if lse is None else (1 if lse_base == "e" else 2),
        "PDL": device.pdl,
    }
    overlap = {"launch_pdl": True} if device.pdl else {}
    programs = plan.items * args.kv_heads * -(-(args.q_heads // args.kv_heads) // tiles.block_h)
    scale = scale if args.logit_cap else scale * LOG2_E
    if plan.wide and args.shared_v:
        hopper_kernels().latent[(programs,)](
            q, k, args.kv_indptr, args.kv_indices, args.last_page_len,
            partials, stats, stats_size, args.batch, args.window or 0, plan.split,
            scale, args.logit_cap, q.stride(0), q.stride(1), k.stride(0), k.stride(1),
            Q_HEADS=args.q_heads, KV_HEADS=args.kv_heads, HAS_ROPE=args.dk > args.dv,
            BLOCK_B=common["BLOCK_B"], PAGE=args.page_size,
            WINDOWED=common["WINDOWED"], CAPPED=args.logit_cap > 0, PDL=device.pdl,
            num_warps=4, **overlap,
        )  # fmt: skip
    elif plan.wide:
        hopper_kernels().wide[(programs,)](
            q, k, v, args.kv_indptr, args.kv_indices, args.last_page_len,
            partials, stats, stats_size, args.batch, args.window or 0, plan.split,
            scale, args.logit_cap,
            q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1),
            Q_HEADS=args.q_heads, KV_HEADS=args.kv_heads, ROPE=args.dk - args.dv,
            BLOCK_B=common["BLOCK_B"], PAGE=args.page_size,
            WINDOWED=common["WINDOWED"], CAPPED=args.logit_cap > 0, PDL=device.pdl,
            num_warps=tiles.warps, **overlap,
        )  # fmt: skip
    else:
        triton_decode.attend_split[(programs,)](
            q, k, v, written, lse, args.kv_indptr, args.kv_indices, args.last_page_len,
            args.sinks, partials, stats, stats_size, args.batch, args.window or 0, plan.split,
            scale, args.logit_cap, args.v_scale,
            q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1),
            written.stride(0), written.stride(1),
            KV_HEADS=args.kv_heads, DK=args.dk, DK1=dk1, DK2=dk2, DV1=dv1, DV2=dv2,
            BLOCK_H=tiles.block_h, BLOCK_N=tiles.block_n,
            SHARED_V=args.shared_v and dv1 == dk1 and dv2 in (0, dk2),
            CAPPED=args.logit_cap > 0, DOT_DTYPE=triton_dtype(dot),
            PRECISION="tf32x3" if device.cuda and dot == torch.float32 else "ieee",
            num_warps=tiles.warps, num_stages=tiles.stages, **common, **overlap,
        )  # fmt: skip
    if plan.wide or plan.items > args.batch:
        merge = plan.merge
        blocks = -(-args.q_heads // merge.rows) * -(-args.dv // merge.columns)
        triton_decode.merge_splits[(args.batch * blocks,)](
            written, lse, args.kv_indptr, args.last_page_len, args.sinks,
            partials, stats, stats_size, args.batch, args.window or 0, plan.split, args.v_scale,
            written.stride(0), written.stride(1),
            ROWS=merge.rows, BLOCK_D=merge.columns, CHUNK=merge.chunk,
            LEAST=1 if plan.wide else 2, num_warps=merge.warps, **common, **overlap,
        )  # fmt: skip
    if written is not out:
        out.copy_(written)


def width_parts(width: int) -> tuple[int, int]:
    """Cut a head width into a power of two and the rest, rounded up to one (16 at least) or 0."""
    first = 1 << (width.bit_length() - 1)
    rest = width - first
    return first, max(16, power_of_two(rest)) if rest else 0


def triton_dtype(dtype: torch.dtype) -> triton.language.dtype:
    return getattr(triton.language, str(dtype).removeprefix("torch."))
