"""Goldens change through pull requests: the whole way on the real model, in real git."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snapshot.store import Store
from tests.snapshot.project import Project
from tests.snapshot.workspace import Run, Workspace

pytest.importorskip("torch", reason="the base install has no reference")
pytestmark = pytest.mark.model

PROMPTS = ("The capital of France is", "Large language models are trained on")


def retrain(adapter: Path) -> None:
    """Other weights for an adapter: its last factor turned around."""
    from safetensors.torch import load_file, save_file

    path = adapter / "adapter_model.safetensors"
    tensors = load_file(path)
    turned = {name: -value if "lora_B" in name else value for name, value in tensors.items()}
    save_file(turned, path, metadata={"format": "pt"})


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory, smollm2: Path) -> Workspace:
    """Goldens of the real model with two adapters at two batch sizes, on main."""
    root = tmp_path_factory.mktemp("story") / "repository"
    adapters = {name: str(root / "adapters" / name) for name in ("pirate", "haiku")}
    made = Workspace.create(root, smollm2, adapters=adapters, max_new_tokens=6)
    for name, folder in adapters.items():
        shutil.copytree(smollm2 / name, folder)
    made.prompts(*PROMPTS)
    (root / ".gitignore").write_text(".goldens/\n", "utf-8")
    git = Project(root)
    git.git("init", "-q", "-b", "main")
    done = made.run("record")
    assert done.code == 0, done.err
    git.commit("goldens")
    return made


@pytest.fixture
def workspace(committed: Workspace, tmp_path: Path) -> Workspace:
    root = tmp_path / "clone"
    shutil.copytree(committed.root, root)
    text = (root / "goldens.toml").read_text("utf-8")
    (root / "goldens.toml").write_text(text.replace(str(committed.root), str(root)), "utf-8")
    return Workspace(root)
