"""The example engine, installed as a user's package would be, against a stand-in of llama.cpp."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from snapshot.config import load
from snapshot.engineconfig import EngineConfig
from snapshot.errors import ConfigError, RunError
from snapshot.model import GenerationCase, Observation
from snapshot.plan import plans
from snapshot.runners.engines import open_engine
from snapshot.runners.engines.engine import SCORING, Ask
from tests.snapshot.builders import project
from tests.snapshot.runners.engines.server import Answer, serving

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "engine" / "llama_cpp.py"


class LlamaServer:
    """Answers as llama.cpp's server documents it."""

    def __init__(self) -> None:
        self.headers: list[Mapping[str, str]] = []

    def answer(self, path: str, body: Mapping[str, Any] | None) -> Answer:
        if path == "/props":
            return 200, {"build_info": "b7777-abcdef"}
        assert path == "/completion" and body is not None and body["prompt"] == [1, 2, 3]
        step = {"id": 7, "token": " a", "logprob": -0.25, "top_logprobs": []}
        return 200, {
            "content": " a a",
            "tokens": [7, 7],
            "stop_type": "limit",
            "completion_probabilities": [step, step],
        }


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    metadata = site / "llama_cpp_goldens-1.0.dist-info"
    metadata.mkdir(parents=True)
    shutil.copy(EXAMPLE, site / "llama_cpp.py")
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: llama-cpp-goldens\nVersion: 1.0\n"
    )
    points = "[goldens.engines]\nllama-cpp = llama_cpp:LlamaCpp\nbroken = nowhere:Nothing\n"
    (metadata / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(site))


def test_the_example_is_short() -> None:
    assert len(EXAMPLE.read_text("utf-8").splitlines()) < 60


def test_an_installed_engine_is_opened_by_its_name_and_answers(
    installed: None, tmp_path: Path
) -> None:
    (plan,) = plans(load(project(tmp_path / "p")), ())
    server = LlamaServer()
    asks = [
        Ask(GenerationCase(f"{adapter or 'base'}/p", adapter, "p"), (1, 2, 3), 2, 2)
        for adapter in (None, "wizard")
    ]
    with serving(server) as url:
        config = EngineConfig("mine", "llama-cpp", url=url.removesuffix("/v1"), retries=0)
        engine = open_engine(config, plan)
        rows = engine.run(asks, lambda done: None)
        engine.close()
    base, wizard = (rows[ask.key] for ask in asks)
    assert isinstance(base, Observation)
    assert base.output.token_ids == (7, 7) and base.output.finish_reason == "length"
    assert base.arrays["logprobs"].tolist() == [-0.25, -0.25]
    assert isinstance(wizard, RunError) and "without any" in wizard.what
    about = engine.about()
    assert about.provenance["version"] == "b7777-abcdef" and SCORING in about.cannot


def test_a_package_that_cannot_be_imported_is_named(installed: None, tmp_path: Path) -> None:
    (plan,) = plans(load(project(tmp_path / "p")), ())
    with pytest.raises(ConfigError, match="cannot be imported") as error:
        open_engine(EngineConfig("mine", "broken"), plan)
    assert "nowhere" in str(error.value)
