"""What differs between a golden and a candidate: facts, before anyone judges them."""

from __future__ import annotations

from dataclasses import dataclass

from snapshot.calibrate import Floor
from snapshot.metrics.logprobs import Distance, distance
from snapshot.metrics.text import NotScorable, rouge_l
from snapshot.metrics.tokens import divergence, stop_difference
from snapshot.model import Divergence, Finding, Observation
from snapshot.policy import TextTolerance


@dataclass(frozen=True)
class Comparison:
    """A golden and a candidate of one case, side by side.

    Attributes:
        golden, candidate: the two observations.
        findings: differences of token ids, text and stop; empty where all are equal.
        divergence: the first differing token.
        distance: of the logprobs; None where either side has none.
    """

    golden: Observation
    candidate: Observation
    findings: tuple[Finding, ...]
    divergence: Divergence | None
    distance: Distance | None

    @classmethod
    def of(cls, golden: Observation, candidate: Observation) -> Comparison:
        """Compares. Raises `LengthMismatch` for an array that does not fit its tokens."""
        parted = divergence(golden, candidate)
        findings = tuple(_output_findings(golden, candidate, parted))
        return cls(golden, candidate, findings, parted, distance(golden, candidate))

    @property
    def same_output(self) -> bool:
        return not self.findings

    @property
    def stopped(self) -> bool:
        """Whether it is the stop condition that differs."""
        return any(finding.check == "stop" for finding in self.findings)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The checks that could not run, because a side does not have what they need."""
        missing = {
            "token ids": self.candidate.output.token_ids is None,
            "finish reason": self.candidate.output.finish_reason is None,
            "logprobs": self.distance is None,
        }
        return tuple(name for name, absent in missing.items() if absent)

    def within(self, bound: Floor) -> bool:
        """Whether the logprobs that both sides have are inside a bound."""
        moved = self.distance
        return moved is None or (moved.rms <= bound.rms and moved.max <= bound.max)

    def logprob_finding(self, bound: Floor) -> Finding | None:
        """The finding where they are not."""
        if self.distance is None or self.within(bound):
            return None
        return Finding(
            "logprobs",
            "the logprobs moved",
            where=self.distance.where,
            got=str(self.distance),
            allowed=f"rms {bound.rms:.2g}, max {bound.max:.2g} ({bound.name})",
        )

    def score(self, tolerance: TextTolerance) -> float | None:
        """ROUGE-L of the texts; None where a score must not decide: an empty text, another
        stop, a difference that the metric cannot see."""
        a, b = self.golden.output.text, self.candidate.output.text
        if not a or not b or self.stopped:
            return None
        if a == b:
            return 1.0
        try:
            return rouge_l(tolerance.metric, a, b)
        except NotScorable:
            return None

    def score_finding(self, tolerance: TextTolerance) -> Finding | None:
        """The score as a finding, or why there is none; None for an empty text."""
        a, b = self.golden.output.text, self.candidate.output.text
        if not a or not b:
            return None
        try:
            got = f"{rouge_l(tolerance.metric, a, b):.4f}"
        except NotScorable as error:
            got = f"not scored: {error}"
        name = f"ROUGE-L ({tolerance.metric})"
        return Finding("text", name, got=got, allowed=f"at least {tolerance.rouge_l}")


def _output_findings(
    golden: Observation, candidate: Observation, parted: Divergence | None
) -> list[Finding]:
    expected, got = golden.output, candidate.output
    found: list[Finding] = []
    if expected.text and not got.text:
        found.append(Finding("text", "empty output", expected=repr(expected.text), got="''"))
    stop = (
        stop_difference(expected.token_ids, got.token_ids)
        if expected.token_ids is not None and got.token_ids is not None
        else None
    )
    if stop is not None:
        found.append(
            Finding(
                "stop",
                f"stop condition: {stop}; no word differed before the stop",
                expected=f"{_length(expected.token_ids)} tokens, {expected.finish_reason}",
                got=f"{_length(got.token_ids)} tokens, {got.finish_reason}",
            )
        )
    elif parted is not None:
        found.append(
            Finding(
                "token_ids",
                f"the tokens part at step {parted.step}",
                where=f"step {parted.step}",
                expected=f"token {parted.golden_token}{_margin(parted.golden_margin)}",
                got=f"token {parted.candidate_token}{_margin(parted.candidate_margin)}",
            )
        )
    elif None not in (expected.finish_reason, got.finish_reason) and (
        expected.finish_reason != got.finish_reason
    ):
        found.append(
            Finding(
                "stop",
                "the finish reason differs",
                expected=expected.finish_reason,
                got=got.finish_reason,
            )
        )
    if not found and expected.text != got.text:
        what = "the texts differ"
        if got.token_ids is not None:
            what = "the tokens are equal and decode to another text: the tokenizers disagree"
        found.append(Finding("text", what, expected=repr(expected.text), got=repr(got.text)))
    return found


def _length(ids: tuple[int, ...] | None) -> str:
    return "unknown" if ids is None else str(len(ids))


def _margin(value: float | None) -> str:
    return "" if value is None else f", margin {value:.3g}"
