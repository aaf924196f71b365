"""All that is known when one case is judged, and how much of a difference is noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from snapshot.attribution import GroupTest
from snapshot.calibrate import Floor, floor, tie_margin
from snapshot.comparison import Comparison
from snapshot.difference import Finding
from snapshot.errors import GoldensError, StoreError
from snapshot.metrics.ties import gap, near_tie, tie_bound
from snapshot.model import REFERENCE, Fingerprint, Golden, Observation, RecordedFingerprint
from snapshot.policy import LogprobTolerance, Strictness, Tolerance


@dataclass(frozen=True)
class Now:
    """What the reference gives for a case here and now.

    Attributes:
        golden_batch: in the golden's batch; None where it could not be run.
        here: where, batch size included; None where the candidate is the reference's own run.
        candidate_batch: in the candidate's batch; None where that is unknown, or where the
            candidate is this very run.
        truth: the float32 answer on the golden's tokens.
        forced: the reference on the golden's tokens, in the batch of `candidate_batch`, or of
            `golden_batch` without one.
        candidate_forced: the candidate on the golden's tokens.
        repeated: the candidate's run once more in a fresh process, where the candidate is the
            reference and nothing is known to have changed.
        tests: what all rows of this adapter say together.
        notes: what could not be run, and why.
        reference_moved: where the golden is an engine's own: whether the reference moved since
            its golden of the case was recorded; None where it was not run.
        follows: then, whether the engine does what the reference does here.
        asked: whether the reference was asked at all; an engine scores tokens without it.
    """

    golden_batch: Observation | None = None
    here: Fingerprint | None = None
    candidate_batch: Observation | None = None
    truth: Observation | None = None
    forced: Observation | None = None
    candidate_forced: Observation | None = None
    repeated: Observation | None = None
    tests: tuple[GroupTest, ...] = ()
    notes: tuple[str, ...] = ()
    reference_moved: bool | None = None
    follows: bool = False
    asked: bool = True


@dataclass(frozen=True)
class Evidence:
    """All that is known when one case is judged.

    Attributes:
        suite, case: which case.
        adapter: its adapter; None for a base row.
        subject: what produced the candidate.
        here: where the candidate ran; None where that is unknown.
        candidate: what it gave, or why it gave nothing.
        golden: what was recorded; None where nothing was, an error where it is damaged.
        recorded: the golden's environment; None without a golden.
        looked_for: where a golden was looked for and what exists instead (for MISSING).
        siblings: goldens of the same prompt's other rows, by adapter name or ``base``.
        variants: goldens of the same case at the environment's other batch sizes, each with
            its environment.
        strictness: what the policy asks.
        allowed: findings that an ``allow`` entry accepts for this case.
        now: what the reference gives here and now; None where it was not run.
    """

    suite: str
    case: str
    adapter: str | None
    subject: str
    here: Fingerprint | None
    candidate: Observation | GoldensError
    golden: Golden | StoreError | None
    recorded: RecordedFingerprint | None = None
    looked_for: str = ""
    siblings: Mapping[str, Golden] = field(default_factory=dict)
    variants: Sequence[tuple[Golden, RecordedFingerprint]] = ()
    strictness: Strictness = field(default_factory=lambda: Strictness(Tolerance()))
    allowed: frozenset[str] = frozenset()
    now: Now | None = None

    @property
    def own_code(self) -> bool:
        """Whether the candidate ran the reference's own code: then in one batch and environment
        it must give the reference's bits."""
        return self.subject == REFERENCE

    def same_batch(self, recorded: RecordedFingerprint | None, c: Comparison) -> bool:
        """Whether both sides ran in one environment and one batch."""
        return (
            self.here is not None
            and recorded is not None
            and self.here.identity == recorded.fingerprint.identity
            and c.candidate.composition is not None
            and c.candidate.composition == c.golden.composition
        )

    @property
    def foreign(self) -> bool:
        """Whether the candidate and its golden are of two implementations."""
        golden = self.golden.subject if isinstance(self.golden, Golden) else REFERENCE
        return golden != self.subject

    def noise(self, recorded: RecordedFingerprint | None, c: Comparison) -> Floor:
        """What is noise between two observations: strictest where both ran in one batch."""
        calibration = recorded.calibration if recorded is not None else {}
        if self.foreign:
            return floor(calibration, same_batch=False).foreign
        return floor(calibration, same_batch=self.same_batch(recorded, c))

    def tie_bound(self, c: Comparison, step: int) -> float:
        """The largest top-2 margin, in nats, that is a near-tie there; 0 without a golden."""
        if self.recorded is None:
            return 0.0
        dtype = self.recorded.fingerprint.identity.dtype
        return tie_bound(c.golden, step, dtype, tie_margin(self.recorded.calibration))

    def near_tie(self, c: Comparison) -> str | None:
        """Why rounding alone decides where two generations part; None where it does not. One of
        another implementation parts as far as noise moves a logprob."""
        at = c.divergence
        if at is None or self.recorded is None:
            return None
        bound = self.tie_bound(c, at.step)
        if near_tie(at, bound):
            return f"where up to {bound:.3g} is rounding"
        moved = gap(c.golden, c.candidate, at)
        most = floor(self.recorded.calibration, same_batch=False).max
        if not self.foreign or moved is None or moved > most:
            return None
        return f"where the two tokens moved by {moved:.3g} and noise moves one by up to {most:.3g}"

    def bound(self, tolerance: LogprobTolerance | None, noise: Floor) -> Floor:
        """What a logprob tolerance allows; the noise floor where it says nothing."""
        if tolerance is None:
            return noise
        unlimited = float("inf")
        return Floor(
            "tolerance",
            rms=unlimited if tolerance.rms is None else tolerance.rms,
            max=unlimited if tolerance.max is None else tolerance.max,
        )

    def beyond(self, c: Comparison, noise: Floor, tolerance: Tolerance) -> list[Finding]:
        """What a tolerance does not cover; empty where the case is within."""
        found: list[Finding | None] = []
        if tolerance.text is None:
            found += c.findings
        elif not c.same_output:
            found.append(c.text_finding(tolerance.text))
        found.append(c.logprob_finding(self.bound(tolerance.logprob, noise)))
        return [finding for finding in found if finding is not None]
