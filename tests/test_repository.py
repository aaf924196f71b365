"""This repository's own goldens."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from snapshot.commands.check import check
from snapshot.commands.status import status
from snapshot.config import load

ROOT = Path(__file__).resolve().parents[1]


def goldens(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command as on a machine that nobody has prepared for tests."""
    kept = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "TRITON_INTERPRET")}
    path = os.pathsep.join([str(ROOT), str(ROOT / "kernels")])
    return subprocess.run(
        [sys.executable, "-m", "snapshot.cli", *arguments],
        cwd=ROOT,
        env={**kept, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )


DAY = datetime.date(2026, 12, 1)


def test_every_golden_is_sound() -> None:
    config = load(ROOT / "goldens.toml")
    found = check(config)
    counted = sum(recorded.cases for suite in status(config, DAY) for recorded in suite.recorded)
    assert found.damage == () and found.unreferenced == () and found.goldens == counted


def test_every_kernel_is_recorded_where_it_runs() -> None:
    (_, suite) = status(load(ROOT / "goldens.toml"), DAY)
    subjects = {recorded.subjects for recorded in suite.recorded}
    assert {("triton",), ("sdpa",), ("flex",)} <= subjects
    for recorded in suite.recorded:
        assert not recorded.stale
        if recorded.subjects == ("triton",):
            assert all(key.startswith("B32-") for key in recorded.missing)
    assert all(item.kind == "quarantine" and item.days_left > 0 for item in suite.rules)


def test_kernels_match_where_they_were_recorded_and_are_missing_elsewhere() -> None:
    pytest.importorskip("triton")
    done = goldens("verify", "B?-H?-*-float32-*ragged*", "--dtype", "float32", "--json")
    assert done.returncode in (0, 3), done.stdout
    runs = json.loads(done.stdout)["runs"]
    verdicts = {row["verdict"] for run in runs for row in run["results"]}
    assert verdicts == ({"MATCH"} if done.returncode == 0 else {"MISSING"})
    assert [run["subject"] for run in runs] == ["triton", "torch", "sdpa", "flex"]


def test_every_case_is_recorded_and_strictly_held() -> None:
    (suite, _) = status(load(ROOT / "goldens.toml"), DAY)
    assert len(suite.recorded) == 16 and not suite.rules  # a CPU and a GPU
    for recorded in suite.recorded:
        assert not recorded.missing and not recorded.stale
        assert recorded.power is not None and recorded.power >= 10


@pytest.mark.model
def test_verify_matches_where_they_were_recorded_and_is_missing_elsewhere(smollm2: Path) -> None:
    if smollm2.resolve() != (ROOT / ".cache" / "smollm2").resolve():
        pytest.skip("the suite's model is not prepared: make test does it")
    done = goldens("verify", "*/the-capital-*", "--batch-size", "3", "--dtype", "float32")
    summary = done.stdout.strip().splitlines()
    if done.returncode == 0:
        assert "3 cases: 3 MATCH" in summary
    else:  # another kind of CPU, or another model of the same kind
        assert done.returncode in (3, 5), done.stdout + done.stderr
