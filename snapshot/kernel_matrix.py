"""The default cases of a kernel suite: usual shapes, and a trap for each known kind of fault."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Shape = tuple[int, int, int, int, int]
"""Batch, query heads, KV heads, width of K, width of V."""

SHAPES: tuple[Shape, ...] = (
    (2, 16, 16, 64, 64),
    (2, 16, 1, 64, 64),
    (2, 128, 1, 80, 80),
    (32, 128, 2, 512, 512),
    (2, 128, 2, 512, 512),
    (2, 128, 1, 576, 512),
)
LENGTHS = (5, 100, 128, 500)

TRAPS: dict[str, tuple[str, ...]] = {
    "a sequence without keys gives NaN, or its rows are never written": (
        "B6-H8-2-D64-64-S130-float16-ragged",
        "B6-H8-2-D64-64-S130-bfloat16-nanout-ragged",
        "B6-H16-1-D80-80-S61-float32-ragged",
    ),
    "two states without keys are merged into NaN": (
        "B6-H8-2-D64-64-S130-float32-nanout-page4-ragged-window9",
        "B6-H8-2-D64-64-S130-float16-ragged-window64",
    ),
    "a tile of query heads straddles two KV heads": (
        "B2-H48-2-D64-64-S77-bfloat16",
        "B2-H40-2-D64-64-S77-float16",
        "B2-H14-2-D64-64-S77-float32",
        "B2-H6-2-D64-64-S77-bfloat16",
        "B2-H20-1-D96-80-S61-bfloat16",
    ),
    "NaN in slots that nobody owns reaches the output": (
        "B2-H128-1-D576-512-S13-float16-mla-nanpad-page4",
        "B6-H8-2-D64-64-S130-bfloat16-nanpad-page16-ragged",
        "B3-H16-2-D64-64-S90-float32-nanpad",
    ),
    "finite garbage in slots that nobody owns reaches the output": (
        "B6-H8-2-D64-64-S130-float16-garbagepad-page4-ragged",
        "B3-H8-1-D192-128-S90-bfloat16-garbagepad-mla",
    ),
    "a window one key off, or one that leaves a split empty": (
        "B3-H8-2-D64-64-S130-float16-structured-window1",
        "B3-H8-2-D64-64-S130-float32-window33",
        "B3-H8-2-D64-64-S130-bfloat16-page16-structured-window50",
    ),
    "the soft cap overflows, or comes after the mask": (
        "B3-H8-2-D64-64-S130-float32-cap5-peaked",
        "B3-H8-2-D64-64-S130-bfloat16-cap30",
        "B6-H8-2-D64-64-S130-float16-cap1-ragged-sinks-window40",
    ),
    "offsets overflow 32 bits at high slots": ("B2-H4-1-D64-64-S40-float16-faraway",),
    "the tail of a page is dropped, or pages are taken for contiguous": (
        "B3-H8-2-D64-64-S130-float16-page4-shuffled",
        "B6-H8-2-D64-64-S130-bfloat16-page5-ragged-reversed",
        "B6-H8-2-D64-64-S130-float32-page16-ragged-shuffled-structured",
    ),
    "strides are taken for contiguous": (
        "B6-H8-2-D64-64-S130-float32-interleaved-ragged-shuffled",
    ),
    "a sink is counted twice, or capped": (
        "B3-H8-2-D64-64-S200-float16-sinks",
        "B6-H8-2-D64-64-S130-bfloat16-ragged-sinks",
        "B3-H8-2-D64-64-S130-float32-peaked-sinks",
    ),
    "scales of a float8 cache are ignored": (
        "B3-H8-2-D64-64-S130-float16-e4m3",
        "B6-H8-2-D64-64-S130-bfloat16-e5m2-ragged",
        "B3-H8-2-D64-64-S130-float32-cap20-e4m3-sinks",
    ),
    "partial results are kept in low precision, or merged unweighted": (
        "B2-H16-2-D128-128-S500-float32",
        "B2-H16-2-D128-128-S500-bfloat16-peaked",
    ),
    "a gain error, which cosine similarity cannot see": (
        "B3-H8-2-D64-64-S130-float16-constant",
        "B3-H8-2-D64-64-S130-bfloat16-structured",
    ),
    "widths that are no powers of two": (
        "B2-H4-2-D96-96-S70-float16",
        "B2-H4-2-D192-128-S70-float32",
        "B2-H20-1-D288-256-S90-bfloat16-mla",
        "B2-H4-2-D17-19-S70-float32",
    ),
}
"""By kind of fault: cases that show it. Every case runs with NaN in output and scratch besides."""


def product(
    shapes: Iterable[Shape], lengths: Sequence[int], dtypes: Sequence[str], traits: Sequence[str]
) -> list[str]:
    """The keys of every shape at every length, in every dtype, with every set of traits.

    Args:
        traits: each as in a key: "" for none, "ragged-sinks".
    """
    return [
        f"B{b}-H{hq}-{hkv}-D{dk}-{dv}-S{length}-{dtype}{'-' if trait else ''}{trait}"
        for b, hq, hkv, dk, dv in shapes
        for length in lengths
        for dtype in dtypes
        for trait in traits
    ]


def default() -> list[str]:
    """The keys that a suite has which declares none."""
    traps = [key for keys in TRAPS.values() for key in keys]
    return [*product(SHAPES, LENGTHS, ("float16",), ("",)), *traps]
