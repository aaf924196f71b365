"""Drift of a real environment, with known truth: the same CPU, told to use fewer instructions.

Goldens are recorded in one environment and verified in up to three others, on the real model.
In bfloat16 each moves the bits of every row and the words of a few; nothing of the code
changed, so nothing may be called a regression, and with a fault injected everything must be.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.snapshot.workspace import Run, Workspace

pytest.importorskip("torch", reason="the base install has no reference")
pytestmark = pytest.mark.model

PROMPTS = (
    "Jeg liker å gå på tur fordi",
    "Large language models are trained on",
    "The capital of France is",
)
ENVIRONMENTS = {
    "aten-avx2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "onednn-avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    "onednn-avx512": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
}
DRIFTED = {"TIE", "DRIFT", "VARIANT"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory, smollm2: Path) -> Workspace:
    root = tmp_path_factory.mktemp("environments")
    made = Workspace.create(root, smollm2, max_new_tokens=10)
    made.prompts(*PROMPTS)
    done = made.run("record", "--repeat", "1")
    assert done.code == 0, done.err
    return made


@pytest.fixture(scope="module")
def elsewhere(workspace: Workspace) -> dict[str, dict[str, str]]:
    """The environments that this CPU really tells apart from its own."""
    own = workspace.slug(3)
    found = {}
    for name, variables in ENVIRONMENTS.items():
        here = workspace.run(
            "env", "--dtype", "bfloat16", "--batch-size", "3", "--json", **variables
        )
        if here.json["slug"] != own:
            found[name] = variables
    if not found:
        pytest.skip("this CPU has no further instruction set to leave out")
    return found


@pytest.fixture(scope="module")
def verified(workspace: Workspace, elsewhere: dict[str, dict[str, str]]) -> dict[str, Run]:
    """What verify says in each of them."""
    return {
        name: workspace.run(
            "verify", "--batch-size", "3", "--against", workspace.slug(3), "--json", **variables
        )
        for name, variables in elsewhere.items()
    }


def results(run: Run) -> list[dict[str, Any]]:
    (held,) = run.json["runs"]
    return list(held["results"])


def test_a_moved_text_is_a_tie_or_drift_and_the_references_own_move_is_shown(
    verified: dict[str, Run],
) -> None:
    for name, run in verified.items():
        assert run.code in (0, 5), (name, run.out)
        for row in results(run):
            moved = row["golden_text"] != row["candidate_text"]
            assert row["verdict"] in (DRIFTED if moved else DRIFTED | {"MATCH"}), row
            if row["verdict"] != "MATCH":
                first = row["attribution"]["moves"][0]
                assert first["name"] == "environment" and first["distance"]["max"] > 0
                assert first["words"] == moved
                assert row["attribution"]["errors"].keys() == {"golden", "reference", "candidate"}


def test_each_fault_is_caught_there_too(
    workspace: Workspace, elsewhere: dict[str, dict[str, str]]
) -> None:
    """Faults are told from drift although both are there at once: one whole batch in each."""
    for name, variables in elsewhere.items():
        run = workspace.run(
            "audit", "*/the-capital*", "--against", workspace.slug(3), "--json", **variables
        )
        (found,) = run.json["detections"]
        assert not found["unreached"], name
        assert len({cell["fault"] for cell in found["cells"]}) == 10
        missed = [cell for cell in found["cells"] if cell["verdict"] != "REGRESSION"]
        assert not missed, (name, missed)
        assert set(found["clean"]["own batch"]) <= DRIFTED | {"MATCH"}


def test_a_word_off_in_the_base_row_is_drift_and_loosens_nothing_else(
    workspace: Workspace, elsewhere: dict[str, dict[str, str]]
) -> None:
    """C01: the base row drifts and is DRIFT, both adapters pass strictly; the relax rule of
    ``base/*`` relaxes nothing else; the same drift in an adapter row fails."""
    arguments = ("verify", "--batch-size", "3", "--against", workspace.slug(3), "--json")
    for variables in elsewhere.values():
        # Unasked: asked, a near-tie whose numbers agree is a TIE, which passes.
        run = workspace.run(*arguments, "--attribute", "never", **variables)
        verdicts = run.verdicts()
        story = [p for p in _prompts(verdicts) if _of(verdicts, p) == ["DRIFT", "MATCH", "MATCH"]]
        adapters = [k for k, v in verdicts.items() if v == "DRIFT" and not k.startswith("base/")]
        if story and adapters:
            break
    else:
        pytest.skip("no environment of this CPU moves a base row alone")
    assert run.code == 5
    base, words = f"base/{story[0]}", {row["case"]: row for row in results(run)}
    assert words[base]["golden_text"] != words[base]["candidate_text"]
    assert "instruction" in words[base]["headline"] or "arch" in words[base]["headline"]

    original = (workspace.root / "goldens.toml").read_text("utf-8")
    workspace.append(
        "\n[[suites.s.relax]]\n"
        'case = "base/*"\n'
        'text = { rouge_l = 0.01, metric = "unicode-lcs" }\n'
        "logprob = { max = 2.0 }\n"
        'reason = "the base drifts by a word"\nissue = "https://example.org/1"\n'
        'owner = "@ci"\nexpires = 2199-01-01\n'
    )
    try:
        relaxed = workspace.run(*arguments, "--attribute", "never", **variables)
    finally:
        (workspace.root / "goldens.toml").write_text(original, "utf-8")
    after = relaxed.verdicts()
    assert after[base] in ("WITHIN", "DRIFT")  # a text without a common word stays DRIFT
    assert [after[key] for key in adapters] == ["DRIFT"] * len(adapters) and relaxed.code == 5
    assert {k: v for k, v in after.items() if not k.startswith("base/")} == {
        k: v for k, v in verdicts.items() if not k.startswith("base/")
    }


def test_the_words_are_counted_as_drift_in_the_ledger(
    workspace: Workspace, verified: dict[str, Run]
) -> None:
    """Each verification is remembered beside goldens.toml, outside the goldens."""
    remembered = [
        json.loads(line)
        for path in (workspace.root / ".goldens" / "history").glob("*.jsonl")
        for line in path.read_text("utf-8").splitlines()
    ]
    seen = Counter((entry["slug"], entry["verdict"]) for entry in remembered)
    for run in verified.values():
        for row in results(run):
            assert seen[row["slug"], row["verdict"]] > 0


def _prompts(verdicts: dict[str, str]) -> list[str]:
    return list(dict.fromkeys(key.split("/", 1)[1] for key in verdicts))


def _of(verdicts: dict[str, str], prompt: str) -> list[str]:
    return [verdicts[f"{name}/{prompt}"] for name in ("base", "pirate", "haiku")]
