"""The main job on the real model, through the command line."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.snapshot.workspace import PROMPTS, Workspace

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, smollm2: Path) -> Workspace:
    """A recorded project, in a folder that is hard on paths (C28). Not to be changed."""
    workspace = Workspace.create(tmp_path_factory.mktemp("w") / "my golden dir" / "日本", smollm2)
    done = workspace.run("record")
    assert done.code == 0, done.err
    return workspace


@pytest.fixture
def workspace(recorded: Workspace, tmp_path: Path) -> Workspace:
    """A copy of it that a test may change."""
    root = tmp_path / "copy of it"
    shutil.copytree(recorded.root, root)
    return Workspace(root)


def test_recorded_goldens_verify_and_nothing_is_written(recorded: Workspace) -> None:
    before = recorded.tree()
    done = recorded.run("verify", "--json", CI="true")
    assert done.code == 0, done.out
    assert {row["verdict"] for run in done.json["runs"] for row in run["results"]} == {"MATCH"}
    assert [len(run["results"]) for run in done.json["runs"]] == [6, 6]
    assert recorded.tree() == before
    assert recorded.run("check").code == 0


def test_a_second_record_changes_no_byte(workspace: Workspace) -> None:
    before = workspace.tree()
    done = workspace.run("record", "--repeat", "1")
    assert done.code == 0, done.err
    assert "unchanged" in done.out and "created" not in done.out and "updated" not in done.out
    assert workspace.tree() == before


@pytest.mark.parametrize("flags", [(), ("--new-only",)])
def test_a_prompt_added_at_the_end_adds_files_and_changes_none(
    workspace: Workspace, flags: tuple[str, ...]
) -> None:
    before = workspace.tree()
    # Two prompts make six rows: batches of 2 and of 3 are full.
    workspace.prompts(*PROMPTS, "Once upon a time, in a village by the sea,", "今天天气")
    assert workspace.run("verify", "--batch-size", "3").code == 3
    done = workspace.run("record", "--repeat", "1", *flags)
    assert done.code == 0, done.err
    after = workspace.tree()
    assert {name: after[name] for name in before} == before
    added = {name for name in after.keys() - before.keys() if name.endswith(".json")}
    assert len(added) == 12
    assert workspace.run("check").code == 0


def test_another_batch_size_is_held_to_its_variant(recorded: Workspace) -> None:
    """The reference's own wording at another batch size passes, and is shown."""
    done = recorded.run("verify", "--batch-size", "3", "--against", recorded.slug(2), "--json")
    assert done.code == 0, done.out
    verdicts = set(done.verdicts().values())
    assert verdicts <= {"MATCH", "VARIANT"}


def test_a_missing_golden_is_exit_3_and_is_not_created(workspace: Workspace) -> None:
    """C30: with CI set and unset, the tree stays as it is."""
    workspace.golden(3, "pirate").unlink()
    before = workspace.tree()
    for ci in ("", "true"):
        done = workspace.run("verify", "--batch-size", "3", "--json", CI=ci)
        assert done.code == 3
        assert sorted(done.verdicts().values()) == ["MATCH"] * 5 + ["MISSING"]
    assert workspace.tree() == before


def test_recording_in_ci_needs_a_flag_of_its_own(workspace: Workspace) -> None:
    """C30: refused with CI set; a pending folder is no golden tree."""
    missing = workspace.golden(3, "pirate")
    missing.unlink()
    before = workspace.tree()
    refused = workspace.run("record", "--new-only", CI="true")
    assert refused.code == 2 and "--update-in-ci" in refused.err
    flags = ("--new-only", "--repeat", "1")
    pending = workspace.run("record", *flags, "--pending", "to review", CI="true")
    assert pending.code == 0, pending.err
    assert workspace.tree() == before
    (found,) = (workspace.root / "to review").glob("s/*/reference/*/*.json")
    assert found == workspace.root / "to review" / missing.relative_to(workspace.store)
    assert json.loads(found.read_text("utf-8"))["subject"] == "reference"
    asked = workspace.run("record", *flags, "--update-in-ci", CI="true")
    assert asked.code == 0 and missing.exists()


def test_a_flipped_byte_fails_check_and_verify_and_survives_a_record(workspace: Workspace) -> None:
    golden = workspace.golden(2, "base")
    blob = next((workspace.store / "blobs").rglob("*.zst"))
    environment = golden.parents[2] / "fingerprint.json"
    for path in (golden, environment, blob):
        whole = path.read_bytes()
        damaged = bytearray(whole)
        damaged[len(damaged) // 2] ^= 0x04
        path.write_bytes(damaged)
        before = workspace.tree()
        for command in (("check",), ("verify", "--batch-size", "3")):
            done = workspace.run(*command)
            assert done.code == 1 and path.name in done.out, done.out + done.err
        assert workspace.tree() == before
        path.write_bytes(whole)
    damaged = bytearray(golden.read_bytes())
    damaged[-30] ^= 0x01
    golden.write_bytes(damaged)
    done = workspace.run("record", "--repeat", "1", "--batch-size", "2")
    assert done.code == 1 and golden.name in done.err
    assert golden.read_bytes() == damaged


def test_crlf_checkout_verifies(workspace: Workspace) -> None:
    """C26 (a)."""
    for path in workspace.store.rglob("*.json"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert workspace.run("check").code == 0
    assert workspace.run("verify", "--batch-size", "3").code == 0


def test_changed_adapter_weights_are_invalid_and_named(
    workspace: Workspace, smollm2: Path, tmp_path: Path
) -> None:
    other = tmp_path / "retrained"
    shutil.copytree(smollm2 / "haiku", other)
    weights = other / "adapter_model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 0x01
    weights.write_bytes(data)
    config = workspace.root / "goldens.toml"
    text = config.read_text("utf-8").replace(str(smollm2 / "haiku"), str(other))
    config.write_text(text, "utf-8")
    done = workspace.run("verify", "--batch-size", "3", "--json")
    assert done.code == 1
    rows = done.json["runs"][0]["results"]
    invalid = [row for row in rows if row["verdict"] == "INVALID"]
    assert [row["case"].split("/")[0] for row in invalid] == ["haiku", "haiku"]
    assert all('adapter "haiku"' in row["headline"] for row in invalid)
    assert {row["verdict"] for row in rows if row not in invalid} == {"MATCH"}


def outputs_of(workspace: Workspace, source: dict[str, str]) -> str:
    """Recorded outputs, where `source` says whose answer each adapter gives."""
    lines = []
    for path in sorted((workspace.store / "s" / workspace.slug(3) / "reference").rglob("*.json")):
        record = json.loads(path.read_text("utf-8"))
        adapter = record["case"].split("/")[0]
        other = path.parents[1] / source.get(adapter, adapter) / path.name
        answer = json.loads(other.read_text("utf-8"))["output"]
        lines.append(json.dumps({"case": record["case"], **answer}, ensure_ascii=False))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("source", "row", "diagnosis"),
    [
        ({"pirate": "haiku"}, "pirate", 'matches the golden of adapter "haiku"'),
        ({"pirate": "base"}, "pirate", "matches the base golden: adapter had no effect"),
        ({"base": "haiku"}, "base", 'matches the golden of adapter "haiku"'),
    ],
)
def test_another_rows_answer_is_a_regression_that_says_so(
    workspace: Workspace, source: dict[str, str], row: str, diagnosis: str
) -> None:
    """C04, C06: adapter swapped, not applied, leaked into the base row."""
    (workspace.root / "out.jsonl").write_text(outputs_of(workspace, source), "utf-8")
    against = ("--from", "out.jsonl", "--against", workspace.slug(3))
    done = workspace.run("verify", *against, "--json")
    assert done.code == 1
    for result in done.json["runs"][0]["results"]:
        wrong = result["case"].startswith(row)
        assert result["verdict"] == ("REGRESSION" if wrong else "MATCH"), result
        assert not wrong or diagnosis in result["headline"]


def test_an_adapter_without_effect_is_not_recorded(smollm2: Path, tmp_path: Path) -> None:
    """C04: the recorder refuses, names the rows, and takes an acknowledgement a case."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(smollm2 / "haiku", tmp_path / "zero")
    weights = tmp_path / "zero" / "adapter_model.safetensors"
    save_file({name: tensor * 0 for name, tensor in load_file(weights).items()}, weights)
    workspace = Workspace.create(
        tmp_path / "w", smollm2, adapters={"zero": str(tmp_path / "zero")}, batch_sizes=[2]
    )
    refused = workspace.run("record", "--repeat", "1")
    assert refused.code == 1 and not workspace.store.exists()
    assert refused.err.count('the row of adapter "zero" equals the row without adapter') == 2
    assert "zero/hovedstaden-i-norge-er" in refused.err and "its logprobs are the base's too" in (
        refused.err
    )
    workspace.append(
        '[[suites.s.allow]]\ncase = "zero/*"\nfinding = "same-as-base"\nreason = "r"\n'
    )
    assert workspace.run("record", "--repeat", "1").code == 0


def test_file_commands_and_recorded_outputs_need_no_torch(workspace: Workspace) -> None:
    """The base install: status, check and a verify of recorded candidates."""
    (workspace.root / "out.jsonl").write_text(outputs_of(workspace, {}), "utf-8")
    blocked = workspace.root / "blocked"
    blocked.mkdir()
    for name in ("torch", "transformers", "peft", "triton"):
        (blocked / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})\n")
    hidden = {"PYTHONPATH": os.pathsep.join([str(blocked), str(Path(__file__).parents[2])])}
    for command in (
        ("status",),
        ("check",),
        ("env",),
        ("verify", "--from", "out.jsonl", "--against", workspace.slug(3)),
    ):
        done = workspace.run(*command, **hidden)
        assert done.code == 0, (command, done.out, done.err)
    refused = workspace.run("verify", **hidden)
    assert refused.code == 1 and "goldens[lora]" in refused.err


def test_outputs_without_an_environment_are_a_usage_error(recorded: Workspace) -> None:
    done = recorded.run("verify", "--from", "prompts.jsonl")
    assert done.code == 2 and "--against" in done.err and recorded.slug(3) in done.err
