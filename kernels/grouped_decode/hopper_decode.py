"""The Hopper kernel for wide heads (V of 512 columns, K of 512 or 576) and large groups.

Same cut of the work and same partials as `triton_decode.attend_split`, which Triton's own
pipeliner cannot feed at this width: it issues a step's copies after the step's products, and two
steps of K fill shared memory. Here the order is written out (in Gluon, Triton's lower level). Two
warpgroups share a tile of 64 query rows: scores [64, 64] are split by key, the output [64, 512] by
column. K and V have one buffer each, refilled as soon as their product is done. Where V lies
inside K, `hopper_latent` takes over.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    async_copy,
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

# Names changed between Triton 3.6 and 3.9.
barrier = getattr(gl, "thread_barrier", None) or gl.barrier
copy_async = getattr(async_copy, "async_load", None) or async_copy.async_copy_global_to_shared

ROWS = gl.constexpr(64)
KEYS = gl.constexpr(64)
COLUMNS = gl.constexpr(512)
LOG2_E = gl.constexpr(1.4426950408889634)


@gluon.jit
def _add(a, b):
    return a + b


@gluon.jit
def _copy_entries(buffer, table, at, high, PAGE: gl.constexpr):
    """Start copying the table entries of keys `at` ... `at + KEYS - 1`; 0 past `high`."""
    n = at + gl.arange(0, KEYS, gl.BlockedLayout([1], [32], [8], [0]))
    copy_async(buffer, table + n // PAGE, mask=n < high)


@gluon.jit
def _copy_rows(buffer, base, stride, entries, at, high, layout: gl.constexpr, PAGE: gl.constexpr):
    """Start copying the keys' rows, as wide as `buffer`; past `high` nothing is read, it gets 0."""
    n = at + gl.arange(0, KEYS, gl.SliceLayout(1, layout))
    slots = entries.load(gl.SliceLayout(1, layout)).to(gl.int64)
    if PAGE > 1:
        slots = slots * PAGE + n % PAGE
    columns = gl.arange(0, buffer.shape[1], gl.SliceLayout(0, layout))
    pointers = (base + slots * stride)[:, None] + columns[None, :]
    copy_async(buffer, pointers, mask=(n < high)[:, None])


@gluon.jit
def capped(scores, cap, CAPPED: gl.constexpr):
    """Soft-capped scores in units of log 2; `cap` * tanh(scores / `cap`) without overflow."""
    if CAPPED:
        scores = cap * (1.0 - 2.0 / (gl.exp2(scores * (2.0 * LOG2_E / cap)) + 1.0)) * LOG2_E
    return scores


@gluon.jit
def find_split(
    indptr_ptr, last_page_ptr, batch, window, split, item,
    BLOCK_B: gl.constexpr, PAGE: gl.constexpr, WINDOWED: gl.constexpr,
):  # fmt: skip
    """The `item`-th split of the batch: sequence, its first table entry, first key and end.

    The sequence is `batch` where there are fewer splits than that.
    """
    flat: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    rows = gl.arange(0, BLOCK_B, flat)
    there = rows < batch
    first = gl.load(indptr_ptr + rows, mask=there, other=0)
    length = (gl.load(indptr_ptr + rows + 1, mask=there, other=0) - first).to(gl.int32)
    if PAGE > 1:
        tail = gl.load(last_page_ptr + rows, mask=there, other=0).to(gl.int32)
        length = gl.where(length > 0, (length - 1) * PAGE + tail, 0)
    start = length * 0
    if WINDOWED:
        start = gl.maximum(length - window, 0)
    counts = gl.maximum((length + split - 1) // split - start // split, 1)
    counts = gl.where(there, counts, 0)
    passed = (gl.associative_scan(counts, 0, _add) <= item) & there
    row = gl.sum(passed.to(gl.int32), 0)
    mine = rows == row
    index = item - gl.sum(gl.where(passed, counts, 0), 0)
    start = gl.sum(gl.where(mine, start, 0), 0)
    length = gl.sum(gl.where(mine, length, 0), 0)
    first = gl.sum(gl.where(mine, first, 0), 0)
    origin = (start // split + index) * split
    return row, first, gl.maximum(origin, start), gl.minimum(origin + split, length)


@gluon.jit
def _softmax_step(scores, peak, mass, at, high, qk_scale, cap, CAPPED: gl.constexpr):
    layout: gl.constexpr = scores.type.layout
    scores = capped(scores * qk_scale, cap, CAPPED)
    n = at + gl.arange(0, KEYS, gl.SliceLayout(0, layout))
    scores = gl.where((n < high)[None, :], scores, -float("inf"))
    peak_new = gl.maximum(peak, gl.max(scores, 1))
    shrink = gl.exp2(peak - peak_new)
    weights = gl.exp2(scores - peak_new[:, None])
    return weights, shrink, peak_new, mass * shrink[:, None] + weights


@gluon.jit
def attend_split_wide(
    q_ptr,
    k_ptr,
    v_ptr,
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
    v_stride_n,
    v_stride_h,
    Q_HEADS: gl.constexpr,
    KV_HEADS: gl.constexpr,
    ROPE: gl.constexpr,  # columns of K beyond 512: 0 or 64
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
    wide: gl.constexpr = gl.BlockedLayout([1, 8], [1, 32], [4, 2], [1, 0])
    narrow: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [8, 1], [1, 0])
    score_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 2], [16, 32, 16])
    acc_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 2], [16, 256, 16])
    shared: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)

    GROUP: gl.constexpr = Q_HEADS // KV_HEADS
    TILES: gl.constexpr = (GROUP + ROWS - 1) // ROWS
    program = gl.program_id(0)
    column = program % (KV_HEADS * TILES)
    item = program // (KV_HEADS * TILES)
    kv_head = column // TILES

    row, first, low, high = find_split(
        indptr_ptr, last_page_ptr, batch, window, split, item, BLOCK_B, PAGE, WINDOWED
    )  # fmt: skip
    if row >= batch:
        return
    table = indices_ptr + first
    k_base = k_ptr + kv_head.to(gl.int64) * k_stride_h
    v_base = v_ptr + kv_head.to(gl.int64) * v_stride_h
    k_tile = gl.allocate_shared_memory(dtype, [KEYS, COLUMNS], shared)
    if ROPE > 0:
        r_tile = gl.allocate_shared_memory(dtype, [KEYS, ROPE], shared)
    v_tile = gl.allocate_shared_memory(dtype, [KEYS, COLUMNS], shared)
    # Table entries are copied two steps ahead: a row's address is never waited for.
    entries = gl.allocate_shared_memory(
        indices_ptr.dtype.element_ty, [2, KEYS], gl.SwizzledSharedLayout(1, 1, 1, [0])
    )
    _copy_entries(entries.index(0), table, low, high, PAGE)
    _copy_entries(entries.index(1), table, low + KEYS, high, PAGE)
    async_copy.commit_group()
    async_copy.wait_group(0)
    barrier()
    here = entries.index(0)
    _copy_rows(k_tile, k_base, k_stride_n, here, low, high, wide, PAGE)
    if ROPE > 0:
        _copy_rows(r_tile, k_base + COLUMNS, k_stride_n, here, low, high, narrow, PAGE)
    async_copy.commit_group()
    _copy_rows(v_tile, v_base, v_stride_n, here, low, high, wide, PAGE)
    async_copy.commit_group()

    local = column % TILES * ROWS
    q_base = q_ptr + row.to(gl.int64) * q_stride_b + (kv_head * GROUP).to(gl.int64) * q_stride_h
    h = local + gl.arange(0, ROWS, gl.SliceLayout(1, wide))
    d = gl.arange(0, COLUMNS, gl.SliceLayout(0, wide))
    q = gl.load(
        q_base + (h * q_stride_h)[:, None] + d[None, :], mask=(h < GROUP)[:, None], other=0.0
    )
    q_tile = gl.allocate_shared_memory(dtype, [ROWS, COLUMNS], shared, q)
    if ROPE > 0:
        h = local + gl.arange(0, ROWS, gl.SliceLayout(1, narrow))
        d = COLUMNS + gl.arange(0, ROPE, gl.SliceLayout(0, narrow))
        q = gl.load(
            q_base + (h * q_stride_h)[:, None] + d[None, :], mask=(h < GROUP)[:, None], other=0.0
        )
        qr_tile = gl.allocate_shared_memory(dtype, [ROWS, ROPE], shared, q)
    w_tile = gl.allocate_shared_memory(dtype, [ROWS, KEYS], shared)

    peak = gl.full([ROWS], -float("inf"), gl.float32, gl.SliceLayout(1, score_layout))
    acc = gl.full([ROWS, COLUMNS], 0.0, gl.float32, acc_layout)
    none = gl.full([ROWS, KEYS], 0.0, gl.float32, score_layout)
    mass = none  # by key; summed over the keys once, at the end
    turn = 0
    for at in range(low, high, KEYS):
        async_copy.wait_group(1)
        barrier()  # everyone's copies have arrived, everyone is past the last step
        fence_async_shared()
        scores = warpgroup_mma(q_tile, k_tile.permute((1, 0)), none, use_acc=False, is_async=True)
        if ROPE > 0:
            scores = warpgroup_mma(qr_tile, r_tile.permute((1, 0)), scores, is_async=True)
        scores = warpgroup_mma_wait(0, deps=(scores,))
        barrier()  # K's buffer is free
        turn = 1 - turn
        ahead = entries.index(turn)
        _copy_rows(k_tile, k_base, k_stride_n, ahead, at + KEYS, high, wide, PAGE)
        if ROPE > 0:
            _copy_rows(
                r_tile, k_base + COLUMNS, k_stride_n, ahead, at + KEYS, high, narrow, PAGE
            )  # fmt: skip
        _copy_entries(entries.index(1 - turn), table, at + 2 * KEYS, high, PAGE)
        async_copy.commit_group()
        weights, shrink, peak, mass = _softmax_step(
            scores, peak, mass, at, high, qk_scale, cap, CAPPED
        )
        w_tile.store(weights.to(dtype))
        async_copy.wait_group(1)
        fence_async_shared()
        barrier()
        shrink = gl.convert_layout(shrink, gl.SliceLayout(1, acc_layout))
        acc = warpgroup_mma(w_tile, v_tile, acc * shrink[:, None], is_async=True)
        acc = warpgroup_mma_wait(0, deps=(acc,))
        barrier()  # V's buffer is free
        _copy_rows(v_tile, v_base, v_stride_n, ahead, at + KEYS, high, wide, PAGE)
        async_copy.commit_group()
    async_copy.wait_group(0)

    mass = gl.sum(mass, 1)
    place = item.to(gl.int64) * Q_HEADS + kv_head * GROUP + local
    h = gl.arange(0, ROWS, gl.SliceLayout(1, score_layout))
    gl.store(stats_ptr + place + h, peak, mask=local + h < GROUP)
    gl.store(stats_ptr + stats_size + place + h, mass, mask=local + h < GROUP)
    h = gl.arange(0, ROWS, gl.SliceLayout(1, acc_layout))
    d = gl.arange(0, COLUMNS, gl.SliceLayout(0, acc_layout))
    to = acc_ptr + place * COLUMNS
    gl.store(to + (h * COLUMNS)[:, None] + d[None, :], acc, mask=(local + h < GROUP)[:, None])
