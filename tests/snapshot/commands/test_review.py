"""``goldens review``: each decision at once and whole, by key, by group and by glob."""

from __future__ import annotations

import dataclasses
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from snapshot.commands.review import BULK
from snapshot.pending import REASON, Inbox
from snapshot.store import Store, files
from tests.snapshot.project import PREFIX, ROOT, SUITE, Project, reworded

SLUG = PREFIX + "bfloat16-bs3"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Three pending changes of pirate rows, and one new golden that main lacks."""
    project = Project.create(tmp_path / "p", ("bfloat16-bs3",))
    pending = Store(project.root / "pending-goldens")
    pending.write_fingerprint(project.store.read_fingerprint(SUITE, SLUG))
    for golden in project.goldens("bfloat16-bs3", "pirate/")[:3]:
        pending.write(reworded(golden))
    new = project.golden("bfloat16-bs3", "haiku/")
    pending.write(new)
    project.store.path(SUITE, SLUG, "reference", new.case).unlink()
    project.commit("one golden is missing")
    return project


def pending_cases(project: Project) -> list[str]:
    return Store(project.root / "pending-goldens").cases(SUITE, SLUG, "reference")


def text(project: Project, case: str) -> str:
    return project.store.read(SUITE, SLUG, "reference", case).observation.output.text


# ------------------------------------------------------------------ without a terminal


def test_what_waits_is_listed_and_nothing_is_changed(project: Project) -> None:
    before = sorted(project.root.rglob("*"))
    for flags in (["--dry-run"], ["--json"]):
        done = project.run("review", *flags)
        assert done.exit_code == 0, done.output
        assert done.stdout.count("pirate/") == 3 and done.stdout.count("haiku/") == 1
    assert {row["group"] for row in json.loads(done.stdout)["pending"]} == {"fix", "create"}
    assert sorted(project.root.rglob("*")) == before


def test_no_terminal_and_no_flag_says_what_to_do(project: Project) -> None:
    done = project.run("review")
    assert done.exit_code == 2
    assert "4 goldens are pending" in done.output and "--accept '*'" in done.output


def test_accept_and_reject_by_glob(project: Project) -> None:
    cases = pending_cases(project)
    new, first, *rest = cases
    done = project.run(
        "review", "--accept", "haiku/*", "--accept", first, "--reject", f"*/{rest[0]}"
    )
    assert done.exit_code == 0, done.output
    assert text(project, first) == " other words than before"
    assert text(project, rest[0]) != " other words than before"
    assert project.store.read(SUITE, SLUG, "reference", new)
    assert pending_cases(project) == rest[1:]
    assert project.run("check").exit_code == 0
    assert not project.store.read(SUITE, SLUG, "reference", first).recorded_by.get(REASON)


def test_an_accepted_folder_is_tidied_away(project: Project) -> None:
    assert project.run("review", "--accept", "*").exit_code == 0
    assert not (project.root / "pending-goldens").exists()
    assert project.run("review").exit_code == 4


def test_a_dry_run_says_what_would_be_done_and_does_nothing(project: Project) -> None:
    done = project.run("review", "--accept", "pirate/*", "--dry-run")
    assert done.exit_code == 0 and done.stdout.count("would be accepted") == 3
    assert len(pending_cases(project)) == 4


def test_nothing_pending_is_no_mistake_of_a_glob(project: Project) -> None:
    shutil.rmtree(project.root / "pending-goldens")
    done = project.run("review", "--accept", "*")
    assert done.exit_code == 4 and "no pending goldens" in done.output


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--accept", "pirat/*"], "no pending golden matches"),
        (["--accept", "*", "--reject", "pirate/*"], "both accepted and rejected"),
        (["nowhere"], "there is no such folder"),
        (["goldens"], "these are the goldens"),
    ],
)
def test_mistakes_are_usage_errors(project: Project, flags: list[str], said: str) -> None:
    done = project.run("review", *flags)
    assert done.exit_code == 2 and said in done.output


def test_many_at_once_need_a_reason_that_is_kept(project: Project) -> None:
    pending = Store(project.root / "pending-goldens")
    for golden in project.goldens("bfloat16-bs3", ""):
        pending.write(reworded(golden))
    done = project.run("review", "--accept", "*")
    assert done.exit_code == 2 and "need a reason" in done.output
    assert len(pending_cases(project)) > BULK
    done = project.run("review", "--accept", "*", "--reason", "torch 2.14 came")
    assert done.exit_code == 0, done.output
    golden = project.golden("bfloat16-bs3", "pirate/")
    assert golden.recorded_by[REASON] == "torch 2.14 came"
    assert project.run("check").exit_code == 0


# ------------------------------------------------------------------------------- trust


def test_what_an_engine_gave_is_never_the_reference_s(project: Project) -> None:
    """Neither moved to the reference's folder, nor with an edited subject."""
    golden = project.golden("bfloat16-bs3", "base/")
    observation = dataclasses.replace(golden.observation, workload=None, composition=None)
    theirs = dataclasses.replace(
        reworded(golden), subject="vllm", observation=observation, recorded_by={"vllm": "0.32"}
    )
    pending = Store(project.root / "pending-goldens")
    pending.write(theirs)
    done = project.run("review", "--accept", "*/vllm/*")
    assert done.exit_code == 0, done.output
    assert project.store.subjects(SUITE, SLUG) == ["reference", "vllm"]
    # edited to say that it is the reference's
    pending.write_fingerprint(project.store.read_fingerprint(SUITE, SLUG))
    pending.write(dataclasses.replace(theirs, subject="reference"))
    before = text(project, golden.case)
    done = project.run("review", "--accept", "*")
    assert done.exit_code == 1 and "can never become the reference's golden" in done.output
    assert text(project, golden.case) == before
    # moved
    target = pending.path(SUITE, SLUG, "reference", golden.case)
    theirs_again = Store(project.root / "elsewhere")
    theirs_again.write(theirs)
    target.write_bytes(theirs_again.path(SUITE, SLUG, "vllm", golden.case).read_bytes())
    done = project.run("review", "--json")
    assert done.exit_code == 1 and "belongs to another place" in done.stdout


def test_an_unreadable_golden_is_never_overwritten(project: Project) -> None:
    case = pending_cases(project)[1]
    path = project.store.path(SUITE, SLUG, "reference", case)
    path.write_bytes(b"<<<<<<< HEAD\n" + path.read_bytes())
    before = path.read_bytes()
    done = project.run("review", "--accept", "pirate/*")
    assert done.exit_code == 1 and f"{path.name}:1" in done.output
    assert path.read_bytes() == before
    assert case in pending_cases(project)  # and the pending one is still there


def test_a_changed_environment_is_decided_on_its_own(project: Project) -> None:
    pending = Store(project.root / "pending-goldens")
    recorded = pending.read_fingerprint(SUITE, SLUG)
    noise = {**recorded.calibration, "repeats": {**recorded.calibration["repeats"], "max": 7.0}}
    pending.write_fingerprint(dataclasses.replace(recorded, calibration=noise))
    done = project.run("review", "--dry-run")
    assert f"loosen            {SUITE}/{SLUG}/fingerprint.json" in done.stdout
    assert project.run("review", "--accept", "pirate/*").exit_code == 0
    assert project.store.read_fingerprint(SUITE, SLUG) == recorded
    assert project.run("review", "--accept", "*fingerprint.json").exit_code == 0
    assert project.store.read_fingerprint(SUITE, SLUG).calibration["repeats"]["max"] == 7.0


@pytest.mark.parametrize("flags", [["--json"], ["--dry-run"], ["--accept", "*"]])
def test_a_lost_environment_is_said_and_nothing_is_lost(project: Project, flags: list[str]) -> None:
    lost = project.root / "pending-goldens" / SUITE / SLUG / "fingerprint.json"
    lost.unlink()
    before = sorted(project.root.rglob("*"))
    done = project.run("review", *flags)
    assert done.exit_code == 1 and "no pending goldens" not in done.output
    assert "pending goldens lie here without their fingerprint.json" in done.output
    assert str(lost) in done.output
    if flags != ["--json"]:
        assert "4 goldens beside it" in done.output and "unpack the artifact" in done.output
    assert sorted(project.root.rglob("*")) == before


@pytest.mark.parametrize("suffix", [".json", ".zst"])
def test_a_damaged_pending_golden_is_not_sought_in_git(project: Project, suffix: str) -> None:
    folder = project.root / "pending-goldens"
    if suffix == ".json":
        damaged = [Store(folder).path(SUITE, SLUG, "reference", pending_cases(project)[1])]
    else:
        damaged = list((folder / "blobs").rglob("*.zst"))
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-5])
    done = project.run("review", "--accept", "pirate/*")
    assert done.exit_code == 1 and "unpack the artifact again" in done.output
    assert str(folder) in done.output and "git checkout" not in done.output
    assert project.run("check").exit_code == 0


def test_a_new_environment_comes_with_its_first_golden(tmp_path: Path) -> None:
    project = Project.create(tmp_path / "p", ("bfloat16-bs3",))
    other = Project.create(tmp_path / "other", ("float32-bs3",))
    (other.root / "goldens").rename(project.root / "pending-goldens")
    done = project.run("review", "--accept", "base/the-capital*")
    assert done.exit_code == 0, done.output
    assert len(project.store.fingerprints(SUITE)) == 2
    assert project.run("check").exit_code == 0


# ------------------------------------------------------------------------ a terminal


class Terminal:
    """The command on a pseudo-terminal."""

    def __init__(self, project: Project) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'kernels'}",
            "TERM": "dumb",
            "COLUMNS": "100",
        }
        self.main, side = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "snapshot.cli", "review"],
            cwd=project.root, env=environment, stdin=side, stdout=side, stderr=side,
            start_new_session=True,
        )  # fmt: skip
        os.close(side)
        self.seen = ""

    def wait_for(self, words: str, seconds: float = 20) -> str:
        """What was printed since the last time, up to these words."""
        end = time.monotonic() + seconds
        while words not in self.seen:
            ready, _, _ = select.select([self.main], [], [], max(end - time.monotonic(), 0))
            assert ready, f"{words!r} did not come: {self.seen}"
            try:
                self.seen += os.read(self.main, 4096).decode("utf-8", "replace")
            except OSError:  # it ended
                break
        assert words in self.seen, self.seen
        before, _, self.seen = self.seen.partition(words)
        return before

    def press(self, keys: str) -> None:
        os.write(self.main, keys.encode())

    def end(self) -> int:
        while True:
            try:
                if not os.read(self.main, 4096):
                    break
            except OSError:
                break
        os.close(self.main)
        return self.process.wait(30)


def test_accept_one_reject_one_quit(project: Project) -> None:
    new, first, second, third = pending_cases(project)
    terminal = Terminal(project)
    shown = terminal.wait_for("q quit")
    assert "1 of 4" in shown and new in shown
    terminal.press("a")
    terminal.wait_for("accepted: ")
    assert project.store.read(SUITE, SLUG, "reference", new)  # at once
    assert pending_cases(project) == [first, second, third]
    shown = terminal.wait_for("q quit")
    assert "2 of 4" in shown and "{+" in shown and first in shown
    before = text(project, first)
    terminal.press("?r")  # an unknown key does nothing
    terminal.wait_for("rejected: ")
    assert pending_cases(project) == [second, third] and text(project, first) == before
    terminal.wait_for("q quit")
    terminal.press("q")
    assert terminal.end() == 0
    assert pending_cases(project) == [second, third]


def test_a_group_at_once(project: Project) -> None:
    terminal = Terminal(project)
    terminal.wait_for("q quit")
    terminal.press("s")  # the new one
    terminal.wait_for("q quit")
    terminal.press("g")
    terminal.wait_for("accepted: 3 goldens")
    assert terminal.end() == 0
    assert len(pending_cases(project)) == 1


def test_many_on_the_terminal_ask_for_a_reason(project: Project) -> None:
    pending = Store(project.root / "pending-goldens")
    for golden in project.goldens("bfloat16-bs3", ""):
        pending.write(reworded(golden))
    terminal = Terminal(project)
    terminal.wait_for("q quit")
    terminal.press("A")
    terminal.wait_for("Why are")
    terminal.press("\n")
    terminal.wait_for("need a reason")
    assert len(pending_cases(project)) > BULK
    terminal.wait_for("q quit")
    terminal.press("A")
    terminal.wait_for("Why are")
    terminal.press("a new torch\n")
    terminal.wait_for("accepted: ")
    assert terminal.end() == 0
    assert project.golden("bfloat16-bs3", "pirate/").recorded_by[REASON] == "a new torch"


def test_killed_half_way_every_decision_stands(project: Project) -> None:
    """kill -9 after one decision: that one is done, the others wait, and no file is torn."""
    cases = pending_cases(project)
    terminal = Terminal(project)
    terminal.wait_for("q quit")
    terminal.press("a")
    terminal.wait_for("accepted: ")
    os.kill(terminal.process.pid, signal.SIGKILL)
    terminal.end()
    assert project.store.read(SUITE, SLUG, "reference", cases[0])
    assert pending_cases(project) == cases[1:]
    assert project.run("check").exit_code == 0
    assert project.run("review", "--accept", "*").exit_code == 0


@pytest.mark.parametrize("at", range(6))
def test_killed_between_any_two_writes_loses_nothing(
    project: Project, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was written before the end, each golden is whole, and waits or is accepted."""

    class Killed(BaseException):
        pass

    left = at
    write, unlink = files.write_atomic, Path.unlink

    def count() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    def write_or_die(path: Path, data: bytes) -> None:
        count()
        write(path, data)

    def unlink_or_die(self: Path, missing_ok: bool = False) -> None:
        if self.suffix == ".json":
            count()
        unlink(self, missing_ok)

    cases = pending_cases(project)
    with monkeypatch.context() as patch:
        patch.setattr(files, "write_atomic", write_or_die)
        patch.setattr(Path, "unlink", unlink_or_die)
        inbox = Inbox(project.root / "pending-goldens", project.store)
        try:
            for item in inbox.look().items:
                inbox.accept(item)
        except Killed:
            pass
    assert project.run("check").exit_code == 0
    waiting = pending_cases(project)
    recorded = project.store.cases(SUITE, SLUG, "reference")
    for case in cases:
        assert case in waiting or case in recorded
    assert project.run("review", "--accept", "*").exit_code == 0
    assert project.run("check").exit_code == 0
    assert all(text(project, case) for case in cases)
    assert not (project.root / "pending-goldens").exists()
