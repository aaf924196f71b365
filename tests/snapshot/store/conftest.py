"""A store in a folder with a space and Chinese in its name, and goldens to put into it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

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

DIGEST = "sha256:" + "ab" * 32
IDENTITY = Identity("rocm", "gfx942", "rocm10.0", "2.11", "float16", batch_size=3)

MakeGolden = Callable[..., Golden]


def _make_golden(
    key: str = "wizard/tell-me-about-alpacas-a098e306",
    text: str = "A massive amount of blåbær, 蓝莓 \U0001f999.\r\n",
    **observation: object,
) -> Golden:
    ids = tuple(range(1, 9))
    fields: dict[str, object] = {
        "case": key,
        "output": Generated(text, ids, "length", "Tell me about alpacas", (5, 6, 7)),
        "arrays": {"logprobs": np.linspace(-3, 0, 8, dtype=np.float32)},
        "workload": {"model": DIGEST, "prompt": DIGEST},
        "composition": Composition((key, "base/why-1a2b3c4d", "base/why-1a2b3c4d"), 0, DIGEST),
    }
    return Golden(
        suite="multi-lora",
        slug=IDENTITY.slug,
        subject="reference",
        observation=Observation(**(fields | observation)),  # type: ignore[arg-type]
        recorded_by={"goldens": "0.1.0", "torch": "2.11.0+rocm10.0"},
    )


@pytest.fixture(scope="session")
def make_golden() -> MakeGolden:
    """A golden of the suite multi-lora; keywords replace fields of its observation."""
    return _make_golden


@pytest.fixture(scope="session")
def recorded() -> RecordedFingerprint:
    """The environment of `make_golden`."""
    provenance = {"torch": "2.11.0+rocm10.0", "device": "AMD Instinct MI300X", "cu_count": 304}
    calibration = {"repeats": {"count": 64, "rms": 0.0, "max": 1.5e-07}}
    return RecordedFingerprint("multi-lora", Fingerprint(IDENTITY, provenance), calibration)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store whose root does not exist yet."""
    return Store(tmp_path / "my golden dir" / "日本")


@pytest.fixture
def filled(store: Store, make_golden: MakeGolden, recorded: RecordedFingerprint) -> Store:
    """A store with one environment, two cases, a raw blob and a compressed one."""
    store.write_fingerprint(recorded)
    store.write(make_golden())
    compressible = {"topk_ids": np.zeros((8, 5), dtype=np.int32)}
    golden = make_golden("base/why-1a2b3c4d", "Because.", arrays=compressible)
    store.write(golden)
    return store


def _tree(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(root)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="session")
def tree() -> Callable[[Path], dict[str, tuple[int, bytes]]]:
    """Every file below a folder: its time and its bytes."""
    return _tree
