"""One array as the bytes of one file, bit for bit.

A file is a zstd skippable frame that holds a small JSON header, followed by the payload:

    0x184D2A50 (little-endian), length of the header (uint32, little-endian), header, payload

The header tells dtype, shape, encoding of the payload and the payload's sha256, so every byte
of the file is covered by a check: the frame's by comparison, the header's by being canonical
and by the digest, the payload's by its own sha256 (a zstd frame has bits nobody reads).
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import zstandard

from snapshot.errors import DamagedGolden, StoreError
from snapshot.model import Array, Json
from snapshot.store.canonical import restore_hint

MAX_BYTES = 256 * 1024 * 1024
"""No array, and no blob file, is larger."""

MAX_DIMENSIONS = 32
MAX_RATIO = 1024
"""No payload expands more; an array that compresses better is stored raw."""

_MAGIC = 0x184D2A50
_FRAME = struct.Struct("<II")
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_MAX_HEADER = 1024
_RAW = "raw"
_SHUFFLE_ZSTD = "shuffle+zstd"
_ENCODINGS = (_RAW, _SHUFFLE_ZSTD)

# fmt: off
_NUMPY = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)
# Which of these exist depends on the release of ml_dtypes.
_ML_DTYPES = (
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn",
    "float6_e3m2fn", "float4_e2m1fn", "int1", "int2", "int4", "uint1", "uint2", "uint4",
)
# fmt: on


@cache
def dtypes() -> dict[str, np.dtype[Any]]:
    """Every dtype that can be stored, by name: numpy's numbers and those of ml_dtypes."""
    found = {name: np.dtype(name) for name in _NUMPY}
    found |= {n: np.dtype(getattr(ml_dtypes, n)) for n in _ML_DTYPES if hasattr(ml_dtypes, n)}
    return found


def digest(array: Array) -> str:
    """64 hex digits: sha256 over dtype, shape and the little-endian C-order bytes.

    Two arrays have one digest exactly if dtype, shape and every bit are equal.

    Raises:
        StoreError: see `encode`.
    """
    return _digest(array.dtype.name, array.shape, _content(array))


def encode(array: Array) -> bytes:
    """The bytes of the blob file that holds `array`, whatever its strides and byte order.

    Raises:
        StoreError: the dtype is none of `dtypes`, or the array is larger than `MAX_BYTES` or
            has more than `MAX_DIMENSIONS` dimensions.
    """
    content = _content(array)
    encoding, payload = _RAW, content
    packed = zstandard.ZstdCompressor(level=1, write_checksum=True).compress(
        _shuffle(content, array.dtype.itemsize)
    )
    if len(packed) < len(content) <= len(packed) * MAX_RATIO:
        encoding, payload = _SHUFFLE_ZSTD, packed
    header = _header(array.dtype.name, encoding, hashlib.sha256(payload).hexdigest(), array.shape)
    return b"".join((_FRAME.pack(_MAGIC, len(header)), header, payload))


def decode(data: bytes, expected: str | None, where: str) -> Array:
    """The array in the bytes of a blob file; it is read-only.

    Args:
        data: the file's bytes.
        expected: its digest, which is its name; None where the name is another's (git's
            textconv).
        where: its path, for messages.

    Raises:
        DamagedGolden: any byte is not what was written. Nothing is decompressed before the size
            it declares was found to be that of dtype and shape, and that to be within limits.
    """
    dtype, shape, encoding, payload = _open(data, where)
    size = math.prod(shape) * dtype.itemsize
    if encoding == _RAW:
        content = payload
    else:
        content = _unshuffle(_decompress(payload, size, where), dtype.itemsize)
    if len(content) != size:
        raise _damaged("its payload has another size", where, f"{size} bytes", len(content))
    actual = _digest(dtype.name, shape, content)
    if expected is not None and actual != expected:
        raise _damaged("its content is not what its name says", where, expected, actual)
    return np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)


# ----------------------------------------------------------------------- content


def _content(array: Array) -> bytes:
    if dtypes().get(array.dtype.name) != array.dtype.newbyteorder("="):
        raise StoreError(
            "an array of this dtype cannot be stored",
            expected=", ".join(dtypes()),
            got=str(array.dtype),
        )
    largest = max(array.nbytes, *array.shape, 0)
    if largest > MAX_BYTES or array.ndim > MAX_DIMENSIONS:
        raise StoreError(
            "an array is too large to be stored",
            expected=f"at most {MAX_BYTES} bytes and {MAX_DIMENSIONS} dimensions",
            got=f"{array.nbytes} bytes, shape {array.shape}",
        )
    # tobytes, not ascontiguousarray: that would make a 0-d array one of one dimension.
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _digest(dtype: str, shape: tuple[int, ...], content: bytes) -> str:
    sizes = ",".join(map(str, shape))
    sha256 = hashlib.sha256(f"{dtype} [{sizes}]\n".encode("ascii"))
    sha256.update(content)
    return sha256.hexdigest()


def _shuffle(content: bytes, itemsize: int) -> bytes:
    """All first bytes, then all second bytes...: exponents compress, mantissas do not."""
    return np.frombuffer(content, np.uint8).reshape(-1, itemsize).T.tobytes()


def _unshuffle(content: bytes, itemsize: int) -> bytes:
    return np.frombuffer(content, np.uint8).reshape(itemsize, -1).T.tobytes()


def _decompress(payload: bytes, size: int, where: str) -> bytes:
    try:
        frame = zstandard.get_frame_parameters(payload)
        # A frame that declares its size makes zstandard ignore max_output_size: compare first.
        if frame.content_size != size:
            raise _damaged("its frame declares another size", where, size, frame.content_size)
        if size > len(payload) * MAX_RATIO:
            raise _damaged("it expands too much", where, f"{MAX_RATIO}-fold at most", size)
        if not frame.has_checksum:
            raise _damaged("its frame has no checksum", where, "a checksum", "none")
        decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_BYTES)
        return decompressor.decompress(payload, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise _damaged("it does not decompress", where, "a zstd frame", error) from None


# ------------------------------------------------------------------------ header


def _header(dtype: str, encoding: str, payload: str, shape: tuple[int, ...]) -> bytes:
    fields = {"dtype": dtype, "encoding": encoding, "sha256": payload, "shape": list(shape)}
    return _ENCODER.encode(fields).encode("ascii")


def _open(data: bytes, where: str) -> tuple[np.dtype[Any], tuple[int, ...], str, bytes]:
    magic, length = _FRAME.unpack_from(data) if len(data) >= _FRAME.size else (0, 0)
    if magic != _MAGIC:
        raise _damaged("it does not begin with a skippable frame", where, hex(_MAGIC), hex(magic))
    end = _FRAME.size + length
    if length > min(_MAX_HEADER, len(data) - _FRAME.size):
        raise _damaged("its header has an impossible length", where, f"<= {_MAX_HEADER}", length)
    header, payload = data[_FRAME.size : end], data[end:]
    try:
        fields: Json = json.loads(header.decode("ascii"))
        name, shape, encoding = fields["dtype"], tuple(fields["shape"]), fields["encoding"]
        if header != _header(name, encoding, fields["sha256"], shape):
            raise ValueError("not canonical")
        if type(name) is not str or not all(
            type(size) is int and 0 <= size <= MAX_BYTES for size in shape
        ):
            raise ValueError(f"dtype {name!r}, shape {shape}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged("its header cannot be read", where, "a canonical header", error) from None
    dtype = dtypes().get(name)
    if dtype is None or encoding not in _ENCODINGS:
        raise _damaged(
            "its dtype or encoding is unknown",
            where,
            f"{', '.join(dtypes())}; {', '.join(_ENCODINGS)}",
            f"{name}; {encoding}",
        )
    if len(shape) > MAX_DIMENSIONS or math.prod(shape) * dtype.itemsize > MAX_BYTES:
        raise _damaged("its array is too large", where, f"at most {MAX_BYTES} bytes", shape)
    actual = hashlib.sha256(payload).hexdigest()
    if actual != fields["sha256"]:
        raise _damaged("its payload is damaged", where, f"sha256 {fields['sha256']}", actual)
    return dtype, shape, encoding, payload


def _damaged(what: str, where: str, expected: object, got: object) -> DamagedGolden:
    return DamagedGolden(
        f"a blob is damaged: {what}",
        where=where,
        expected=str(expected),
        got=str(got),
        hint=restore_hint(where),
    )
