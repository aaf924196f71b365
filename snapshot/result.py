"""How a case ended: now, and in earlier runs."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from snapshot.attribution import Attribution
from snapshot.difference import Distance, Divergence, Finding, RowErrors, Step


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


UNKNOWN_ENVIRONMENT = "unknown environment"
"""What people are told where no fingerprint is known."""


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

    @property
    def place(self) -> str:
        """Where it ran, or else what it was held to, for people."""
        return self.slug or self.golden_slug or UNKNOWN_ENVIRONMENT


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
