"""Results that must not move by a bit: garbage nobody owns, layouts, batches, repeats."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from grouped_decode.attention import grouped_decode_attention, workspace_numel
from grouped_decode.case import Case
from grouped_decode.inputs import Tensors, generate
from hypothesis import given, settings
from hypothesis import strategies as st

SHAPES = ["B3-H8-2-D64-64-S70-float16", "B2-H20-1-D96-80-S61-bfloat16"]
MLA = "B2-H16-1-D576-512-S40-bfloat16-mla"


def place(key: str, *traits: str, device: str) -> Tensors:
    case = Case.parse(key)
    return generate(replace(case, traits=tuple(sorted({*case.traits, *traits})))).place(device)


def attend(tensors: Tensors, **more: object) -> tuple[torch.Tensor, torch.Tensor]:
    return grouped_decode_attention(*tensors.positional, **tensors.options, **more, return_lse=True)


def same(a: tuple[torch.Tensor, torch.Tensor], b: tuple[torch.Tensor, torch.Tensor]) -> bool:
    return torch.equal(a[0], b[0]) and torch.equal(a[1], b[1])


@pytest.mark.parametrize("invariant", [False, True])
@pytest.mark.parametrize(
    "traits",
    [
        ("nanpad",), ("garbagepad",), ("shuffled",), ("reversed",), ("interleaved",),
        ("interleaved", "nanpad", "shuffled"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", [*SHAPES, MLA])
def test_layout_and_garbage_do_not_matter(
    key: str, traits: tuple[str, ...], invariant: bool, device: str
) -> None:
    plain = attend(place(key, device=device), batch_invariant=invariant)
    assert same(plain, attend(place(key, *traits, device=device), batch_invariant=invariant))


@pytest.mark.parametrize("fill", ["nanpad", "garbagepad"])
@pytest.mark.parametrize("key", SHAPES)
def test_page_tails_are_not_read(key: str, fill: str, device: str) -> None:
    """C15: pages of 4, lengths that leave 1 to 3 slots over."""
    clean = attend(place(key, "page4", "ragged", device=device), num_kv_splits=3)
    assert same(clean, attend(place(key, "page4", "ragged", fill, device=device), num_kv_splits=3))


def test_a_window_keeps_old_keys_out(device: str) -> None:
    """Keys before the window may hold anything: they are not read."""
    tensors = place("B1-H4-1-D64-64-S50-float16", "window9", device=device)
    clean = attend(tensors, num_kv_splits=4)
    old = tensors.kv_indices[:41].long()
    tensors.k_buffer[old] = float("nan")
    tensors.v_buffer[old] = float("inf")
    assert same(clean, attend(tensors, num_kv_splits=4))


@pytest.mark.parametrize("splits", [1, 4])
def test_what_scratch_and_output_held_does_not_matter(splits: int, device: str) -> None:
    """C13: scratch and output full of NaN."""
    tensors = place("B4-H8-2-D64-64-S33-float16", "ragged", device=device)
    clean = attend(tensors, num_kv_splits=splits)
    numel = workspace_numel(*tensors.positional, **tensors.options, num_kv_splits=splits)
    dirty = attend(
        tensors,
        num_kv_splits=splits,
        out=torch.full_like(tensors.out, float("nan")),
        workspace=torch.full((numel,), float("nan"), device=device),
    )
    assert same(clean, dirty)


def test_empty_sequences_are_written(device: str) -> None:
    """C17: lengths 17, 33, 5, 0 with stale output; the empty row is zeros, its lse -inf."""
    case = Case.parse("B4-H4-2-D64-64-S33-float16")
    q, k, v, _, indices = generate(case).place(device).positional
    indptr = torch.tensor([0, 17, 50, 55, 55], dtype=torch.int32, device=device)
    for kwargs in ({}, {"num_kv_splits": 4}, {"batch_invariant": True}):
        out = torch.full((4, 4, 64), 7.0, dtype=q.dtype, device=device)
        _, lse = grouped_decode_attention(
            q, k, v, indptr, indices[:55], out=out, return_lse=True, **kwargs
        )
        assert not out[3].any()
        assert torch.isneginf(lse[3]).all()
        assert torch.isfinite(out[:3]).all() and torch.isfinite(lse[:3]).all()
        sinks = torch.arange(4.0, device=device)
        out, lse = grouped_decode_attention(
            q, k, v, indptr, indices[:55], sinks=sinks, return_lse=True, **kwargs
        )
        assert not out[3].any()
        torch.testing.assert_close(lse[3], sinks)


def rows_of(tensors: Tensors, order: list[int]) -> Tensors:
    """The batch with its sequences in another order, or with some of them only, or twice."""
    starts = tensors.kv_indptr.tolist()
    parts = [tensors.kv_indices[starts[row] : starts[row + 1]] for row in order]
    ends = torch.tensor([0] + [len(part) for part in parts]).cumsum(0)
    return replace(
        tensors,
        q=tensors.q[order],
        kv_indptr=ends.to(tensors.kv_indptr),
        kv_indices=torch.cat(parts),
    )


INVARIANT = ["B5-H8-2-D64-64-S200-float16-ragged", "B4-H16-1-D96-80-S90-bfloat16-ragged-sinks"]
if torch.cuda.is_available():
    INVARIANT += [
        "B6-H32-8-D128-128-S9000-bfloat16-ragged",
        "B6-H128-1-D576-512-S9000-bfloat16-mla-ragged",
        "B6-H128-2-D512-512-S9000-float16-ragged",
        "B6-H40-8-D128-128-S5000-float16-ragged",
        "B6-H32-32-D64-64-S5000-float16-ragged",
    ]


@pytest.mark.parametrize("key", INVARIANT)
def test_batch_invariance(key: str, device: str) -> None:
    """Alone, permuted, repeated and padded with other sequences: the same bits."""
    tensors = place(key, device=device)
    count = tensors.case.batch
    whole = attend(tensors, batch_invariant=True)
    for row in range(count):
        alone = attend(rows_of(tensors, [row]), batch_invariant=True)
        assert same(alone, (whole[0][row : row + 1], whole[1][row : row + 1])), row
    order = list(reversed(range(count)))
    turned = attend(rows_of(tensors, order), batch_invariant=True)
    assert same(turned, (whole[0][order], whole[1][order]))
    padded = attend(rows_of(tensors, [0, 1, 1, 2, 0, 3, 1]), batch_invariant=True)
    assert same((padded[0][[0, 1, 3, 5]], padded[1][[0, 1, 3, 5]]), (whole[0][:4], whole[1][:4]))
    shuffled = attend(place(key, "shuffled", "nanpad", device=device), batch_invariant=True)
    assert same(shuffled, whole)
    for _ in range(100 if device == "cuda" else 2):
        assert same(attend(tensors, batch_invariant=True), whole)


@settings(max_examples=100 if torch.cuda.is_available() else 12, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    page=st.sampled_from([1, 2, 3, 4, 7, 16]),
    splits=st.integers(1, 5),
    seed=st.integers(0, 2**31),
)
def test_paging_is_only_addressing(lengths: list[int], page: int, splits: int, seed: int) -> None:
    """Any pages in any order give the bits that slots one by one give."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    random = torch.Generator().manual_seed(seed)
    pages = [-(-n // page) for n in lengths]
    order = torch.randperm(sum(pages) + 2, generator=random)[: sum(pages)]
    draw = lambda *shape: torch.randn(shape, generator=random).half().to(device)  # noqa: E731
    slots = (sum(pages) + 2) * page
    q, k, v = draw(len(lengths), 4, 32), draw(slots, 2, 32), draw(slots, 2, 32)
    indptr = torch.tensor([0, *pages]).cumsum(0).to(device)
    flat = torch.cat(
        [
            (table[:, None] * page + torch.arange(page)).flatten()[:n]
            for table, n in zip(order.split(pages), lengths, strict=True)
        ]
    ).to(device)
    last = torch.tensor([(n - 1) % page + 1 if n else 0 for n in lengths], device=device)
    by_page = grouped_decode_attention(
        q, k, v, indptr, order.to(device), page_size=page,
        last_page_len=last if page > 1 else None, batch_invariant=True, return_lse=True,
    )  # fmt: skip
    ends = torch.tensor([0, *lengths]).cumsum(0).to(device)
    by_slot = grouped_decode_attention(q, k, v, ends, flat, batch_invariant=True, return_lse=True)
    assert same(by_page, by_slot)
    split = grouped_decode_attention(q, k, v, ends, flat, num_kv_splits=splits)
    torch.testing.assert_close(split, by_slot[0], atol=2e-3, rtol=2e-3)


def test_inputs_are_not_written(device: str) -> None:
    tensors = place("B2-H8-2-D64-64-S40-float16-sinks", device=device)
    before = [t.clone() for t in (*tensors.positional, tensors.sinks)]
    attend(tensors, num_kv_splits=3)
    for was, now in zip(before, (*tensors.positional, tensors.sinks), strict=True):
        assert torch.equal(was, now)


def test_strides(device: str) -> None:
    """C33: rows and heads of q, of the buffers and of the output may lie apart."""
    tensors = place("B3-H8-2-D64-64-S40-float16", device=device)
    q, k, v, indptr, indices = tensors.positional
    expected, _ = attend(tensors)

    def apart(x: torch.Tensor) -> torch.Tensor:
        wide = torch.full((x.shape[0] * 2, x.shape[1] + 1, x.shape[2] + 8), float("nan"))
        view = wide.to(x)[::2, 1:, : x.shape[2]]
        return view.copy_(x)

    out = apart(expected)
    result = grouped_decode_attention(apart(q), apart(k), apart(v), indptr, indices, out=out)
    assert result.data_ptr() == out.data_ptr() and torch.equal(result, expected)
    turned = k.transpose(0, 1).contiguous().transpose(0, 1)
    assert torch.equal(grouped_decode_attention(q, turned, v, indptr, indices), expected)


def test_int64_tables(device: str) -> None:
    tensors = place("B3-H8-2-D64-64-S40-float16-ragged", device=device)
    q, k, v, indptr, indices = tensors.positional
    wide = grouped_decode_attention(q, k, v, indptr.long(), indices.long(), return_lse=True)
    assert same(attend(tensors), wide)


def test_no_sequences(device: str) -> None:
    q = torch.empty((0, 4, 32), dtype=torch.float16, device=device)
    kv = torch.empty((5, 2, 32), dtype=torch.float16, device=device)
    table = torch.zeros(1, dtype=torch.int32, device=device)
    out, lse = grouped_decode_attention(q, kv, kv, table, table[:0], return_lse=True)
    assert out.shape == (0, 4, 32) and lse.shape == (0, 4)
