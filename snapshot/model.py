"""The nouns that everything passes along: frozen, comparable, without behaviour of their own.

This module imports nothing of ours, and torch never.
"""

from __future__ import annotations

import dataclasses
import enum
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


# --------------------------------------------------------------------- findings


class Verdict(enum.Enum):
    """How a case ended. Order and meaning: docs/verdicts.md; the first that matches wins."""

    ERROR = "ERROR"
    INVALID = "INVALID"
    NONFINITE = "NONFINITE"
    WRONG = "WRONG"
    MISSING = "MISSING"
    MATCH = "MATCH"
    VARIANT = "VARIANT"
    TIE = "TIE"
    WITHIN = "WITHIN"
    DRIFT = "DRIFT"
    REGRESSION = "REGRESSION"
    UNATTRIBUTED = "UNATTRIBUTED"
    QUARANTINED = "QUARANTINED"
    FIXED = "FIXED"

    @property
    def passes(self) -> bool:
        return self in _PASSING


_PASSING = frozenset(
    {Verdict.MATCH, Verdict.VARIANT, Verdict.TIE, Verdict.WITHIN, Verdict.QUARANTINED}
)


@dataclass(frozen=True)
class Finding:
    """One difference, or one check that could not run.

    Attributes:
        check: what was looked at (``token_ids``, ``logprobs``, ``workload``...).
        message: one sentence.
        where, expected, got, allowed: its particulars; None where they do not apply.
    """

    check: str
    message: str
    where: str | None = None
    expected: str | None = None
    got: str | None = None
    allowed: str | None = None


@dataclass(frozen=True)
class Divergence:
    """The first step at which two generations part.

    Attributes:
        step: index into the generated tokens.
        golden_token, candidate_token: ids there; None where that side had ended.
        golden_margin, candidate_margin: top-1 minus top-2 raw logit (logprob where a subject
            gives no logits), in nats; None where unknown.
        golden_rank: rank of the candidate's token in the golden's top-k, from 0; None: not in it.
        candidate_rank: rank of the golden's token in the candidate's top-k.
    """

    step: int
    golden_token: int | None
    candidate_token: int | None
    golden_margin: float | None = None
    candidate_margin: float | None = None
    golden_rank: int | None = None
    candidate_rank: int | None = None


@dataclass(frozen=True)
class Distance:
    """How far two sets of logprobs are apart.

    Attributes:
        count: values compared; 0 means that nothing was, which is never "close".
        rms: root mean square of the differences, in nats.
        max: largest absolute difference, in nats.
        where: which value that is: ``prompt token 3``, ``step 5``, ``step 5, token 198``.
    """

    count: int
    rms: float
    max: float
    where: str

    def __str__(self) -> str:
        if self.count == 0:
            return "0 values compared"
        return f"rms {self.rms:.2g}, max {self.max:.2g} at {self.where} ({self.count} values)"


@dataclass(frozen=True)
class RowErrors:
    """Errors of a kernel's output by row, for a heat map.

    Attributes:
        quantity: what the values are, ``rel-L2 against the float64 oracle``.
        values: by sequence, then by head; None where a row holds NaN or an infinity.
        bound: above which a row is wrong; None where there is none.
    """

    quantity: str
    values: tuple[tuple[float | None, ...], ...]
    bound: float | None = None


@dataclass(frozen=True)
class Step:
    """One generated token, on the golden's and on the candidate's side.

    Attributes:
        index: from 0.
        tokens: ids; None where that side had ended.
        logprobs: of those tokens, in nats; None where unknown.
        margins: top-1 minus top-2, in nats; None where unknown.
        tops: the best (id, logprob), best first; empty where unknown.
    """

    index: int
    tokens: tuple[int | None, int | None]
    logprobs: tuple[float | None, float | None]
    margins: tuple[float | None, float | None]
    tops: tuple[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]]


@dataclass(frozen=True)
class GroupTest:
    """One question put to all rows of an adapter, or of the base, prompt by prompt.

    Attributes:
        group: the adapter, or ``base``.
        question: ``adapter strength`` or ``error ratio`` (see `snapshot.grouptests`).
        estimate: the answer over all prompts; `low` to `high` is its 95 % interval.
        expected: what it is where nothing is wrong.
        p: probability of an answer this far off where nothing is wrong, Holm-adjusted over
            the groups.
        detectable: the smallest distance from `expected` that would be found four times in
            five with this many prompts.
        prompts: how many prompts there are.
        significant: whether it says that something is wrong.
    """

    group: str
    question: str
    estimate: float
    low: float
    high: float
    expected: float
    p: float
    detectable: float
    prompts: int
    significant: bool


@dataclass(frozen=True)
class Move:
    """One step on the way from a golden to a candidate.

    Attributes:
        name: ``environment`` (golden to the reference here and now, in the golden's batch),
            ``batch`` (from there to the reference in the candidate's batch) or ``candidate``
            (from the reference here to the candidate).
        distance: of the logprobs; None where no value compares.
        step: where the tokens part; None where they are equal or unknown.
        words: whether the texts differ.
        allowed_rms, allowed_max: how far a clean run may be, in nats; None where no bound is
            known.
    """

    name: str
    distance: Distance | None
    step: int | None
    words: bool
    allowed_rms: float | None = None
    allowed_max: float | None = None

    @property
    def still(self) -> bool:
        """Whether nothing moved: the same words, and every compared value the same."""
        return (
            not self.words
            and self.step is None
            and (self.distance is None or not self.distance.max)
        )


@dataclass(frozen=True)
class Attribution:
    """Who moved: the reference since the recording, or the candidate from the reference.

    Attributes:
        moves: the way from the golden to the candidate, step by step.
        reference_text: what the reference says here and now, in the candidate's batch where
            that is known, otherwise in the golden's.
        errors: rms distance from the float32 answer on the golden's tokens, in nats, of
            ``golden``, ``reference`` and ``candidate``; without those that are not known.
        tests: what all rows of this adapter say together.
        notes: what could not be run, and why.
    """

    moves: tuple[Move, ...] = ()
    reference_text: str | None = None
    errors: Mapping[str, float] = field(default_factory=dict)
    tests: tuple[GroupTest, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """The verdict on one case and what it rests on.

    Attributes:
        suite, case, subject: what was judged.
        slug: fingerprint the candidate ran in; None where it is not known.
        golden_slug: fingerprint of the golden it was held to; None where there is none.
        verdict: see `Verdict`.
        headline: one sentence a tired person understands.
        findings: every difference found.
        notes: what is worth knowing and does not change the verdict.
        golden_text, candidate_text: both texts where they differ or are shown.
        divergence: where they part.
        distance: of their logprobs; None where nothing compares.
        scores: ROUGE-L by metric, where the texts differ and may be scored.
        relaxed: the relax rules (file and key) without which it would not pass.
        attribution: who moved, where that was looked into.
        steps: what both sides did around the difference.
        rows: errors by (sequence, head), of a kernel.
    """

    suite: str
    case: str
    subject: str
    slug: str | None
    golden_slug: str | None
    verdict: Verdict
    headline: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    golden_text: str | None = None
    candidate_text: str | None = None
    divergence: Divergence | None = None
    distance: Distance | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    relaxed: tuple[str, ...] = ()
    attribution: Attribution | None = None
    steps: tuple[Step, ...] = ()
    rows: RowErrors | None = None


@dataclass(frozen=True)
class Observed:
    """What one earlier verification saw of one case.

    Attributes:
        day: ISO date.
        suite, subject, slug, case: what was judged, and the fingerprint it ran in.
        verdict: how it ended.
        strict: whether it passes without any relaxation.
        rms, max: of its logprob differences, in nats; None where nothing compares.
        scores: ROUGE-L by metric, where texts differed and were scored.
    """

    day: str
    suite: str
    subject: str
    slug: str
    case: str
    verdict: str
    strict: bool
    rms: float | None = None
    max: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
