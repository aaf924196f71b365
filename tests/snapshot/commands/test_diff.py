"""``goldens diff`` in a real git repository: exactly what changed, what loosens first."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from snapshot.commands.diff import diff
from snapshot.model import Fingerprint
from snapshot.report.changes.html import page
from tests.snapshot.project import PREFIX, ROOT, SUITE, Project, reworded

LOGPROB = "\n[suites.multi-lora.tolerance]\nlogprob = { max = 0.1 }\n"
RELAX = """
[[suites.multi-lora.relax]]
case = "base/*"
when = { dtype = "bfloat16" }
text = { rouge_l = 0.9, metric = "unicode-lcs" }
reason = "drifts"
issue = "https://example.org/1"
owner = "@a"
expires = 2999-01-01
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.create(tmp_path / "a project" / "日本")


def test_the_story_one_adapter_changes_in_one_environment(project: Project) -> None:
    """Record, branch, change one adapter, record: exactly its rows, in exactly its environment."""
    project.git("checkout", "-q", "-b", "work")
    changed = project.goldens("bfloat16-bs8", "pirate/")
    for golden in changed:
        project.store.write(reworded(golden))
    project.commit("pirate again")
    done = project.run("diff", "main", "work", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["counts"] == {
        "loosen": 0, "fix": 8, "create": 0, "environment-only": 0, "trim": 0,
    }  # fmt: skip
    rows = found["goldens_changed"]
    assert {row["fingerprint"] for row in rows} == {PREFIX + "bfloat16-bs8"}
    assert {row["case"] for row in rows} == {golden.case for golden in changed}
    for row, golden in zip(rows, changed, strict=True):
        ids = golden.observation.output.token_ids
        assert ids is not None and row["divergence"]["step"] == len(ids) - 2
        assert row["divergence"]["golden_margin"] is not None
        (array,) = row["arrays"]
        assert array["name"] == "logprobs" and array["moved"] == 2
        assert array["ulp_max"] > 0 and array["rel_l2"] > 0
    untouched = {row["fingerprint"]: sum(row["changed"].values()) for row in found["reach"]}
    assert untouched == {PREFIX + "bfloat16-bs8": 8, PREFIX + "bfloat16-bs3": 0}
    shown = project.run("diff", "main", "work").stdout
    assert (
        "blast radius  1 environment touched (batch 8); 1 environment untouched (batch 3)" in shown
    )
    assert "{+other" in shown and "the tokens part at step" in shown


@pytest.mark.parametrize(
    ("toml", "what", "covers"),
    [(LOGPROB, "tolerance.logprob", "covers 48 "), (RELAX, "relax", "covers 16 ")],
)
def test_loosening_comes_first_and_loudest(
    project: Project, toml: str, what: str, covers: str
) -> None:
    project.append(toml)
    project.store.write(reworded(project.golden("bfloat16-bs8", "base/")))
    done = project.run("diff")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[2] == "LOOSENED  goldens.toml"
    assert lines[3].strip().startswith(f"{what} of suites.multi-lora")
    assert covers in lines[4]
    assert "1 loosen, 1 fix" in lines[-1]
    assert project.run("diff", "--fail-on", "loosen").exit_code == 1
    assert project.run("diff", "--fail-on", "trim").exit_code == 0


def test_the_observed_noise_is_told_beside_a_raised_limit(project: Project) -> None:
    """C21"""
    project.append(LOGPROB)
    project.commit("limit")
    raised = (project.root / "goldens.toml").read_text("utf-8").replace("max = 0.1", "max = 33.3")
    (project.root / "goldens.toml").write_text(raised, "utf-8")
    out = project.run("diff").stdout
    assert "max ≤ 0.1 → max ≤ 33.3" in out
    assert "max raised 333x" in out
    assert "measured there: 99 % of logprob differences below" in out


def test_nothing_changed_says_so(project: Project) -> None:
    done = project.run("diff")
    assert done.exit_code == 0 and "no golden and no rule changed" in done.stdout
    assert json.loads(project.run("diff", "--json").stdout)["goldens_changed"] == []


def test_a_checkout_with_crlf_is_no_change(project: Project) -> None:
    """C26 a"""
    for path in project.store.root.rglob("*.json"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert "no golden and no rule changed" in project.run("diff").stdout


def test_a_new_environment_is_shown_beside_its_parent(project: Project) -> None:
    """The story: a new environment, and one word in one row."""
    recorded = project.store.read_fingerprint(SUITE, PREFIX + "bfloat16-bs3")
    identity = dataclasses.replace(recorded.fingerprint.identity, torch="2.14")
    new = Fingerprint(identity, {**recorded.fingerprint.provenance, "torch": "2.14.0"})
    project.store.write_fingerprint(dataclasses.replace(recorded, fingerprint=new))
    goldens = project.goldens("bfloat16-bs3", "")
    for i, golden in enumerate(goldens):
        golden = reworded(golden) if i == 5 else golden
        project.store.write(dataclasses.replace(golden, slug=identity.slug))
    found = json.loads(project.run("diff", "--json").stdout)
    rows = found["goldens_changed"]
    assert len(rows) == len(goldens) == 24
    assert {row["beside"] for row in rows} == {PREFIX + "bfloat16-bs3"}
    (odd,) = (row for row in rows if row["reworded"])
    assert odd["case"] == goldens[5].case and odd["group"] == "create"
    shown = project.run("diff").stdout
    assert "23 goldens  multi-lora reference at" in shown
    assert shown.count("the tokens part at step") == 1
    assert f"beside {PREFIX}bfloat16-bs3:" in shown and "-> 2.14.0" in shown


def test_trimmed_and_environment_only(project: Project) -> None:
    golden = project.golden("bfloat16-bs3", "haiku/")
    project.store.path(SUITE, golden.slug, "reference", golden.case).unlink()
    recorded = project.store.read_fingerprint(SUITE, PREFIX + "bfloat16-bs8")
    moved = dataclasses.replace(
        recorded,
        fingerprint=Fingerprint(
            recorded.fingerprint.identity, {**recorded.fingerprint.provenance, "python": "9.9.9"}
        ),
    )
    project.store.write_fingerprint(moved)
    found = json.loads(project.run("diff", "--json").stdout)
    assert found["counts"]["trim"] == 1 and found["counts"]["environment-only"] == 1
    assert any("9.9.9" in words for words in found["environments"][0]["differences"])


def test_a_raised_noise_floor_is_loosening(project: Project) -> None:
    """logprob = "calibrated" holds cases to what fingerprint.json says."""
    recorded = project.store.read_fingerprint(SUITE, PREFIX + "bfloat16-bs8")
    noise = {**recorded.calibration["repeats"], "max": 9.0}
    project.store.write_fingerprint(
        dataclasses.replace(recorded, calibration={**recorded.calibration, "repeats": noise})
    )
    done = project.run("diff", "--fail-on", "loosen")
    assert done.exit_code == 1
    assert "noise floor raised: repeats.max 0 → 9" in done.stdout


def test_a_damaged_golden_is_a_problem_and_not_a_trim(project: Project) -> None:
    golden = project.golden("bfloat16-bs3", "haiku/")
    path = project.store.path(SUITE, golden.slug, "reference", golden.case)
    path.write_bytes(path.read_bytes()[:100])
    done = project.run("diff")
    assert done.exit_code == 1
    assert "DAMAGED" in done.stdout and path.name in done.stdout and "trim" not in done.stdout


@pytest.mark.parametrize("instead", ["nothing", "folder", "link"])
def test_goldens_without_their_environment_are_a_problem(project: Project, instead: str) -> None:
    path = project.root / "goldens" / SUITE / (PREFIX + "bfloat16-bs8") / "fingerprint.json"
    path.unlink()
    if instead == "folder":
        path.mkdir()
    if instead == "link":
        path.symlink_to("nowhere")
    done = project.run("diff")
    assert done.exit_code == 1 and "without their fingerprint.json" in done.output
    if instead == "link":  # it is there, so it is no environment that was never recorded
        status = project.run("status")
        assert status.exit_code == 1 and "fingerprint.json" in status.output


@pytest.mark.parametrize("what", ["fingerprint.json", "reference"])
def test_what_cannot_be_read_is_never_a_trim(
    project: Project, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Root may read everything, so the system's refusal is played."""
    scandir, read_bytes = os.scandir, Path.read_bytes

    def refuse(path: int | str | os.PathLike[str]) -> None:
        if not isinstance(path, int) and Path(path).name == what:
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))

    def listed(path: int | str | os.PathLike[str] = ".") -> object:
        refuse(path)
        return scandir(path)

    def read(path: Path) -> bytes:
        refuse(path)
        return read_bytes(path)

    monkeypatch.setattr(os, "scandir", listed)
    monkeypatch.setattr(Path, "read_bytes", read)
    done = project.run("diff")
    assert done.exit_code == 1 and "Permission denied" in done.output and what in done.output
    assert "trim" not in done.output and "check the owner" in done.output
    if what == "reference":
        checked = project.run("check")
        assert checked.exit_code == 1 and "check the owner" in checked.output
        assert "remove" not in checked.output


def test_a_pull_request_starts_where_the_branches_parted(project: Project) -> None:
    project.git("checkout", "-q", "-b", "work")
    project.store.write(reworded(project.golden("bfloat16-bs3", "base/")))
    project.commit("mine")
    project.git("checkout", "-q", "main")
    project.store.write(reworded(project.golden("bfloat16-bs8", "base/")))
    project.commit("theirs")
    plain = json.loads(project.run("diff", "main", "work", "--json").stdout)
    assert plain["counts"]["fix"] == 2  # one of them undoes main's
    mine = json.loads(project.run("diff", "--merge-base", "main", "work", "--json").stdout)
    assert mine["counts"]["fix"] == 1


def test_a_base_without_goldens_toml_has_no_goldens(project: Project) -> None:
    project.git("checkout", "-q", "--orphan", "empty")
    project.git("rm", "-rq", "--cached", ".")
    project.git("commit", "-q", "--allow-empty", "-m", "empty")
    project.git("checkout", "-qf", "main")
    found = json.loads(project.run("diff", "empty", "main", "--json").stdout)
    assert found["counts"]["create"] == 2 * 24 + 2 and not found["policy"]


def test_a_broken_goldens_toml_in_the_base_is_told_and_goldens_still_compared(
    project: Project,
) -> None:
    good = (project.root / "goldens.toml").read_text("utf-8")
    (project.root / "goldens.toml").write_text("[suites", "utf-8")
    project.commit("broken")
    (project.root / "goldens.toml").write_text(good, "utf-8")
    project.store.write(reworded(project.golden("bfloat16-bs3", "base/")))
    done = project.run("diff")
    assert done.exit_code == 1 and "HEAD:goldens.toml" in done.stdout
    assert "1 fix" in done.stdout


@pytest.mark.parametrize("revision", ["nope", "--output=x", "HEAD~99", ""])
def test_an_unknown_revision_is_a_usage_error(project: Project, revision: str) -> None:
    done = project.run("diff", "--", revision)
    assert done.exit_code == 2 and "git knows no such revision" in done.output


def test_outside_git_it_says_so(tmp_path: Path) -> None:
    project = Project.create(tmp_path / "p", ())
    (project.root / ".git").rename(project.root / "git")
    done = project.run("diff")
    assert done.exit_code == 2 and "not a git repository" in done.output


def test_a_link_in_a_revision_is_not_followed(project: Project) -> None:
    golden = project.golden("bfloat16-bs3", "haiku/")
    path = project.store.path(SUITE, golden.slug, "reference", golden.case)
    path.unlink()
    path.symlink_to("/etc/passwd")
    project.commit("link")
    done = project.run("diff", "HEAD~1", "HEAD")
    assert "passwd" not in done.output and "root:" not in done.output


def test_a_kernel_like_array_has_coordinates(project: Project) -> None:
    golden = project.golden("bfloat16-bs3", "base/")
    arrays = dict(golden.observation.arrays)
    top = np.array(arrays["top_logits"])
    top[3, 1] = np.nan
    arrays["top_logits"] = top
    observation = dataclasses.replace(golden.observation, arrays=arrays)
    project.store.write(dataclasses.replace(golden, observation=observation))
    out = project.run("diff").stdout
    assert "top_logits: 1 of 48 elements moved" in out
    assert "non-finite after: 1, first nan at [3, 1]" in out


def test_a_kernel_s_golden_shows_its_errors_and_its_rows(project: Project) -> None:
    suite = "grouped-decode"
    slug = next((ROOT / "goldens" / suite).glob("*float16")).name
    project.copy(suite, slug)
    project.commit("kernels")
    case = "B2-H128-1-D576-512-S5-float16"
    golden = project.store.read(suite, slug, "sdpa", case)
    output, arrays = golden.observation.output, dict(golden.observation.arrays)
    sample, rows = np.array(arrays["out_sample"]), np.array(arrays["out_row_digests"])
    sample[1, 7], rows[:3] = np.float16(9), 1
    arrays |= {"out_sample": sample, "out_row_digests": rows}
    errors = dataclasses.replace(output.errors, rel_l2=0.03, row=(1, 77))
    output = dataclasses.replace(output, errors=errors)
    observation = dataclasses.replace(golden.observation, output=output, arrays=arrays)
    project.store.write(dataclasses.replace(golden, observation=observation))
    for flags in ([], ["--report", "markdown:-"]):
        out = project.run("diff", *flags).stdout
        assert "against the oracle: rel-L2 0.000228 → 0.03 in row [1, 77]" in out
        assert "3 of 256 rows of out have other bits" in out
        assert "sampled rows of out, numbered from 0: 1 of" in out and "in row [1]" in out
        assert "1 fix" in out
    assert project.run("diff", "--report", "html:x.html").exit_code == 0


def test_the_page_has_one_column_for_all_dtypes_of_a_kernel(tmp_path: Path) -> None:
    """Each case's key says its dtype; a column each would stand empty but for its own cases."""
    project = Project.create(tmp_path / "p", ())
    place = "cpu-avx512-avx512_core_amx-t2-torch2.13-triton3.9"
    for dtype in ("float16", "bfloat16"):
        project.copy("grouped-decode", f"{place}-{dtype}")
    project.commit("kernels")
    gone = [
        next((project.root / "goldens/grouped-decode" / f"{place}-{dtype}/torch").glob("B2-*"))
        for dtype in ("float16", "bfloat16")
    ]
    for path in gone:
        path.unlink()
    with diff(project.root / "goldens.toml") as changes:
        made = page(changes)
    subjects = ["flex", "sdpa", "torch", "triton"]
    assert sorted(column.group for column in made.columns) == subjects
    torch = next(i for i, column in enumerate(made.columns) if column.group == "torch")
    assert {row.key: row.cells[torch].status for row in made.rows} == {
        path.stem: "trim" for path in gone
    }
