"""Who moved: the reference since the recording, or the candidate from the reference?

A difference in differences. On the way from the golden to the candidate lies what the
reference gives here and now: what parts the golden from it is drift of the environment, or of
the batch; what parts it from the candidate is the candidate's own. In half precision a real
fault can be smaller than the drift, so the two are never read off their sum.
"""

from __future__ import annotations

from snapshot.attribution import Attribution, GroupTest, Move
from snapshot.calibrate import BATCH_SIZES, Floor, floor
from snapshot.comparison import Comparison
from snapshot.evidence import Evidence, Now
from snapshot.fingerprint import differences
from snapshot.metrics.logprobs import distance
from snapshot.model import REFERENCE, Fingerprint, Golden, Observation
from snapshot.result import Verdict

ENVIRONMENT = "environment"
"""The move from a golden to what the reference gives here and now in the same batch."""


def deviates(e: Evidence, c: Comparison) -> bool:
    """Whether the candidate is known to be at fault, be it ever so near to the golden.

    Only what proves that: a candidate near the golden and far from the reference here and now
    did not move, the reference did. Nothing proves it against the golden's own bits.
    """
    now = e.now
    if now is None or _identical(c) or (e.own_code and now.candidate_batch is None):
        return False
    here = now.candidate_batch or now.golden_batch
    return here is not None and _proven(e, Comparison.of(here, c.candidate), now) is False


def attribution(e: Evidence, c: Comparison) -> Attribution | None:
    """The way from the golden to the candidate; None where the reference was not run."""
    now = e.now
    if now is None or not now.asked:
        return None
    moves: list[Move] = []
    at = c.golden
    if now.golden_batch is not None:
        moves.append(_move(ENVIRONMENT, at, now.golden_batch))
        at = now.golden_batch
    in_batch = now.candidate_batch or (c.candidate if e.own_code else None)
    if in_batch is not None and in_batch is not now.golden_batch:
        moves.append(_move("batch", at, in_batch))
        at = in_batch
    if at is not c.candidate and at is not c.golden:
        bound = _bound(e, Comparison.of(at, c.candidate))
        moves.append(_move("candidate", at, c.candidate, bound))
    return Attribution(
        moves=tuple(moves),
        reference_text=None if at is c.golden else at.output.text,
        errors=_errors(now, c),
        tests=now.tests,
        notes=now.notes,
    )


def moved(e: Evidence, c: Comparison) -> tuple[Verdict, str]:
    """Whose doing a difference is that nothing excuses, and why."""
    now = e.now
    if isinstance(e.golden, Golden) and e.golden.subject != REFERENCE:
        return _since_its_own(now)
    if now is None or (now.golden_batch is None and now.candidate_batch is None):
        return _unasked(e, c)
    follows = _follows(e, c, now)
    if follows is None:
        return Verdict.UNATTRIBUTED, _undecided(c, now)
    if not follows:
        return Verdict.REGRESSION, _deviation(e, c, now)
    if e.own_code and now.candidate_batch is None:
        return _unasked(e, c)
    here = now.candidate_batch or now.golden_batch
    assert here is not None
    if _move("", c.golden, here).still:
        return Verdict.REGRESSION, "the reference here still gives the golden"
    return Verdict.DRIFT, "the reference itself moved here, and the candidate follows it"


def changes(recorded: Fingerprint, here: Fingerprint, c: Comparison) -> list[str]:
    """What changed around the workload that can have moved a number."""
    found = [str(change) for change in differences(recorded, here) if not change.inert]
    batches = (c.golden.composition, c.candidate.composition)
    same_size = recorded.identity.batch_size == here.identity.batch_size
    if same_size and None not in batches and batches[0] != batches[1]:
        found.append("the other rows of its batch")
    return found


# ------------------------------------------------------------------------ verdicts


def _unasked(e: Evidence, c: Comparison) -> tuple[Verdict, str]:
    """Where the candidate is the reference itself, or the reference was not run."""
    if not e.own_code or e.here is None or e.recorded is None:
        return Verdict.UNATTRIBUTED, "the reference was not run here to tell who moved"
    changed = changes(e.recorded.fingerprint, e.here, c)
    if changed:
        since = ", ".join(changed)
        return Verdict.DRIFT, f"the reference itself moved; since the recording: {since}"
    why = "nothing in the recorded environment changed"
    repeated = None if e.now is None else e.now.repeated
    if repeated is None:
        return Verdict.REGRESSION, why
    if _move("", c.candidate, repeated).still:
        return Verdict.REGRESSION, f"{why}, and a fresh process gives the same again"
    return Verdict.UNATTRIBUTED, f"{why}, and a fresh process gives something else: not repeatable"


def _since_its_own(now: Now | None) -> tuple[Verdict, str]:
    """Where an engine parts from its own golden: its constant difference from the reference is
    in both, so what is left is its own move or the environment's."""
    if now is None or now.reference_moved is None:
        return Verdict.UNATTRIBUTED, "the reference was not run here to tell who moved"
    if not now.reference_moved:
        return Verdict.REGRESSION, "it moved, and the reference here still gives its golden"
    if now.follows:
        return Verdict.DRIFT, "the reference moved here too, and it follows the reference"
    return Verdict.UNATTRIBUTED, "the reference moved here too, and it does not follow it"


def _follows(e: Evidence, c: Comparison, now: Now) -> bool | None:
    """Whether the candidate does what the reference does here; None: it cannot be told."""
    here = now.candidate_batch or now.golden_batch
    if e.own_code and now.candidate_batch is None:
        return True  # the candidate is the reference
    if here is None:
        return None
    own = Comparison.of(here, c.candidate)
    proven = _proven(e, own, now)
    return _alike(e, own, _bound(e, own), now) if proven is None else proven


def _proven(e: Evidence, own: Comparison, now: Now) -> bool | None:
    """What is certain of a candidate beside the reference here and now; None: nothing is."""
    if _same_code_and_batch(e, own):
        return own.same_output and own.within(_bound(e, own))
    if _identical(own):
        return True
    return False if any(test.significant for test in now.tests) else None


def _identical(c: Comparison) -> bool:
    return c.same_output and c.distance is not None and c.distance.max == 0


def _alike(e: Evidence, own: Comparison, bound: Floor, now: Now) -> bool | None:
    """Whether two implementations, or two batches, give one answer up to rounding."""
    calibration = e.recorded.calibration if e.recorded is not None else {}
    if own.same_output:
        return own.within(bound) if BATCH_SIZES in calibration else True
    if own.divergence is None:
        return None  # only texts: nothing tells a near-tie from a fault
    if not _near_tie(e, own):
        return False
    if BATCH_SIZES not in calibration:
        return None
    if now.forced is None or now.candidate_forced is None:
        return None if own.within(bound) else False
    return Comparison.of(now.forced, now.candidate_forced).within(bound)


def _near_tie(e: Evidence, own: Comparison) -> bool:
    """As `Evidence.near_tie`; a candidate's margin that it does not tell is given the benefit."""
    at = own.divergence
    assert at is not None
    if at.candidate_margin is None and at.golden_margin is not None:
        return at.golden_rank is not None and at.golden_margin <= e.tie_bound(own, at.step)
    return e.near_tie(own) is not None


def _same_code_and_batch(e: Evidence, own: Comparison) -> bool:
    compositions = (own.golden.composition, own.candidate.composition)
    return e.own_code and None not in compositions and compositions[0] == compositions[1]


def _bound(e: Evidence, own: Comparison) -> Floor:
    """How far the candidate may be from the reference here and now."""
    calibration = e.recorded.calibration if e.recorded is not None else {}
    bound = floor(calibration, same_batch=_same_code_and_batch(e, own))
    return bound if e.own_code else bound.foreign


# ------------------------------------------------------------------------- numbers


def _move(name: str, start: Observation, end: Observation, bound: Floor | None = None) -> Move:
    moved = Comparison.of(start, end)
    return Move(
        name=name,
        distance=moved.distance,
        step=moved.divergence.step if moved.divergence is not None else None,
        words=start.output.text != end.output.text,
        allowed_rms=None if bound is None else bound.rms,
        allowed_max=None if bound is None else bound.max,
    )


def _errors(now: Now, c: Comparison) -> dict[str, float]:
    """rms distances from the float32 answer, in nats."""
    if now.truth is None:
        return {}
    sides = {
        "golden": c.golden,
        "reference": now.forced,
        "candidate": now.candidate_forced or c.candidate,
    }
    found = {name: distance(now.truth, side) for name, side in sides.items() if side is not None}
    return {name: far.rms for name, far in found.items() if far is not None and far.count}


def _deviation(e: Evidence, c: Comparison, now: Now) -> str:
    """What parts the candidate from the reference here, in one sentence."""
    significant = [test for test in now.tests if test.significant]
    if significant:
        return "; ".join(map(said, significant))
    here = now.candidate_batch or now.golden_batch
    assert here is not None
    own = Comparison.of(here, c.candidate)
    bound = _bound(e, own)
    where = "" if own.divergence is None else f", parts from it at step {own.divergence.step}"
    numbers = "" if own.distance is None else f": logprobs {own.distance}"
    allowed = f", noise rms {bound.rms:.2g}, max {bound.max:.2g}" if numbers else ""
    return f"the candidate is not the reference here{where}{numbers}{allowed}"


def _undecided(c: Comparison, now: Now) -> str:
    here = now.candidate_batch or now.golden_batch
    assert here is not None
    own = Comparison.of(here, c.candidate)
    if own.divergence is None:
        return "the candidate gives only text, and no answer of the reference here has these words"
    return (
        f"it parts from the reference here at step {own.divergence.step}, at a near-tie, and "
        "without forced scoring nothing tells what follows"
    )


def said(test: GroupTest) -> str:
    """A test's outcome in one sentence."""
    found = f"{test.estimate:.3g} [{test.low:.3g}, {test.high:.3g}], expected {test.expected:g}"
    least = "no effect" if test.detectable == float("inf") else f"{test.detectable:.2g}"
    return (
        f"{test.question} of {test.group} {found} (p {test.p:.2g} over {test.prompts} prompts, "
        f"detectable {least})"
    )
