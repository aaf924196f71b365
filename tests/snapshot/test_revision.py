"""Reading goldens and blobs of a revision straight from git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from snapshot.errors import DamagedGolden, MissingGolden, UsageError
from snapshot.repository import Repository
from snapshot.store import canonical
from tests.snapshot.project import PREFIX, SUITE, Project

SLUG = PREFIX + "bfloat16-bs3"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.create(tmp_path / "p", ("bfloat16-bs3",))


def test_a_revision_s_store_reads_what_was_committed(project: Project, tmp_path: Path) -> None:
    there = project.goldens("bfloat16-bs3", "pirate/")
    project.git("rm", "-rq", "goldens/blobs", f"goldens/{SUITE}")
    with Repository(project.root / "goldens.toml") as repository:
        tree = repository.revision("HEAD", tmp_path / "into")
        for golden in there:
            read = tree.store.read(SUITE, SLUG, "reference", golden.case)
            assert read.observation.output == golden.observation.output
            for name, array in read.observation.arrays.items():
                assert array.size and name in read.observation.arrays
        with pytest.raises(MissingGolden):
            tree.store.read(SUITE, SLUG, "reference", "pirate/never-0123abcd")
        assert tree.store.fingerprints(SUITE) == [SLUG]
    laid = [path.name for path in (tmp_path / "into").rglob("*") if path.is_file()]
    assert sorted(laid) == ["fingerprint.json", "goldens.toml"]  # goldens are not copied


def test_a_blob_that_a_revision_lacks_is_damage(project: Project, tmp_path: Path) -> None:
    project.git("rm", "-rq", "goldens/blobs")
    project.commit("no blobs")
    case = project.store.cases(SUITE, SLUG, "reference")[0]
    with Repository(project.root / "goldens.toml") as repository:
        store = repository.revision("HEAD", tmp_path / "into").store
        arrays = store.read(SUITE, SLUG, "reference", case).observation.arrays
        with pytest.raises(DamagedGolden, match="missing"):
            arrays["logprobs"]


def test_a_file_over_the_limit_is_refused_unread_and_the_next_is_read(
    project: Project, tmp_path: Path
) -> None:
    one, other = project.goldens("bfloat16-bs3", "pirate/")[:2]
    path = project.store.path(SUITE, SLUG, "reference", one.case)
    path.write_bytes(b" " * (canonical.MAX_BYTES + 1))
    project.commit("large")
    with Repository(project.root / "goldens.toml") as repository:
        store = repository.revision("HEAD", tmp_path / "into").store
        with pytest.raises(DamagedGolden, match="too large"):
            store.read(SUITE, SLUG, "reference", one.case)
        assert store.read(SUITE, SLUG, "reference", other.case).case == other.case


def test_an_object_that_git_lacks_is_said(project: Project, tmp_path: Path) -> None:
    golden = project.goldens("bfloat16-bs3", "pirate/")[0]
    below = project.store.path(SUITE, SLUG, "reference", golden.case).relative_to(project.root)
    content = project.git("rev-parse", f"HEAD:{below.as_posix()}").strip()
    (project.root / ".git" / "objects" / content[:2] / content[2:]).unlink()
    with Repository(project.root / "goldens.toml") as repository:
        store = repository.revision("HEAD", tmp_path / "into").store
        with pytest.raises(UsageError, match="git lacks an object"):
            store.read(SUITE, SLUG, "reference", golden.case)


def test_no_process_outlives_the_repository(project: Project, tmp_path: Path) -> None:
    golden = project.goldens("bfloat16-bs3", "pirate/")[0]
    with Repository(project.root / "goldens.toml") as repository:
        store = repository.revision("HEAD", tmp_path / "into").store
        store.read(SUITE, SLUG, "reference", golden.case)
        process = repository._objects._process
        assert isinstance(process, subprocess.Popen) and process.poll() is None
    assert process.poll() is not None
