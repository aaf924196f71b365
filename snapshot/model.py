"""The nouns that everything passes along: frozen, comparable, without behaviour of their own.

This module imports nothing of ours, and torch never.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias

from numpy.typing import NDArray
from typing_extensions import TypeVar

Json: TypeAlias = Any  # None, bool, int, float, str, list[Json], dict[str, Json]
Array: TypeAlias = NDArray[Any]

REFERENCE = "reference"
"""The subject that engines are held to: transformers + peft."""

BASE = "base"
"""What a row without an adapter is called in case keys."""

GENERATION = "lora-generation"


# ------------------------------------------------------------------ environment


@dataclass(frozen=True)
class Identity:
    """What selects a golden; two environments with one identity share their goldens.

    Attributes:
        backend: ``cuda``, ``rocm``, ``xpu`` or ``cpu``.
        arch: ``sm_90``, ``gfx942``; on a CPU ATen's capability, the highest
            instruction set oneDNN may use and the thread count
            (``avx512-avx512_core_amx-t2``); ``nodevice`` where a GPU build sees none.
        runtime: name and major.minor of the runtime (``cuda13.0``, ``rocm10.0``, or
            ``hip7.15`` where the ROCm release is unknown); None on a CPU.
        torch: major.minor.
        dtype: ``float32``, ``bfloat16``, ``float16``...
        batch_size: rows a batch, for generation; None for kernels.
        triton: major.minor, for kernels; None for generation.
    """

    backend: str
    arch: str
    runtime: str | None
    torch: str
    dtype: str
    batch_size: int | None = None
    triton: str | None = None

    @property
    def slug(self) -> str:
        """Folder name: ``rocm10.0-gfx942-torch2.11-float16-bs1``."""
        parts = [self.runtime or self.backend, self.arch, f"torch{self.torch}"]
        if self.triton is not None:
            parts.append(f"triton{self.triton}")
        parts.append(self.dtype)
        if self.batch_size is not None:
            parts.append(f"bs{self.batch_size}")
        return "-".join(parts)

    def at(self, batch_size: int | None) -> Identity:
        """The same environment at another batch size."""
        return dataclasses.replace(self, batch_size=batch_size)


@dataclass(frozen=True)
class Fingerprint:
    """An environment: the identity that selects, and everything else that is known of it.

    Attributes:
        identity: see `Identity`.
        provenance: exact versions, device name, switches...; JSON values by name. It
            never selects a golden, but `when` predicates may use any of it.
    """

    identity: Identity
    provenance: Mapping[str, Json] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        return self.identity.slug

    def at(self, batch_size: int | None) -> Fingerprint:
        """The same environment at another batch size."""
        return Fingerprint(self.identity.at(batch_size), self.provenance)


@dataclass(frozen=True)
class RecordedFingerprint:
    """What ``fingerprint.json`` holds: an environment as it was when it was recorded.

    Attributes:
        suite: the suite whose goldens lie beside it.
        fingerprint: the recording's environment.
        calibration: measured noise of that environment (see `snapshot.calibrate`).
    """

    suite: str
    fingerprint: Fingerprint
    calibration: Mapping[str, Json] = field(default_factory=dict)


# ------------------------------------------------------------------------ cases


@dataclass(frozen=True)
class GenerationCase:
    """One prompt with one adapter, or with none.

    Attributes:
        key: ``<adapter or base>/<prompt slug>-<8 hex of its digest>``.
        adapter: the adapter's name in goldens.toml; None for the base model.
        prompt: the text as written.
    """

    key: str
    adapter: str | None
    prompt: str


@dataclass(frozen=True)
class Composition:
    """The batch a row ran in: its bits depend on it.

    Attributes:
        rows: case keys in batch order, filling copies included.
        row: index of this row in `rows`.
        digest: sha256 over `rows`.
    """

    rows: tuple[str, ...]
    row: int
    digest: str


# ----------------------------------------------------------------- observations


@dataclass(frozen=True)
class Generated:
    """The readable part of a generation.

    Attributes:
        text: decoded tokens, special tokens left out.
        token_ids: generated ids, the stop token included; None where a subject gives only text.
        finish_reason: ``stop`` (an end token came) or ``length``; None where unknown.
        prompt: the prompt's text.
        prompt_ids: its tokens; None where a subject does not tell.
    """

    text: str
    token_ids: tuple[int, ...] | None
    finish_reason: str | None
    prompt: str
    prompt_ids: tuple[int, ...] | None


Output = TypeVar("Output", default=Generated)
"""The readable part of an observation; each kind of suite has its own."""


@dataclass(frozen=True)
class Observation(Generic[Output]):
    """What one subject produced for one case, once.

    Attributes:
        case: the case's key.
        output: the readable part.
        arrays: the long part, by name. For a generation of T tokens after P prompt tokens,
            each may be absent when the subject cannot give it:
            ``prompt_logprobs`` float32 [P-1], the logprob of each prompt token but the first;
            ``logprobs`` float32 [T], of the chosen tokens;
            ``topk_ids`` int32 [T, k] and ``topk_logprobs`` float32 [T, k], best first,
            ties by lower id; ``top_logits`` float32 [T, 2], the two largest raw logits.
        workload: digest of each component that went in (model, config, tokenizer, adapter,
            prompt, settings); None where the subject cannot tell.
        composition: the batch it ran in; None where unknown.
    """

    case: str
    output: Output
    arrays: Mapping[str, Array] = field(default_factory=dict)
    workload: Mapping[str, str] | None = None
    composition: Composition | None = None


@dataclass(frozen=True)
class Golden(Generic[Output]):
    """A recorded observation.

    Attributes:
        suite, slug, subject: where it lies: suite, fingerprint slug, subject.
        observation: what was recorded.
        recorded_by: tool and versions, by name.
    """

    suite: str
    slug: str
    subject: str
    observation: Observation[Output]
    recorded_by: Mapping[str, str] = field(default_factory=dict)

    @property
    def case(self) -> str:
        return self.observation.case
