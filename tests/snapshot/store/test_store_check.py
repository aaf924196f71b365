from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from snapshot.errors import StoreError
from snapshot.model import Golden
from snapshot.store import Store

MakeGolden = Callable[..., Golden]


def _blobs(store: Store) -> list[Path]:
    return sorted(store.root.rglob("*.zst"))


def test_a_sound_store_has_no_problems(filled: Store) -> None:
    for name in ("README.md", ".gitattributes", ".gitignore"):
        (filled.root / name).write_text("")
    assert filled.check() == []
    assert filled.check(["multi-lora"]) == filled.check(["absent"]) == []
    assert filled.unreferenced_blobs() == []


def test_every_damaged_file_is_reported_once_and_sorted(filled: Store) -> None:
    damaged = sorted(path for path in filled.root.rglob("*") if path.is_file())
    for path in damaged:
        path.write_bytes(path.read_bytes()[:40])
    problems = filled.check()
    assert len(damaged) == 5
    assert [problem.where.split(":")[0] for problem in problems if problem.where] == [
        str(path) for path in damaged
    ]


def test_a_missing_blob_is_reported_with_the_case_that_needs_it(filled: Store) -> None:
    gone = _blobs(filled)[0]
    gone.unlink()
    for suites in (None, ["multi-lora"]):
        (problem,) = filled.check(suites)
        assert problem.where == str(gone)
        assert ".json" in str(problem.expected)


def test_a_missing_fingerprint_is_reported(filled: Store) -> None:
    next(filled.root.rglob("fingerprint.json")).unlink()
    (problem,) = filled.check()
    assert "never recorded" in problem.what


def test_a_blob_that_nobody_refers_to_is_read_as_well(
    filled: Store, make_golden: MakeGolden
) -> None:
    filled.write(make_golden(arrays={}))
    (spare,) = filled.unreferenced_blobs()
    assert filled.check() == []
    spare.write_bytes(b"damaged")
    assert [problem.where for problem in filled.check()] == [str(spare)]
    assert filled.check(["multi-lora"]) == []


def test_nothing_counts_as_unreferenced_while_a_golden_cannot_be_read(
    filled: Store, make_golden: MakeGolden
) -> None:
    filled.write(make_golden(arrays={}))
    next(filled.root.rglob("why*.json")).write_bytes(b"")
    with pytest.raises(StoreError):
        filled.unreferenced_blobs()


@pytest.mark.parametrize(
    "place",
    [
        "notes.txt",
        "multi-lora/notes.txt",
        "multi-lora/{slug}/notes.json",
        "multi-lora/{slug}/reference/notes.txt",
        "multi-lora/{slug}/reference/base/notes",
        "multi-lora/{slug}/reference/base/.why.json.swp",
        "blobs/notes.txt",
        "blobs/ab/notes.zst",
        "blobs/ab/" + "cd" * 32 + ".zst",
        "blobs/ab/" + "ab" * 32,
    ],
)
def test_stray_files_are_reported(filled: Store, make_golden: MakeGolden, place: str) -> None:
    path = filled.root / place.format(slug=make_golden().slug)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    (problem,) = filled.check()
    assert problem.where == str(path)


def test_a_valid_file_under_a_wrong_name_is_reported(filled: Store) -> None:
    path = next(filled.root.rglob("why*.json"))
    for name in ("other.json", "con.json", "what why.json"):
        path = path.rename(path.with_name(name))
        (problem,) = filled.check()
        assert "another place" in problem.what or "not safe" in problem.what
    blob = _blobs(filled)[0]
    moved = filled.root / "blobs" / "ab" / ("ab" * 32 + ".zst")
    moved.parent.mkdir(exist_ok=True)
    moved.write_bytes(blob.read_bytes())
    assert str(moved) in [problem.where for problem in filled.check()]


def test_two_files_that_fold_to_one_name_are_reported(filled: Store) -> None:
    """C28"""
    path = next(filled.root.rglob("why*.json"))
    twin = path.with_name(path.name.upper().replace(".JSON", ".json"))
    if twin.exists():
        pytest.skip("this file system folds case itself")
    twin.write_bytes(path.read_bytes())
    assert "two names are one" in " ".join(problem.what for problem in filled.check())


def test_links_are_reported_and_not_followed(filled: Store) -> None:
    path = next(filled.root.rglob("why*.json"))
    target = filled.root.parent / "outside.json"
    os.replace(path, target)
    path.symlink_to(target)
    (filled.root / "loop").symlink_to(filled.root)
    what = {problem.where: problem.what for problem in filled.check()}
    assert what.keys() == {str(path), str(filled.root / "loop")}
    assert all("link" in text for text in what.values())


def test_a_write_in_progress_is_no_problem_and_an_old_one_is(filled: Store) -> None:
    path = next(filled.root.rglob("why*.json"))
    temporary = path.with_name(f".{path.name}.0123456789abcdef.tmp")
    temporary.write_bytes(b"half")
    assert filled.check() == []
    assert len(filled.cases("multi-lora", path.parents[2].name, "reference")) == 2
    old = time.time() - 7200
    os.utime(temporary, (old, old))
    assert [problem.where for problem in filled.check()] == [str(temporary)]
