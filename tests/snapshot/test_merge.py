"""Goldens in real git: branches that merge, a conflict that is found, blobs that show numbers."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from snapshot.commands.init import ATTRIBUTES, init
from tests.snapshot.project import PREFIX, ROOT, SUITE, Project, reworded

SLUG = PREFIX + "bfloat16-bs3"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project.create(tmp_path / "p", ("bfloat16-bs3",))
    (project.store.root / ".gitattributes").write_text(ATTRIBUTES, "utf-8")
    project.commit("attributes")
    return project


def test_init_writes_attributes_that_the_store_accepts(tmp_path: Path) -> None:
    written = init(tmp_path)
    assert tmp_path / "goldens" / ".gitattributes" in written
    assert (ROOT / "goldens" / ".gitattributes").read_text("utf-8") == ATTRIBUTES


def test_branches_that_add_different_cases_merge_cleanly(project: Project) -> None:
    one, other = project.golden("bfloat16-bs3", "base/"), project.golden("bfloat16-bs3", "haiku/")
    for golden in (one, other):
        project.store.path(SUITE, SLUG, "reference", golden.case).unlink()
    project.commit("without two")
    for branch, golden in (("one", one), ("other", other)):
        project.git("checkout", "-q", "-b", branch, "main")
        project.store.write(golden)
        project.commit(branch)
    merged = project.git("merge", "--no-edit", "one")
    assert "CONFLICT" not in merged
    assert project.run("check").exit_code == 0
    assert len(project.goldens("bfloat16-bs3", "")) == 24


def test_a_real_conflict_is_found_and_named(project: Project) -> None:
    golden = project.golden("bfloat16-bs3", "pirate/")
    for branch, text in (("one", " this"), ("other", " that")):
        project.git("checkout", "-q", "-b", branch, "main")
        project.store.write(reworded(golden, text))
        project.commit(branch)
    assert "CONFLICT" in project.git("merge", "one", check=False)
    path = project.store.path(SUITE, SLUG, "reference", golden.case)
    lines = path.read_text("utf-8").splitlines()
    marker = next(i for i, line in enumerate(lines, 1) if line.startswith("<<<<<<<"))
    done = project.run("check")
    assert done.exit_code == 1
    assert f"{path.name}:{marker}" in done.output and "conflict markers" in done.output
    done = project.run("diff")
    assert done.exit_code == 1 and f"{path.name}:{marker}" in done.output


def test_a_merge_of_two_changes_of_one_golden_never_passes_unseen(project: Project) -> None:
    """Both sides change another part of the file; the digest's line conflicts all the same."""
    golden = project.golden("bfloat16-bs3", "pirate/")
    project.git("checkout", "-q", "-b", "one", "main")
    project.store.write(reworded(golden, golden.observation.output.text))
    project.commit("numbers")
    project.git("checkout", "-q", "-b", "other", "main")
    output = dataclasses.replace(golden.observation.output, text=" only words")
    observation = dataclasses.replace(golden.observation, output=output)
    project.store.write(dataclasses.replace(golden, observation=observation))
    project.commit("words")
    assert "CONFLICT" in project.git("merge", "one", check=False)


def test_a_checkout_with_crlf_everywhere_reads(project: Project) -> None:
    """C26 a: and with the attributes, git never makes such a checkout of a golden."""
    project.git("config", "core.autocrlf", "true")
    project.git("rm", "-rq", "--cached", ".")
    project.git("reset", "-q", "--hard")
    assert b"\r" in (project.root / "goldens.toml").read_bytes()
    golden = project.golden("bfloat16-bs3", "pirate/")
    path = project.store.path(SUITE, SLUG, "reference", golden.case)
    assert b"\r" not in path.read_bytes()
    assert project.run("check").exit_code == 0
    assert project.git("status", "--porcelain") == ""


def test_git_diff_shows_a_blob_s_numbers(project: Project) -> None:
    command = f"PYTHONPATH='{ROOT}' '{sys.executable}' -m snapshot.cli textconv"
    project.git("config", "diff.goldens.textconv", command)
    project.store.write(reworded(project.golden("bfloat16-bs3", "pirate/")))
    project.git("add", "-A")
    shown = project.git("diff", "--cached", "--", "goldens/blobs")
    assert "+float32 [24]" in shown and "+min " in shown


@pytest.mark.parametrize("content", [b"", b"not a blob", b"\x50\x2a\x4d\x18\xff\xff\xff\xff"])
def test_textconv_of_something_else_is_an_error_without_a_traceback(
    project: Project, content: bytes
) -> None:
    path = project.root / "x.zst"
    path.write_bytes(content)
    done = project.run("textconv", str(path))
    assert done.exit_code == 1 and "a blob is damaged" in done.output
    assert project.run("textconv", str(path) + "x").exit_code == 2
