"""The ledger of relaxations: what each one allows, what it has covered, what it should be.

Pure: what was observed comes from `snapshot.history`, how old a rule is from git.
"""

from __future__ import annotations

import datetime
import fnmatch
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from snapshot.calibrate import Floor
from snapshot.model import Fingerprint
from snapshot.policy import Policy, Rule, Tolerance
from snapshot.result import Observed, Verdict

TOLERANCE, RELAX, QUARANTINE = "tolerance", "relax", "quarantine"

_FEW = 4  # cases that a proposal names one by one

_PASSING = frozenset(v.value for v in Verdict if v.passes) - {Verdict.QUARANTINED.value}
_UNHELD = _PASSING | {Verdict.FIXED.value}  # how a case ends that needs no quarantine


@dataclass(frozen=True)
class Entry:
    """One relaxation with what is known of it.

    Attributes:
        kind: ``tolerance`` (the suite's own, for every case), ``relax`` or ``quarantine``.
        rule: None for the suite's tolerance.
        days_left: until it expires; negative afterwards; None for the suite's tolerance.
        since: the day it was committed; None where git does not tell.
        covers: how many configured cases it is about.
        observed: earlier observations of these cases.
        needed: those of them that would not have passed without it.
        worst: the margins observed under it, in words; empty without observations.
        advice: what should be done about it.
    """

    kind: str
    rule: Rule | None
    days_left: int | None
    since: datetime.date | None
    covers: int
    observed: int
    needed: int
    worst: str
    advice: tuple[str, ...]

    def age(self, day: datetime.date) -> int | None:
        """Days since it was committed; None: on that day it was not yet."""
        return None if self.since is None or self.since > day else (day - self.since).days


def ledger(
    suite: str,
    policy: Policy,
    cases: Sequence[str],
    history: Iterable[Observed],
    day: datetime.date,
    *,
    since: Mapping[str, datetime.date],
    floor: Floor,
    environments: Mapping[str, Fingerprint],
) -> list[Entry]:
    """Every relaxation of a suite.

    Args:
        cases: the configured case keys.
        history: of any suite and case; others are skipped.
        since: by `Rule.where`: the day it was committed.
        floor: the largest logprob noise that is recorded: what strictness allows where the
            suite gives no bound of its own; 0.0 where unknown.
        environments: by slug, as far as known: where a rule's condition holds.
    """
    configured = frozenset(cases)
    seen = [entry for entry in history if entry.suite == suite and entry.case in configured]
    found: list[Entry] = []
    if policy.tolerance != Tolerance():
        advice = [
            "it loosens every case without reason, owner or expiry: a [[relax]] rule of the "
            "cases that need it says all three"
        ]
        worst = _worst(policy.tolerance, seen)
        needed = sum(not entry.strict for entry in seen)
        advice += _raised(policy.tolerance, Tolerance(), seen, floor)
        found.append(
            Entry(TOLERANCE, None, None, None, len(cases), len(seen), needed, worst, tuple(advice))
        )
    rules = [(RELAX, rule) for rule in policy.relax]
    rules += [(QUARANTINE, rule) for rule in policy.quarantine]
    for kind, rule in rules:
        needs = functools.partial(_needs, rule if kind == RELAX else None, policy.tolerance)
        covered = [e for e in seen if _about(rule, e, environments.get(e.slug), needs(e))]
        needing = [entry for entry in covered if needs(entry)]
        about = [case for case in cases if fnmatch.fnmatchcase(case, rule.case)]
        advice = _needless(rule, covered, needing) + _narrower(rule, cases, about, needing)
        if kind == RELAX:
            advice += _raised(rule.tolerance, policy.tolerance, covered, floor)
        found.append(
            Entry(
                kind=kind,
                rule=rule,
                days_left=(rule.expires - day).days,
                since=since.get(rule.where),
                covers=len(about),
                observed=len(covered),
                needed=len(needing),
                worst=_worst(rule.tolerance, covered) if kind == RELAX else "",
                advice=tuple(advice),
            )
        )
    return found


def _about(rule: Rule, entry: Observed, where: Fingerprint | None, needed: bool) -> bool:
    """Whether the rule covered this observation. Where its condition cannot be told, only what
    speaks for the rule counts."""
    if where is None and rule.when.terms:
        known = fnmatch.fnmatchcase(entry.case, rule.case)
        return known and rule.subject in (None, entry.subject) and needed
    return rule.covers(entry.case, entry.subject, where)


def _needs(relax: Rule | None, suite: Tolerance, entry: Observed) -> bool:
    """Whether it would have failed without a rule that relaxes, or without a quarantine (None)."""
    if relax is None:
        return entry.verdict not in _UNHELD
    if entry.strict:
        return False
    loosened = relax.tolerance
    if entry.verdict != Verdict.WITHIN.value or loosened == Tolerance():  # a kernel's bounds
        return True
    text = loosened.text is not None and not _text_within(suite, entry)
    return text or (loosened.logprob is not None and not _logprob_within(suite, entry))


def _text_within(suite: Tolerance, entry: Observed) -> bool:
    """Whether the suite's own tolerance lets the texts pass, which may be equal."""
    if not entry.scores or suite.text is None:
        return not entry.scores
    return entry.scores.get(suite.text.metric, -math.inf) >= suite.text.rouge_l


def _logprob_within(suite: Tolerance, entry: Observed) -> bool:
    """Whether the suite's own tolerance surely lets the logprobs pass."""
    if suite.logprob is None:
        return not entry.max
    pairs = ((suite.logprob.max, entry.max), (suite.logprob.rms, entry.rms))
    return all(bound is None or (value or 0.0) <= bound for bound, value in pairs)


def _worst(tolerance: Tolerance, covered: Sequence[Observed]) -> str:
    """The largest margins observed, of what the tolerance is about."""
    said = []
    if tolerance.logprob is not None:
        for name in ("rms", "max"):
            values = _values(covered, name)
            if getattr(tolerance.logprob, name) is not None and values:
                said.append(f"logprob {name} up to {max(values):.3g}")
    if tolerance.text is not None:
        scores = _scores(covered, tolerance.text.metric)
        if scores:
            said.append(f"{tolerance.text.metric} ROUGE-L down to {min(scores):.4f}")
    return ", ".join(said)


def _needless(rule: Rule, covered: Sequence[Observed], needing: Sequence[Observed]) -> list[str]:
    """Where nothing has needed it."""
    if not covered or needing:
        return []
    days = sorted(entry.day for entry in covered)
    tightest = _worst(rule.tolerance, covered)
    still = f"; the tightest that would still have passed: {tightest}" if tightest else ""
    return [
        f"not needed in {len(covered)} observations from {days[0]} to {days[-1]}: remove it{still}"
    ]


def _narrower(
    rule: Rule, cases: Sequence[str], about: Sequence[str], needing: Sequence[Observed]
) -> list[str]:
    """A scope that still covers all that has needed it."""
    needed = sorted({entry.case for entry in needing})
    if not needed:
        return []
    advice = []
    if len(needed) < len(about):
        shared = sorted({case.split("/", 1)[0] + "/*" for case in needed})
        if len(needed) <= _FEW:
            proposal = " and ".join(f'case = "{case}"' for case in needed)
        elif len(shared) == 1 and len(fnmatch.filter(cases, shared[0])) < len(about):
            proposal = f'case = "{shared[0]}"'
        else:
            proposal = ""
        if proposal:
            advice.append(
                f"it covers {len(about)} cases and {len(needed)} needed it: narrow it to {proposal}"
            )
    slugs = sorted({entry.slug for entry in needing})
    if not rule.when.terms and len(slugs) == 1:
        advice.append(f"only {slugs[0]} needed it: say so with when")
    return advice


def _raised(
    tolerance: Tolerance, before: Tolerance, covered: Sequence[Observed], floor: Floor
) -> list[str]:
    """How much looser a logprob bound is than without it, and than what was observed."""
    if tolerance.logprob is None:
        return []
    advice = []
    for name in ("max", "rms"):
        bound = getattr(tolerance.logprob, name)
        values = _values(covered, name)
        if bound is None:
            continue
        strict = getattr(before.logprob or floor, name)
        said = []
        if strict and bound > strict:
            factor = bound / strict
            times = f"{factor:.0f}" if factor >= 10 else f"{factor:.2g}"
            said.append(f"limit raised {times}x, from {strict:g} to {bound:g}")
        if values:
            usual = float(np.quantile(values, 0.99, method="inverted_cdf"))
            if usual < bound:
                said.append(f"99% of {len(values)} observations at or below {usual:.3g}")
        if said:
            advice.append(f"logprob {name}: {', '.join(said)}")
    return advice


def _values(entries: Iterable[Observed], name: str) -> list[float]:
    values = (getattr(entry, name) for entry in entries)
    return [value for value in values if value is not None and math.isfinite(value)]


def _scores(entries: Iterable[Observed], metric: str) -> list[float]:
    return [entry.scores[metric] for entry in entries if metric in entry.scores]
