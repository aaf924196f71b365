"""What the tests on the real model share."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Two threads that wait for each other on a machine that is busy otherwise take ten times as
# long. Here and in every process that a test starts: one.
os.environ["OMP_NUM_THREADS"] = "1"

# Tests say themselves when they are in CI, and what a terminal can do.
for name in ("CI", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(name, None)

ROOT = Path(__file__).resolve().parents[1]
PREPARE = ROOT / "examples" / "smollm2" / "prepare.py"
PREPARED = ROOT / ".cache" / "smollm2"


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the real model and the two adapters: `make test` prepares it."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: the base install has no reference")
    if (PREPARED / "prepared").is_file():
        return PREPARED
    target = tmp_path_factory.mktemp("smollm2")
    subprocess.run([sys.executable, str(PREPARE), str(target)], check=True)
    return target
