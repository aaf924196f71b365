"""Which failures of a verification a new golden answers.

DRIFT: the reference itself moved. MISSING: nothing was recorded. Everything else that fails is
somebody's fault, and a golden of it would only hide that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from snapshot.model import REFERENCE
from snapshot.names import safe_name
from snapshot.result import Verdict
from snapshot.store import Store
from snapshot.verification import Held

_SOUND = frozenset(
    {Verdict.MATCH, Verdict.VARIANT, Verdict.TIE, Verdict.WITHIN, Verdict.DRIFT, Verdict.MISSING}
)


@dataclass(frozen=True)
class Offer:
    """New goldens of one subject at one fingerprint.

    Attributes:
        held: the run whose failures they answer.
        slug, subject: what they are goldens of. An engine that is held to the reference's
            goldens asks for the reference's.
        cases: their keys.
    """

    held: Held
    slug: str
    subject: str
    cases: frozenset[str]


def offers(suite: Sequence[Held], goldens: Store, *, kernels: bool = False) -> list[Offer]:
    """The goldens that answer the failures of one suite's runs; without empty offers.

    A run that was held to another environment's goldens (inherited, or asked for) is offered
    only what its own lacks. One that has none of its own would no longer inherit once it had
    one, so all that is sound is offered together.

    Args:
        kernels: whether they are of a kernel suite, where each kernel has goldens of its own.
    """
    failed = _of_kernel if kernels else _of_generation
    found = [offer for held in suite for offer in failed(held, suite)]
    recorded = goldens.fingerprints(suite[0].suite) if suite else []
    leaving = {o.slug for o in found if o.cases and o.slug not in recorded}
    offered = []
    for offer in found:
        cases = offer.cases
        if offer.slug != offer.held.baseline.slug:
            if offer.slug in leaving:
                cases |= _sound(offer)
            cases -= set(goldens.cases(offer.held.suite, offer.slug, offer.subject))
        if cases:
            offered.append(Offer(offer.held, offer.slug, offer.subject, frozenset(cases)))
    return offered


def _of_kernel(held: Held, suite: Sequence[Held]) -> Iterator[Offer]:
    assert held.slug is not None  # kernels run here
    yield Offer(held, held.slug, safe_name(held.subject), _cases(held, Verdict.MISSING))


def _of_generation(held: Held, suite: Sequence[Held]) -> Iterator[Offer]:
    if held.own:
        yield from _own(held, suite)
    elif held.said is not None and held.said.here.slug in (held.slug, held.baseline.slug):
        # What the reference says elsewhere answers no failure here.
        answers = {Verdict.DRIFT}
        if held.subject == REFERENCE:
            answers.add(Verdict.MISSING)
        cases = _cases(held, *answers) & held.said.rows.keys()
        yield Offer(held, held.said.here.slug, REFERENCE, frozenset(cases))


def _own(held: Held, suite: Sequence[Held]) -> Iterator[Offer]:
    """An engine's own goldens that are missing, where what it says is right."""
    slug = held.baseline.slug
    if slug is None or held.slug not in (None, slug):
        return
    right = {
        result.case
        for other in suite
        if other.subject == held.subject and other.held_to == REFERENCE
        for result in other.results
        if result.verdict in _SOUND
    }
    yield Offer(held, slug, held.subject, _cases(held, Verdict.MISSING) & frozenset(right))


def _cases(held: Held, *verdicts: Verdict) -> frozenset[str]:
    return frozenset(result.case for result in held.results if result.verdict in verdicts)


def _sound(offer: Offer) -> frozenset[str]:
    """All that a run gave and that is no fault."""
    sound = _cases(offer.held, *_SOUND)
    said = offer.held.said
    return sound if said is None else frozenset(sound & said.rows.keys())
