"""The rules by which a case passes, or is another row's, in their order (docs/verdicts.md).

Each gives a ruling, or None: then the next one is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snapshot.attribute import deviates
from snapshot.calibrate import Floor
from snapshot.comparison import Comparison
from snapshot.difference import Divergence, Finding
from snapshot.evidence import Evidence
from snapshot.metrics.logprobs import prompt_deltas
from snapshot.model import BASE
from snapshot.policy import Tolerance
from snapshot.result import Verdict


@dataclass(frozen=True)
class Ruling:
    """A verdict with what it rests on.

    Attributes:
        relaxed: the relax rules (file and key) without which the case would fail.
    """

    verdict: Verdict
    headline: str
    findings: Sequence[Finding] = ()
    relaxed: tuple[str, ...] = ()


def match(e: Evidence, c: Comparison, noise: Floor) -> Ruling | None:
    """The golden's tokens and stop, and its numbers up to noise."""
    if not c.same_output or not c.within(noise) or deviates(e, c):
        return None
    return Ruling(Verdict.MATCH, "")


def identity(e: Evidence, c: Comparison, noise: Floor) -> Ruling | None:
    """Another row's golden: an adapter without effect, or two swapped."""
    if not c.candidate.output.text:
        return None
    for name, sibling in e.siblings.items():
        if not _is_another(c, Comparison.of(sibling.observation, c.candidate), noise):
            continue
        if name == BASE:
            what = "matches the base golden: adapter had no effect"
        elif e.adapter is None:
            what = f'matches the golden of adapter "{name}": it leaked into the base row'
        else:
            what = f'matches the golden of adapter "{name}": adapters swapped'
        findings = [Finding("identity", what, where=sibling.case), *c.findings]
        return Ruling(Verdict.REGRESSION, what, findings)
    return None


def variant(e: Evidence, c: Comparison, noise: Floor) -> Ruling | None:
    """The reference's recorded answer at another batch size."""
    batch = c.candidate.composition
    if (batch is not None and batch == c.golden.composition) or deviates(e, c):
        return None
    for golden, recorded in e.variants:
        if golden.observation.workload != c.golden.workload:
            continue  # recorded from other weights: an answer to another question
        other = Comparison.of(golden.observation, c.candidate)
        if other.same_output and other.within(e.noise(recorded, other)):
            size = recorded.fingerprint.identity.batch_size
            if c.divergence is None:
                what = f"the golden's words, with the reference's numbers at batch size {size}"
            else:
                what = f"the reference's own answer at batch size {size}; {parting(c.divergence)}"
            return Ruling(Verdict.VARIANT, what, c.findings)
    return None


def tie(e: Evidence, c: Comparison, noise: Floor) -> Ruling | None:
    """Parted where rounding alone decides, and on the golden's tokens the numbers agree.

    Not known without forced scoring: what follows the parting could hide any fault.
    """
    forced = None if e.now is None else e.now.candidate_forced
    if forced is None or e.recorded is None or c.divergence is None or deviates(e, c):
        return None
    scored = Comparison.of(c.golden, forced)
    why = e.near_tie(c)
    if why is None or scored.distance is None or not scored.within(noise):
        return None
    what = (
        f"{parting(c.divergence)}, {why}; on the golden's tokens "
        f"logprobs {scored.distance}, noise rms {noise.rms:.2g}, max {noise.max:.2g}"
    )
    return Ruling(Verdict.TIE, what, c.findings)


def within(e: Evidence, c: Comparison, noise: Floor) -> Ruling | None:
    """Inside what the policy tolerates; what is left is said."""
    strictness = e.strictness
    covered = _covered(e, c, noise, strictness.tolerance)
    if not covered:
        return None
    needed = [
        rule for rule in strictness.relaxed if not _covered(e, c, noise, strictness.without(rule))
    ]
    by = "; ".join(map(str, needed)) or "the suite's tolerance"
    relaxed = tuple(rule.where for rule in needed)
    return Ruling(Verdict.WITHIN, f"{', '.join(covered)}; {by}", c.findings, relaxed)


def _covered(e: Evidence, c: Comparison, noise: Floor, tolerance: Tolerance) -> list[str]:
    """What a tolerance covers of the difference, in words; nothing where it does not cover all
    of it. One of texts excuses nothing where the texts are equal."""
    if e.beyond(c, noise, tolerance):
        return []
    said: list[str] = []
    if tolerance.text is not None and not c.same_output:
        score = c.score(tolerance.text.metric).value or 0.0
        left = score - tolerance.text.rouge_l
        said.append(f"{tolerance.text.metric} ROUGE-L {score:.4f}, {left:.4f} left")
    if tolerance.logprob is not None and c.distance is not None:
        bound = e.bound(tolerance.logprob, noise)
        said.append(f"logprobs {c.distance}, allowed rms {bound.rms:.2g}, max {bound.max:.2g}")
    return said


def parting(at: Divergence) -> str:
    """Where two generations part, and how sure each side was there."""
    margins = {"golden": at.golden_margin, "candidate": at.candidate_margin}
    known = [f"{value:.3g} in the {side}" for side, value in margins.items() if value is not None]
    there = f", top-2 margin there {' and '.join(known)}" if known else ""
    return f"the tokens part at step {at.step}{there}"


def _is_another(own: Comparison, other: Comparison, noise: Floor) -> bool:
    """Whether a candidate that is not its own golden's is another row's.

    The prompt's logprobs alone tell, where they are the other's up to noise and not the own one's:
    another batch words the rest in its own way. Words can coincide: where both goldens scored the
    prompt, its logprobs must not be nearer to the own one's. Where even the own golden has these
    words, they must be the other's.
    """
    mine, theirs = (prompt_deltas(c.golden, c.candidate) for c in (own, other))
    known = bool(mine.size and theirs.size)
    if known and noise.covers(theirs) and not noise.covers(mine):
        return True
    if not other.same_output:
        return False
    if own.same_output:
        return known and other.within(noise) and bool((theirs**2).mean() < (mine**2).mean())
    return not known or bool((theirs**2).mean() <= (mine**2).mean())
