"""`transformers serve`: a second real server, which tells text and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engines.conftest import MODEL, SLUG, Repository, command, serving, verdicts

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


def test_text_is_compared_and_what_could_not_run_is_listed(tmp_path: Path) -> None:
    model = str(MODEL / "model")
    arguments = (command("transformers"), "serve", model, "--device", "cpu", "--dtype", "float32")
    with serving(tmp_path / "log", *arguments, ready="/health") as url:
        toml = f'[engines.serve]\nkind = "openai"\nurl = "{url}"\nmodel = "{model}"\n'
        repository = Repository.with_engines(tmp_path, toml)
        against = ("--against", SLUG.format("float32", 1), "--attribute", "never")
        report = repository.verify("base/*", "pirate/the-capital*", "--engine", "serve", *against)
    (run,) = report["runs"]
    assert set(run["unchecked"]) == {"token ids", "logprobs", "forced scoring"}
    for key, verdict in verdicts(report).items():
        assert verdict == ("MATCH" if key.startswith("base") else "ERROR")
    assert all("token ids" in row["notes"][0] for row in run["results"] if row["notes"])
