"""The Triton kernels: split-KV attention and the merge of its partial results.

Work is cut twice. The query heads of one KV head form tiles of at most BLOCK_H rows, so no tile
ever straddles two KV heads, whatever the group size. The keys of a sequence form splits, at
0, T, 2T, ... of its own keys. One program computes one (split, head tile); which split is found
on the device from ``kv_indptr``, by a running sum over the batch, so a call never waits for the
GPU, a ragged batch stays balanced, and a sequence's result depends on T and itself alone.

A split gives the partial (peak, mass, acc): maximum of the scores s, sum of 2**(s - peak) and
sum of 2**(s - peak) * v, all float32; scores are multiplied with log2(e), so that ``exp2``
serves. `merge_splits` merges the partials of a sequence in order. This is the online softmax of
FlashAttention with the split-KV reduction of Flash-Decoding.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def sequence_spans(
    indptr_ptr, last_page_ptr, rows, live, window, PAGE: tl.constexpr, WINDOWED: tl.constexpr
):
    """First page-table entry, first key inside the window, and length of the sequences `rows`."""
    first = tl.load(indptr_ptr + rows, mask=live, other=0)
    pages = (tl.load(indptr_ptr + rows + 1, mask=live, other=0) - first).to(tl.int32)
    length = pages
    if PAGE > 1:
        tail = tl.load(last_page_ptr + rows, mask=live, other=0).to(tl.int32)
        length = tl.where(pages > 0, (pages - 1) * PAGE + tail, 0)
    start = length * 0
    if WINDOWED:
        start = tl.maximum(length - window, 0)
    return first.to(tl.int64), start, length


@triton.jit
def split_counts(start, length, split):
    """How many splits hold keys of [start, length); an empty sequence has one."""
    return tl.maximum((length + split - 1) // split - start // split, 1)


@triton.jit
def batch_splits(
    indptr_ptr,
    last_page_ptr,
    batch,
    split,
    window,
    BLOCK_B: tl.constexpr,
    PAGE: tl.constexpr,
    WINDOWED: tl.constexpr,
):
    """Row numbers of the batch and each row's number of splits, 0 past the batch."""
    rows = tl.arange(0, BLOCK_B)
    live = rows < batch
    _, start, length = sequence_spans(indptr_ptr, last_page_ptr, rows, live, window, PAGE, WINDOWED)
    return rows, tl.where(live, split_counts(start, length, split), 0)


@triton.jit
def soft_cap(scores, cap):
    """cap * tanh(scores / cap); exp2 going to inf or 0 gives the right limits, never NaN."""
    return cap * (1.0 - 2.0 / (tl.exp2(scores * (2.0 * LOG2_E / cap)) + 1.0))


@triton.jit
def merge_partials(
    acc_ptr,
    stats_ptr,
    stats_size,
    first_item,
    splits,
    heads,
    live,
    dims,
    dims_live,
    Q_HEADS: tl.constexpr,
    DV: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_D: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """Combine partials `first_item` ... `first_item + splits - 1` of `heads`, CHUNK at a time.

    A chunk's loads are all in flight together: the time is that of one trip to memory a chunk.
    """
    peak = tl.full([ROWS], -float("inf"), tl.float32)
    mass = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, BLOCK_D], tl.float32)
    for i in range(0, splits, CHUNK):
        step = i + tl.arange(0, CHUNK)
        there = (step < splits)[:, None] & live[None, :]
        at = (first_item + step).to(tl.int64)[:, None] * Q_HEADS + heads[None, :]
        peaks = tl.load(stats_ptr + at, mask=there, other=-float("inf"))
        masses = tl.load(stats_ptr + stats_size + at, mask=there, other=0.0)
        parts = tl.load(
            acc_ptr + at[:, :, None] * DV + dims[None, None, :],
            mask=there[:, :, None] & dims_live[None, None, :],
            other=0.0,
        )
        peak_new = tl.maximum(peak, tl.max(peaks, 0))
        top = tl.where(peak_new == -float("inf"), 0.0, peak_new)
        shrink = tl.exp2(peak - top)
        weights = tl.exp2(peaks - top[None, :])
        mass = mass * shrink + tl.sum(masses * weights, 0)
        acc = acc * shrink[:, None] + tl.sum(parts * weights[:, :, None], 0)
        peak = peak_new
    return peak, mass, acc


@triton.jit
def write_rows(
    out_ptr,
    lse_ptr,
    sinks_ptr,
    row,
    heads,
    live,
    dims,
    dims_live,
    peak,
    mass,
    acc,
    v_scale,
    out_stride_b,
    out_stride_h,
    Q_HEADS: tl.constexpr,
    SINKS: tl.constexpr,
    LSE: tl.constexpr,
):
    """Add the sink once, normalise, and write output rows; LSE: 0 none, 1 base e, 2 base 2."""
    if SINKS:
        sink = tl.load(sinks_ptr + heads, mask=live, other=-float("inf")).to(tl.float32) * LOG2_E
        top = tl.maximum(peak, sink)
        top = tl.where(top == -float("inf"), 0.0, top)
        scale = tl.exp2(peak - top)
        mass = mass * scale + tl.exp2(sink - top)
        acc = acc * scale[:, None]
        peak = tl.maximum(peak, sink)
    mass = tl.where(mass == 0.0, 1.0, mass)  # no keys: acc is 0, peak is -inf
    out = acc / mass[:, None] * v_scale
    at = out_ptr + row.to(tl.int64) * out_stride_b + heads.to(tl.int64) * out_stride_h
    tl.store(
        at[:, None] + dims[None, :],
        out.to(out_ptr.dtype.element_ty),
        mask=live[:, None] & dims_live[None, :],
    )
    if LSE:
        lse = peak + tl.log2(mass)
        if LSE == 1:
            lse = lse * LN_2
        tl.store(lse_ptr + row.to(tl.int64) * Q_HEADS + heads, lse, mask=live)


@triton.jit
def attend_split(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    indptr_ptr,
    indices_ptr,
    last_page_ptr,
    sinks_ptr,
    acc_ptr,  # [items, Q_HEADS, DV] float32
    stats_ptr,  # [2, items, Q_HEADS] float32: peak, then mass
    stats_size,
    batch,
    window,
    split,
    qk_scale,
    cap,
    v_scale,
    q_stride_b,
    q_stride_h,
    k_stride_n,
    k_stride_h,
    v_stride_n,
    v_stride_h,
    out_stride_b,
    out_stride_h,
    Q_HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    DK: tl.constexpr,
    DV: tl.constexpr,
    DK1: tl.constexpr,  # widths are cut in two parts, a power of two and the rest
    DK2: tl.constexpr,  # rounded up to one, or 0
    DV1: tl.constexpr,
    DV2: tl.constexpr,
    BLOCK_B: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PAGE: tl.constexpr,
    SHARED_V: tl.constexpr,  # V is the first DV columns of K: loaded once
    WINDOWED: tl.constexpr,
    CAPPED: tl.constexpr,
    SINKS: tl.constexpr,
    LSE: tl.constexpr,
    DOT_DTYPE: tl.constexpr,
    PRECISION: tl.constexpr,
    PDL: tl.constexpr,
):
    """One head tile over one split; writes a partial, or the output of a sequence of one split."""
    if PDL:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    GROUP: tl.constexpr = Q_HEADS // KV_HEADS
    TILES: tl.constexpr = (GROUP + BLOCK_H - 1) // BLOCK_H
    program = tl.program_id(0)
    column = program % (KV_HEADS * TILES)  # fastest, so that tiles of the same keys run together
    item = program // (KV_HEADS * TILES)
    kv_head = column // TILES
    local = column % TILES * BLOCK_H + tl.arange(0, BLOCK_H)
    live = local < GROUP
    heads = kv_head * GROUP + local
    k1 = tl.arange(0, DK1)
    k2 = DK1 + tl.arange(0, DK2 if DK2 > 0 else 16)
    v1 = tl.arange(0, DV1)
    v2 = DV1 + tl.arange(0, DV2 if DV2 > 0 else 16)
    k_head = k_ptr + kv_head.to(tl.int64) * k_stride_h
    v_head = v_ptr + kv_head.to(tl.int64) * v_stride_h

    rows, counts = batch_splits(
        indptr_ptr, last_page_ptr, batch, split, window, BLOCK_B, PAGE, WINDOWED
    )
    passed = (tl.cumsum(counts, 0) <= item) & (rows < batch)
    row = tl.sum(passed.to(tl.int32), 0)
    if row >= batch:  # the grid is an upper bound of the batch's splits
        return
    first_item = tl.sum(tl.where(passed, counts, 0), 0)
    first, start, length = sequence_spans(
        indptr_ptr, last_page_ptr, row, row < batch, window, PAGE, WINDOWED
    )
    splits = split_counts(start, length, split)
    origin = (start // split + item - first_item) * split
    low = tl.maximum(origin, start)
    high = tl.minimum(origin + split, length)

    q_row = q_ptr + row.to(tl.int64) * q_stride_b + heads.to(tl.int64) * q_stride_h
    q_1 = tl.load(q_row[:, None] + k1[None, :], mask=live[:, None], other=0.0).to(DOT_DTYPE)
    if DK2 > 0:
        q_2 = tl.load(
            q_row[:, None] + k2[None, :], mask=live[:, None] & (k2 < DK)[None, :], other=0.0
        ).to(DOT_DTYPE)
    if DV2 > 0:
        acc_2 = tl.zeros([BLOCK_H, DV2], tl.float32)
    acc_1 = tl.zeros([BLOCK_H, DV1], tl.float32)
    peak = tl.full([BLOCK_H], -float("inf"), tl.float32)
    mass = tl.zeros([BLOCK_H], tl.float32)
    table = indices_ptr + first
    for step in range(low, high, BLOCK_N):
        n = step + tl.arange(0, BLOCK_N)
        inside = n < high
        if PAGE == 1:
            slot = tl.load(table + n, mask=inside, other=0).to(tl.int64)
        else:
            page = tl.load(table + n // PAGE, mask=inside, other=0).to(tl.int64)
            slot = page * PAGE + n % PAGE
        k_row = k_head + slot * k_stride_n
        k_1 = tl.load(k_row[:, None] + k1[None, :], mask=inside[:, None], other=0.0)
        k_1 = k_1.to(DOT_DTYPE)
        scores = tl.dot(q_1, tl.trans(k_1), input_precision=PRECISION)
        if DK2 > 0:
            k_2 = tl.load(
                k_row[:, None] + k2[None, :],
                mask=inside[:, None] & (k2 < DK)[None, :],
                other=0.0,
            ).to(DOT_DTYPE)
            scores = tl.dot(q_2, tl.trans(k_2), scores, input_precision=PRECISION)
        scores = scores * qk_scale  # natural units with a cap, else log2(e) is in it
        if CAPPED:
            scores = soft_cap(scores, cap) * LOG2_E
        scores = tl.where(inside[None, :], scores, -float("inf"))
        peak_new = tl.maximum(peak, tl.max(scores, 1))
        shrink = tl.exp2(peak - peak_new)
        weights = tl.exp2(scores - peak_new[:, None])
        mass = mass * shrink + tl.sum(weights, 1)
        peak = peak_new
        weights = weights.to(DOT_DTYPE)
        v_row = v_head + slot * v_stride_n
        if SHARED_V:
            v_1 = k_1
        else:
            v_1 = tl.load(v_row[:, None] + v1[None, :], mask=inside[:, None], other=0.0)
            v_1 = v_1.to(DOT_DTYPE)
        acc_1 = tl.dot(weights, v_1, acc_1 * shrink[:, None], input_precision=PRECISION)
        if DV2 > 0:
            if SHARED_V:
                v_2 = k_2
            else:
                v_2 = tl.load(
                    v_row[:, None] + v2[None, :],
                    mask=inside[:, None] & (v2 < DV)[None, :],
                    other=0.0,
                ).to(DOT_DTYPE)
            acc_2 = tl.dot(weights, v_2, acc_2 * shrink[:, None], input_precision=PRECISION)

    if splits == 1:
        write_rows(
            out_ptr, lse_ptr, sinks_ptr, row, heads, live, v1, v1 < DV, peak, mass, acc_1,
            v_scale, out_stride_b, out_stride_h, Q_HEADS, SINKS, LSE,
        )  # fmt: skip
        if DV2 > 0:
            write_rows(
                out_ptr, lse_ptr, sinks_ptr, row, heads, live, v2, v2 < DV, peak, mass, acc_2,
                v_scale, out_stride_b, out_stride_h, Q_HEADS, SINKS, 0,
            )  # fmt: skip
    else:
        place = item.to(tl.int64) * Q_HEADS + heads
        tl.store(stats_ptr + place, peak, mask=live)
        tl.store(stats_ptr + stats_size + place, mass, mask=live)
        to = acc_ptr + place * DV
        tl.store(to[:, None] + v1[None, :], acc_1, mask=live[:, None])
        if DV2 > 0:
            tl.store(to[:, None] + v2[None, :], acc_2, mask=live[:, None] & (v2 < DV)[None, :])


@triton.jit
def merge_splits(
    out_ptr,
    lse_ptr,
    indptr_ptr,
    last_page_ptr,
    sinks_ptr,
    acc_ptr,
    stats_ptr,
    stats_size,
    batch,
    window,
    split,
    v_scale,
    out_stride_b,
    out_stride_h,
    Q_HEADS: tl.constexpr,
    DV: tl.constexpr,
    BLOCK_B: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_D: tl.constexpr,
    CHUNK: tl.constexpr,
    LEAST: tl.constexpr,  # sequences of fewer splits were written by attend_split
    PAGE: tl.constexpr,
    WINDOWED: tl.constexpr,
    SINKS: tl.constexpr,
    LSE: tl.constexpr,
    PDL: tl.constexpr,
):
    """Merge the partials of one sequence, ROWS heads and BLOCK_D columns a program."""
    if PDL:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    COLUMNS: tl.constexpr = (DV + BLOCK_D - 1) // BLOCK_D
    TILES: tl.constexpr = (Q_HEADS + ROWS - 1) // ROWS
    program = tl.program_id(0)
    column = program % COLUMNS
    tile = program // COLUMNS % TILES
    row = program // (COLUMNS * TILES)
    _, start, length = sequence_spans(
        indptr_ptr, last_page_ptr, row, row < batch, window, PAGE, WINDOWED
    )
    splits = split_counts(start, length, split)
    if splits >= LEAST:
        rows, counts = batch_splits(
            indptr_ptr, last_page_ptr, batch, split, window, BLOCK_B, PAGE, WINDOWED
        )
        first_item = tl.sum(tl.where(rows < row, counts, 0), 0)
        heads = tile * ROWS + tl.arange(0, ROWS)
        live = heads < Q_HEADS
        dims = column * BLOCK_D + tl.arange(0, BLOCK_D)
        peak, mass, acc = merge_partials(
            acc_ptr, stats_ptr, stats_size, first_item, splits, heads, live, dims, dims < DV,
            Q_HEADS, DV, ROWS, BLOCK_D, CHUNK,
        )  # fmt: skip
        write_rows(
            out_ptr, lse_ptr, sinks_ptr, row, heads, live, dims, dims < DV, peak, mass, acc,
            v_scale, out_stride_b, out_stride_h, Q_HEADS, SINKS, LSE,
        )  # fmt: skip
