"""Who moved, and what says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from snapshot.difference import Distance


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
