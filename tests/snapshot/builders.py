"""Small observations, goldens and environments, for tests that need no model."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from snapshot.evidence import Evidence
from snapshot.model import (
    Array,
    Composition,
    Fingerprint,
    Generated,
    Golden,
    Identity,
    Observation,
    RecordedFingerprint,
)
from snapshot.policy import Rule, Tolerance
from snapshot.predicate import Predicate

SUITE = "multi-lora"
KEY = "base/tell-me-about-alpacas-a098e306"
PROMPT = "Tell me about alpacas"
PROMPT_IDS = (5, 6, 7)
DAY = datetime.date(2026, 12, 1)

# The rows of sglang#38585: one word moved between two ROCm releases.
MASSIVE = "They're trained on a massive amount of data"
MOVED = "They're trained on massive amounts of data"

ROCM7 = Identity("rocm", "gfx942", "rocm7.2", "2.9", "float16", batch_size=1)
ROCM10 = Identity("rocm", "gfx942", "rocm10.0", "2.11", "float16", batch_size=1)
CUDA = Identity("cuda", "sm_90", "cuda13.0", "2.11", "float16", batch_size=1)
CPU = Identity("cpu", "avx512-t2", None, "2.14", "float32", batch_size=1)


def fingerprint(identity: Identity = ROCM7, **provenance: Any) -> Fingerprint:
    return Fingerprint(identity, provenance)


def recorded(
    identity: Identity = ROCM7, calibration: Mapping[str, Any] | None = None, **provenance: Any
) -> RecordedFingerprint:
    return RecordedFingerprint(SUITE, fingerprint(identity, **provenance), calibration or {})


def noise(repeats: float = 0.0, batch_sizes: float = 0.0) -> dict[str, Any]:
    """A calibration with these floors, in nats."""
    return {
        "repeats": {"row_rms": repeats, "max": repeats},
        "batch_sizes": {"row_rms": batch_sizes, "max": batch_sizes, "prompt_rms": batch_sizes},
    }


def token_ids(text: str) -> tuple[int, ...]:
    """One token a word: equal words have equal ids."""
    return tuple((sum(map(ord, word)) * 31 + len(word)) % 2**30 for word in text.split())


def floats(*values: float) -> Array:
    return np.array(values, dtype=np.float32)


def logprobs(ids: Sequence[int], shift: float = 0.0, prompt: int = len(PROMPT_IDS)) -> Any:
    """Arrays for a generation of these tokens; `shift` moves every logprob."""
    steps = len(ids)
    topk = np.array([[i, i + 1] for i in ids], dtype=np.int32).reshape(steps, 2)
    return {
        "prompt_logprobs": np.full(max(prompt - 1, 0), -2.0 + shift, np.float32),
        "logprobs": np.full(steps, -0.5 + shift, np.float32),
        "topk_ids": topk,
        "topk_logprobs": np.tile(floats(-0.5 + shift, -1.5 + shift), (steps, 1)),
        "top_logits": np.tile(floats(9.0, 8.0), (steps, 1)),
    }


def batch(*rows: str, row: int = 0) -> Composition:
    rows = rows or (KEY,)
    return Composition(rows, row, digest("|".join(rows)))


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def observation(
    text: str = MASSIVE,
    *,
    case: str = KEY,
    ids: Sequence[int] | str | None = "of the text",
    finish: str | None = "length",
    prompt_ids: tuple[int, ...] | None = PROMPT_IDS,
    shift: float = 0.0,
    arrays: Mapping[str, Array] | None = None,
    workload: Mapping[str, str] | str | None = "the usual",
    composition: Composition | str | None = "alone",
) -> Observation:
    """What the reference gives for a text; each keyword replaces a part of it."""
    tokens = token_ids(text) if isinstance(ids, str) else None if ids is None else tuple(ids)
    usual = {name: digest(name) for name in ("model", "prompt", "settings")}
    return Observation(
        case=case,
        output=Generated(text, tokens, finish, PROMPT, prompt_ids),
        arrays=logprobs(tokens or (), shift) if arrays is None else arrays,
        workload=usual if isinstance(workload, str) else workload,
        composition=batch() if isinstance(composition, str) else composition,
    )


def bare(text: str, *, case: str = KEY, **fields: Any) -> Observation:
    """What an engine gives that tells nothing but its text."""
    nothing: dict[str, Any] = {
        "ids": None,
        "finish": None,
        "prompt_ids": None,
        "arrays": {},
        "workload": None,
        "composition": None,
    }
    return observation(text, case=case, **{**nothing, **fields})


def golden(
    text: str = MASSIVE, *, identity: Identity = ROCM7, subject: str = "reference", **fields: Any
) -> Golden:
    return Golden(SUITE, identity.slug, subject, observation(text, **fields))


def evidence(candidate: Any = None, **fields: Any) -> Evidence:
    """A base row whose candidate equals its golden, in its own environment."""
    usual: dict[str, Any] = {
        "suite": SUITE,
        "case": KEY,
        "adapter": None,
        "subject": "reference",
        "here": fingerprint(),
        "candidate": observation() if candidate is None else candidate,
        "golden": golden(),
        "recorded": recorded(),
    }
    return Evidence(**{**usual, **fields})


def rule(
    case: str = "*",
    *,
    when: Mapping[str, Any] | None = None,
    subject: str | None = None,
    expires: datetime.date = datetime.date(2027, 3, 1),
    tolerance: Tolerance | None = None,
    where: str = "goldens.toml: suites.multi-lora.relax[0]",
) -> Rule:
    return Rule(
        where=where,
        case=case,
        subject=subject,
        when=Predicate(when or {}),
        reason="drifts by one word",
        issue="https://example.org/1",
        owner="@amd-ci",
        expires=expires,
        tolerance=tolerance or Tolerance(),
    )


SUITE_TOML = """\
[suites.s]
kind = "lora-generation"
model = "m"
prompts = "prompts.jsonl"
dtype = "float16"
"""


def project(
    folder: Path, toml: str = SUITE_TOML, prompts: Sequence[str] = ("one", "two", "three")
) -> Path:
    """A goldens.toml with its prompts; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "goldens.toml"
    path.write_text(toml, encoding="utf-8")
    lines = "".join(json.dumps({"prompt": p}, ensure_ascii=False) + "\n" for p in prompts)
    (folder / "prompts.jsonl").write_text(lines, encoding="utf-8")
    return path
