"""A project that uses goldens, for tests that run the command as a user does."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROMPTS = ("Hovedstaden i Norge er", "从前有一座山，山里有一座庙，")


@dataclass(frozen=True)
class Run:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def verdicts(self) -> dict[str, str]:
        """By case key, of the first run in a JSON report."""
        return {row["case"]: row["verdict"] for row in self.json["runs"][0]["results"]}


@dataclass(frozen=True)
class Workspace:
    """A folder with a goldens.toml."""

    root: Path

    @classmethod
    def create(cls, root: Path, models: Path, **settings: Any) -> Workspace:
        """One suite `s` with the two adapters; `settings` replace its keys."""
        root.mkdir(parents=True, exist_ok=True)
        suite: dict[str, Any] = {
            "kind": "lora-generation",
            "model": str(models / "model"),
            "adapters": {"pirate": str(models / "pirate"), "haiku": str(models / "haiku")},
            "prompts": "prompts.jsonl",
            "dtype": "bfloat16",
            "batch_sizes": [2, 3],
            "max_new_tokens": 8,
            "device": "cpu",
            **settings,
        }
        workspace = cls(root)
        workspace.prompts(*PROMPTS)
        lines = [f"{key} = {_toml(value)}" for key, value in suite.items()]
        (root / "goldens.toml").write_text("[suites.s]\n" + "\n".join(lines) + "\n", "utf-8")
        return workspace

    def prompts(self, *prompts: str) -> None:
        lines = [json.dumps({"prompt": prompt}, ensure_ascii=False) for prompt in prompts]
        (self.root / "prompts.jsonl").write_text("\n".join(lines) + "\n", "utf-8")

    def append(self, toml: str) -> None:
        with (self.root / "goldens.toml").open("a", encoding="utf-8") as file:
            file.write(toml)

    def run(self, *arguments: str, module: str = "snapshot.cli", **environment: str) -> Run:
        """Runs the command in a process of its own."""
        command = [sys.executable, "-m", module, *arguments]
        root = Path(__file__).parents[2]
        path = os.pathsep.join(filter(None, [str(root), str(root / "kernels"), *_python_path()]))
        done = subprocess.run(
            command,
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": path, **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Run(done.returncode, done.stdout, done.stderr)

    @property
    def store(self) -> Path:
        return self.root / "goldens"

    def tree(self) -> dict[str, tuple[str, int]]:
        """Every file of the store: digest and time of last change."""
        return {
            str(path.relative_to(self.store)): (
                hashlib.sha256(path.read_bytes()).hexdigest(),
                path.stat().st_mtime_ns,
            )
            for path in sorted(self.store.rglob("*"))
            if path.is_file()
        }

    def slug(self, batch_size: int) -> str:
        """The recorded fingerprint of a batch size."""
        (slug,) = (
            p.name for p in (self.store / "s").iterdir() if p.name.endswith(f"bs{batch_size}")
        )
        return slug

    def golden(self, batch_size: int, adapter: str, number: int = 0) -> Path:
        """The case file of a prompt, by its place in alphabetical order."""
        folder = self.store / "s" / self.slug(batch_size) / "reference" / adapter
        return sorted(folder.iterdir())[number]


def _python_path() -> list[str]:
    return os.environ.get("PYTHONPATH", "").split(os.pathsep)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(entry)}" for key, entry in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
