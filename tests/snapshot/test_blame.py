"""How old a rule is: git is asked, and never needed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from snapshot.blame import since
from snapshot.config import load
from snapshot.policy import Rule
from tests.snapshot.builders import SUITE_TOML, project, rule

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")

FIELDS = """\
case = "*"
text = { rouge_l = 0.9 }
reason = "r"
issue = "https://example.org/1"
owner = "@o"
expires = 2027-03-01
"""
RELAX = f"\n[[suites.s.relax]]\n{FIELDS}"


def git(folder: Path, *arguments: str, day: str = "2026-11-01", committed: str = "") -> str:
    times = {
        "GIT_AUTHOR_DATE": f"{day}T12:00:00Z",
        "GIT_COMMITTER_DATE": f"{committed or day}T12:00:00Z",
    }
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    config = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    return subprocess.run(
        ["git", *who, *arguments],
        cwd=folder,
        env={**clean, **config, **times},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def commit(path: Path, text: str, day: str, committed: str = "") -> None:
    path.write_text(text, encoding="utf-8")
    git(path.parent, "add", "-A")
    git(path.parent, "commit", "-q", "-m", "m", day=day, committed=committed)


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = project(tmp_path)
    git(tmp_path, "init", "-q")
    return path


def rules(path: Path) -> list[Rule]:
    return [
        entry
        for suite in load(path).suites.values()
        for entry in (*suite.policy.relax, *suite.policy.quarantine)
    ]


def days(path: Path) -> list[str | None]:
    """Of the rules as they stand in the file."""
    every = rules(path)
    found = since(path, every)
    assert set(found) <= {entry.where for entry in every}
    return [str(found[e.where]) if e.where in found else None for e in every]


def test_a_rule_is_as_old_as_its_first_line(toml: Path) -> None:
    commit(toml, SUITE_TOML + RELAX, "2026-10-05")
    later = (
        SUITE_TOML + RELAX.replace("2027-03-01", "2027-06-01") + RELAX.replace('"*"', '"base/*"')
    )
    commit(toml, later, "2026-11-20")
    assert days(toml) == ["2026-10-05", "2026-11-20"]


def test_a_comment_or_another_suite_before_it_makes_it_no_younger(toml: Path) -> None:
    commit(toml, SUITE_TOML + RELAX, "2026-10-05")
    other = SUITE_TOML.replace("suites.s", "suites.another")
    commit(toml, f"# first\n{other}\n{SUITE_TOML}{RELAX}", "2026-11-20")
    assert days(toml) == ["2026-10-05"]


def test_a_rebase_makes_it_no_younger(toml: Path) -> None:
    commit(toml, SUITE_TOML + RELAX, "2026-10-05", committed="2026-11-20")
    assert days(toml) == ["2026-10-05"]


def test_relax_and_quarantine_rules_are_counted_each_on_its_own(toml: Path) -> None:
    held = RELAX.replace("relax", "quarantine").replace("text = { rouge_l = 0.9 }\n", "")
    commit(toml, SUITE_TOML + held, "2026-10-01")
    commit(toml, SUITE_TOML + RELAX + held, "2026-10-02")
    assert days(toml) == ["2026-10-02", "2026-10-01"]


@pytest.mark.parametrize(
    "header",
    ['[["suites"."s".relax]]', "[[ suites . 's' . relax ]]  # why", "  [[suites.s.relax]]"],
)
def test_a_header_in_any_spelling_is_found(toml: Path, header: str) -> None:
    commit(toml, SUITE_TOML + RELAX.replace("[[suites.s.relax]]", header), "2026-10-05")
    assert days(toml) == ["2026-10-05"]


def test_a_quoted_suite_name(toml: Path) -> None:
    name = "multi.lora-v2"
    commit(toml, (SUITE_TOML + RELAX).replace("suites.s", f'suites."{name}"'), "2026-10-05")
    assert days(toml) == ["2026-10-05"]


def test_rules_in_an_inline_array_have_no_age(toml: Path) -> None:
    fields = FIELDS.strip().replace("\n", ", ")
    commit(toml, f"{SUITE_TOML}relax = [{{ {fields} }}]\n", "2026-10-05")
    assert len(rules(toml)) == 1
    assert days(toml) == [None]


@pytest.mark.parametrize("strange", ["\u2028", "\x85", "\u2029"])
def test_what_only_python_takes_for_a_line_s_end_shifts_nothing(toml: Path, strange: str) -> None:
    commit(toml, f"# a{strange * 7}b\n" + SUITE_TOML, "2026-10-01")
    commit(toml, f"# a{strange * 7}b\n" + SUITE_TOML + RELAX, "2026-10-05")
    commit(toml, f"# a{strange * 7}b\n" + SUITE_TOML + RELAX + "# end\n", "2026-11-20")
    assert days(toml) == ["2026-10-05"]


def test_a_byte_order_mark_and_carriage_returns_are_no_obstacle(toml: Path) -> None:
    commit(toml, "\ufeff" + (RELAX.lstrip() + SUITE_TOML).replace("\n", "\r\n"), "2026-10-05")
    git(toml.parent, "config", "core.autocrlf", "false")
    assert days(toml) == ["2026-10-05"]


def test_a_rule_that_is_not_committed_yet_has_no_age(toml: Path) -> None:
    commit(toml, SUITE_TOML, "2026-10-05")
    toml.write_text(SUITE_TOML + RELAX, encoding="utf-8")
    assert days(toml) == [None]
    git(toml.parent, "add", "-A")
    assert days(toml) == [None]


def test_without_a_repository_or_a_commit_nothing_is_known(tmp_path: Path, toml: Path) -> None:
    toml.write_text(SUITE_TOML + RELAX, encoding="utf-8")
    assert days(toml) == [None]
    alone = project(tmp_path / "alone", SUITE_TOML + RELAX)
    shutil.rmtree(tmp_path / ".git")
    assert days(alone) == [None]


@pytest.mark.parametrize(
    "error", [FileNotFoundError("git"), subprocess.TimeoutExpired("git", 30), PermissionError()]
)
def test_a_git_that_is_missing_or_hangs_is_no_error(
    toml: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    commit(toml, SUITE_TOML + RELAX, "2026-10-05")

    def refuse(*arguments: object, **keywords: object) -> None:
        raise error

    monkeypatch.setattr(subprocess, "run", refuse)
    assert days(toml) == [None]


def test_a_shallow_clone_does_not_know_how_old_its_rules_are(tmp_path: Path, toml: Path) -> None:
    """A continuous integration's checkout holds one commit, which all lines seem to come from."""
    commit(toml, SUITE_TOML + RELAX, "2026-10-05")
    commit(toml, SUITE_TOML + RELAX + "# end\n", "2026-11-20")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", tmp_path.as_uri(), str(clone))
    assert days(clone / "goldens.toml") == [None]


def test_a_rule_that_stands_nowhere_in_the_file_has_no_age(toml: Path) -> None:
    commit(toml, SUITE_TOML, "2026-10-05")
    assert since(toml, [rule(where=f"{toml}: suites.s.relax[0]")]) == {}
    assert since(toml, []) == {}
