"""``goldens export``: the requests, and back again through ``verify --from``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from snapshot.cli import main
from snapshot.store.schemas import validator
from tests.snapshot.builders import PROMPT_IDS, ROCM7
from tests.snapshot.commands.test_verify import Project


def test_every_request_follows_its_schema_and_feeds_a_harness(tmp_path: Path) -> None:
    p = Project.make(tmp_path)
    done = CliRunner().invoke(main, ["--config", str(p.config.path), "export"])
    requests = [json.loads(line) for line in done.stdout.splitlines()]
    assert [request["case"] for request in requests] == p.keys
    for request in requests:
        assert not list(validator("requests.v1").iter_errors(request))
        assert request["prompt_ids"] == list(PROMPT_IDS)
    assert [request["adapter"] for request in requests] == [None, "wizard"]
    words = {key: p.store.read("s", ROCM7.slug, "reference", key) for key in p.keys}
    outputs = [
        {"case": key, "text": golden.observation.output.text} for key, golden in words.items()
    ]
    text = "\n".join(map(json.dumps, outputs))
    flags = ["verify", "--from", "-", "--against", ROCM7.slug]
    back = CliRunner().invoke(main, ["--config", str(p.config.path), *flags], input=text)
    assert back.exit_code == 0 and "2 MATCH" in back.output


def test_a_selector_narrows_and_a_case_without_a_golden_has_no_tokens(tmp_path: Path) -> None:
    p = Project.make(tmp_path)
    p.store.path("s", ROCM7.slug, "reference", p.keys[1]).unlink()
    done = CliRunner().invoke(main, ["--config", str(p.config.path), "export", "wizard/*"])
    (request,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert request["prompt_ids"] is None
    assert not list(validator("requests.v1").iter_errors(request))


@pytest.mark.parametrize("command", ["export", "sweep"])
def test_kernels_alone_are_nothing_to_do_and_no_success(tmp_path: Path, command: str) -> None:
    p = Project.make(tmp_path, '\n[suites.k]\nkind = "grouped-decode"\ncandidates = ["triton"]\n')
    done = CliRunner().invoke(main, ["--config", str(p.config.path), command, "k"])
    assert done.exit_code == 2 and "only kernels are selected" in done.output


def test_a_fingerprint_that_no_suite_has_is_a_usage_error_of_audit(tmp_path: Path) -> None:
    p = Project.make(tmp_path)
    done = CliRunner().invoke(main, ["--config", str(p.config.path), "audit", "--against", "x"])
    assert done.exit_code == 2 and "was not recorded" in done.output


@pytest.mark.parametrize(
    "arguments",
    [("sweep", "--orders", str(10**20)), ("env", "--dtype", ""), ("env", "--dtype", "x")],
)
def test_an_option_out_of_its_range_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    p = Project.make(tmp_path)
    done = CliRunner().invoke(main, ["--config", str(p.config.path), *arguments])
    assert done.exit_code == 2 and arguments[1] in done.output
