"""The verdict on one case: the first rule that matches wins (docs/verdicts.md).

Pure: what is judged here was run and read elsewhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from snapshot import admission
from snapshot.attribute import attribution, moved
from snapshot.calibrate import Floor
from snapshot.comparison import Comparison
from snapshot.difference import Finding
from snapshot.errors import GoldensError, StoreError
from snapshot.evidence import Evidence
from snapshot.findings import changed_components, failure, other_workload, standing_notes
from snapshot.metrics.nonfinite import nonfinite, same_pattern
from snapshot.metrics.shape import Misshapen, require_shape
from snapshot.metrics.steps import around
from snapshot.model import Golden, Observation
from snapshot.quarantine import quarantined
from snapshot.result import Result, Verdict
from snapshot.rules import Ruling, identity, match, parting, tie, variant, within

RULES = (match, identity, variant, tie, within)
"""In their order, once the run is sound and its workload is the golden's."""


def judge(evidence: Evidence) -> Result:
    """The verdict on a case, with its findings."""
    result = _strictly(evidence)
    return quarantined(result, evidence.strictness.quarantine, fixed=result.verdict.passes)


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
    return _result(e, Verdict.ERROR, headline, [failure(error)])


def _compared(e: Evidence, candidate: Observation, golden: Golden | None) -> Result:
    require_shape(candidate, "candidate")
    if golden is None:
        missing = _result(e, Verdict.MISSING, f"no golden: {e.looked_for}")
        return _nonfinite(e, candidate, None) or missing
    early = _invalid(e, candidate, golden) or _nonfinite(e, candidate, golden.observation)
    if early is not None:
        return early
    c = Comparison.of(golden.observation, candidate)
    noise = e.noise(e.recorded, c)
    ruling = _empty(e, c, noise)
    for rule in () if ruling is not None else RULES:
        ruling = rule(e, c, noise)
        if ruling is not None:
            break
    return _ruled(e, c, ruling or _moved(e, c, noise))


# ------------------------------------------------- before anything can be compared


def _invalid(e: Evidence, candidate: Observation, golden: Golden) -> Result | None:
    recorded, here = golden.observation.workload, candidate.workload
    if recorded is not None and here is not None:
        changed = {
            f'adapter "{e.adapter}"' if name == "adapter" else name: both
            for name, both in changed_components(recorded, here).items()
        }
    else:
        # A subject that does not tell what it ran may still tell what it was asked.
        asked, prompt = candidate.output.prompt_ids, golden.observation.output.prompt_ids
        changed = {}
        if asked is not None and prompt is not None and asked != prompt:
            changed = {"prompt": (_tokens(prompt), _tokens(asked))}
    return _result(e, Verdict.INVALID, *other_workload(changed)) if changed else None


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


# ------------------------------------------------------------------ around the rules


def _empty(e: Evidence, c: Comparison, noise: Floor) -> Ruling | None:
    """No tolerance and no other batch makes up for an output that is not there."""
    if c.candidate.output.text or admission.EMPTY in e.allowed:
        return None
    if c.golden.output.text:
        return _moved(e, c, noise)
    what = "empty output, like the golden: passes only where an allow entry expects it"
    return Ruling(Verdict.REGRESSION, what, [Finding("text", what), *c.findings])


def _moved(e: Evidence, c: Comparison, noise: Floor) -> Ruling:
    """It differs and nothing excuses it: who moved?"""
    beyond = e.beyond(c, noise, e.strictness.tolerance)
    verdict, why = moved(e, c)
    findings = [*c.findings, *(finding for finding in beyond if finding not in c.findings)]
    difference = f"{_difference(c, beyond)}; " if findings else ""
    return Ruling(verdict, f"{difference}{why}", findings)


def _difference(c: Comparison, beyond: Sequence[Finding]) -> str:
    """The first difference, and what made it too much where that is another one."""
    first = c.findings[0] if c.findings else beyond[0]
    said = _said(first)
    if first.check == "token_ids" and c.divergence is not None:
        said = parting(c.divergence)
    decided = beyond[0]
    return said if decided is first else f"{said}; {_said(decided)}"


def _said(finding: Finding) -> str:
    if finding.allowed is None:
        return finding.message
    return f"{finding.message}: {finding.got}, allowed {finding.allowed}"


def _tokens(ids: tuple[int, ...]) -> str:
    return f"{len(ids)} tokens: {str(list(ids[:8]))[1:-1]}..."


def _notes(e: Evidence, c: Comparison | None) -> tuple[str, ...]:
    notes = standing_notes(e.strictness.expired, e.recorded, e.here)
    if c is not None and c.unchecked:
        notes.append("not checked, a side does not tell: " + ", ".join(c.unchecked))
    if c is not None and c.decoding is not None:
        notes.append(f"the tokens are equal, the tokenizers disagree on {c.decoding}")
    return tuple(notes)


def _ruled(e: Evidence, c: Comparison, ruling: Ruling) -> Result:
    text = e.strictness.tolerance.text
    score = None if text is None or c.same_output else c.score(text.metric).value
    return dataclasses.replace(
        _result(e, ruling.verdict, ruling.headline, ruling.findings, c),
        divergence=c.divergence,
        distance=c.distance,
        scores={} if text is None or score is None else {text.metric: score},
        relaxed=ruling.relaxed,
        attribution=attribution(e, c),
        steps=() if ruling.verdict is Verdict.MATCH else around(c.golden, c.candidate),
    )


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
    )
