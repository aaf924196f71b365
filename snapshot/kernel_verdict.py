"""The verdict on one case of one kernel: the first rule that matches wins (docs/verdicts.md).

Two questions, kept apart. *Is it right?* The float64 oracle answers, and no golden is needed.
*Did it move?* The kernel's own golden answers, bit for bit. A result that is right and moved
passes, and is shown with its error now and then: bits move with a compiler, errors must not.

Pure: what is judged here was run and read elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from snapshot import payload
from snapshot.admission import NONFINITE
from snapshot.difference import Finding, RowErrors
from snapshot.errors import GoldensError, StoreError
from snapshot.findings import changed_components, failure, other_workload, standing_notes
from snapshot.kernel_model import (
    OUT,
    Computed,
    KernelObservation,
    KernelResult,
    Masked,
    Misplaced,
    Moved,
)
from snapshot.kernel_policy import KernelStrictness, excesses, numbered, row_name
from snapshot.model import Fingerprint, Golden, RecordedFingerprint
from snapshot.quarantine import quarantined
from snapshot.result import Verdict

GROWN = 1.1
"""An error this many times the recorded one has grown. Rounding alone moves a worst row's error
by a few percent when a compiler reorders sums; a fault moves it by far more."""


@dataclass(frozen=True)
class KernelEvidence:
    """All that is known when one case of one kernel is judged; as `evidence.Evidence`."""

    suite: str
    case: str
    subject: str
    here: Fingerprint | None
    candidate: KernelObservation | GoldensError
    golden: Golden[Computed] | StoreError | None = None
    recorded: RecordedFingerprint | None = None
    looked_for: str = ""
    strictness: KernelStrictness = field(default_factory=KernelStrictness)
    allowed: frozenset[str] = frozenset()


def judge_kernel(evidence: KernelEvidence) -> KernelResult:
    """The verdict on a case, with its findings."""
    result = _strictly(evidence)
    # Right and never recorded, since what is wrong is refused: it is fixed all the same.
    fixed = result.verdict.passes or result.verdict is Verdict.MISSING
    return quarantined(result, evidence.strictness.quarantine, fixed=fixed)


def judge_alone(evidence: KernelEvidence) -> KernelResult | None:
    """The verdict where the result is not right, whatever was recorded; None where it is right.

    For recording, and for faults that are injected: no golden is looked at.
    """
    if isinstance(evidence.candidate, GoldensError):
        return _failed(evidence, evidence.candidate.what, evidence.candidate)
    computed = evidence.candidate.output
    return _nonfinite(evidence, computed, None) or _wrong(evidence, computed, None)


def _strictly(e: KernelEvidence) -> KernelResult:
    if isinstance(e.candidate, GoldensError):
        return _failed(e, e.candidate.what, e.candidate)
    if isinstance(e.golden, StoreError):
        return _failed(e, f"the golden cannot be read: {e.golden.what}", e.golden)
    computed, golden = e.candidate.output, e.golden
    recorded = None if golden is None else golden.observation.output
    early = (
        _invalid(e, e.candidate, golden)
        or _nonfinite(e, computed, recorded)
        or _wrong(e, computed, recorded)
    )
    if early is not None:
        return early
    if golden is None or recorded is None:
        return _result(e, Verdict.MISSING, f"right, and no golden: {e.looked_for}")
    if (recorded.out, recorded.lse) == (computed.out, computed.lse):
        return _result(e, Verdict.MATCH, "")
    try:
        return _within(e, golden, computed, payload.compare(golden, e.candidate.arrays[OUT]))
    except StoreError as error:  # blobs are read when they are first needed
        return _failed(e, f"the golden cannot be read: {error.what}", error)
    except (ValueError, KeyError) as error:
        finding = Finding("arrays", str(error), where=e.case)
        return _result(e, Verdict.ERROR, f"the golden does not fit: {error}", [finding])


def _failed(e: KernelEvidence, headline: str, error: GoldensError) -> KernelResult:
    return _result(e, Verdict.ERROR, headline, [failure(error)])


# ------------------------------------------------------- the rules, in their order


def _invalid(
    e: KernelEvidence, candidate: KernelObservation, golden: Golden[Computed] | None
) -> KernelResult | None:
    if golden is None:
        return None
    changed = changed_components(golden.observation.workload or {}, candidate.workload or {})
    return _result(e, Verdict.INVALID, *other_workload(changed)) if changed else None


def _nonfinite(
    e: KernelEvidence, computed: Computed, recorded: Computed | None
) -> KernelResult | None:
    """NaN where none belongs; equal NaN on both sides is no excuse but under an allowance."""
    now, then = computed.misplaced, () if recorded is None else recorded.misplaced
    if not now and not then:
        return None
    # While recording there is no golden yet: the allowance alone decides.
    if NONFINITE in e.allowed and (recorded is None or now == then):
        return None
    findings = [_misplaced(bad, computed.lengths) for bad in now]
    findings = findings or [_misplaced(bad, computed.lengths, "golden ") for bad in then]
    causes = "".join(f"; {cause}" for cause in computed.causes)
    if NONFINITE in e.allowed:
        causes += "; not at the golden's places, and only those are allowed"
    return _result(e, Verdict.NONFINITE, findings[0].message + causes, findings)


def _misplaced(bad: Misplaced, lengths: Sequence[int], side: str = "") -> Finding:
    values = "value" if bad.count == 1 else "values"
    what = f"{bad.count} non-finite {values} in {side}{bad.array}, first at {list(bad.first)}"
    if bad.count > 1 and bad.sequences:
        rows = f"{bad.rows} row{'s' * (bad.rows != 1)}"
        elements = "every element of " if bad.whole and bad.array == OUT else ""
        keys = ", without keys" if not any(lengths[i] for i in bad.sequences) else ""
        what += f": {elements}{rows}, {numbered('sequence', bad.sequences)}{keys}, "
        what += numbered("head", bad.heads)
    return Finding(NONFINITE, what, where=row_name(bad.first), got=bad.value)


def _wrong(e: KernelEvidence, computed: Computed, recorded: Computed | None) -> KernelResult | None:
    findings = excesses(computed, e.strictness.bounds)
    if recorded is not None and recorded.lse is not None and computed.lse is None:
        findings.append(Finding("lse", "no LSE is given any more, and the golden has one"))
    if not findings:
        return None
    causes = "".join(f"; {cause}" for cause in computed.causes)
    return _result(e, Verdict.WRONG, findings[0].message + causes, findings)


def _within(
    e: KernelEvidence, golden: Golden[Computed], computed: Computed, moved: Moved
) -> KernelResult:
    recorded = golden.observation.output
    findings = [Finding("bits", _moved(moved, recorded, computed), where=row_name(moved.row))]
    grown = _grown(computed, recorded)
    findings += grown
    bounds = e.strictness.bounds.resolved(computed.out.dtype, computed.baseline.max_abs)
    now, then = computed.errors, recorded.errors
    said = [finding.message for finding in reversed(findings)]
    if not grown:
        said.append("error not grown")
    said.append(
        f"rel-L2 {now.rel_l2:.3g} now, {then.rel_l2:.3g} recorded, bound {bounds.rel_l2:.3g}"
    )
    said.append(
        f"plain torch {computed.baseline.rel_l2:.3g} now, {recorded.baseline.rel_l2:.3g} recorded"
    )
    said += [f"relaxed by {rule}" for rule in e.strictness.needed(computed)]
    return _result(e, Verdict.WITHIN, "; ".join(said), findings, moved)


def _moved(moved: Moved, recorded: Computed, computed: Computed) -> str:
    if not moved.rows:
        which = "of the LSE alone" if recorded.lse != computed.lse else "of no row's digest"
        return f"bits moved {which}"
    if moved.elements is None:
        how = f"in {moved.rows} of {moved.of_rows} rows"
    else:
        total = 1
        for size in recorded.out.shape:
            total *= size
        how = f"in {moved.elements} of {total} elements, {moved.rows} of {moved.of_rows} rows"
    return f"bits moved {how}, {moved.distance}"


def _grown(now: Computed, then: Computed) -> list[Finding]:
    found = []
    for name, label in (("rel_l2", "rel-L2"), ("max_abs", "largest absolute")):
        here, there = getattr(now.errors, name), getattr(then.errors, name)
        if here > GROWN * there:
            times = f"{here / there:.2g} times the recorded one" if there else f"{here:.3g}, was 0"
            what = f"error grown: the {label} error is {times}"
            found.append(Finding("grown", what, expected=f"{there:.4g}", got=f"{here:.4g}"))
    return found


# ------------------------------------------------------------------------ pieces


def _notes(e: KernelEvidence) -> tuple[str, ...]:
    notes = standing_notes(e.strictness.expired, e.recorded, e.here)
    if isinstance(e.candidate, GoldensError):
        return tuple(notes)
    computed = e.candidate.output
    if computed.masked is not None:
        notes.append(_mask(computed.masked))
    if computed.lse is None:
        notes.append("not checked: the kernel gives no LSE")
    if computed.misplaced and NONFINITE in e.allowed:
        places = ", ".join(f"{bad.count} in {bad.array}" for bad in computed.misplaced)
        notes.append(f"masked by an allow entry, and not compared: non-finite values, {places}")
    return tuple(notes)


def _mask(masked: Masked) -> str:
    held = [f"{masked.nonfinite} non-finite"] * bool(masked.nonfinite)
    held += [f"{masked.nonzero} other than zero"] * bool(masked.nonzero)
    what = " and ".join(held) or "zeros alone"
    return (
        f"masked by an allow entry, and not compared: {numbered('sequence', masked.sequences)}, "
        f"without keys; {masked.elements} values there, {what}"
    )


def _result(
    e: KernelEvidence,
    verdict: Verdict,
    headline: str,
    findings: Sequence[Finding] = (),
    moved: Moved | None = None,
) -> KernelResult:
    golden = e.golden if isinstance(e.golden, Golden) else None
    ran = None if isinstance(e.candidate, GoldensError) else e.candidate
    needed = e.strictness.needed(ran.output) if verdict.passes and ran is not None else ()
    return KernelResult(
        suite=e.suite,
        case=e.case,
        subject=e.subject,
        slug=None if e.here is None else e.here.slug,
        golden_slug=None if golden is None else golden.slug,
        verdict=verdict,
        headline=headline,
        findings=tuple(findings),
        notes=_notes(e),
        relaxed=tuple(rule.where for rule in needed),
        computed=None if ran is None else ran.output,
        recorded=None if golden is None else golden.observation.output,
        moved=moved,
        rows=None if ran is None or verdict is Verdict.MATCH else _rows(e, ran.output),
    )


def _rows(e: KernelEvidence, computed: Computed) -> RowErrors | None:
    """The errors by row, with the bound that they are held to."""
    if computed.rows is None:
        return None
    limits = e.strictness.bounds.resolved(computed.out.dtype, computed.baseline.max_abs)
    return replace(computed.rows, bound=limits.rel_l2)
