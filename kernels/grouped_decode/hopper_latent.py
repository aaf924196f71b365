"""The Hopper kernel for latent attention (MLA, absorbed): V is the first 512 columns of K.

One program takes 64 query rows of one split, in three warpgroups. Blocks of 64 keys go in pairs:
the *even* warpgroup computes the scores of a pair's first block, the *odd* one those of its second,
each alone on all of Q, and they exchange weights through shared memory. The output [64, 512] is
split by column: the left half in the registers of the even warpgroup, the right half in those of
the odd one. So one's softmax runs while the other's product does. The third warpgroup copies: a
half of a block's buffer is refilled as soon as its last reader is done.

After FlashMLA's schedule ("seesaw"), with gathered rows in place of pages of 64.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    async_copy,
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from grouped_decode.hopper_decode import barrier, capped, copy_async, find_split

ROWS = gl.constexpr(64)
KEYS = gl.constexpr(64)
HALF = gl.constexpr(256)
ROPE = gl.constexpr(64)
COPIERS = gl.constexpr(128)  # threads of the copying warpgroup
SCORES = gl.constexpr(gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16]))
OUTPUT = gl.constexpr(gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 256, 16]))
COPY = gl.constexpr(gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]))


@gluon.jit
def _rope_operand(q_ptr, row_stride, rows):
    """Q's columns past 512 as a tensor-core operand in registers; shared memory is full."""
    layout: gl.constexpr = gl.DotOperandLayout(0, SCORES, 2)
    h = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    d = gl.arange(0, ROPE, gl.SliceLayout(0, layout))
    at = q_ptr + 2 * HALF + (h * row_stride)[:, None] + d[None, :]
    return gl.load(at, mask=(h < rows)[:, None], other=0.0)


@gluon.jit
def _scores(
    q_left, q_right, q_rope, lefts, rights, ropes, arrived, zero, phase,
    BLOCK: gl.constexpr, HAS_ROPE: gl.constexpr,
):  # fmt: skip
    """Q K^T [64, 64] of one block, begun when its left half has arrived."""
    blank = gl.full([ROWS, KEYS], 0.0, gl.float32, SCORES)
    left = lefts.index(BLOCK + zero).permute((1, 0))
    right = rights.index(BLOCK + zero).permute((1, 0))
    mbarrier.wait(arrived.index(2 * BLOCK), phase)
    fence_async_shared()
    scores = warpgroup_mma(q_left.index(zero), left, blank, use_acc=False, is_async=True)
    mbarrier.wait(arrived.index(2 * BLOCK + 1), phase)
    fence_async_shared()
    scores = warpgroup_mma(q_right.index(zero), right, scores, is_async=True)
    if HAS_ROPE:
        rope = ropes.index(BLOCK + zero).permute((1, 0))
        scores = warpgroup_mma(q_rope, rope, scores, is_async=True)
    return warpgroup_mma_wait(0, deps=(scores,))


@gluon.jit
def _masked(scores, at, high, qk_scale, cap, CAPPED: gl.constexpr):
    scores = capped(scores * qk_scale, cap, CAPPED)
    n = at + gl.arange(0, KEYS, gl.SliceLayout(0, SCORES))
    return gl.where((n < high)[None, :], scores, -float("inf"))


@gluon.jit
def _operand(p, dtype: gl.constexpr):
    """Weights as a tensor-core operand in registers: a warpgroup's own need not be read back."""
    return gl.convert_layout(p.to(dtype), gl.DotOperandLayout(0, OUTPUT, 2))


@gluon.jit
def _accumulate(acc, shrink, weights, values):
    """`acc` * `shrink` + `weights` [64, 64] @ `values` [64, 256]."""
    shrink = gl.convert_layout(shrink, gl.SliceLayout(1, OUTPUT))
    acc = warpgroup_mma(weights, values, acc * shrink[:, None], is_async=True)
    return warpgroup_mma_wait(0, deps=(acc,))


@gluon.jit
def _opaque_zero(at):
    """0, but not to the compiler.

    Addresses that do not depend on the step are computed before the loop and, too many for the
    registers, spilled; this makes them cheap sums inside it (163 to 132 us at batch 32).
    """
    return at >> 31


@gluon.jit
def _freed(bar):
    barrier()  # every warp of the group is done with it
    mbarrier.arrive(bar, count=1)


@gluon.jit
def _even(
    q_ptr, row_stride, rows, low, high, qk_scale, cap, acc_ptr, stats_ptr, stats_size,
    q_left, q_right, lefts, rights, ropes, weights, peaks, masses, arrived, free, ready,
    HAS_ROPE: gl.constexpr, CAPPED: gl.constexpr,
):  # fmt: skip
    """Scores of the first block of each pair; left half of the output."""
    q_rope = _rope_operand(q_ptr, row_stride, rows) if HAS_ROPE else 0
    by_row: gl.constexpr = gl.SliceLayout(1, SCORES)
    dtype: gl.constexpr = q_ptr.dtype.element_ty
    peak = gl.full([ROWS], -float("inf"), gl.float32, by_row)
    mass = gl.full([ROWS], 0.0, gl.float32, by_row)
    acc = gl.full([ROWS, HALF], 0.0, gl.float32, OUTPUT)
    phase = 0
    for at in range(low, high, 2 * KEYS):
        zero = _opaque_zero(at)
        scores = _scores(
            q_left, q_right, q_rope, lefts, rights, ropes, arrived, zero, phase, 0, HAS_ROPE
        )  # fmt: skip
        scores = _masked(scores, at, high, qk_scale, cap, CAPPED)
        peak_even = gl.maximum(peak, gl.max(scores, 1))
        shrink = gl.exp2(peak - peak_even)
        p = gl.exp2(scores - peak_even[:, None])
        weights.index(0).store(p.to(dtype))
        peaks.index(0).store(peak_even)
        fence_async_shared()
        _freed(ready.index(0))
        mass = mass * shrink + gl.sum(p, 1)
        acc = _accumulate(acc, shrink, _operand(p, dtype), lefts.index(zero))
        _freed(free.index(0))

        mbarrier.wait(ready.index(1), phase)
        peak = peaks.index(1).load(by_row)
        shrink = gl.exp2(peak_even - peak)
        mass = mass * shrink
        acc = _accumulate(acc, shrink, weights.index(1 + zero), lefts.index(1 + zero))
        _freed(free.index(2))
        phase = 1 - phase

    mbarrier.wait(ready.index(1), phase)
    mass = mass + masses.load(by_row)
    h = gl.arange(0, ROWS, by_row)
    gl.store(stats_ptr + h, peak, mask=h < rows)
    gl.store(stats_ptr + stats_size + h, mass, mask=h < rows)
    _write(acc_ptr, acc, rows)


@gluon.jit
def _odd(
    q_ptr, row_stride, rows, low, high, qk_scale, cap, acc_ptr,
    q_left, q_right, lefts, rights, ropes, weights, peaks, masses, arrived, free, ready,
    HAS_ROPE: gl.constexpr, CAPPED: gl.constexpr,
):  # fmt: skip
    """Scores of the second block of each pair; right half of the output."""
    q_rope = _rope_operand(q_ptr, row_stride, rows) if HAS_ROPE else 0
    by_row: gl.constexpr = gl.SliceLayout(1, SCORES)
    dtype: gl.constexpr = q_ptr.dtype.element_ty
    peak = gl.full([ROWS], -float("inf"), gl.float32, by_row)
    mass = gl.full([ROWS], 0.0, gl.float32, by_row)
    acc = gl.full([ROWS, HALF], 0.0, gl.float32, OUTPUT)
    phase = 0
    for at in range(low, high, 2 * KEYS):
        zero = _opaque_zero(at)
        scores = _scores(
            q_left, q_right, q_rope, lefts, rights, ropes, arrived, zero, phase, 1, HAS_ROPE
        )  # fmt: skip
        scores = _masked(scores, at + KEYS, high, qk_scale, cap, CAPPED)
        mbarrier.wait(ready.index(0), phase)
        peak_even = peaks.index(0).load(by_row)
        peak_odd = gl.maximum(peak_even, gl.max(scores, 1))
        shrink_even = gl.exp2(peak - peak_even)
        shrink_odd = gl.exp2(peak_even - peak_odd)
        p = gl.exp2(scores - peak_odd[:, None])
        weights.index(1).store(p.to(dtype))
        peaks.index(1).store(peak_odd)
        fence_async_shared()
        _freed(ready.index(1))
        mass = mass * gl.exp2(peak - peak_odd) + gl.sum(p, 1)
        peak = peak_odd
        acc = _accumulate(acc, shrink_even, weights.index(zero), rights.index(zero))
        _freed(free.index(1))
        acc = _accumulate(acc, shrink_odd, _operand(p, dtype), rights.index(1 + zero))
        _freed(free.index(3))
        phase = 1 - phase

    masses.store(mass)
    _freed(ready.index(1))
    _write(acc_ptr + HALF, acc, rows)


@gluon.jit
def _write(acc_ptr, acc, rows):
    h = gl.arange(0, ROWS, gl.SliceLayout(1, OUTPUT))
    d = gl.arange(0, HALF, gl.SliceLayout(0, OUTPUT))
    gl.store(acc_ptr + (h * (2 * HALF))[:, None] + d[None, :], acc, mask=(h < rows)[:, None])


@gluon.jit
def _copy_block(
    k_base, stride, slots, there, lefts, rights, ropes, arrived, free, phase,
    BLOCK: gl.constexpr, HAS_ROPE: gl.constexpr,
):  # fmt: skip
    """Refill one block's buffer, each half when it is free; keys that are not there become 0."""
    rows = (k_base + slots.to(gl.int64) * stride)[:, None]
    there = there[:, None]
    at = rows + gl.arange(0, HALF, gl.SliceLayout(0, COPY))[None, :]
    mbarrier.wait(free.index(2 * BLOCK), phase)
    copy_async(lefts.index(BLOCK), at, mask=there)
    async_copy.mbarrier_arrive(arrived.index(2 * BLOCK), increment_count=False)
    mbarrier.wait(free.index(2 * BLOCK + 1), phase)
    copy_async(rights.index(BLOCK), at + HALF, mask=there)
    if HAS_ROPE:
        at = rows + 2 * HALF + gl.arange(0, ROPE, gl.SliceLayout(0, COPY))[None, :]
        copy_async(ropes.index(BLOCK), at, mask=there)
    async_copy.mbarrier_arrive(arrived.index(2 * BLOCK + 1), increment_count=False)


@gluon.jit
def _slots(table, at, high, PAGE: gl.constexpr):
    """Slots of the block of keys that starts at `at`, and which of them are below `high`.

    int32 to save registers: 2^31 rows of this width would be 2 TB.
    """
    n = at + gl.arange(0, KEYS, gl.SliceLayout(1, COPY))
    there = n < high
    slots = gl.load(table + n // PAGE, mask=there, other=0).to(gl.int32)
    if PAGE > 1:
        slots = slots * PAGE + n % PAGE
    return slots, there


@gluon.jit
def _copy(
    k_base, stride, table, low, high, lefts, rights, ropes, arrived, free,
    HAS_ROPE: gl.constexpr, PAGE: gl.constexpr,
):  # fmt: skip
    """Copy every pair of blocks in turn; a pair's slots are read one pair ahead."""
    even, even_there = _slots(table, low, high, PAGE)
    odd, odd_there = _slots(table, low + KEYS, high, PAGE)
    phase = 1  # buffers start out free
    for at in range(low, high, 2 * KEYS):
        even_next, even_there_next = _slots(table, at + 2 * KEYS, high, PAGE)
        odd_next, odd_there_next = _slots(table, at + 3 * KEYS, high, PAGE)
        _copy_block(
            k_base, stride, even, even_there, lefts, rights, ropes, arrived, free, phase,
            0, HAS_ROPE,
        )  # fmt: skip
        _copy_block(
            k_base, stride, odd, odd_there, lefts, rights, ropes, arrived, free, phase,
            1, HAS_ROPE,
        )  # fmt: skip
        even, even_there, odd, odd_there = even_next, even_there_next, odd_next, odd_there_next
        phase = 1 - phase


@gluon.jit
def attend_split_latent(
    q_ptr,
    k_ptr,
    indptr_ptr,
    indices_ptr,
    last_page_ptr,
    acc_ptr,
    stats_ptr,
    stats_size,
    batch,
    window,
    split,
    qk_scale,
    cap,
    q_stride_b,
    q_stride_h,
    k_stride_n,
    k_stride_h,
    Q_HEADS: gl.constexpr,
    KV_HEADS: gl.constexpr,
    HAS_ROPE: gl.constexpr,  # K has 64 columns beyond V's 512
    BLOCK_B: gl.constexpr,
    PAGE: gl.constexpr,
    WINDOWED: gl.constexpr,
    CAPPED: gl.constexpr,
    PDL: gl.constexpr,
):
    """One head tile over one split; always writes a partial."""
    if PDL:
        gdc_wait()
        gdc_launch_dependents()
    dtype: gl.constexpr = q_ptr.dtype.element_ty
    GROUP: gl.constexpr = Q_HEADS // KV_HEADS
    TILES: gl.constexpr = (GROUP + ROWS - 1) // ROWS
    program = gl.program_id(0)
    column = program % (KV_HEADS * TILES)
    item = program // (KV_HEADS * TILES)
    kv_head = column // TILES
    local = column % TILES * ROWS
    rows = GROUP - local

    row, first, low, high = find_split(
        indptr_ptr, last_page_ptr, batch, window, split, item, BLOCK_B, PAGE, WINDOWED
    )
    if row >= batch:
        return
    table = indices_ptr + first
    k_base = k_ptr + kv_head.to(gl.int64) * k_stride_h
    q_ptr += row.to(gl.int64) * q_stride_b + (kv_head * GROUP + local).to(gl.int64) * q_stride_h
    place = item.to(gl.int64) * Q_HEADS + kv_head * GROUP + local

    tile: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    vector: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    bars: gl.constexpr = mbarrier.MBarrierLayout()
    lefts = gl.allocate_shared_memory(dtype, [2, KEYS, HALF], tile)
    rights = gl.allocate_shared_memory(dtype, [2, KEYS, HALF], tile)
    ropes = lefts  # unused
    if HAS_ROPE:
        ropes = gl.allocate_shared_memory(dtype, [2, KEYS, ROPE], tile)
    weights = gl.allocate_shared_memory(dtype, [2, ROWS, KEYS], tile)
    peaks = gl.allocate_shared_memory(gl.float32, [2, ROWS], vector)
    masses = gl.allocate_shared_memory(gl.float32, [ROWS], vector)
    # Of the even block's left half, its right half, the odd block's left half, its right half:
    arrived = gl.allocate_shared_memory(gl.int64, [4, 1], bars)
    free = gl.allocate_shared_memory(gl.int64, [4, 1], bars)
    # Of the even warpgroup's weights and peaks, of the odd one's:
    ready = gl.allocate_shared_memory(gl.int64, [2, 1], bars)
    for i in gl.static_range(4):
        mbarrier.init(arrived.index(i), count=COPIERS)
        mbarrier.init(free.index(i), count=1)
    for i in gl.static_range(2):
        mbarrier.init(ready.index(i), count=1)

    h = gl.arange(0, ROWS, gl.SliceLayout(1, COPY))
    d = gl.arange(0, HALF, gl.SliceLayout(0, COPY))
    at = q_ptr + (h * q_stride_h)[:, None] + d[None, :]
    q = gl.load(at, mask=(h < rows)[:, None], other=0.0)
    q_left = gl.allocate_shared_memory(dtype, [1, ROWS, HALF], tile)
    q_left.index(0).store(q)
    q = gl.load(at + HALF, mask=(h < rows)[:, None], other=0.0)
    q_right = gl.allocate_shared_memory(dtype, [1, ROWS, HALF], tile)
    q_right.index(0).store(q)
    fence_async_shared()

    gl.warp_specialize(
        [
            (_copy, (
                k_base, k_stride_n, table, low, high, lefts, rights, ropes, arrived, free,
                HAS_ROPE, PAGE,
            )),
            (_even, (
                q_ptr, q_stride_h, rows, low, high, qk_scale, cap,
                acc_ptr + place * (2 * HALF), stats_ptr + place, stats_size,
                q_left, q_right, lefts, rights, ropes, weights, peaks, masses, arrived, free,
                ready, HAS_ROPE, CAPPED,
            )),
            (_odd, (
                q_ptr, q_stride_h, rows, low, high, qk_scale, cap,
                acc_ptr + place * (2 * HALF),
                q_left, q_right, lefts, rights, ropes, weights, peaks, masses, arrived, free,
                ready, HAS_ROPE, CAPPED,
            )),
        ],
        [4, 4],  # warps of `_even` and `_odd`
        [216, 216],  # and their registers a thread; 72 are left to `_copy`
    )  # fmt: skip
