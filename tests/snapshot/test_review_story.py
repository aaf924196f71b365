"""Goldens change through pull requests: the whole way on the real model, in real git."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.snapshot.project import Project
from tests.snapshot.workspace import Workspace

pytest.importorskip("torch", reason="the base install has no reference")
pytestmark = pytest.mark.model

PROMPTS = ("Jeg liker å gå på tur fordi", "Large language models are trained on")
RELAX = """
[[suites.s.relax]]
case = "haiku/*"
logprob = { max = 0.5 }
reason = "drifts"
issue = "https://example.org/1"
owner = "@ci"
expires = 2199-01-01
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, smollm2: Path) -> Workspace:
    """Goldens of two adapters at two batch sizes, on main. Not to be changed."""
    root = tmp_path_factory.mktemp("story") / "repository"
    adapters = {name: f"adapters/{name}" for name in ("pirate", "haiku")}
    made = Workspace.create(root, smollm2, adapters=adapters, max_new_tokens=6)
    for name, folder in adapters.items():
        shutil.copytree(smollm2 / name, root / folder)
    made.prompts(*PROMPTS)
    (root / ".gitignore").write_text(".goldens/\n", "utf-8")
    Project(root).git("init", "-q", "-b", "main")
    done = made.run("record", "--repeat", "1")
    assert done.code == 0, done.err
    Project(root).commit("goldens")
    return made


@pytest.fixture
def workspace(recorded: Workspace, tmp_path: Path) -> Workspace:
    """A copy of the repository that a test may change."""
    shutil.copytree(recorded.root, tmp_path / "clone")
    return Workspace(tmp_path / "clone")


def change_weights(adapter: Path) -> None:
    """What the adapter does, turned around."""
    from safetensors.torch import load_file, save_file

    path = adapter / "adapter_model.safetensors"
    turned = {n: -t if "lora_B" in n else t for n, t in load_file(path).items()}
    save_file(turned, path, metadata={"format": "pt"})


def test_one_changed_adapter_is_all_that_the_diff_shows(workspace: Workspace) -> None:
    """Record, branch, change one adapter, record again, loosen a tolerance."""
    git = Project(workspace.root)
    git.git("checkout", "-q", "-b", "work")
    change_weights(workspace.root / "adapters" / "pirate")
    done = workspace.run("record", "--repeat", "1", "--json")
    assert done.code == 0, done.err
    again = {
        (item["fingerprint"], case)
        for item in done.json
        for case, change in item["changes"].items()
        if change == "updated"
    }
    git.commit("pirate: other weights")

    def diff(*flags: str) -> Any:
        done = git.run("diff", "main", "--json", *flags)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    found = diff()
    slugs = {workspace.slug(2), workspace.slug(3)}
    changed = found["goldens_changed"]
    pirates = [path.stem for path in workspace.golden(3, "pirate").parent.iterdir()]
    rows = {(slug, f"pirate/{prompt}") for slug in slugs for prompt in pirates}
    assert len(rows) == 4 and rows == again
    assert {(row["fingerprint"], row["case"]) for row in changed} == rows
    assert {row["group"] for row in changed} == {"fix"} and len(changed) == 4
    for row in changed:
        assert row["reworded"] and row["divergence"]["step"] is not None
        assert "another workload: adapter" in row["notes"]
    assert found["counts"]["create"] == found["counts"]["trim"] == 0 and not found["policy"]
    # What the adapter moves is measured anew with it, and nothing else changed around it.
    noise = found["environments"]
    assert {change["fingerprint"] for change in noise} == slugs
    assert all("noise" in said for change in noise for said in change["differences"])
    reach = {(r["fingerprint"], r["subject"]): r["changed"] for r in found["reach"]}
    assert {place: counts["fix"] for place, counts in reach.items()} == {
        (slug, "reference"): 2 for slug in slugs
    }
    assert git.run("diff", "main", "--fail-on", "fix").exit_code == 1
    assert git.run("diff", "main", "--fail-on", "trim").exit_code == 0
    assert git.run("diff", "nowhere").exit_code == 2

    workspace.append(RELAX)
    loosened = diff()
    assert loosened["counts"]["loosen"] == found["counts"]["loosen"] + 1
    assert loosened["goldens_changed"] == changed
    (rule,) = loosened["policy"]
    assert rule["direction"] == "loosened"
    shown = git.run("diff", "main")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[2] == "LOOSENED  goldens.toml"
    assert shown.stdout.index("LOOSENED") < shown.stdout.index("fix  4 goldens")
    assert git.run("diff", "main", "--fail-on", "loosen").exit_code == 1


def test_an_environment_that_moved_is_reviewed_and_matches(workspace: Workspace) -> None:
    """verify in another environment, what the reference said there accepted, verify again."""
    before, own = workspace.tree(), workspace.slug(3)
    there = {"ONEDNN_MAX_CPU_ISA": "AVX2", "CI": "true"}
    flags = ("verify", "--batch-size", "3", "--json")
    git, pending = Project(workspace.root), workspace.root / "pending-goldens"
    moved = workspace.run(*flags, "--against", own, "--pending", "pending-goldens", **there)
    slug = moved.json["runs"][0]["fingerprint"]
    if slug == own:
        pytest.skip("this CPU has no further instruction set to leave out")
    assert moved.code == 5, moved.out + moved.err
    verdicts = moved.verdicts()
    assert "DRIFT" in verdicts.values()
    assert set(verdicts.values()) <= {"DRIFT", "TIE", "VARIANT", "MATCH"}
    assert workspace.tree() == before  # verify never writes there

    # All of the new environment's rows, as they were judged, and its noise as record measures it.
    said = {row["case"]: row["candidate_text"] for row in moved.json["runs"][0]["results"]}
    files = {
        path: json.loads(path.read_text("utf-8")) for path in pending.rglob("reference/*/*.json")
    }
    assert {path.parent.parent for path in files} == {pending / "s" / slug / "reference"}
    assert {record["case"]: record["output"]["text"] for record in files.values()} == said
    environment = json.loads((pending / "s" / slug / "fingerprint.json").read_text("utf-8"))
    noise = environment["calibration"]
    assert noise.keys() >= {"adapter_effect", "batch_sizes", "orders", "repeats"}
    assert noise["repeats"]["max"] == 0 and noise["repeats"]["count"] > 100

    waiting = json.loads(git.run("review", "--json").stdout)
    assert waiting["problems"] == []
    assert {item["group"] for item in waiting["pending"]} == {"create"}
    assert git.run("review", "--accept", "*", "--dry-run").exit_code == 0
    assert workspace.tree() == before
    for glob in ("base/*", f"s/{slug}/reference/*"):
        accepted = git.run("review", "--accept", glob)
        assert accepted.exit_code == 0, accepted.output
    assert not pending.exists()
    assert {name: entry for name, entry in workspace.tree().items() if name in before} == before
    assert git.run("check").exit_code == 0
    again = workspace.run(*flags, **there)
    assert again.code == 0, again.out
    assert again.json["runs"][0]["golden"] == slug
    assert again.verdicts() == dict.fromkeys(said, "MATCH")
    changed = json.loads(git.run("diff", "--json").stdout)["goldens_changed"]
    assert {(row["fingerprint"], row["group"]) for row in changed} == {(slug, "create")}
