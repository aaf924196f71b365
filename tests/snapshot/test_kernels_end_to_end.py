"""Kernels through the command line: recorded, verified, caught; what dies costs its own case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.snapshot.workspace import Workspace

FAKE = "tests.snapshot.fake_kernels"
SMALL = ["B2-H4-2-D16-16-S8-float16", "B2-H4-2-D16-16-S9-bfloat16"]


class Kernels(Workspace):
    """A project with one kernel suite `k`."""

    @classmethod
    def of(cls, root: Path, candidates: list[str], cases: list[str], more: str = "") -> Kernels:
        names = [name if name.isidentifier() else f"{FAKE}:{name[1:]}" for name in candidates]
        (root / "goldens.toml").write_text(
            f'[suites.k]\nkind = "grouped-decode"\ndevice = "cpu"\ntimeout = 30\n'
            f"candidates = {json.dumps(names)}\ncases = {json.dumps(cases)}\n{more}"
        )
        return cls(root)

    def results(self, *arguments: str, **environment: str) -> dict[str, dict[str, Any]]:
        """By case key: its result, of a suite with one candidate."""
        done = self.run("verify", "--json", *arguments, **environment)
        return {row["case"]: row for run in done.json["runs"] for row in run["results"]}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    """Two candidates, one of which does not support a case; not to be changed."""
    root = tmp_path_factory.mktemp("k") / "kernel goldens"
    root.mkdir()
    kernels = Kernels.of(root, ["triton", "sdpa"], [*SMALL, "B2-H4-2-D16-16-S9-float16-sinks"])
    done = kernels.run("record", "--json")
    assert done.code == 0, done.err
    assert [len(run["changes"]) for run in done.json] == [2, 1, 1, 1]
    assert done.json[2]["not_run"] == {"B2-H4-2-D16-16-S9-float16-sinks": "no sinks"}
    return kernels


def test_recorded_kernels_match_and_nothing_is_written(recorded: Kernels) -> None:
    before = recorded.tree()
    done = recorded.run("verify", "--json", CI="true")
    assert done.code == 0, done.out
    verdicts = [row["verdict"] for run in done.json["runs"] for row in run["results"]]
    assert verdicts == ["MATCH"] * 5
    assert [run["not_run"] for run in done.json["runs"]][2] != {}
    said = recorded.run("verify", "*-sinks").out
    assert "not run: 1 case: no sinks" in said and "1 case: 1 MATCH, 1 not run" in said
    assert recorded.tree() == before
    checked = recorded.run("check")
    assert checked.code == 0 and "5 goldens, every one sound" in checked.out


def test_only_what_was_not_run_is_no_pass(recorded: Kernels, tmp_path: Path) -> None:
    kernels = Kernels.of(tmp_path, ["sdpa"], ["B2-H4-2-D16-16-S9-float16-sinks"])
    assert kernels.run("verify").code == 4


def test_status_counts_by_kernel(recorded: Kernels) -> None:
    done = recorded.run("status", "--json")
    (suite,) = done.json
    counts = [(r["subjects"], r["cases"], r["configured"]) for r in suite["recorded"]]
    assert counts == [(["sdpa"], 1, 1), (["triton"], 1, 1), (["sdpa"], 1, 2), (["triton"], 2, 2)]
    assert "triton, 2 of 2 recorded" in recorded.run("status").out


def test_a_second_record_changes_no_byte(recorded: Kernels) -> None:
    before = recorded.tree()
    done = recorded.run("record", "--repeat", "1")
    assert done.code == 0 and "unchanged" in done.out and "created" not in done.out
    assert recorded.tree() == before


def test_missing_elsewhere_and_damage(recorded: Kernels, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(recorded.root, tmp_path / "copy")
    kernels = Kernels(tmp_path / "copy")
    done = kernels.run("verify", SMALL[0], "--json", OMP_NUM_THREADS="2")
    assert done.code == 3
    assert {r["verdict"] for run in done.json["runs"] for r in run["results"]} == {"MISSING"}
    path = next(kernels.store.glob(f"k/*/triton/{SMALL[0]}.json"))
    path.write_text(path.read_text().replace("float16", "float61", 1))
    assert kernels.run("check").code == 1
    found = kernels.run("verify", SMALL[0], "--json").json["runs"][0]["results"][0]
    assert found["verdict"] == "ERROR" and "cannot be read" in found["headline"]
    assert kernels.run("record", "--new-only").code == 1  # damage is never overwritten


def test_the_action_keeps_what_is_missing_for_review(tmp_path: Path) -> None:
    """Right and never recorded: pending. Wrong: not. Accepted, it matches."""
    kernels = Kernels.of(tmp_path, [":off_at_length_8"], SMALL)
    output = tmp_path / "output"
    variables = {"CI": "true", "GITHUB_OUTPUT": str(output)}
    done = kernels.run("verify", module="snapshot.action", **variables)
    assert done.code == 1, done.err  # one is wrong
    assert not kernels.store.exists()
    pending = tmp_path / "pending-goldens"
    (golden,) = pending.glob("k/*/*/*.json")
    assert golden.stem == SMALL[1]
    assert {"pending=pending-goldens", "exit-code=1", "report=goldens-report"} <= set(
        output.read_text("utf-8").split()
    )
    fine = kernels.run("verify", SMALL[1], module="snapshot.action", **variables)
    assert fine.code == 3 and "1 goldens wait in pending-goldens" in fine.err
    dry = kernels.run("review", "--dry-run")
    assert (
        dry.code == 0 and f"{golden.parent.name}/{SMALL[1]}" in dry.out and "1 pending" in dry.out
    )
    assert kernels.run("review", "--accept", SMALL[1]).code == 0
    assert kernels.results(SMALL[1])[SMALL[1]]["verdict"] == "MATCH"
    (environment,) = kernels.store.glob("k/*/fingerprint.json")
    floors = json.loads(environment.read_text("utf-8"))["calibration"]
    assert floors == {golden.parent.name: {"unstable": {}}}
    output.unlink()
    nothing = kernels.run("verify", SMALL[1], module="snapshot.action", **variables)
    assert nothing.code == 0 and not pending.exists()
    assert "pending=" not in output.read_text("utf-8")


def test_what_goes_wrong_costs_its_own_case(tmp_path: Path) -> None:
    """An exception, a death and a hang; the run goes on in a fresh process."""
    said = {
        8: "the kernel raised ValueError: no such tile",
        9: "the kernel's process died with exit code 11",
        10: "timed out after 3 s",
    }
    cases = {length: f"B2-H4-2-D16-16-S{length}-float16" for length in (8, 9, 10, 11)}
    kernels = Kernels.of(tmp_path, [":fragile"], list(cases.values()))
    text = (tmp_path / "goldens.toml").read_text().replace("timeout = 30", "timeout = 3")
    (tmp_path / "goldens.toml").write_text(text)
    found = kernels.results()
    assert [found[key]["verdict"] for key in cases.values()] == ["ERROR"] * 3 + ["MISSING"]
    assert {length: found[cases[length]]["headline"] for length in said} == said


def test_moved_bits_are_within_and_shown(tmp_path: Path) -> None:
    kernels = Kernels.of(tmp_path, [":one_ulp_if_asked"], SMALL[:1])
    assert kernels.run("record", "--repeat", "1").code == 0
    found = kernels.results(FAKE_ULP="1")[SMALL[0]]
    assert found["verdict"] == "WITHIN"
    assert "bits moved in 1 of 128 elements, 1 of 8 rows, up to 1 ulp" in found["headline"]
    assert found["moved"]["elements"] == 1 and found["computed"]["errors"]["compared"] == 128


def test_another_environment_of_this_machine_moves_bits_and_no_error(tmp_path: Path) -> None:
    """oneDNN without its newest instructions: another fingerprint, right all the same."""
    kernels = Kernels.of(tmp_path, ["torch"], ["B2-H16-1-D64-64-S100-float16"])
    done = kernels.run("record", "--repeat", "1", "--json")
    assert done.code == 0, done.err
    other = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    against = ("verify", "--against", done.json[0]["fingerprint"], "--json")
    there = kernels.run(*against, **other).json["runs"][0]
    assert kernels.run("verify", **other).code in (0, 3)  # 0: a machine without those
    (result,) = there["results"]
    assert result["verdict"] in ("MATCH", "WITHIN"), result
    if result["verdict"] == "WITHIN":
        assert "bits moved in" in result["headline"] and there["fingerprint"] != there["golden"]
        assert "numeric mode differs from recording" in result["notes"][0]


def test_other_bits_in_a_fresh_process_are_refused_but_where_allowed(tmp_path: Path) -> None:
    kernels = Kernels.of(tmp_path, [":another_bit_each_process"], SMALL[:1])
    done = kernels.run("record")
    assert done.code == 1
    assert "unstable: a fresh process gives other bits in 1 of 8 rows, up to 1 ulp" in done.out
    allow = '[[suites.k.allow]]\ncase = "*"\nfinding = "unstable"\nreason = "atomics"\n'
    done = Kernels.of(tmp_path, [":another_bit_each_process"], SMALL[:1], allow).run(
        "record", "--json"
    )
    assert done.code == 0
    (floor,) = done.json[0]["calibration"].values()
    noise = {"rows": 1, "of_rows": 8, "sampled": 8, "ulp_max": 1}
    assert floor == {"unstable": {SMALL[0]: noise}}


def test_what_repeats_showed_is_kept_for_goldens_that_stay(tmp_path: Path) -> None:
    """A case is added, here and pending; another one is recorded anew: only its own noise goes."""
    allow = '[[suites.k.allow]]\ncase = "*"\nfinding = "unstable"\nreason = "atomics"\n'
    fake, cases = [":another_bit_each_process"], [f"B2-H4-2-D16-16-S{n}-float16" for n in (8, 9)]
    kernels = Kernels.of(tmp_path, fake, cases[:1], allow)
    (first,) = kernels.run("record", "--json").json
    assert list(noise(first)) == cases[:1]
    kernels = Kernels.of(tmp_path, fake, cases, allow)
    (pending,) = kernels.run("record", "--new-only", "--pending", "new", "--json").json
    assert pending["changes"] == {cases[1]: "created"} and list(noise(pending)) == cases
    (added,) = kernels.run("record", "--new-only", "--json").json
    assert noise(added) == noise(pending) and noise(added)[cases[0]] == noise(first)[cases[0]]
    (tmp_path / "processes").write_text("x")  # the first process gives the other bit
    (again,) = kernels.run("record", cases[0], "--repeat", "1", "--json").json
    assert again["changes"] == {cases[0]: "updated"} and list(noise(again)) == cases[1:]


def noise(recorded: dict[str, Any]) -> dict[str, Any]:
    """How far repeats were apart, by case; of one subject."""
    (found,) = recorded["calibration"].values()
    return dict(found["unstable"])


def test_a_quarantined_failure_is_counted_and_its_golden_not_recorded(tmp_path: Path) -> None:
    """And an exclusion is counted."""
    rule = (
        '[[suites.k.not_run]]\ncase = "*-S9-*"\ndevice = "cpu"\nreason = "slow there"\n'
        '[[suites.k.quarantine]]\ncase = "*-S8-*"\nreason = "r"\nissue = "i"\nowner = "@o"\n'
        "expires = 2100-01-01\n"
    )
    kernels = Kernels.of(tmp_path, [":off_at_length_8"], SMALL, rule)
    done = kernels.run("record", "--repeat", "1")
    assert done.code == 0 and "not recorded: quarantined: WRONG" in done.out
    assert "not recorded: slow there (1)" in done.out
    verdicts = {key: row["verdict"] for key, row in kernels.results().items()}
    assert verdicts == {SMALL[0]: "QUARANTINED"}


RAGGED = "B4-H2-1-D16-16-S17-float16-ragged"
FREE = '[[suites.k.allow]]\ncase = "*-ragged"\nfinding = "zero-length"\nreason = "padded rows"\n'


@pytest.mark.parametrize("fake", [":leaves_empty_rows", ":stale_empty_rows"])
def test_rows_without_keys_may_be_declared_free_and_that_is_shown(
    tmp_path: Path, fake: str
) -> None:
    """C17: by default they hold zeros; under the mask they pass, and every report says so."""
    kernels = Kernels.of(tmp_path, [fake], [RAGGED])
    assert kernels.run("verify").code == 1
    kernels = Kernels.of(tmp_path, [fake], [RAGGED], FREE)
    assert kernels.run("record", "--repeat", "2").code == 0
    done = kernels.run("verify", "--report", "markdown:report.md")
    note = "masked by an allow entry, and not compared: sequence 1, without keys; 32 values there"
    assert done.code == 0 and "MATCH" in done.out and note in done.out
    assert note in (tmp_path / "report.md").read_text()
    row = kernels.results()[RAGGED]
    assert note in row["notes"][0] and row["computed"]["masked"]["sequences"] == [1]
    # The golden holds the contract's zeros: a kernel that keeps it matches without the mask.
    strict = Kernels.of(tmp_path, [fake], [RAGGED])
    assert strict.run("verify").code == 1


def test_a_mask_without_rows_to_mask_is_a_mistake(tmp_path: Path) -> None:
    done = Kernels.of(tmp_path, ["torch"], SMALL, FREE.replace("*-ragged", "*")).run("status")
    assert done.code == 2
    assert "suites.k.allow[0]" in done.err and "a sequence of length 0" in done.err


def test_a_name_that_is_no_kernel(tmp_path: Path) -> None:
    unknown = Kernels.of(tmp_path, ["nosuch"], SMALL).run("verify")
    assert unknown.code == 2 and "no kernel has this name" in unknown.err


def test_a_kernel_beside_goldens_toml_is_found(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from grouped_decode.mutants import unharmed as kernel\n")
    kernels = Kernels.of(tmp_path, [], SMALL[:1])
    text = (tmp_path / "goldens.toml").read_text().replace("[]", '["mine:kernel"]')
    (tmp_path / "goldens.toml").write_text(text)
    assert kernels.run("record", "--repeat", "1").code == 0
    assert kernels.results()[SMALL[0]]["verdict"] == "MATCH"


def test_options_of_generation_are_refused_in_words(recorded: Kernels) -> None:
    outputs = recorded.run("verify", "--from", "x.jsonl", "--against", "s")
    assert outputs.code == 2 and "recorded outputs are of one suite" in outputs.err
    batch = recorded.run("verify", "--batch-size", "3")
    assert batch.code == 2 and "no batch size" in batch.err
    dtype = recorded.run("verify", "--dtype", "float32")
    assert dtype.code == 2 and "suites.k.dtypes" in dtype.err
