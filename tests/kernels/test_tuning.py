"""What a choice of tiles may depend on, and what it may not."""

from __future__ import annotations

import pytest
from grouped_decode.tuning import Shape, choose_tiles, fitted, shortened

UNITS = 132
GQA = Shape(group=5, kv_heads=8, dk=128, dv=128, kv_bytes=2)


@pytest.mark.parametrize(("batch", "alone"), [(8, False), (9, True), (16, True), (17, False)])
def test_one_large_program_only_where_two_would_not_fit(batch: int, alone: bool) -> None:
    tiles = choose_tiles("sm_90", GQA)
    chosen = fitted("sm_90", tiles, GQA, UNITS, batch)
    assert (chosen.resident == 1) == alone
    assert alone or chosen == tiles


@pytest.mark.parametrize("arch", ["sm_80", "gfx942", "gfx950", "interpreter"])
def test_unmeasured_architectures_keep_their_tiles(arch: str) -> None:
    tiles = choose_tiles(arch, GQA)
    assert fitted(arch, tiles, GQA, UNITS, 16) == tiles


@pytest.mark.parametrize(("steps", "stages"), [(0, 3), (2, 3), (3, 5), (16, 5), (17, 7)])
def test_a_pipeline_is_no_deeper_than_its_program(steps: int, stages: int) -> None:
    """And only its depth changes: no bit of a result depends on it."""
    tiles = choose_tiles("sm_90", GQA)
    short = shortened(tiles, steps)
    assert short.stages == stages
    assert (short.block_h, short.block_n, short.warps) == (
        tiles.block_h, tiles.block_n, tiles.warps,
    )  # fmt: skip
