"""``goldens verify --report`` as a user gives it, over outputs in a file: no torch, no model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.snapshot.project import PREFIX, ROOT, Project

SLUG = PREFIX + "bfloat16-bs3"
HELD = ("multi-lora", "--from", "outputs.jsonl", "--against", SLUG, "--attribute", "never")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Outputs of an engine: everything equal but one row."""
    project = Project.create(tmp_path / "p", ("bfloat16-bs3",))
    lines = []
    for i, golden in enumerate(project.goldens("bfloat16-bs3", "")):
        output = golden.observation.output
        row = {"case": golden.case, "text": output.text, "token_ids": output.token_ids}
        if i == 4:
            row = {"case": golden.case, "text": " other <b>words</b>\n::error::x"}
        lines.append(json.dumps(row))
    (project.root / "outputs.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return project


def test_every_format_at_once(project: Project) -> None:
    names = {"html": "a/r.html", "json": "a/r.json", "junit": "a/r.xml", "markdown": "a/r.md"}
    flags = [flag for name, path in names.items() for flag in ("--report", f"{name}:{path}")]
    done = project.run("verify", *HELD, *flags, "--report", "github:-")
    assert done.exit_code == 1, done.output
    (command,) = (line for line in done.stdout.splitlines() if line.startswith("::"))
    assert command.startswith("::error title=")
    written = {name: project.root / path for name, path in names.items()}
    assert json.loads(written["json"].read_text("utf-8"))["exit_code"] == 1
    root = ElementTree.parse(written["junit"]).getroot()
    assert root.get("tests") == "24" and root.get("failures") == "1"
    assert "1 of 24 need" in written["markdown"].read_text("utf-8")
    page = written["html"].read_text("utf-8")
    assert "1 of 24 needs a look" in page and "<b>words" not in page


def test_a_report_that_cannot_be_is_refused_before_anything_runs(project: Project) -> None:
    done = project.run("verify", "--report", "pdf:x")
    assert done.exit_code == 2 and "no such report" in done.output
    (project.root / "file").write_text("", "utf-8")
    for path in ("file/r.html", "x" * 300, "."):
        done = project.run("verify", *HELD, "--report", f"html:{path}")
        assert done.exit_code == 2 and "the report cannot be written" in done.output
        assert "case" not in done.output  # nothing was judged
    kept = project.root / "kept.html"
    kept.write_text("before", "utf-8")
    refused = project.run(
        "verify", *HELD, "--report", "html:kept.html", "--report", "html:file/r.html"
    )
    assert refused.exit_code == 2 and kept.read_text("utf-8") == "before"


def test_a_reader_that_leaves_changes_nothing(project: Project) -> None:
    """`goldens verify | head -1`: no traceback, the report is written, and the exit code stays."""
    command = [sys.executable, "-m", "snapshot.cli", "verify", *HELD, "--report", "json:r.json"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command,
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "kernels")])},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads((project.root / "r.json").read_text("utf-8"))["exit_code"] == 1
