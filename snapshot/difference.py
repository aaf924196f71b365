"""How two observations of one case differ: what the metrics and the checks find."""

from __future__ import annotations

from dataclasses import dataclass


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
class Step:
    """One generated token, on the golden's and on the candidate's side.

    Attributes:
        index: from 0.
        tokens: ids; None where that side had ended.
        logprobs: of those tokens, in nats; None where unknown.
        margins: top-1 minus top-2, in nats; None where unknown.
        tops: the best (id, logprob), best first, at the step that parts or moved most; empty
            elsewhere and where unknown.
    """

    index: int
    tokens: tuple[int | None, int | None]
    logprobs: tuple[float | None, float | None]
    margins: tuple[float | None, float | None]
    tops: tuple[tuple[tuple[int, float], ...], tuple[tuple[int, float], ...]]


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
