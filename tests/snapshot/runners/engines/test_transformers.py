"""The reference as candidate, on the real model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.snapshot.workspace import Workspace

pytestmark = pytest.mark.model

TOML = """
[engines.eager]
kind = "transformers"
options = { attention = "eager", batch_size = 3 }

[engines.continuous]
kind = "transformers"
options = { continuous = true, batch_size = 2 }
"""


def workspace(root: Path, smollm2: Path, **settings: Any) -> Workspace:
    made = Workspace.create(root, smollm2, dtype="float32", batch_sizes=[2], **settings)
    made.append(TOML)
    done = made.run("record", "--repeat", "1")
    assert done.code == 0, done.err
    return made


def test_another_attention_and_batch_size_are_held_to_the_golden(
    smollm2: Path, tmp_path: Path
) -> None:
    made = workspace(tmp_path / "w", smollm2)
    done = made.run("verify", "--engine", "eager", "--against", made.slug(2), "--json")
    run = done.json["runs"][0]
    assert run["engine"]["attention"] == "eager" and run["engine"]["batch_size"] == 3
    assert run["unchecked"] == {} and len(run["results"]) == 6
    # float32 gives the same words; its numbers are beyond a floor that was never measured.
    assert all(row["golden_text"] == row["candidate_text"] for row in run["results"])
    assert any("attention implementation" in note for note in run["results"][0]["notes"])


def test_continuous_batching_gives_the_golden_s_words(smollm2: Path, tmp_path: Path) -> None:
    made = workspace(tmp_path / "w", smollm2, adapters={})
    done = made.run("verify", "--engine", "continuous", "--attribute", "never", "--json")
    run = done.json["runs"][0]
    assert {row["verdict"] for row in run["results"]} == {"MATCH"}, done.out
    assert set(run["unchecked"]) == {"logprobs", "top-k logprobs", "forced scoring"}
