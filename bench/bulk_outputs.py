"""How fast recorded outputs are compared in bulk, on one core, and with how much memory.

    python bench/bulk_outputs.py [CASES] [TOKENS]

Writes a store of CASES goldens (default 10,000) of TOKENS tokens each (default 128) and as many
outputs into a temporary folder, one in a hundred of them with another word, and times

- reading and checking the goldens' files,
- reading the outputs and comparing and judging every case, as `goldens verify --from` does,
- a loop over rouge-score on the same texts, which is what is often done instead.
"""

from __future__ import annotations

import datetime
import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from snapshot.config import load
from snapshot.model import (
    Fingerprint,
    Generated,
    Golden,
    Identity,
    Observation,
    RecordedFingerprint,
)
from snapshot.plan import Plan, plans
from snapshot.resolve import Baseline
from snapshot.runners.engines.file import read_outputs
from snapshot.store import Store
from snapshot.verification import Run

DAY = datetime.date(2026, 12, 1)
HERE = Identity("cuda", "sm_90", "cuda13.0", "2.11", "float16", batch_size=1)
TOML = '[suites.s]\nkind = "lora-generation"\nmodel = "m"\nprompts = "p.jsonl"\ndtype = "float16"\n'


def main(cases: int, tokens: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        prompts = [json.dumps({"prompt": f"prompt number {i}"}) for i in range(cases)]
        (root / "p.jsonl").write_text("\n".join(prompts), encoding="utf-8")
        (root / "goldens.toml").write_text(TOML, encoding="utf-8")
        (plan,) = plans(load(root / "goldens.toml"), ())
        texts = write(root, plan, tokens)
        before = peak()
        print(f"{cases} cases of {tokens} tokens, one core; {before:.0f} MiB before")
        run = Run(plan, "file", None, Baseline(HERE, ""), Store(root / "goldens"), DAY)
        timed("goldens read and checked", cases, lambda: read_all(run))
        whole = timed("outputs read, compared, judged", cases, lambda: judge_all(root, run))
        print(f"memory: {peak() - before:.0f} MiB more at the peak")
        few = texts[: max(cases // 20, 1)]
        rouge = timed("a loop over rouge-score", len(few), lambda: score_all(few))
        print(f"ratio: {whole / rouge:.1f} times the cases a second of that loop")


def write(root: Path, plan: Plan, tokens: int) -> list[tuple[str, str]]:
    """Goldens and outputs; returns their texts."""
    store = Store(root / "goldens")
    store.write_fingerprint(RecordedFingerprint("s", Fingerprint(HERE), {}))
    random = np.random.default_rng(7)
    lines, texts = [], []
    for number, case in enumerate(plan.cases):
        ids = tuple(int(i) for i in random.integers(1000, 1200, tokens))
        text = " ".join(f"word{i}" for i in ids)
        output = Generated(text, ids, "length", case.prompt, (1, 2, 3))
        store.write(Golden("s", HERE.slug, "reference", Observation(case.key, output)))
        if number % 100 == 50:
            ids, text = (*ids[:-1], 7), text.rsplit(" ", 1)[0] + " other"
        lines.append(
            json.dumps(
                {"case": case.key, "text": text, "token_ids": ids, "finish_reason": "length"}
            )
        )
        texts.append((output.text, text))
    (root / "outputs.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return texts


def read_all(run: Run) -> None:
    for case in run.plan.cases:
        run.shelf.golden(case.key)


def judge_all(root: Path, run: Run) -> None:
    rows = read_outputs(root / "outputs.jsonl", [case.key for case in run.plan.cases])
    held = run.held(run.evidences(rows), {})
    failing = sum(not result.verdict.passes for result in held.results)
    assert failing == len(range(50, len(run.plan.cases), 100)), failing


def score_all(texts: list[tuple[str, str]]) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"])
    for golden, candidate in texts:
        scorer.score(golden, candidate)


def timed(label: str, count: int, act: object) -> float:
    """Prints and returns how many cases a second."""
    start = time.perf_counter()
    act()  # type: ignore[operator]
    seconds = time.perf_counter() - start
    print(f"{label}: {seconds:.2f} s, {count / seconds:.0f} cases/s")
    return count / seconds


def peak() -> float:
    """The most memory so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    main(*[*numbers, *(10_000, 128)[len(numbers) :]])
