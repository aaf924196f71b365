from __future__ import annotations

import errno
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from snapshot.errors import DamagedGolden, StoreError
from snapshot.model import Golden
from snapshot.store import Change, Store, files


def test_a_file_is_read_whole_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert files.read_bounded(path, 5) == b"12345"
    with pytest.raises(DamagedGolden, match="too large"):
        files.read_bounded(path, 4)
    with pytest.raises(FileNotFoundError):
        files.read_bounded(tmp_path / "y", 5)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
def test_only_regular_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "folder", "pipe"):
        with pytest.raises(DamagedGolden, match="not a regular file"):
            files.read_bounded(tmp_path / name, 10)


def test_writing_makes_folders_and_replaces_whole_files(tmp_path: Path) -> None:
    path = tmp_path / "my golden dir" / "日本" / "x.json"
    files.write_atomic(path, b"one")
    files.write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(path.parent) == ["x.json"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    """C30"""
    path = tmp_path / "x.json"
    path.write_bytes(b"old")

    def fail(*args: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(StoreError, match="cannot write") as error:
        files.write_atomic(path, b"new")
    monkeypatch.undo()
    assert error.value.where == str(path)
    assert error.value.hint is not None or code == errno.EIO
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x.json"]


def test_an_interrupted_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write_atomic(tmp_path / "x.json", b"new")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("part", ["..", ".", "", "/etc", "a/b", "a\\b", "C:", "a\0b"])
def test_no_part_leaves_the_store(tmp_path: Path, part: str) -> None:
    with pytest.raises(StoreError, match="leaves the store"):
        files.contained(tmp_path, "suite", part)


def test_the_root_may_be_a_link_and_nothing_below_it(tmp_path: Path) -> None:
    (tmp_path / "real" / "suite").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")
    assert files.contained(tmp_path / "root", "suite", "x").parent.is_dir()
    (tmp_path / "real" / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError, match="symbolic link"):
        files.contained(tmp_path / "root", "link", "x")


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder that only its owner could write to, were it not read-only."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded")
def test_recording_into_a_read_only_folder_says_so_and_writes_nothing(
    read_only: Path, filled: Store, make_golden: Callable[..., Golden]
) -> None:
    """C30"""
    assert filled.write(make_golden()) is Change.UNCHANGED  # imports all that writing needs
    child = os.fork()
    if child == 0:  # root writes anywhere, so give root up
        status = 1
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            with pytest.raises(StoreError, match="cannot write") as error:
                Store(read_only / "goldens").write(make_golden())
            assert "permissions" in str(error.value)
            assert not os.listdir(read_only)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
