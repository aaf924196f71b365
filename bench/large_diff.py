"""How long `goldens diff` takes where every golden changed, beside git's own word diff.

    python bench/large_diff.py [GOLDENS] [TOKENS]

Makes a git repository of GOLDENS goldens (default 5,000) of TOKENS tokens each (default 64) and
commits it twice: in the second commit every text has another word, and every golden other
logprobs. Then, each in a process of its own, over the same two commits: `git diff --word-diff`,
and `goldens diff` as text, JSON, markdown and HTML, with its largest memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np

from snapshot.model import (
    Composition,
    Fingerprint,
    Generated,
    Golden,
    Identity,
    Observation,
    RecordedFingerprint,
)
from snapshot.store import Store

HERE = Identity("cuda", "sm_90", "cuda13.0", "2.11", "float16", batch_size=1)
TOML = '[suites.s]\nkind = "lora-generation"\nmodel = "m"\nprompts = "p.jsonl"\ndtype = "float16"\n'
DIGEST = "sha256:" + 64 * "0"
FORMATS: dict[str, list[str]] = {
    "terminal": [],
    "JSON": ["--json"],
    "markdown": ["--report", "markdown:report.md"],
    "HTML": ["--report", "html:report.html"],
}


def main(goldens: int, tokens: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "goldens.toml").write_text(TOML, encoding="utf-8")
        (root / "p.jsonl").write_text('{"prompt": "p"}\n', encoding="utf-8")
        git(root, "init", "-q", "-b", "main")
        for step in range(2):
            write(root, goldens, tokens, step)
            git(root, "add", "-A")
            git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", str(step))
        print(f"{goldens} goldens of {tokens} tokens, every one changed")
        peer, worked, _ = timed(root, ["git", "diff", "--word-diff", "HEAD~1", "HEAD"])
        print(f"git diff --word-diff  {peer:6.2f} s, {worked:.2f} s of a processor")
        for name, flags in FORMATS.items():
            command = [sys.executable, "-m", "snapshot.cli", "diff", "HEAD~1", "HEAD", *flags]
            seconds, worked, megabytes = timed(root, command)
            print(
                f"goldens diff {name:<9}{seconds:6.2f} s, {worked:.2f} s of a processor, "
                f"{seconds / peer:.1f} times git, {megabytes} MB"
            )


def write(root: Path, goldens: int, tokens: int, step: int) -> None:
    """The goldens of one commit."""
    store = Store(root / "goldens")
    store.write_fingerprint(RecordedFingerprint("s", Fingerprint(HERE), {}))
    random = np.random.default_rng(0)
    with mock.patch("os.fsync"):  # what is measured is reading
        for i in range(goldens):
            ids = random.integers(0, 50_000, tokens)
            values = -random.random(tokens, np.float32)
            arrays = {
                "logprobs": values - np.float32(step) / 8,
                "topk_ids": np.stack([ids, ids + 1], 1).astype(np.int32),
                "topk_logprobs": np.stack([values, values - 1], 1),
            }
            middle = tokens // 2
            ids[middle] += step
            words = [f"w{token}" for token in ids.tolist()]
            case = f"base/prompt-number-{i}-{i:08x}"
            output = Generated(
                " ".join(words), tuple(ids.tolist()), "length", f"prompt {i}", (1, 2)
            )
            store.write(
                Golden(
                    suite="s",
                    slug=HERE.slug,
                    subject="reference",
                    observation=Observation(
                        case=case,
                        output=output,
                        arrays=arrays,
                        workload={"model": DIGEST, "prompt": DIGEST, "settings": DIGEST},
                        composition=Composition((case,), 0, DIGEST),
                    ),
                )
            )


def timed(root: Path, command: Sequence[str]) -> tuple[float, float, int]:
    """Wall and processor seconds and peak megabytes of a command, its output thrown away."""
    path = os.pathsep.join(str(Path(__file__).resolve().parents[1] / p) for p in ("", "kernels"))
    before = time.perf_counter()
    with subprocess.Popen(
        command, cwd=root, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - before
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with exit code {process.returncode}")
    worked = usage.ru_utime + usage.ru_stime
    return seconds, worked, usage.ru_maxrss // (1024 if sys.platform != "darwin" else 1024**2)


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True)


if __name__ == "__main__":
    main(*map(int, [*sys.argv[1:], *("5000", "64")[len(sys.argv) - 1 :]]))
