"""What recording refuses before it runs anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from snapshot.cli import main
from snapshot.plan import Plan
from snapshot.suite import generation_cases


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "goldens.toml").write_text(
        '[suites.s]\nkind = "lora-generation"\nmodel = "m"\nprompts = "p.jsonl"\n'
        'dtype = "float32"\nadapters = { a = "a" }\n'
    )
    (tmp_path / "p.jsonl").write_text(json.dumps({"prompt": "x"}))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("ci", ["true", "1", "yes"])
def test_in_ci_without_its_flag(project: Path, ci: str) -> None:
    """C30"""
    result = CliRunner().invoke(main, ["record"], env={"CI": ci})
    assert result.exit_code == 2 and "--update-in-ci" in result.output


@pytest.mark.parametrize("command", ["record", "verify"])
@pytest.mark.parametrize("folder", ["goldens", "goldens/s", ".", "goldens/../goldens"])
def test_pending_goldens_never_lie_in_or_around_the_goldens(
    project: Path, folder: str, command: str
) -> None:
    """C30: a pending folder is no way around the guard."""
    result = CliRunner().invoke(main, [command, "--pending", folder], env={"CI": "true"})
    assert result.exit_code == 2 and "outside the goldens" in result.output


def test_a_damaged_store_is_named_before_the_model_is_loaded(project: Path) -> None:
    damaged = project / "goldens" / "s" / "cpu-x" / "fingerprint.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{")
    result = CliRunner().invoke(main, ["record"])
    assert result.exit_code == 1 and str(damaged) in result.output
    assert damaged.read_text() == "{"


def test_a_selected_adapter_row_is_judged_beside_its_base_row(project: Path) -> None:
    """C04: whatever is selected, and at batch size 1 too."""
    from snapshot.config import load

    cases = tuple(generation_cases(["x", "y"], ["a"]))
    plan = Plan(load(project / "goldens.toml").suites["s"], cases, frozenset({cases[1].key}))
    keys = plan.with_base_rows(plan.chosen)
    assert keys == {cases[0].key, cases[1].key}
    assert [group.rows for group in plan.groups(1, keys)] == [(cases[0],), (cases[1],)]
