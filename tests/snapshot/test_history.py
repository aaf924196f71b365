"""This machine's memory of earlier verifications: nothing breaks it, nothing rests on it."""

from __future__ import annotations

import datetime
import json
import math
import shutil
import subprocess
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot import history
from snapshot.calibrate import Floor
from snapshot.config import Config, load
from snapshot.difference import Distance
from snapshot.errors import StoreError
from snapshot.history import FOLDER, recall, remember
from snapshot.ledger import ledger
from snapshot.policy import LogprobTolerance, Policy, TextTolerance, Tolerance
from snapshot.resolve import Baseline
from snapshot.result import Observed, Result, Verdict
from snapshot.verification import Held, Verification
from tests.snapshot.builders import DAY, KEY, ROCM7, project, rule


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load(project(tmp_path))


def run(*verdicts: Verdict, **fields: Any) -> Verification:
    usual: dict[str, Any] = {"distance": Distance(9, 0.02, 0.1, "step 3")}
    results = tuple(
        Result("s", KEY, "reference", ROCM7.slug, None, v, "", **{**usual, **fields})
        for v in verdicts
    )
    return Verification((Held("s", "reference", ROCM7.slug, Baseline(ROCM7, ""), results),))


def files(config: Config) -> list[Path]:
    return sorted((config.path.parent / FOLDER / "history").glob("*"))


def test_what_was_observed_is_recalled(config: Config) -> None:
    assert recall(config) == []
    remember(config, run(Verdict.WITHIN, scores={"unicode-lcs": 0.95}))
    (found,) = recall(config)
    today = datetime.date.today()
    assert datetime.date.fromisoformat(found.day) in (today, today - datetime.timedelta(1))
    assert found == Observed(
        day=found.day,
        suite="s",
        subject="reference",
        slug=ROCM7.slug,
        case=KEY,
        verdict="WITHIN",
        strict=False,
        rms=0.02,
        max=0.1,
        scores={"unicode-lcs": 0.95},
    )


def test_several_runs_come_one_after_the_other(config: Config) -> None:
    remember(config, run(Verdict.MATCH, Verdict.TIE))
    remember(config, run(Verdict.DRIFT))
    assert sorted(e.verdict for e in recall(config)) == ["DRIFT", "MATCH", "TIE"]
    assert len(files(config)) == 2


@pytest.mark.parametrize("verdict", list(Verdict))
def test_only_what_was_compared_is_remembered(config: Config, verdict: Verdict) -> None:
    remember(config, run(verdict))
    kept = {
        *(Verdict.MATCH, Verdict.VARIANT, Verdict.TIE, Verdict.WITHIN, Verdict.DRIFT),
        *(Verdict.REGRESSION, Verdict.UNATTRIBUTED, Verdict.QUARANTINED, Verdict.FIXED),
    }
    assert [e.verdict for e in recall(config)] == ([verdict.value] if verdict in kept else [])
    assert all(e.strict == (verdict.value in ("MATCH", "VARIANT", "TIE")) for e in recall(config))


def test_nothing_observed_leaves_no_file(config: Config) -> None:
    remember(config, run(Verdict.ERROR))
    remember(config, Verification())
    assert not (config.path.parent / FOLDER).exists()


def test_numbers_that_are_none_are_left_out(config: Config) -> None:
    remember(config, run(Verdict.MATCH, distance=None))
    remember(
        config,
        run(
            Verdict.REGRESSION,
            distance=Distance(3, math.nan, math.inf, "step 0"),
            scores={"unicode-lcs": math.nan, "rouge-score": 0.5},
        ),
    )
    found = {e.verdict: (e.rms, e.max, e.scores) for e in recall(config)}
    assert found == {"MATCH": (None, None, {}), "REGRESSION": (None, None, {"rouge-score": 0.5})}
    assert "NaN" not in files(config)[1].read_text()


def test_git_ignores_it(config: Config) -> None:
    remember(config, run(Verdict.MATCH))
    assert (config.path.parent / FOLDER / ".gitignore").read_bytes() == b"*\n"
    if shutil.which("git") is not None:
        root = config.path.parent
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        command = ["git", "status", "--porcelain", "--untracked-files=all"]
        shown = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
        assert FOLDER not in shown.stdout and "goldens.toml" in shown.stdout


def test_a_folder_that_cannot_be_made_is_no_error(config: Config) -> None:
    (config.path.parent / FOLDER).write_text("a file in its place")
    remember(config, run(Verdict.MATCH))
    assert recall(config) == []


@pytest.mark.parametrize("error", [OSError(30, "read-only"), StoreError("no space")])
def test_a_folder_that_cannot_be_written_is_no_error(
    config: Config, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(path: Path, data: bytes) -> None:
        raise error

    monkeypatch.setattr(history, "write_atomic", refuse)
    remember(config, run(Verdict.MATCH))
    assert recall(config) == []


GOOD = Observed("2026-11-01", "s", "reference", ROCM7.slug, KEY, "WITHIN", False, 0.1, 0.2)


def line(**changes: Any) -> str:
    return json.dumps({**asdict(GOOD), **changes})


DAMAGED = [
    "",
    "not JSON",
    "{}",
    "[]",
    "null",
    '"text"',
    '{"day": "2026-11-01"}',
    "[" * 100_000,
    line(unknown=1),
    line(day=1),
    line(day="yesterday"),
    line(suite=None),
    line(case=["base"]),
    line(slug={}),
    line(subject=3),
    line(verdict=7),
    line(strict="yes"),
    line(rms="0.1"),
    line(max=[0.1]),
    line(max=True),
    line(max=math.nan),
    line(rms=math.inf),
    line(scores=None),
    line(scores=[["unicode-lcs", 0.9]]),
    line(scores={"unicode-lcs": "high"}),
    line(scores={"unicode-lcs": math.nan}),
]


def written(config: Config, *lines: str, name: str = "x.jsonl") -> None:
    folder = config.path.parent / FOLDER / "history"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.parametrize("damaged", DAMAGED, ids=[text[:50] or "empty" for text in DAMAGED])
def test_a_line_that_is_not_ours_is_skipped(config: Config, damaged: str) -> None:
    written(config, line(), damaged, line())
    assert recall(config) == [GOOD, GOOD]


def test_a_file_that_cannot_be_read_is_skipped(config: Config) -> None:
    written(config, line())
    folder = config.path.parent / FOLDER / "history"
    (folder / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    (folder / "folder.jsonl").mkdir()
    (folder / "gone.jsonl").symlink_to(folder / "nowhere")
    (folder / "other.txt").write_text(line())
    assert recall(config) == [GOOD]


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(list(asdict(GOOD))), VALUES | st.dictionaries(st.text(max_size=3), VALUES)
    )
)
def test_whatever_is_recalled_a_ledger_can_be_made_of(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "history.jsonl"
    path.write_text(line(**changes), encoding="ascii")
    both = Tolerance(TextTolerance(0.5, "unicode-lcs"), LogprobTolerance(max=1.0, rms=1.0))
    policy = Policy(tolerance=both, relax=(rule(tolerance=both),), quarantine=(rule(),))
    found = list(history._read(path))
    made = ledger(
        "s", policy, [KEY], found, DAY, since={}, floor=Floor("", 0.1, 0.1), environments={}
    )
    assert [entry.kind for entry in made] == ["tolerance", "relax", "quarantine"]
    assert all(entry.needed <= entry.observed <= len(found) for entry in made)


def test_only_the_latest_runs_are_kept(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "KEPT", 3)
    for i in range(5):
        written(config, line(day=f"2026-10-0{i + 1}"), name=f"2026100{i}T000000-0.jsonl")
    remember(config, run(Verdict.MATCH))
    days = [entry.day for entry in recall(config)]
    assert days[:2] == ["2026-10-04", "2026-10-05"] and len(days) == 3


def test_two_writers_at_once_lose_nothing(config: Config) -> None:
    def write() -> None:
        for _ in range(5):
            remember(config, run(Verdict.MATCH, Verdict.TIE))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(recall(config)) == 40
    assert len(files(config)) == 20  # and no temporary is left
