"""Large differences: each report in seconds and within half a gigabyte."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from tests.snapshot.project import ROOT, Project

FORMATS = ("terminal", "json", "markdown", "html")

# Runs one report in a process of its own, and tells its time and its largest memory.
_SCRIPT = textwrap.dedent(
    """
    import json, sys, time
    from pathlib import Path
    from click.testing import CliRunner
    from snapshot.cli import main
    name = sys.argv[1]
    flags = {"terminal": [], "json": ["--json"]}.get(name, ["--report", f"{name}:{name}.out"])
    start = time.perf_counter()
    done = CliRunner().invoke(main, ["diff", *flags])
    seconds = time.perf_counter() - start
    # Not ru_maxrss, which starts from what the process that forked this one had.
    status = Path("/proc/self/status").read_text()
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    megabytes = int(peak) / 1024
    said = [done.output[:2000], repr(done.exception)]
    print(json.dumps([done.exit_code, seconds, megabytes, *said]))
    """
)


def _unrelated() -> tuple[str, str]:
    words = random.Random(0)
    before, after = (
        "\n".join(" ".join(f"w{words.randrange(10**6)}" for _ in range(12)) for _ in range(10_000))
        for _ in range(2)
    )
    return before, after


def _line() -> tuple[str, str]:
    before = "one word after another " * (2_000_000 // 23)
    return before, before[:1_000_000] + "Z" + before[1_000_001:]


def _word() -> tuple[str, str]:
    return "x" * 2_000_000, "x" * 1_000_000 + "Z" + "x" * 999_999


@pytest.mark.slow
@pytest.mark.parametrize("what", ["unrelated", "line", "word", "tensor"])
def test_a_large_change_is_reported_in_seconds(tmp_path: Path, what: str) -> None:
    project = Project.create(tmp_path / "p", ("bfloat16-bs3",))
    golden = project.golden("bfloat16-bs3", "base/")
    observation = golden.observation
    texts = {"unrelated": _unrelated, "line": _line, "word": _word}
    arrays = dict(observation.arrays)
    random_numbers = np.random.default_rng(0)
    tensor = random_numbers.standard_normal((32, 128, 512), np.float32)
    for side in range(2):
        if what == "tensor":
            arrays["out"] = (tensor * (1 + side * 1e-3)).astype(np.float32)
            output = observation.output
        else:
            output = dataclasses.replace(observation.output, text=texts[what]()[side])
        changed = dataclasses.replace(observation, output=output, arrays=arrays)
        project.store.write(dataclasses.replace(golden, observation=changed))
        if side == 0:
            project.commit("before")
    for name in FORMATS:
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT, name],
            cwd=project.root,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'kernels'}"},
            capture_output=True,
            text=True,
        )
        code, seconds, megabytes, output_, error = json.loads(done.stdout)
        print(f"{what} {name}: {seconds:.2f} s, {megabytes:.0f} MB")
        assert code == 0, output_ + error
        assert seconds < 5 and megabytes < 500
        if name == "terminal":
            expected = {"tensor": "2,097,152 elements moved", "unrelated": "{+"}.get(what, "Z")
            assert expected in output_
