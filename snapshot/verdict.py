"""The verdict on one case: the first rule that matches wins (docs/verdicts.md).

Pure: what is judged here was run and read elsewhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from snapshot import admission
from snapshot.calibrate import Floor, floor
from snapshot.comparison import Comparison
from snapshot.errors import GoldensError, StoreError
from snapshot.fingerprint import differences, numeric_mode_warning
from snapshot.metrics.logprobs import prompt_deltas
from snapshot.metrics.nonfinite import nonfinite, same_pattern
from snapshot.metrics.shape import Misshapen, require_shape
from snapshot.model import (
    BASE,
    REFERENCE,
    Divergence,
    Finding,
    Fingerprint,
    Golden,
    Observation,
    RecordedFingerprint,
    Result,
    Verdict,
)
from snapshot.policy import LogprobTolerance, Strictness, Tolerance


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


def judge(evidence: Evidence) -> Result:
    """The verdict on a case, with its findings."""
    result = _strictly(evidence)
    rule = evidence.strictness.quarantine
    if rule is None:
        return result
    was = result.verdict.value
    if result.verdict.passes:
        verdict, headline = Verdict.FIXED, f"passes now ({was}): remove the quarantine {rule}"
    else:
        verdict = Verdict.QUARANTINED
        headline = f"{was}: {result.headline}; quarantined: {rule}"
    return dataclasses.replace(result, verdict=verdict, headline=headline)


def _strictly(e: Evidence) -> Result:
    if isinstance(e.candidate, GoldensError):
        return _failed(e, e.candidate.what, e.candidate)
    if isinstance(e.golden, StoreError):
        return _failed(e, f"the golden cannot be read: {e.golden.what}", e.golden)
    try:
        return _compared(e, e.candidate, e.golden)
    except StoreError as error:  # blobs are read when they are first needed
        return _failed(e, f"a golden cannot be read: {error.what}", error)
    except Misshapen as error:
        finding = Finding("arrays", str(error), where=e.case)
        return _result(e, Verdict.ERROR, f"malformed observation: {error}", [finding])


def _failed(e: Evidence, headline: str, error: GoldensError) -> Result:
    check = "golden" if isinstance(error, StoreError) else "run"
    finding = Finding(check, error.what, error.where, error.expected, error.got)
    return _result(e, Verdict.ERROR, headline, [finding])


def _compared(e: Evidence, candidate: Observation, golden: Golden | None) -> Result:
    require_shape(candidate, "candidate")
    if golden is None:
        missing = _result(e, Verdict.MISSING, f"no golden: {e.looked_for}")
        return _nonfinite(e, candidate, None) or missing
    early = _invalid(e, candidate, golden) or _nonfinite(e, candidate, golden.observation)
    if early is not None:
        return early
    comparison = Comparison.of(golden.observation, candidate)
    noise = _noise(e.here, e.recorded, comparison)
    for rule in (_empty, _match, _identity, _variant, _within):
        result = rule(e, comparison, noise)
        if result is not None:
            return result
    return _moved(e, comparison, noise)


# ------------------------------------------------------- the rules, in their order


def _invalid(e: Evidence, candidate: Observation, golden: Golden) -> Result | None:
    recorded, here = golden.observation.workload, candidate.workload
    if recorded is not None and here is not None:
        changed = sorted(k for k in {*recorded, *here} if recorded.get(k) != here.get(k))
    else:
        # A subject that does not tell what it ran may still tell what it was asked.
        asked, prompt = candidate.output.prompt_ids, golden.observation.output.prompt_ids
        changed = ["prompt"] if None not in (asked, prompt) and asked != prompt else []
        recorded, here = {"prompt": _tokens(prompt)}, {"prompt": _tokens(asked)}
    if not changed:
        return None
    labels = [f'adapter "{e.adapter}"' if name == "adapter" else name for name in changed]
    findings = [
        Finding(
            "workload",
            f"the {label} is not the one that was recorded",
            expected=recorded.get(name),
            got=here.get(name),
        )
        for name, label in zip(changed, labels, strict=True)
    ]
    what = f"{' and '.join(labels)} changed since the recording, so nothing was compared"
    return _result(e, Verdict.INVALID, what, findings)


def _nonfinite(e: Evidence, candidate: Observation, golden: Observation | None) -> Result | None:
    recorded = {} if golden is None else golden.arrays
    masked = admission.NONFINITE in e.allowed
    found: list[Finding] = []
    for name in sorted({*candidate.arrays, *recorded}):
        sides = {"candidate": candidate.arrays.get(name), "golden": recorded.get(name)}
        arrays = [array for array in sides.values() if array is not None]
        if masked and len(arrays) == 2 and same_pattern(*arrays):
            continue
        for side, array in sides.items():
            bad = None if array is None else nonfinite(array)
            if bad is not None:
                what = f"{bad.count} non-finite value(s), first at {list(bad.first)}"
                finding = Finding(
                    "nonfinite", f"{side} {name}: {what}", where=str(list(bad.first)), got=bad.value
                )
                found.append(finding)
    return _result(e, Verdict.NONFINITE, found[0].message, found) if found else None


def _empty(e: Evidence, c: Comparison, noise: Floor) -> Result | None:
    """No tolerance and no other batch makes up for an output that is not there."""
    if c.candidate.output.text or admission.EMPTY in e.allowed:
        return None
    if c.golden.output.text:
        return _moved(e, c, noise)
    what = "empty output, like the golden: passes only where an allow entry expects it"
    return _result(e, Verdict.REGRESSION, what, [Finding("text", what), *c.findings], c)


def _match(e: Evidence, c: Comparison, noise: Floor) -> Result | None:
    if not c.same_output or not c.within(noise):
        return None
    return _result(e, Verdict.MATCH, "", (), c)


def _identity(e: Evidence, c: Comparison, noise: Floor) -> Result | None:
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
        return _result(e, Verdict.REGRESSION, what, findings, c)
    return None


def _is_another(own: Comparison, other: Comparison, noise: Floor) -> bool:
    """Whether a candidate that is not its own golden's is another row's.

    Words can coincide: where both goldens scored the prompt, its logprobs must not be nearer to
    the own one's. Where even the own golden has these words, they must be the other's.
    """
    if not other.same_output:
        return False
    mine, theirs = (prompt_deltas(c.golden, c.candidate) for c in (own, other))
    known = bool(mine.size and theirs.size)
    if own.same_output:
        return known and other.within(noise) and bool((theirs**2).mean() < (mine**2).mean())
    return not known or bool((theirs**2).mean() <= (mine**2).mean())


def _variant(e: Evidence, c: Comparison, noise: Floor) -> Result | None:
    batch = c.candidate.composition
    if batch is not None and batch == c.golden.composition:
        return None
    for variant, recorded in e.variants:
        if variant.observation.workload != c.golden.workload:
            continue  # recorded from other weights: an answer to another question
        other = Comparison.of(variant.observation, c.candidate)
        if other.same_output and other.within(_noise(e.here, recorded, other)):
            size = recorded.fingerprint.identity.batch_size
            if c.divergence is None:
                what = f"the golden's words, with the reference's numbers at batch size {size}"
            else:
                what = f"the reference's own answer at batch size {size}; {_parting(c.divergence)}"
            return _result(e, Verdict.VARIANT, what, c.findings, c)
    return None


def _within(e: Evidence, c: Comparison, noise: Floor) -> Result | None:
    if _beyond(e, c, noise):
        return None
    text, logprob = e.strictness.tolerance.text, e.strictness.tolerance.logprob
    said: list[str] = []
    if text is not None and not c.same_output:
        score = c.score(text.metric).value or 0.0
        left = score - text.rouge_l
        said.append(f"{text.metric} ROUGE-L {score:.4f}, {left:.4f} left")
    if logprob is not None and c.distance is not None:
        bound = _bound(logprob, noise)
        said.append(f"logprobs {c.distance}, allowed rms {bound.rms:.2g}, max {bound.max:.2g}")
    by = "; ".join(map(str, e.strictness.relaxed)) or "the suite's tolerance"
    return _result(e, Verdict.WITHIN, f"{', '.join(said)}; {by}", c.findings, c)


def _moved(e: Evidence, c: Comparison, noise: Floor) -> Result:
    """It differs and nothing excuses it: who moved?"""
    beyond = _beyond(e, c, noise)
    if e.subject != REFERENCE or e.here is None or e.recorded is None:
        verdict, why = Verdict.UNATTRIBUTED, "the reference was not run here to tell who moved"
    elif changes := _changes(e.recorded.fingerprint, e.here, c):
        verdict = Verdict.DRIFT
        why = "the reference itself moved; since the recording: " + ", ".join(changes)
    else:
        verdict, why = Verdict.REGRESSION, "nothing in the recorded environment changed"
    findings = [*c.findings, *(finding for finding in beyond if finding not in c.findings)]
    return _result(e, verdict, f"{_difference(c, beyond)}; {why}", findings, c)


# ------------------------------------------------------------------------ pieces


def _beyond(e: Evidence, c: Comparison, noise: Floor) -> list[Finding]:
    """What no tolerance covers; empty where the case is within."""
    tolerance = e.strictness.tolerance
    found: list[Finding | None] = []
    if tolerance.text is None:
        found += c.findings
    elif not c.same_output:
        found.append(c.text_finding(tolerance.text))
    found.append(c.logprob_finding(_bound(tolerance.logprob, noise)))
    return [finding for finding in found if finding is not None]


def _changes(recorded: Fingerprint, here: Fingerprint, c: Comparison) -> list[str]:
    """What changed around the workload that can have moved a number."""
    changes = [str(change) for change in differences(recorded, here) if not change.inert]
    batches = (c.golden.composition, c.candidate.composition)
    same_size = recorded.identity.batch_size == here.identity.batch_size
    if same_size and None not in batches and batches[0] != batches[1]:
        changes.append("the other rows of its batch")
    return changes


def _noise(here: Fingerprint | None, recorded: RecordedFingerprint | None, c: Comparison) -> Floor:
    """What is noise between two observations: strictest where both ran in the same batch."""
    same_batch = (
        here is not None
        and recorded is not None
        and here.identity == recorded.fingerprint.identity
        and c.candidate.composition is not None
        and c.candidate.composition == c.golden.composition
    )
    return floor(recorded.calibration if recorded else {}, same_batch=same_batch)


def _tokens(ids: tuple[int, ...] | None) -> str:
    return "unknown" if ids is None else f"{len(ids)} tokens: {str(list(ids[:8]))[1:-1]}..."


def _bound(tolerance: LogprobTolerance | None, noise: Floor) -> Floor:
    if tolerance is None:
        return noise
    unlimited = float("inf")
    return Floor(
        "tolerance",
        rms=unlimited if tolerance.rms is None else tolerance.rms,
        max=unlimited if tolerance.max is None else tolerance.max,
    )


def _difference(c: Comparison, beyond: Sequence[Finding]) -> str:
    """The first difference, and what made it too much where that is another one."""
    first = c.findings[0] if c.findings else beyond[0]
    said = _said(first)
    if first.check == "token_ids" and c.divergence is not None:
        said = _parting(c.divergence)
    decided = beyond[0]
    return said if decided is first else f"{said}; {_said(decided)}"


def _said(finding: Finding) -> str:
    if finding.allowed is None:
        return finding.message
    return f"{finding.message}: {finding.got}, allowed {finding.allowed}"


def _parting(at: Divergence) -> str:
    margins = {"golden": at.golden_margin, "candidate": at.candidate_margin}
    known = [f"{value:.3g} in the {side}" for side, value in margins.items() if value is not None]
    there = f", top-2 margin there {' and '.join(known)}" if known else ""
    return f"the tokens part at step {at.step}{there}"


def _notes(e: Evidence, c: Comparison | None) -> tuple[str, ...]:
    notes = [f"rule expired on {r.expires}: {r.where}, {r.owner}" for r in e.strictness.expired]
    if e.here is not None and e.recorded is not None:
        warning = numeric_mode_warning(e.recorded.fingerprint, e.here)
        notes += [warning] if warning else []
    if c is not None and c.unchecked:
        notes.append("not checked, a side does not tell: " + ", ".join(c.unchecked))
    return tuple(notes)


def _result(
    e: Evidence,
    verdict: Verdict,
    headline: str,
    findings: Sequence[Finding] = (),
    comparison: Comparison | None = None,
) -> Result:
    golden = e.golden if isinstance(e.golden, Golden) else None
    candidate = e.candidate if isinstance(e.candidate, Observation) else None
    return Result(
        suite=e.suite,
        case=e.case,
        subject=e.subject,
        slug=e.here.slug if e.here is not None else None,
        golden_slug=golden.slug if golden is not None else None,
        verdict=verdict,
        headline=headline,
        findings=tuple(findings),
        notes=_notes(e, comparison),
        golden_text=golden.observation.output.text if golden is not None else None,
        candidate_text=candidate.output.text if candidate is not None else None,
        divergence=comparison.divergence if comparison is not None else None,
    )
