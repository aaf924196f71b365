"""Block sizes and split sizes by architecture and shape.

Nothing here reads a tensor: a choice depends on shapes, dtypes and the device alone, so a call
never waits for the GPU. With ``batch_invariant=True`` nothing that changes a bit of the result
depends on the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Shape:
    """What a choice may depend on besides the architecture.

    group: query heads of one KV head; dk, dv: head widths; kv_bytes: bytes of a cached element.
    """

    group: int
    kv_heads: int
    dk: int
    dv: int
    kv_bytes: int


@dataclass(frozen=True, slots=True)
class Tiles:
    """Launch parameters of the attention kernel.

    block_h: query rows of a tile; block_n: keys of a step; warps, stages: Triton's num_warps and
    num_stages; resident: programs one SM or CU is to hold at a time; invariant_split: keys between
    two split boundaries when batch_invariant.
    """

    block_h: int
    block_n: int
    warps: int
    stages: int
    resident: int
    invariant_split: int

    def columns(self, shape: Shape) -> int:
        """Head tiles of one sequence."""
        return shape.kv_heads * -(-shape.group // self.block_h)


@dataclass(frozen=True, slots=True)
class MergeTiles:
    """Launch parameters of `merge_splits`: heads, columns and partials of one step, warps."""

    rows: int
    columns: int
    chunk: int
    warps: int


# `hopper_decode` has its own pipeline: one program an SM, 64 rows by 64 keys, 8 warps.
WIDE_TILES = Tiles(64, 64, 8, 2, 1, 4096)
# The interpreter likes few, large programs.
INTERPRETER_MERGE = MergeTiles(128, 512, 2, 1)


def power_of_two(n: int) -> int:
    """The smallest power of two >= n (n >= 1)."""
    return 1 << (n - 1).bit_length()


def choose_tiles(arch: str, shape: Shape) -> Tiles:
    """Launch parameters for one architecture (`sm_90`, `gfx942`, ...) and shape.

    The sm_90 rows are measured (docs/kernel-performance.md): copies in flight decide, and that two
    programs, not three, fit an SM, so that a single wave spreads evenly. Those of sm_80, gfx942 and
    gfx950 are sized by shared memory (164, 64 and 160 KiB) and await measurement; any other
    architecture gets what fits in 64 KiB.
    """
    rows = max(16, power_of_two(shape.group))
    width = max(shape.dk, shape.dv)
    full = shape.kv_bytes >= 4
    if arch == "sm_90":
        if width > 256:
            return Tiles(16, 16 if full else 64, 8, 2 if full else 3, 1, 2048)
        if width > 128:
            return Tiles(min(rows, 32), 16 if full else 32, 4, 5, 2, 1024)
        return Tiles(min(rows, 32), 16 if full else 64, 2 if rows == 16 else 4, 7, 2, 2048)
    if arch in ("sm_80", "gfx950"):
        if width > 256:
            return Tiles(16, 16 if full else 32, 4, 2, 1, 2048)
        return Tiles(min(rows, 32), 16 if full else 32, 4, 3, 2, 1024)
    if width > 256:
        return Tiles(16, 16, 4, 1, 1, 2048)
    return Tiles(16, 16 if full or width > 128 else 32, 4, 1 if full or width > 128 else 2, 2, 1024)


def invariant_merge(shape: Shape) -> MergeTiles:
    """Merge parameters with one order of summation, whatever the batch."""
    return MergeTiles(1, 512, 4, 2) if shape.dv > 256 else MergeTiles(1, 128, 16, 1)


def choose_merge(shape: Shape, rows: int, splits: int) -> MergeTiles:
    """Merge parameters for `rows` = B * Hq output rows of about `splits` partials each."""
    if rows >= 2048 and splits <= 4:
        return MergeTiles(1, power_of_two(shape.dv), 4, 2 if shape.dv > 256 else 1)
    if splits > 16:
        return MergeTiles(1, 128, 32, 2)
    return MergeTiles(1, 128, 16, 1)


def fitted(arch: str, tiles: Tiles, shape: Shape, units: int, batch: int) -> Tiles:
    """`tiles` for a batch of this size, when bits may depend on the batch.

    Where every (sequence, head tile) can have an SM to itself and fewer than two would fit, one
    large program that needs no merge beats two small ones that do (sm_90, b16 h40/8: 71.0 to 69.3
    us).
    """
    pairs = batch * tiles.columns(shape)
    alone = arch == "sm_90" and tiles.resident == 2 and units < 2 * pairs <= 2 * units
    if alone and shape.dk == shape.dv == 128 and tiles.block_h == 16 and shape.kv_bytes == 2:
        return Tiles(16, 128, 8, 6, 1, tiles.invariant_split)
    return tiles


def shortened(tiles: Tiles, steps: int) -> Tiles:
    """`tiles` with a pipeline no deeper than a program of so many steps can use.

    Filling it costs: at 16 steps five stages beat seven (b256 s1024: 265.4 to 261.9 us).
    """
    deepest = 3 if steps <= 2 else 5 if steps <= 16 else tiles.stages
    return replace(tiles, stages=min(tiles.stages, deepest))


def auto_split(shape: Shape, tiles: Tiles, units: int, batch: int, keys: int) -> int:
    """Keys between two split boundaries, from an upper bound of the batch's cached keys.

    Programs run in waves of `units * resident`. Sequences of average length are cut so that they
    make one wave; if there are too many for that they stay whole, and only outliers are cut.
    """
    pairs = batch * tiles.columns(shape)
    average = max(1, -(-keys // batch))
    splits = units * tiles.resident // pairs
    if splits <= 1:
        return 4 * average
    split = -(-average // splits)
    if 2 * tiles.block_n < split < 8 * tiles.block_n:  # fewer, longer ones: one for each unit
        split = -(-average // max(1, units // pairs))
    return -(-split // tiles.block_n) * tiles.block_n
