from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from snapshot.errors import DamagedGolden, MissingGolden, NewerSchema, StoreError
from snapshot.model import Golden, RecordedFingerprint
from snapshot.store import Change, LazyArrays, Store, blob, canonical

MakeGolden = Callable[..., Golden]
Tree = Callable[[Path], dict[str, tuple[int, bytes]]]


def _read(store: Store, golden: Golden) -> Golden:
    return store.read(golden.suite, golden.slug, golden.subject, golden.case)


def _file(store: Store, golden: Golden) -> Path:
    return store.path(golden.suite, golden.slug, golden.subject, golden.case)


def _rewrite(path: Path, **changes: object) -> None:
    """Change fields of a file and sign it anew."""
    record = canonical.loads(path.read_bytes(), "x") | changes
    path.write_bytes(canonical.dumps(canonical.sign(record)))


def test_a_golden_comes_back_with_every_bit(store: Store, make_golden: MakeGolden) -> None:
    """C28: the store's folder has a space and Chinese in its name."""
    golden = make_golden()
    assert store.write(golden) is Change.CREATED
    back = _read(store, golden)
    arrays = dict(back.observation.arrays)
    for name, array in golden.observation.arrays.items():
        assert blob.digest(arrays[name]) == blob.digest(array)
    observation = dataclasses.replace(back.observation, arrays=golden.observation.arrays)
    assert dataclasses.replace(back, observation=observation) == golden


def test_an_environment_comes_back_as_it_was(store: Store, recorded: RecordedFingerprint) -> None:
    assert store.write_fingerprint(recorded) is Change.CREATED
    assert store.read_fingerprint(recorded.suite, recorded.fingerprint.slug) == recorded
    other = dataclasses.replace(recorded, calibration={})
    assert store.write_fingerprint(other) is Change.UPDATED
    assert store.read_fingerprint(recorded.suite, recorded.fingerprint.slug) == other


def test_the_layout_is_that_of_the_documentation(filled: Store, make_golden: MakeGolden) -> None:
    slug = "rocm10.0-gfx942-torch2.11-float16-bs3"
    names = [str(p.relative_to(filled.root)) for p in filled.root.rglob("*") if p.is_file()]
    digest = blob.digest(make_golden().observation.arrays["logprobs"])
    assert f"blobs/{digest[:2]}/{digest}.zst" in names
    assert sorted(name for name in names if not name.startswith("blobs/")) == [
        f"multi-lora/{slug}/fingerprint.json",
        f"multi-lora/{slug}/reference/base/why-1a2b3c4d.json",
        f"multi-lora/{slug}/reference/wizard/tell-me-about-alpacas-a098e306.json",
    ]


def test_what_is_there_can_be_listed(filled: Store, make_golden: MakeGolden) -> None:
    golden = make_golden()
    assert filled.fingerprints("multi-lora") == [golden.slug]
    assert filled.subjects("multi-lora", golden.slug) == ["reference"]
    assert filled.cases("multi-lora", golden.slug, "reference") == [
        "base/why-1a2b3c4d",
        "wizard/tell-me-about-alpacas-a098e306",
    ]


def test_a_root_that_does_not_exist_reads_as_empty(store: Store, make_golden: MakeGolden) -> None:
    assert store.fingerprints("s") == store.subjects("s", "f") == store.cases("s", "f", "r") == []
    assert store.check() == [] and store.unreferenced_blobs() == []
    with pytest.raises(MissingGolden, match="no fingerprints at all"):
        _read(store, make_golden())
    with pytest.raises(MissingGolden):
        store.read_fingerprint("s", "f")
    assert not store.root.exists()


def test_a_missing_golden_says_what_exists_and_touches_nothing(
    filled: Store, make_golden: MakeGolden, tree: Tree
) -> None:
    """C30"""
    before, golden = tree(filled.root), make_golden()
    with pytest.raises(MissingGolden, match=r"cases recorded: base/why.*, wizard/tell"):
        filled.read("multi-lora", golden.slug, "reference", "base/other-1a2b3c4d")
    with pytest.raises(MissingGolden, match="subjects recorded: reference") as error:
        filled.read("multi-lora", golden.slug, "vllm", golden.case)
    assert f"goldens record {golden.case}" in str(error.value)
    with pytest.raises(MissingGolden, match=f"fingerprints recorded: {golden.slug}"):
        filled.read("multi-lora", "cpu-x", "reference", golden.case)
    assert tree(filled.root) == before


def test_an_interrupted_recording_is_no_recorded_environment(
    store: Store, make_golden: MakeGolden, recorded: RecordedFingerprint
) -> None:
    store.write(make_golden())
    assert store.fingerprints("multi-lora") == []
    assert len(store.check()) == 1
    assert store.write_fingerprint(recorded) is Change.CREATED
    assert store.fingerprints("multi-lora") == [make_golden().slug]


def test_a_second_write_changes_no_byte_and_no_time(
    filled: Store, make_golden: MakeGolden, recorded: RecordedFingerprint, tree: Tree
) -> None:
    before = tree(filled.root)
    assert filled.write(make_golden()) is Change.UNCHANGED
    other = dataclasses.replace(make_golden(), recorded_by={"goldens": "9.9"})
    assert filled.write(other) is Change.UNCHANGED
    assert filled.write_fingerprint(recorded) is Change.UNCHANGED
    assert tree(filled.root) == before


def test_a_crlf_checkout_is_unchanged_too(
    filled: Store, make_golden: MakeGolden, tree: Tree
) -> None:
    """C26 (a)"""
    for path in filled.root.rglob("*.json"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    before = tree(filled.root)
    assert _read(filled, make_golden()).observation.output == make_golden().observation.output
    assert filled.write(make_golden()) is Change.UNCHANGED
    assert filled.check() == []
    assert tree(filled.root) == before


@pytest.mark.parametrize(("one", "other"), [("a\r\nb", "a\nb"), ("a\rb", "a\nb"), ("a", "a\n")])
def test_line_ends_in_a_text_are_a_real_difference(
    store: Store, make_golden: MakeGolden, one: str, other: str
) -> None:
    """C26 (b) and (c)"""
    store.write(make_golden(text=one))
    assert _read(store, make_golden()).observation.output.text == one
    assert store.write(make_golden(text=other)) is Change.UPDATED
    assert _read(store, make_golden()).observation.output.text == other


def test_a_changed_array_is_an_update_and_the_old_blob_stays(
    filled: Store, make_golden: MakeGolden
) -> None:
    old = make_golden()
    moved = np.nextafter(old.observation.arrays["logprobs"], np.float32(1))
    assert filled.write(make_golden(arrays={"logprobs": moved})) is Change.UPDATED
    digest = blob.digest(old.observation.arrays["logprobs"])
    assert [path.name for path in filled.unreferenced_blobs()] == [f"{digest}.zst"]
    assert filled.check() == []


def test_texts_are_read_without_reading_a_blob(filled: Store, make_golden: MakeGolden) -> None:
    for path in filled.root.rglob("*.zst"):
        path.unlink()
    back = _read(filled, make_golden())
    arrays = back.observation.arrays
    assert isinstance(arrays, LazyArrays)
    assert list(arrays) == ["logprobs"] and "logprobs" in arrays and "other" not in arrays
    assert arrays.digests == {"logprobs": blob.digest(make_golden().observation.arrays["logprobs"])}
    with pytest.raises(DamagedGolden, match="missing") as error:
        arrays["logprobs"]
    assert str(_file(filled, make_golden())) in str(error.value)
    with pytest.raises(KeyError):
        arrays["other"]


def test_writing_again_restores_a_missing_blob(filled: Store, make_golden: MakeGolden) -> None:
    digest = blob.digest(make_golden().observation.arrays["logprobs"])
    path = filled.root / "blobs" / digest[:2] / f"{digest}.zst"
    path.unlink()
    assert len(filled.check()) == 1
    assert filled.write(make_golden()) is Change.UPDATED
    assert filled.check() == []


def test_a_damaged_file_is_never_overwritten(
    filled: Store, make_golden: MakeGolden, recorded: RecordedFingerprint, tree: Tree
) -> None:
    for path in filled.root.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-9] + b"?" + path.read_bytes()[-8:])
    before = tree(filled.root)
    for text in ("the same", make_golden().observation.output.text):
        with pytest.raises(DamagedGolden):
            filled.write(make_golden(text=text))
    with pytest.raises(DamagedGolden):
        filled.write_fingerprint(recorded)
    assert tree(filled.root) == before


def test_a_damaged_blob_is_never_overwritten(
    filled: Store, make_golden: MakeGolden, tree: Tree
) -> None:
    for path in filled.root.rglob("*.zst"):
        path.write_bytes(b"")
    before = tree(filled.root)
    with pytest.raises(DamagedGolden):
        filled.write(make_golden(text="another text"))
    assert tree(filled.root) == before


def test_a_newer_schema_is_refused_and_never_overwritten(
    filled: Store, make_golden: MakeGolden, recorded: RecordedFingerprint, tree: Tree
) -> None:
    golden = make_golden()
    _rewrite(_file(filled, golden), schema=2, recorded_by={"goldens": "0.9.0"}, more=[])
    slug = golden.slug
    _rewrite(filled.root / "multi-lora" / slug / "fingerprint.json", schema=2)
    before = tree(filled.root)
    with pytest.raises(NewerSchema, match=r"goldens>=0\.9\.0"):
        _read(filled, golden)
    with pytest.raises(NewerSchema):
        filled.write(golden)
    with pytest.raises(NewerSchema):
        filled.read_fingerprint("multi-lora", slug)
    with pytest.raises(NewerSchema):
        filled.write_fingerprint(recorded)
    assert tree(filled.root) == before
    assert [type(problem) for problem in filled.check()] == [NewerSchema, NewerSchema]


@pytest.mark.parametrize("field", ["suite", "fingerprint", "subject", "case"])
def test_a_file_that_belongs_to_another_place_is_damaged(
    filled: Store, make_golden: MakeGolden, field: str
) -> None:
    _rewrite(_file(filled, make_golden()), **{field: "elsewhere"})
    with pytest.raises(DamagedGolden, match="another place"):
        _read(filled, make_golden())


def test_a_fingerprint_in_another_folder_is_damaged(
    filled: Store, recorded: RecordedFingerprint
) -> None:
    (filled.root / "multi-lora").rename(filled.root / "other")
    with pytest.raises(DamagedGolden, match="another place"):
        filled.read_fingerprint("other", recorded.fingerprint.slug)


@pytest.mark.parametrize("name", ["..", "", "a/b", "con", "nul.txt", "x.", ".hidden", "å", "a b"])
def test_unsafe_names_are_refused(store: Store, make_golden: MakeGolden, name: str) -> None:
    """C28"""
    for place in (("s", "f", name, "k"), ("s", name, "r", "k"), (name, "f", "r", "k")):
        with pytest.raises(StoreError, match="not safe"):
            store.read(*place)
    if name != "a/b":
        with pytest.raises(StoreError, match="not safe"):
            store.path("s", "f", "r", f"base/{name}")
    with pytest.raises(StoreError, match="not safe"):
        store.write(dataclasses.replace(make_golden(), suite=name))
    assert not store.root.exists()


def test_a_suite_cannot_be_called_as_the_folder_of_blobs(
    store: Store, make_golden: MakeGolden
) -> None:
    with pytest.raises(StoreError, match="blobs"):
        store.write(dataclasses.replace(make_golden(), suite="blobs"))


def test_no_link_below_the_root_is_followed(filled: Store, make_golden: MakeGolden) -> None:
    path = _file(filled, make_golden())
    outside = filled.root.parent / "outside"
    os.replace(path.parent, outside)
    path.parent.symlink_to(outside)
    with pytest.raises(StoreError, match="symbolic link"):
        _read(filled, make_golden())
    with pytest.raises(StoreError, match="symbolic link"):
        filled.write(make_golden(text="new"))
    assert [p.name for p in outside.iterdir()] == [path.name]


def test_what_breaks_the_schema_is_not_written(store: Store, make_golden: MakeGolden) -> None:
    output = dataclasses.replace(make_golden().observation.output, finish_reason="eos")
    with pytest.raises(StoreError, match="finish_reason"):
        store.write(make_golden(output=output))
    with pytest.raises(StoreError, match="cannot be stored"):
        store.write(make_golden(arrays={"logprobs": np.array(["x"])}))
    assert not store.root.exists()
