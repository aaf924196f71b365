from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from snapshot.model import Golden, RecordedFingerprint
from snapshot.store import Store

KEYS = [f"base/prompt-{number:08x}" for number in range(200)]
WORKERS = 8

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded"),
]


def _work(root: Path, goldens: list[Golden], recorded: RecordedFingerprint) -> None:
    store = Store(root)
    store.write_fingerprint(recorded)
    for golden in goldens:
        store.write(golden)


def _work_and_hang(root: Path, golden: Golden, ready: Path) -> None:
    """Write, and stop for ever where the file is complete and does not bear its name yet."""

    def hang(source: str, target: str) -> None:
        ready.touch()
        time.sleep(600)

    os.replace = hang  # type: ignore[assignment]
    Store(root).write(golden)


def test_parallel_writers_lose_nothing_though_one_is_killed(
    store: Store, make_golden: Callable[..., Golden], recorded: RecordedFingerprint, tmp_path: Path
) -> None:
    """C24: 8 processes, 200 keys, update mode, ten repeats, one worker killed inside a write."""
    fork = multiprocessing.get_context("fork")
    slug = recorded.fingerprint.slug
    store.write_fingerprint(recorded)  # imports what writing needs, once for all forks
    for repeat in range(10):
        goldens = [make_golden(key, f"answer {repeat}") for key in KEYS]
        shared = goldens[:4]  # everybody writes these too
        ready = tmp_path / f"ready{repeat}"
        victim = fork.Process(
            target=_work_and_hang, args=(store.root, make_golden(KEYS[-1], "torn"), ready)
        )
        workers = [
            fork.Process(
                target=_work, args=(store.root, shared + goldens[number::WORKERS], recorded)
            )
            for number in range(WORKERS - 1)
        ]
        for process in [victim, *workers]:
            process.start()
        deadline = time.monotonic() + 60
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.005)
        assert victim.pid is not None
        os.kill(victim.pid, signal.SIGKILL)
        victim.join(60)
        assert victim.exitcode == -signal.SIGKILL
        # Its share goes to another process, as a rerun would do.
        last = fork.Process(
            target=_work, args=(store.root, goldens[WORKERS - 1 :: WORKERS], recorded)
        )
        last.start()
        for process in [last, *workers]:
            process.join(60)
            assert process.exitcode == 0

        assert store.cases("multi-lora", slug, "reference") == KEYS
        for key in KEYS:
            golden = store.read("multi-lora", slug, "reference", key)
            assert golden.observation.output.text == f"answer {repeat}"
    assert store.check() == []
    assert store.unreferenced_blobs() == []
    assert not [name for name in os.listdir(store.root) if "lock" in name]
