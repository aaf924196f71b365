"""SGLang's native /generate: contract tests from the requests and answers it documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from snapshot.config import load
from snapshot.engineconfig import EngineConfig
from snapshot.errors import GoldensError, RunError
from snapshot.model import GenerationCase, Observation
from snapshot.plan import Plan, plans
from snapshot.runners.engines.client import Client
from snapshot.runners.engines.engine import Ask
from snapshot.runners.engines.sglang import SGLang
from tests.snapshot.builders import project

PROMPT = (504, 3575, 282)
SAID = (7042, 30)

MODELS = {
    "object": "list",
    "data": [
        {"id": "smol", "object": "model", "owned_by": "sglang", "root": "smol", "parent": None},
        {"id": "pirate", "object": "model", "owned_by": "sglang", "parent": "smol"},
    ],
}


def generated(**meta: Any) -> dict[str, Any]:
    """As documented: entries are (logprob, id, text), the first input entry has no logprob."""
    return {
        "text": " Paris.",
        "output_ids": list(SAID),
        "meta_info": {
            "id": "f1",
            "finish_reason": {"type": "length", "length": 2},
            "prompt_tokens": 3,
            "completion_tokens": 2,
            "cached_tokens": 0,
            "input_token_logprobs": [],
            "output_token_logprobs": [[-0.5, 7042, None], [-0.25, 30, None]],
            "input_top_logprobs": [],
            "output_top_logprobs": [
                [[-0.5, 7042, None], [-1.5, 9, None]],
                [[-0.25, 30, None], [-2.5, 11, None]],
            ],
            **meta,
        },
    }


def scored() -> dict[str, Any]:
    whole = (*PROMPT, *SAID)
    entries = [
        [None, whole[0], None],
        *([-1.0 - i, token, None] for i, token in enumerate(whole[1:])),
    ]
    top = [None, *([[-0.1, 1, None], [-0.2, 2, None]] for _ in whole[1:])]
    return generated(input_token_logprobs=entries, input_top_logprobs=top)


def server(tmp_path: Path, answer: Callable[[dict[str, Any]], Any]) -> tuple[SGLang, list[Any]]:
    asked: list[Any] = []

    def handle(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/models":
            return httpx.Response(200, json=MODELS)
        if request.url.path == "/get_server_info":
            return httpx.Response(200, json={"version": "0.5.9", "served_model_name": "smol"})
        if request.url.path != "/generate":
            return httpx.Response(404, json={"detail": "Not Found"})

        asked.append(json.loads(request.content))
        return httpx.Response(200, json=answer(asked[-1]))

    client = Client("http://sglang", retries=0, transport=httpx.MockTransport(handle))
    config = EngineConfig("sglang", "sglang", url="http://sglang")
    return SGLang(config, plan(tmp_path), client), asked


def plan(tmp_path: Path) -> Plan:
    (found,) = plans(load(project(tmp_path)), ())
    return found


def ask(adapter: str | None = None) -> Ask:
    case = GenerationCase("base/x-00000000", adapter, "The capital")
    return Ask(case, PROMPT, max_new_tokens=2, top_logprobs=2)


def run(engine: SGLang, *asks: Ask) -> Observation | GoldensError:
    (row,) = engine.run(asks, lambda done: None).values()
    return row


def test_a_row_is_asked_as_documented_and_read(tmp_path: Path) -> None:
    engine, asked = server(tmp_path, lambda body: generated())
    row = run(engine, ask())
    assert isinstance(row, Observation)
    assert asked == [
        {
            "input_ids": list(PROMPT),
            "sampling_params": {"temperature": 0, "max_new_tokens": 2},
            "return_logprob": True,
            "logprob_start_len": -1,
            "top_logprobs_num": 2,
        }
    ]
    assert (row.output.text, row.output.token_ids) == (" Paris.", SAID)
    assert row.output.finish_reason == "length" and row.output.prompt_ids == PROMPT
    assert row.arrays["logprobs"].tolist() == [-0.5, -0.25]
    assert row.arrays["topk_ids"].tolist() == [[7042, 9], [30, 11]]
    assert engine.about().provenance["version"] == "0.5.9"


def test_an_adapter_goes_by_lora_path_and_an_unknown_one_is_not_asked_for(tmp_path: Path) -> None:
    engine, asked = server(tmp_path, lambda body: generated())
    assert isinstance(run(engine, ask("pirate")), Observation)
    assert asked[0]["lora_path"] == "pirate"
    refused = run(engine, ask("haiku"))
    assert isinstance(refused, RunError) and 'does not list "haiku"' in refused.what
    assert len(asked) == 1


def test_given_tokens_are_scored_from_the_first_one_on(tmp_path: Path) -> None:
    engine, asked = server(tmp_path, lambda body: scored())
    one = ask()
    (row,) = engine.score([one], {one.key: SAID}, lambda done: None).values()
    assert isinstance(row, Observation)
    assert asked[0]["input_ids"] == [*PROMPT, *SAID] and asked[0]["logprob_start_len"] == 0
    assert row.output.token_ids == SAID
    assert row.arrays["prompt_logprobs"].tolist() == [-1.0, -2.0]
    assert row.arrays["logprobs"].tolist() == [-3.0, -4.0]
    assert row.arrays["topk_ids"].shape == (2, 2)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"text": "x"}, "another form"),
        ([], "another form"),
        (generated(finish_reason={"type": "abort", "message": "out of memory"}), "out of memory"),
        (generated(output_top_logprobs=[]), "expected 2 entries"),
    ],
)
def test_any_other_answer_is_an_error(tmp_path: Path, answer: Any, said: str) -> None:
    engine, _ = server(tmp_path, lambda body: answer)
    row = run(engine, ask())
    assert isinstance(row, RunError) and said in row.what, row


def test_scores_of_other_tokens_are_an_error(tmp_path: Path) -> None:
    engine, _ = server(tmp_path, lambda body: generated(input_token_logprobs=[[None, 1, None]]))
    one = ask()
    (row,) = engine.score([one], {one.key: SAID}, lambda done: None).values()
    assert isinstance(row, RunError) and "other tokens" in row.what
