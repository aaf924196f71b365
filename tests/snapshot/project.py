"""A real git repository that holds this repository's own goldens, for tests that change them."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result

from snapshot.changes import digests
from snapshot.cli import main
from snapshot.model import Golden
from snapshot.store import Store

ROOT = Path(__file__).resolve().parents[2]
SUITE = "multi-lora"
PREFIX = "cpu-avx512-avx512_core_amx-t2-torch2.13-"


@dataclass(frozen=True)
class Project:
    """A project below `root`, with git around it."""

    root: Path

    @classmethod
    def create(cls, root: Path, environments: tuple[str, ...] = ("bfloat16-bs3", "bfloat16-bs8")):
        """Commits goldens.toml, its prompts and these environments' goldens as ``main``."""
        root.mkdir(parents=True)
        project = cls(root)
        shutil.copy(ROOT / "goldens.toml", root)
        prompts = root / "examples" / "smollm2" / "prompts.jsonl"
        prompts.parent.mkdir(parents=True)
        shutil.copy(ROOT / "examples" / "smollm2" / "prompts.jsonl", prompts)
        for environment in environments:
            project.copy(SUITE, PREFIX + environment)
        project.git("init", "-q", "-b", "main")
        project.commit("goldens")
        return project

    def copy(self, suite: str, slug: str) -> None:
        """Takes over a recorded environment with its blobs, byte by byte."""
        theirs, place = Store(ROOT / "goldens"), Path("goldens", suite, slug)
        shutil.copytree(ROOT / place, self.root / place)
        for subject in theirs.subjects(suite, slug):
            for case in theirs.cases(suite, slug, subject):
                for digest in digests(theirs.read(suite, slug, subject, case)).values():
                    blob = Path("goldens", "blobs", digest[:2], f"{digest}.zst")
                    (self.root / blob).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / blob, self.root / blob)

    @property
    def store(self) -> Store:
        return Store(self.root / "goldens")

    def golden(self, environment: str, glob: str) -> Golden:
        """The first golden of a case key that begins with `glob`."""
        return next(iter(self.goldens(environment, glob)))

    def goldens(self, environment: str, start: str, store: Store | None = None) -> list[Golden]:
        store, slug = store or self.store, PREFIX + environment
        cases = store.cases(SUITE, slug, "reference")
        return [store.read(SUITE, slug, "reference", c) for c in cases if c.startswith(start)]

    def git(self, *arguments: str, check: bool = True) -> str:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        identity = {
            "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "HOME": str(self.root),
        }  # fmt: skip
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env={**kept, **identity}, capture_output=True,
            text=True, encoding="utf-8",
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def append(self, toml: str) -> None:
        with (self.root / "goldens.toml").open("a", encoding="utf-8") as file:
            file.write(toml)

    def run(self, *arguments: str) -> Result:
        """The command in this process, as from the project's folder."""
        config = str(self.root / "goldens.toml")
        before = Path.cwd()
        os.chdir(self.root)
        try:
            done = CliRunner().invoke(main, ["--config", config, *arguments])
        finally:
            os.chdir(before)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done


def reworded(golden: Golden, text: str = " other words than before") -> Golden:
    """The golden with another text, other tokens at the end, and other logprobs there."""
    observation = golden.observation
    ids = observation.output.token_ids
    assert ids is not None
    changed = (*ids[:-2], ids[-2] + 1, ids[-1] + 1)
    arrays = dict(observation.arrays)
    logprobs = np.array(arrays["logprobs"])
    logprobs[-2:] -= np.float32(1.5)
    output = dataclasses.replace(observation.output, text=text, token_ids=changed)
    arrays["logprobs"] = logprobs
    return dataclasses.replace(
        golden, observation=dataclasses.replace(observation, output=output, arrays=arrays)
    )
