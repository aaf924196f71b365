"""What differs between a golden and a candidate: facts, before anyone judges them."""

from __future__ import annotations

from dataclasses import dataclass

from snapshot.calibrate import Floor
from snapshot.difference import Distance, Divergence, Finding
from snapshot.metrics.decoding import disagreement
from snapshot.metrics.logprobs import CHOSEN, PROMPT, TOPK, compared, distance
from snapshot.metrics.text import NotScorable, rouge_l
from snapshot.metrics.tokens import divergence, stop_difference
from snapshot.model import Generated, Observation
from snapshot.policy import TextTolerance

STOP = "stop"


@dataclass(frozen=True)
class Score:
    """ROUGE-L of two texts that differ.

    Attributes:
        value: the score; None where none must decide.
        why_not: then, why.
    """

    value: float | None
    why_not: str = ""


@dataclass(frozen=True)
class Comparison:
    """A golden and a candidate of one case, side by side.

    Attributes:
        golden, candidate: the two observations.
        findings: differences of token ids, text and stop; empty where all are equal.
        divergence: the first differing token.
        distance: of the logprobs; None where no value of both sides can be compared.
        unchecked: the checks that could not run, because a side lacks what they need.
        decoding: how one sequence of tokens became two texts, where that is of a known kind:
            then the tokens decide.
    """

    golden: Observation
    candidate: Observation
    findings: tuple[Finding, ...]
    divergence: Divergence | None
    distance: Distance | None
    unchecked: tuple[str, ...]
    decoding: str | None = None

    @classmethod
    def of(cls, golden: Observation, candidate: Observation) -> Comparison:
        """Compares. Raises `Misshapen` for an array that does not fit its tokens."""
        moved = distance(golden, candidate)
        parted = divergence(golden, candidate)
        return cls(
            golden,
            candidate,
            findings=tuple(_output_findings(golden.output, candidate.output, parted)),
            divergence=parted,
            distance=moved if moved is not None and moved.count else None,
            unchecked=tuple(_unchecked(golden, candidate)),
            decoding=_decoding(golden.output, candidate.output),
        )

    @property
    def same_output(self) -> bool:
        return not self.findings

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

    def score(self, metric: str) -> Score:
        """ROUGE-L of the texts. It decides nothing where a text is empty, the stop differs, or
        the metric is blind to a difference."""
        a, b = self.golden.output.text, self.candidate.output.text
        if not a or not b:
            return Score(None, "an empty text is never scored")
        if any(finding.check == STOP for finding in self.findings):
            return Score(None, "the stop differs, which no likeness of texts excuses")
        if a == b:
            return Score(1.0)
        try:
            return Score(rouge_l(metric, a, b))
        except NotScorable as error:
            return Score(None, str(error))

    def text_finding(self, tolerance: TextTolerance) -> Finding | None:
        """The finding where the texts are not similar enough, or must not be scored."""
        score = self.score(tolerance.metric)
        if score.value is not None and score.value >= tolerance.rouge_l:
            return None
        got = f"not scored: {score.why_not}" if score.value is None else f"{score.value:.4f}"
        name = f"ROUGE-L ({tolerance.metric})"
        return Finding("text", name, got=got, allowed=f"at least {tolerance.rouge_l:g}")


# ----------------------------------------------------------------------- findings


def _output_findings(
    golden: Generated, candidate: Generated, parted: Divergence | None
) -> list[Finding]:
    found = [*_empty(golden, candidate)]
    stop = stop_difference(golden, candidate)
    if stop is not None:
        what = f"stop condition: {stop}; no word differed before the stop"
        found.append(Finding(STOP, what, expected=_length(golden), got=_length(candidate)))
        return found
    if parted is not None:
        found.append(_parted(golden, candidate, parted))
    elif golden.text != candidate.text and not found and not _decoding(golden, candidate):
        expected, got = _excerpts(golden.text, candidate.text)
        found.append(Finding("text", _other_text(golden, candidate), None, expected, got))
    reasons = (golden.finish_reason, candidate.finish_reason)
    if None not in reasons and reasons[0] != reasons[1]:
        found.append(Finding(STOP, "the finish reason differs", None, *reasons))
    return found


def _same_tokens(golden: Generated, candidate: Generated) -> bool:
    return golden.token_ids is not None and golden.token_ids == candidate.token_ids


def _decoding(golden: Generated, candidate: Generated) -> str | None:
    """What the tokenizers disagree on, where equal tokens show that nothing else differs."""
    if golden.text == candidate.text or not _same_tokens(golden, candidate):
        return None
    return disagreement(golden.text, candidate.text)


def _other_text(golden: Generated, candidate: Generated) -> str:
    if _same_tokens(golden, candidate):
        return "the tokens are equal and decode to another text: the tokenizers disagree"
    why = disagreement(golden.text, candidate.text)
    return "the texts differ" + ("" if why is None else f" only in {why}; token ids would decide")


def _empty(golden: Generated, candidate: Generated) -> list[Finding]:
    if not golden.text or candidate.text or _decoding(golden, candidate):
        return []
    return [Finding("text", "empty output", expected=_excerpts(golden.text, "")[0], got="''")]


def _parted(golden: Generated, candidate: Generated, at: Divergence) -> Finding:
    same = ", the texts are equal" if golden.text == candidate.text else ""
    return Finding(
        "token_ids",
        f"the tokens part at step {at.step}{same}",
        where=f"step {at.step}",
        expected=f"token {at.golden_token}{_standing(at.golden_margin, at.candidate_rank)}",
        got=f"token {at.candidate_token}{_standing(at.candidate_margin, at.golden_rank)}",
        allowed="the same token",
    )


def _length(side: Generated) -> str:
    ids, text = side.token_ids, side.text
    return f"{f'{len(text)} characters' if ids is None else f'{len(ids)} tokens'}" + (
        "" if side.finish_reason is None else f", {side.finish_reason}"
    )


def _standing(margin: float | None, rank: int | None) -> str:
    """A token's margin on its own side, and its rank among the other side's top-k."""
    own = "" if margin is None else f", margin {margin:.3g}"
    return own if rank is None else f"{own}, rank {rank} on the other side"


def _excerpts(golden: str, candidate: str) -> tuple[str, str]:
    """Both texts quoted, from a little before they part."""
    pairs = enumerate(zip(golden, candidate, strict=False))
    parted = next((i for i, (a, b) in pairs if a != b), min(len(golden), len(candidate)))
    start = max(parted - 24, 0)
    return _quoted(golden, start), _quoted(candidate, start)


def _quoted(text: str, start: int, length: int = 80) -> str:
    before, after = "…" if start else "", "…" if len(text) > start + length else ""
    return f"{before}{text[start : start + length]!r}{after}"


def _unchecked(golden: Observation, candidate: Observation) -> list[str]:
    a, b = golden.output, candidate.output
    counts = compared(golden, candidate)
    empty = golden.arrays["topk_ids"].size == 0 if counts.get(TOPK) == 0 else False
    ran = {
        "workload": None not in (golden.workload, candidate.workload),
        "token ids": None not in (a.token_ids, b.token_ids),
        "finish reason": None not in (a.finish_reason, b.finish_reason),
        PROMPT: PROMPT in counts,
        CHOSEN: CHOSEN in counts,
        TOPK: bool(counts.get(TOPK)) or empty,
    }
    return [name for name, did in ran.items() if not did]
