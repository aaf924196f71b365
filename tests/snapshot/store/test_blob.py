from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot.errors import DamagedGolden, StoreError
from snapshot.model import Array
from snapshot.store import blob

DTYPES = sorted(blob.dtypes())


def assert_round_trip(array: Array) -> None:
    """Read-back equals the array in dtype, shape and bits."""
    digest = blob.digest(array)
    back = blob.decode(blob.encode(array), digest, "x.zst")
    assert back.dtype == array.dtype.newbyteorder("=") and back.dtype.isnative
    assert back.shape == array.shape
    assert back.tobytes() == array.astype(back.dtype).tobytes()
    assert blob.digest(back) == digest


def _file(content: bytes, payload: bytes | None = None, **header: object) -> tuple[bytes, str]:
    """A blob file and its digest, well signed whatever it holds."""
    payload = content if payload is None else payload
    fields = {
        "dtype": "uint8",
        "encoding": "raw",
        "sha256": hashlib.sha256(payload).hexdigest(),
        "shape": [len(content)],
    } | header
    text = json.dumps(fields, separators=(",", ":")).encode()
    sizes = ",".join(map(str, fields["shape"]))  # type: ignore[call-overload]
    digest = hashlib.sha256(f"{fields['dtype']} [{sizes}]\n".encode() + content).hexdigest()
    return struct.pack("<II", 0x184D2A50, len(text)) + text + payload, digest


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_round_trips_every_bit_pattern(name: str) -> None:
    dtype = blob.dtypes()[name]
    for size in (7, 64, 4096):
        bits = np.random.default_rng(size).integers(0, 256, size * dtype.itemsize, dtype=np.uint8)
        assert_round_trip(bits.view(dtype))
        assert_round_trip(np.repeat(bits[: dtype.itemsize], size).view(dtype))


def test_bfloat16_and_every_float8_are_among_the_dtypes() -> None:
    assert {"bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "int4"} <= set(DTYPES)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e5m2", "complex64"])
def test_nan_payloads_and_negative_zero_keep_their_bits(name: str) -> None:
    dtype = blob.dtypes()[name]
    patterns = {
        "float32": struct.pack("<4I", 0x7FC00001, 0x7F800001, 0xFFC12345, 0x80000000),
        "bfloat16": struct.pack("<4H", 0x7FC1, 0x7F81, 0xFFC5, 0x8000),
        "float8_e5m2": bytes([0x7D, 0x7E, 0xFF, 0x80]),
        "complex64": struct.pack("<4I", 0x7FC00001, 0x80000000, 0xFF800001, 0x00000001),
    }
    array = np.frombuffer(patterns[name], dtype)
    back = blob.decode(blob.encode(array), blob.digest(array), "x.zst")
    assert back.tobytes() == patterns[name]


@pytest.mark.parametrize("name", ["int16", "float32", "float64", "complex128", "uint64"])
def test_big_endian_input_is_the_same_array(name: str) -> None:
    array = np.frombuffer(np.random.default_rng(0).bytes(96), np.dtype(name).newbyteorder("<"))
    swapped = array.astype(array.dtype.newbyteorder(">"))
    assert blob.digest(swapped) == blob.digest(array)
    assert blob.encode(swapped) == blob.encode(array)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "bool", "float8_e4m3fn"])
@pytest.mark.parametrize(
    "view",
    [
        pytest.param(lambda a: np.asfortranarray(a), id="column-major"),
        pytest.param(lambda a: a.T, id="transposed"),
        pytest.param(lambda a: a[:, ::2], id="every second column"),
        pytest.param(lambda a: a[::-1, ::-1], id="negative strides"),
        pytest.param(lambda a: np.broadcast_to(a[0], (4, *a[0].shape)), id="broadcast"),
        pytest.param(lambda a: a[3, 5], id="scalar"),
        pytest.param(lambda a: a[3, 5].reshape(()), id="0-d"),
        pytest.param(lambda a: a[:0, 0], id="(0,)"),
        pytest.param(lambda a: a[:0].reshape(2, 0, 64), id="(2, 0, 64)"),
        pytest.param(lambda a: a[:1, :1], id="(1, 1)"),
    ],
)
def test_any_layout_round_trips_value_shape_and_dtype(
    name: str, view: Callable[[Array], Array]
) -> None:
    """C33"""
    values = np.random.default_rng(1).integers(0, 2, (1000, 32))
    assert_round_trip(np.asarray(view(values.astype(blob.dtypes()[name]))))


def test_shapes_that_hold_the_same_bytes_have_digests_of_their_own() -> None:
    """C33: () is not (1,), and (2, 0) is not (0, 2)."""
    shapes = [(), (1,), (1, 1), (0,), (2, 0), (0, 2), (2, 0, 64)]
    assert len({blob.digest(np.zeros(shape, np.float32)) for shape in shapes}) == len(shapes)
    assert blob.digest(np.zeros(2, np.float32)) != blob.digest(np.zeros(2, np.int32))
    assert blob.digest(np.zeros(1)) != blob.digest(-np.zeros(1))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(DTYPES),
    st.lists(st.integers(0, 6), max_size=4),
    st.permutations(range(4)),
    st.lists(st.sampled_from([1, -1, 2, -3]), min_size=4, max_size=4),
    st.integers(0, 2**32 - 1),
)
def test_any_strided_view_round_trips(
    name: str, shape: list[int], axes: list[int], steps: list[int], seed: int
) -> None:
    """C33"""
    dtype = blob.dtypes()[name]
    count = int(np.prod(shape, dtype=int))
    array = np.frombuffer(np.random.default_rng(seed).bytes(count * dtype.itemsize), dtype)
    view = array.reshape(shape).transpose([axis for axis in axes if axis < len(shape)])
    assert_round_trip(view[tuple(slice(None, None, step) for step in steps[: len(shape)])])


def test_an_array_that_is_read_cannot_be_changed() -> None:
    array = np.ones(3, np.float32)
    back = blob.decode(blob.encode(array), blob.digest(array), "x.zst")
    with pytest.raises(ValueError, match="read-only"):
        back[0] = 2


@pytest.mark.parametrize(
    "array",
    [
        np.array([None]),
        np.array(["text"]),
        np.zeros(2, "datetime64[s]"),
        np.zeros(2, [("a", "f4")]),
        np.zeros((1,) * 33, np.float32),
        np.broadcast_to(np.float64(0), (2**30,)),
        np.zeros((0, 2**40), np.uint8),
    ],
    ids=["object", "text", "date", "structure", "33 dimensions", "8 GiB", "huge and empty"],
)
def test_what_cannot_be_read_back_is_not_stored(array: Array) -> None:
    with pytest.raises(StoreError, match=r"cannot be stored|too large"):
        blob.encode(array)


@pytest.mark.parametrize(
    "array",
    [np.arange(9, dtype=np.float32), np.zeros((64, 3), np.float32), np.zeros(0, np.int8)],
    ids=["raw", "compressed", "empty"],
)
def test_every_byte_flip_truncation_and_extension_is_detected(array: Array) -> None:
    data, digest = blob.encode(array), blob.digest(array)
    for position in range(len(data)):
        for flip in range(1, 256):
            changed = bytearray(data)
            changed[position] ^= flip
            with pytest.raises(DamagedGolden):
                blob.decode(bytes(changed), digest, "x.zst")
        with pytest.raises(DamagedGolden):
            blob.decode(data[:position], digest, "x.zst")
    for extra in (b"\0", b"\n", data, zstandard.compress(b"x")):
        with pytest.raises(DamagedGolden):
            blob.decode(data + extra, digest, "x.zst")


def test_arrays_are_compressed_only_where_that_helps() -> None:
    zeros = blob.encode(np.zeros(4096, np.float32))
    assert b"shuffle+zstd" in zeros and len(zeros) < 300
    assert b'"raw"' in blob.encode(np.frombuffer(np.random.default_rng(0).bytes(4096), np.uint8))
    assert b'"raw"' in blob.encode(np.zeros(2**22, np.uint8)), "over the ratio limit"


def test_the_compressed_payload_is_a_plain_zstd_stream() -> None:
    array = np.arange(4096, dtype=np.uint8).astype(np.int32)
    stream = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
    planes = np.frombuffer(stream.decompress(blob.encode(array)), np.uint8).reshape(4, -1)
    assert planes.T.tobytes() == array.tobytes()


@pytest.mark.parametrize("declared", [True, False])
def test_a_decompression_bomb_is_refused_before_it_expands(declared: bool) -> None:
    size = 64 * 2**20
    packed = zstandard.ZstdCompressor(write_checksum=True, write_content_size=declared).compress(
        bytes(size)
    )
    for shape in ([16], [size]):
        data, digest = _file(b"", packed, encoding="shuffle+zstd", shape=shape)
        with pytest.raises(DamagedGolden, match=r"size|expands"):
            blob.decode(data, digest, "x.zst")


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (zstandard.ZstdCompressor(write_checksum=False).compress(bytes(64)), "checksum"),
        (zstandard.ZstdCompressor(write_checksum=True).compress(bytes(64))[:-5], "decompress"),
        (zstandard.ZstdCompressor(write_checksum=True).compress(bytes(64)) + b"x", "decompress"),
        (zstandard.ZstdCompressor(write_checksum=True).compress(bytes(63)), "another size"),
        (b"no frame at all", "decompress"),
        (b"", "decompress"),
    ],
    ids=["no checksum", "truncated", "extra data", "short", "no frame", "empty"],
)
def test_a_bad_frame_is_refused_although_its_sha256_is_right(payload: bytes, says: str) -> None:
    data, digest = _file(bytes(64), payload, encoding="shuffle+zstd")
    with pytest.raises(DamagedGolden, match=says):
        blob.decode(data, digest, "x.zst")


@pytest.mark.parametrize(
    "header",
    [
        {"dtype": "object"},
        {"dtype": "float32"},
        {"dtype": ["uint8"]},
        {"encoding": "pickle"},
        {"shape": [-3]},
        {"shape": [3.0]},
        {"shape": [True, 3]},
        {"shape": [2**40, 2**40]},
        {"shape": [3] + [1] * 32},
        {"shape": [4]},
        {"more": 1},
        {"sha256": "0" * 64},
    ],
    ids=str,
)
def test_a_header_that_lies_is_refused(header: dict[str, object]) -> None:
    good, digest = _file(b"abc")
    assert blob.decode(good, digest, "x.zst").tobytes() == b"abc"
    data, digest = _file(b"abc", **header)
    with pytest.raises(DamagedGolden):
        blob.decode(data, digest, "x.zst")
