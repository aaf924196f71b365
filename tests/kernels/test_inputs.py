"""Inputs are our own definition: the same bits on every backend and library version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from grouped_decode.case import TRAITS, Case
from grouped_decode.generator import gaussian, permutation, stream_seed, words
from grouped_decode.inputs import generate

DIGESTS = {
    "B2-H4-2-D16-16-S5-float16": "bd375860304572f844e39002b4285d81c3cc55dc43a8e175fd820a34043b19b8",
    "B2-H4-2-D16-16-S5-bfloat16-page4-ragged": (
        "275487d876042ee25aa8bb48292705920d7e8e9f021667bd24189c1d23e13b72"
    ),
    "B2-H4-2-D16-16-S5-float32-e5m2-shuffled-sinks": (
        "a7c807207a73047efd9550a79a7d875c53dab8235b1423ed3d27c4fde1c1988e"
    ),
}


def test_words_are_splitmix64() -> None:
    """The published first outputs of SplitMix64 with seed 1234567."""
    first = words(np.uint64(1234567), 0, 3).tolist()
    assert first == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_gaussian_is_exact_and_normal() -> None:
    values = gaussian(stream_seed("test"), (1 << 18,))
    assert values.dtype == np.float32
    assert abs(float(values.mean())) < 0.01 and abs(float(values.std()) - 1) < 0.01
    assert float(np.abs(values).max()) < 4.9
    assert abs(float((values**4).mean()) - 2.85) < 0.05  # an Irwin-Hall sum of eight: 3 - 6/5/8
    assert np.array_equal(values[1000:1100], gaussian(stream_seed("test"), (1100,))[1000:])


def test_permutation() -> None:
    order = permutation(stream_seed("p"), 100)
    assert sorted(order.tolist()) == list(range(100)) and order.tolist() != list(range(100))


@pytest.mark.parametrize("key", DIGESTS)
def test_digest_is_pinned(key: str) -> None:
    assert generate(Case.parse(key)).digest() == DIGESTS[key]


def test_layouts_share_values(device: str) -> None:
    plain = generate(Case.parse("B2-H4-2-D16-16-S9-float16"))
    moved = generate(Case.parse("B2-H4-2-D16-16-S9-float16-interleaved-nanpad-page4-shuffled"))
    assert np.array_equal(plain.q, moved.q) and np.array_equal(plain.k, moved.k)
    tensors = moved.place(device)
    slots = torch.from_numpy(moved.slots).to(device)
    assert torch.equal(tensors.k_buffer[slots].cpu(), torch.from_numpy(plain.k))
    assert torch.equal(tensors.v_buffer[slots].cpu(), torch.from_numpy(plain.v))
    assert int(torch.isnan(tensors.k_buffer).sum()) == (moved.pool - 18) * 2 * 16
    assert plain.digest() != moved.digest()


def test_far_slots_need_64_bits(device: str) -> None:
    tensors = generate(Case.parse("B1-H4-1-D64-64-S4-float16-faraway")).place(device)
    assert int(tensors.kv_indices.min()) * tensors.k_buffer.stride(0) >= 2**31


def test_keys() -> None:
    key = "B2-H128-1-D576-512-S100-float16-mla-nanpad-page16-window7"
    case = Case.parse(key)
    assert case.key == key
    assert (case.page_size, case.window, case.shared_v, case.group) == (16, 7, True, 128)
    assert Case.parse("B7-H1-1-D16-16-S9-float32-ragged").lengths == (9, 0, 1, 4, 8, 3, 9)
    for bad in ("B2", "B2-H1-1-D16-16-S9-int8", "B2-H1-1-D16-16-S9-float16-nosuch"):
        with pytest.raises(ValueError):
            Case.parse(bad)
    with pytest.raises(ValueError, match="sorted"):
        Case.parse("B2-H1-1-D16-16-S9-float16-shuffled-nanpad")
    names = [name.removesuffix("<N>") for name in TRAITS]
    assert all(name == name.lower() and name.isalnum() for name in names)


def test_import_is_light() -> None:
    code = "import grouped_decode, sys; assert not {'torch', 'triton', 'numpy'} & set(sys.modules)"
    root = str(Path(__file__).parents[2] / "kernels")
    done = subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": root})
    assert done.returncode == 0
