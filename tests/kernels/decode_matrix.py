"""The cases of the correctness tests: every kind of fault that public kernels have shown.

Lengths stay within 512, so that the interpreter takes seconds; on a GPU `LONG` is added.
"""

from __future__ import annotations

SEED_SHAPES = (  # (batch, query heads, KV heads, dk, dv)
    (2, 16, 16, 64, 64),
    (2, 16, 1, 64, 64),
    (2, 128, 1, 80, 80),
    (4, 128, 2, 512, 512),
    (2, 128, 2, 512, 512),
    (2, 128, 1, 576, 512),
)
SEED = [
    f"B{b}-H{hq}-{hkv}-D{dk}-{dv}-S{s}-float16"
    for b, hq, hkv, dk, dv in SEED_SHAPES
    for s in (5, 100, 128, 500)
]

# Groups that are no multiple of 16, and tiles that must not straddle two KV heads.
GROUPS = [
    f"B2-H{hq}-{hkv}-D64-64-S77-{dtype}"
    for hq, hkv in (
        (1, 1), (3, 1), (6, 2), (14, 2), (15, 3), (17, 1), (20, 1), (24, 1), (40, 2), (48, 2),
        (40, 8), (64, 1), (96, 1), (100, 1), (128, 1),
    )
    for dtype in ("bfloat16", "float32")
]  # fmt: skip

WIDTHS = [
    f"B2-H4-2-D{dk}-{dv}-S70-{dtype}"
    for dk, dv in (
        (16, 16), (17, 19), (32, 48), (40, 40), (72, 72), (80, 80), (96, 96), (100, 60), (112, 112),
        (128, 128), (160, 96), (192, 128), (192, 192), (256, 256), (288, 256), (512, 512),
        (576, 512), (576, 576),
    )
    for dtype in ("float16", "float32")
]  # fmt: skip

TRAITS = [
    f"{shape}-{dtype}-{traits}"
    for shape, dtypes in (
        ("B6-H8-2-D64-64-S130", ("float16", "bfloat16", "float32")),
        ("B6-H20-1-D96-80-S61", ("bfloat16", "float32")),
    )
    for dtype in dtypes
    for traits in (
        "peaked",
        "structured",
        "constant",
        "ragged",
        "shuffled",
        "reversed",
        "page4",
        "page16-ragged-shuffled",
        "page5-ragged-reversed",
        "interleaved",
        "interleaved-ragged-shuffled",
        "nanpad",
        "nanpad-page16-ragged",
        "garbagepad-page4-ragged",
        "nanout-ragged",
        "nanout-page4-ragged-window9",
        "window1",
        "window33",
        "ragged-window64",
        "page16-window50",
        "cap30",
        "cap5-peaked",
        "cap1-ragged-sinks-window40",
        "sinks",
        "ragged-sinks",
        "peaked-sinks",
        "e4m3",
        "e5m2-ragged",
        "e4m3-nanpad-page4",
        "cap20-e4m3-sinks",
    )
]

SHARED = [
    f"B3-H{hq}-1-D{dk}-{dv}-S90-{dtype}-{traits}"
    for hq, dk, dv in ((16, 576, 512), (20, 288, 256), (8, 192, 128), (8, 96, 96), (5, 80, 64))
    for dtype in ("float16", "bfloat16")
    for traits in ("mla", "mla-nanpad-ragged", "mla-page4-shuffled")
]
POISONED = ["B2-H128-1-D576-512-S13-float16-mla-nanpad-page4"]  # C15
FAR = [f"B2-H4-1-D64-64-S40-{dtype}-faraway" for dtype in ("float16", "float32")]

CASES = [*SEED, *GROUPS, *WIDTHS, *TRAITS, *SHARED, *POISONED, *FAR]

LONG = [
    f"B{b}-H{hq}-{hkv}-D{dk}-{dv}-S{s}-{dtype}{traits}"
    for b, hq, hkv, dk, dv in (
        (4, 32, 8, 128, 128), (3, 40, 8, 128, 128), (2, 48, 2, 128, 128), (2, 32, 32, 64, 64),
        (3, 128, 1, 576, 512), (2, 128, 2, 512, 512), (2, 128, 1, 80, 80), (2, 16, 2, 192, 192),
    )
    for s in (1000, 4096, 8192)
    for dtype in ("float16", "bfloat16")
    for traits in ("", "-ragged-shuffled", "-nanpad-page16-ragged", "-cap30-ragged-sinks")
]  # fmt: skip
LONG += [
    f"B3-H128-1-D576-512-S{s}-{dtype}-{traits}"
    for s in (1000, 8192)
    for dtype in ("float16", "bfloat16")
    for traits in ("mla", "mla-nanpad-page16-ragged", "mla-ragged-window3000")
]
LONG += [f"B2-H8-2-D{d}-{d}-S3000-float32" for d in (64, 128, 256)]
LONG += [f"B32-H128-2-D512-512-S{s}-float16-nanout" for s in (5, 100, 128, 500)]  # C13
