"""git is run in one place: what it says, and how it fails."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from snapshot.errors import UsageError
from snapshot.git import git


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_what_it_says_and_that_it_failed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert git(tmp_path, "hash-object", "--stdin", stdin=b"x\n").strip() == (
        b"587be6b4c3f93f93c489c0111bba5596147a26cb"
    )
    with pytest.raises(UsageError, match="git cannot tell") as caught:
        git(tmp_path, "rev-parse", "--verify", "HEAD")
    assert caught.value.where == "git rev-parse --verify HEAD" and caught.value.got


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError("git"), "git is not installed"),
        (PermissionError("git"), "git cannot be run"),
        (subprocess.TimeoutExpired("git", 30), "git cannot be run"),
    ],
)
def test_a_git_that_is_missing_or_hangs_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def refuse(*arguments: object, **keywords: object) -> None:
        raise error

    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(UsageError, match=said):
        git(tmp_path, "status", seconds=30)
