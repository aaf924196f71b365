"""``goldens verify --report`` as a user gives it, over outputs in a file: no torch, no model."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.snapshot.project import PREFIX, Project

SLUG = PREFIX + "bfloat16-bs3"


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
    done = project.run(
        "verify", "multi-lora", "--from", "outputs.jsonl", "--against", SLUG,
        "--attribute", "never", *flags, "--report", "github:-",
    )  # fmt: skip
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
