"""Any byte that changes in any file of a store is noticed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from snapshot.errors import StoreError
from snapshot.model import Golden
from snapshot.store import Store

FLIPS = [lambda byte, mask=1 << bit: byte ^ mask for bit in range(8)]
VALUES = [lambda byte, value=value: value for value in b' \r\n\t"0}\x00\xff']


@pytest.mark.parametrize("name", ["fingerprint.json", "why-1a2b3c4d.json"])
def test_every_flipped_byte_of_a_json_file_is_noticed(
    filled: Store, make_golden: Callable[..., Golden], name: str
) -> None:
    path = next(filled.root.rglob(name))
    slug = make_golden().slug

    def read() -> object:
        if name == "fingerprint.json":
            return filled.read_fingerprint("multi-lora", slug)
        return filled.read("multi-lora", slug, "reference", "base/why-1a2b3c4d")

    read()
    data = path.read_bytes()
    with open(path, "r+b", buffering=0) as file:
        for position, byte in enumerate(data):
            for changed in {change(byte) for change in FLIPS + VALUES} - {byte}:
                file.seek(position)
                file.write(bytes([changed]))
                with pytest.raises(StoreError) as error:
                    read()
                assert str(path) in str(error.value.where)
            file.seek(position)
            file.write(bytes([byte]))
    read()


@pytest.mark.parametrize("suffix", [".json", ".zst"])
def test_check_names_the_file_wherever_it_was_cut_or_extended(filled: Store, suffix: str) -> None:
    for path in filled.root.rglob(f"*{suffix}"):
        data = path.read_bytes()
        # A final newline is the one byte that may be absent.
        for end in {0, 1, len(data) // 3, len(data) // 2, len(data) - 2}:
            path.write_bytes(data[:end])
            assert str(path) in str([problem.where for problem in filled.check()])
        for extra in (b"\0", b"\n", b" ", data):
            path.write_bytes(data + extra)
            assert str(path) in str([problem.where for problem in filled.check()])
        path.write_bytes(data)
    assert filled.check() == []
