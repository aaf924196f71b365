"""Real engines on this machine: `make test-engines` installs them; elsewhere the tests skip."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINES = ROOT / ".cache" / "engines"
MODEL = ROOT / ".cache" / "smollm2"
SLUG = "cpu-avx512-avx512_core_amx-t2-torch2.13-{}-bs{}"


def command(name: str) -> str:
    """A program of the engines' environment; skips the test without it."""
    found = ENGINES / "bin" / name
    if not found.exists():
        pytest.skip(f"{name} is not installed in .cache/engines: make test-engines does it")
    if not (MODEL / "prepared").exists():
        pytest.skip("the model is not prepared: make test-engines does it")
    return str(found)


@contextlib.contextmanager
def serving(log: Path, *arguments: str, ready: str) -> Iterator[str]:
    """Runs a server until it answers at `ready`; gives its address, ``/v1`` included."""
    port = _free_port()
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1",
    }
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*arguments, "--host", "127.0.0.1", "--port", str(port)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            _wait(server, f"http://127.0.0.1:{port}{ready}", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(server: subprocess.Popen[bytes], url: str, log: Path, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text("utf-8", "replace")[-3000:]
        with contextlib.suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        time.sleep(1)
    raise AssertionError(f"no answer at {url}\n{log.read_text('utf-8', 'replace')[-3000:]}")


@dataclass(frozen=True)
class Repository:
    """This repository's suite with engines of its own, elsewhere."""

    root: Path

    @classmethod
    def with_engines(cls, root: Path, engines: str, store: Path | None = None) -> Repository:
        text = (ROOT / "goldens.toml").read_text("utf-8")
        text = text.replace(
            'path = "goldens"', f"path = {json.dumps(str(store or ROOT / 'goldens'))}"
        )
        for folder in (".cache/smollm2", "examples/smollm2"):
            text = text.replace(f'"{folder}', f'"{ROOT / folder}')
        (root / "goldens.toml").write_text(f"{text}\n{engines}", "utf-8")
        return cls(root)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        path = os.pathsep.join([str(ROOT), str(ROOT / "kernels")])
        return subprocess.Popen(
            [sys.executable, "-m", "snapshot.cli", *arguments],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def verify(self, *arguments: str, timeout: float = 900) -> Any:
        """The JSON report; its exit code is the command's."""
        running = self.start("verify", *arguments, "--json")
        try:
            out, err = running.communicate(timeout=timeout)
        finally:
            running.kill()
        assert "Traceback" not in err, err
        report = json.loads(out or "{}")
        assert report and report["exit_code"] == running.returncode, err
        return report


def verdicts(report: Any, run: int = 0) -> dict[str, str]:
    return {row["case"]: row["verdict"] for row in report["runs"][run]["results"]}
