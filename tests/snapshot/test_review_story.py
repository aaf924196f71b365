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
    """Goldens of the real model with two adapters at two batch sizes, on main. Not to be changed."""
    root = tmp_path_factory.mktemp("story") / "repository"
    adapters = {name: f"adapters/{name}" for name in ("pirate", "haiku")}
    made = Workspace.create(root, smollm2, adapters=adapters, max_new_tokens=6)
    for name, folder in adapters.items():
        shutil.copytree(smollm2 / name, root / folder)
    made.prompts(*PROMPTS)
    (root / ".gitignore").write_text(".goldens/\n", "utf-8")
    Project(root).git("init", "-q", "-b", "main")
    done = made.run("record")
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
    done = workspace.run("record", "--json")
    assert done.code == 0, done.err
    again = {
        (item["fingerprint"], case)
        for item in done.json
        for case, change in item["changes"].items()
        if change == "updated"
    }
    git.commit("pirate: other weights")

    def diff(*flags: str) -> Any:
        run = workspace.run("diff", "main", "--json", *flags)
        assert run.code == 0, run.err
        return json.loads(run.out)

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
    noise = found["environments_changed"]
    assert {change["fingerprint"] for change in noise} == slugs
    assert all("noise" in said for change in noise for said in change["differences"])
    reach = {(r["fingerprint"], r["subject"]): r["changed"] for r in found["reach"]}
    assert {place: counts["fix"] for place, counts in reach.items()} == {
        (slug, "reference"): 2 for slug in slugs
    }
    assert workspace.run("diff", "main", "--fail-on", "fix").code == 1
    assert workspace.run("diff", "main", "--fail-on", "trim").code == 0
    assert workspace.run("diff", "nowhere").code == 2

    workspace.append(RELAX)
    loosened = diff()
    assert loosened["counts"]["loosen"] == found["counts"]["loosen"] + 1
    assert loosened["goldens_changed"] == changed
    (rule,) = loosened["policy"]
    assert rule["loosened"]
    shown = workspace.run("diff", "main")
    assert shown.code == 0
    assert shown.out.splitlines()[2] == "LOOSENED  goldens.toml"
    assert shown.out.index("LOOSENED") < shown.out.index("fix  4 goldens")
    assert workspace.run("diff", "main", "--fail-on", "loosen").code == 1


def test_an_environment_that_moved_is_reviewed_and_matches(workspace: Workspace) -> None:
    """verify in another environment, what the reference said there accepted, verify again."""
    before, own = workspace.tree(), workspace.slug(3)
    there = {"ONEDNN_MAX_CPU_ISA": "AVX2", "CI": "true"}
    here = workspace.run("env", "--dtype", "bfloat16", "--batch-size", "3", "--json", **there)
    slug = here.json["slug"]
    if slug == own:
        pytest.skip("this CPU has no further instruction set to leave out")
    flags = ("verify", "--batch-size", "3", "--json")
    pending = workspace.root / "pending-goldens"
    moved = workspace.run(*flags, "--against", own, "--attribute", "always",
                          "--pending", "pending-goldens", **there)  # fmt: skip
    assert moved.code == 5, moved.out + moved.err
    verdicts = moved.verdicts()
    assert "DRIFT" in verdicts.values() and set(verdicts.values()) <= {
        "DRIFT", "TIE", "VARIANT", "MATCH",
    }  # fmt: skip
    assert workspace.tree() == before  # verify never writes there

    # All of the new environment's rows, as they were judged, and its noise as record measures it.
    said = {row["case"]: row["candidate_text"] for row in moved.json["runs"][0]["results"]}
    files = {path: json.loads(path.read_text("utf-8")) for path in pending.glob("s/*/*/*/*.json")}
    assert {path.parts[-4:-2] for path in files} == {(slug, "reference")}
    assert {record["case"]: record["output"]["text"] for record in files.values()} == said
    environment = json.loads((pending / "s" / slug / "fingerprint.json").read_text("utf-8"))
    assert environment["calibration"].keys() == {
        "adapter_effect", "batch_sizes", "orders", "power", "repeats",
    } - ({"power"} if "power" not in environment["calibration"] else set())  # fmt: skip
    assert environment["calibration"]["repeats"]["max"] == 0

    waiting = workspace.run("review", "--json").json
    assert waiting["problems"] == []
    assert {item["group"] for item in waiting["pending"]} == {"create"}
    assert workspace.run("review", "--accept", "*", "--dry-run").code == 0
    assert workspace.tree() == before
    for glob in ("base/*", f"s/{slug}/reference/*"):
        accepted = workspace.run("review", "--accept", glob)
        assert accepted.code == 0, accepted.err
    assert not pending.exists()
    assert {name: entry for name, entry in workspace.tree().items() if name in before} == before
    assert workspace.run("check").code == 0
    again = workspace.run(*flags, **there)
    assert again.code == 0, again.out
    assert again.json["runs"][0]["golden"] == slug
    assert again.verdicts() == dict.fromkeys(said, "MATCH")
    diff = workspace.run("diff", "--json").json
    assert {row["fingerprint"] for row in diff["goldens_changed"]} == {slug}
    assert {row["group"] for row in diff["goldens_changed"]} == {"create"}
