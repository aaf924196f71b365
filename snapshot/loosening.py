"""What a change of goldens.toml does to strictness.

Whatever cannot be ordered counts as loosened: a reviewer who looks at one line too many loses a
minute, one who overlooks a line loses the golden's worth.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TypeAlias

from snapshot.calibrate import BATCH_SIZES, ORDERS, REPEATS
from snapshot.config import Config, Suite
from snapshot.kernel_policy import Bounds, KernelRule
from snapshot.kernel_suite import KernelSuite
from snapshot.model import Json, RecordedFingerprint
from snapshot.policy import LogprobTolerance, Rule, TextTolerance, Tolerance
from snapshot.policy_change import Direction, Ground, PolicyChange

AnySuite: TypeAlias = Suite | KernelSuite


def policy_changes(base: Config | None, head: Config | None, ground: Ground) -> list[PolicyChange]:
    """Every change between two goldens.toml, what loosens first.

    Args:
        ground: what the head has recorded.
    """
    if base is None or head is None:
        return []  # then there is nothing to be less strict than
    found = [*_environments(base, head), *_store(base, head)]
    old_suites = {**base.suites, **base.kernels}
    new_suites = {**head.suites, **head.kernels}
    for name in sorted(old_suites.keys() | new_suites.keys()):
        before, after = old_suites.get(name), new_suites.get(name)
        if before is None or after is None:
            gone = after is None
            direction = Direction.LOOSENED if gone else Direction.CHANGED
            old, new = ("verified", "no longer verified") if gone else (None, "new suite")
            covered = ground.covered(name, None)
            found.append(PolicyChange(direction, "suite", name, old, new, (), len(covered)))
        elif isinstance(before, Suite) and isinstance(after, Suite):
            found += _suite(before, after, ground)
        elif isinstance(before, KernelSuite) and isinstance(after, KernelSuite):
            found += _kernel_suite(before, after, ground)
        else:
            was, now = type(before).__name__, type(after).__name__
            found.append(PolicyChange(Direction.LOOSENED, "kind", name, was, now))
    return sorted(found, key=lambda change: list(Direction).index(change.direction))


_NOISE = {
    REPEATS: ("row_rms", "max"),
    ORDERS: ("tie_margin",),
    BATCH_SIZES: ("row_rms", "max", "tie_margin"),
}
"""By kind of noise: what cases are held to where it is measured."""


def calibration_changes(before: RecordedFingerprint, after: RecordedFingerprint) -> list[str]:
    """Noise floors and tie margins that rose: ``logprob = "calibrated"`` and TIE hold cases to
    them. In words. What was never measured is zero, as for judging."""
    rose = []
    for kind, bounds in _NOISE.items():
        for bound in bounds:
            was, now = (_measured(side.calibration.get(kind), bound) for side in (before, after))
            if now > was:
                rose.append(f"{kind}.{bound} {was:.3g} → {now:.3g}{_times(was, now)}")
    return rose


def _measured(noise: Json, bound: str) -> float:
    value = noise.get(bound) if isinstance(noise, dict) else None
    return value if isinstance(value, int | float) else 0.0


# --------------------------------------------------------------- environments, store


def _environments(base: Config, head: Config) -> Iterator[PolicyChange]:
    for name in sorted(base.environments.keys() | head.environments.keys()):
        before, after = base.environments.get(name), head.environments.get(name)
        where = f"environments.{name}"
        old, new = (e.inherits if e else None for e in (before, after))
        if old != new:
            direction = Direction.TIGHTENED if new is None else Direction.LOOSENED
            yield PolicyChange(direction, "inherits", where, old, new)
        if before is None or after is None:
            was, now = (None, "declared") if before is None else ("declared", None)
            yield PolicyChange(Direction.CHANGED, "environment", where, was, now)
        elif before.match.terms != after.match.terms:
            terms = (_terms(before.match.terms), _terms(after.match.terms))
            # Another match can send a machine to another environment's goldens.
            yield PolicyChange(Direction.LOOSENED, "match", where, *terms)


def _store(base: Config, head: Config) -> Iterator[PolicyChange]:
    old, new = (os.path.relpath(c.store, c.path.parent).replace(os.sep, "/") for c in (base, head))
    if old != new:
        yield PolicyChange(Direction.CHANGED, "store.path", "store", old, new)


# --------------------------------------------------------------------------- suites

# Which way of a number is less strict, or checks less.
_LESS_IS_LOOSER = ("max_new_tokens", "top_logprobs")
_OTHER = ("kind", "model", "attention", "device")


def _suite(before: Suite, after: Suite, ground: Ground) -> Iterator[PolicyChange]:
    where = f"suites.{after.name}"
    yield from _tolerance(before, after, ground)
    yield from _rules(before, after, ground)
    yield from _allowances(before, after)
    for what in ("dtypes", "batch_sizes"):
        old, new = set(getattr(before, what)), set(getattr(after, what))
        if old != new:
            direction = Direction.LOOSENED if old - new else Direction.CHANGED
            yield PolicyChange(direction, what, where, _set(old), _set(new))
    for what in _LESS_IS_LOOSER:
        a, b = getattr(before, what), getattr(after, what)
        if a != b:
            direction = Direction.LOOSENED if b < a else Direction.TIGHTENED
            yield PolicyChange(direction, what, where, str(a), str(b))
    for what in _OTHER:
        a, b = getattr(before, what), getattr(after, what)
        if a != b:
            yield PolicyChange(Direction.CHANGED, what, where, _said(a), _said(b))
    for name in sorted(before.adapters.keys() | after.adapters.keys()):
        a, b = before.adapters.get(name), after.adapters.get(name)
        if a != b:
            direction = Direction.LOOSENED if b is None else Direction.CHANGED
            yield PolicyChange(direction, "adapter", f"{where}.adapters.{name}", a, b)


def _kernel_suite(
    before: KernelSuite, after: KernelSuite, ground: Ground
) -> Iterator[PolicyChange]:
    where = f"suites.{after.name}"
    covered = ground.covered(after.name, None)
    for bound in fields(Bounds):
        a, b = (getattr(suite.policy.tolerance, bound.name) for suite in (before, after))
        if a != b:
            was, now = (_said(value) or "by dtype" for value in (a, b))
            how = f"raised{_times(a, b)}" if a is not None and b is not None and b > a else None
            yield PolicyChange(
                _bound_direction(a, b),
                f"tolerance.{bound.name}",
                where,
                was,
                now,
                (how,) if how else (),
                len(covered),
            )
    yield from _rules(before, after, ground)
    yield from _allowances(before, after)
    for what in ("candidates", "cases"):
        old, new = set(getattr(before, what)), set(getattr(after, what))
        if old != new:
            direction = Direction.LOOSENED if old - new else Direction.CHANGED
            gone, came = (f"{len(side)}: {_set(side)}" for side in (old - new, new - old))
            yield PolicyChange(direction, what, where, f"without {gone}", f"with {came}")
    kept = {(e.case, e.device, e.subject): e.reason for e in before.policy.not_run}
    for entry in after.policy.not_run:
        if (entry.case, entry.device, entry.subject) not in kept:
            yield PolicyChange(
                Direction.LOOSENED, "not_run", f"{where} {entry.case}", None, entry.reason
            )
    if before.device != after.device:
        yield PolicyChange(Direction.CHANGED, "device", where, before.device, after.device)


def _bound_direction(before: float | None, after: float | None) -> Direction:
    """A number in place of the strict default is loosened: defaults depend on the dtype."""
    if after is None:
        return Direction.TIGHTENED
    looser = before is None or after > before
    return Direction.LOOSENED if looser else Direction.TIGHTENED


def _tolerance(before: Suite, after: Suite, ground: Ground) -> Iterator[PolicyChange]:
    old, new = before.policy.tolerance, after.policy.tolerance
    covered = ground.covered(after.name, None)
    slugs = tuple(sorted({place.slug for place in covered}))
    for what, a, b in (("text", old.text, new.text), ("logprob", old.logprob, new.logprob)):
        if a == b:
            continue
        direction, how = _compare(a, b)
        noise = ground.noise(after.name, slugs) if what == "logprob" else None
        yield PolicyChange(
            direction,
            f"tolerance.{what}",
            f"suites.{after.name}",
            _limit(a, what),
            _limit(b, what),
            tuple(filter(None, (how, noise))),
            len(covered),
            slugs,
        )


Limit = TextTolerance | LogprobTolerance | None


def _compare(a: Limit, b: Limit) -> tuple[Direction, str | None]:
    """Whether going from one limit to another loosens, and how far it moved."""
    if b is None or a is None:
        return (Direction.TIGHTENED if b is None else Direction.LOOSENED), None
    if isinstance(a, TextTolerance) and isinstance(b, TextTolerance):
        if a.metric != b.metric:
            return Direction.LOOSENED, "another metric: the two cannot be ordered"
        return (Direction.LOOSENED if b.rouge_l < a.rouge_l else Direction.TIGHTENED), None
    assert isinstance(a, LogprobTolerance) and isinstance(b, LogprobTolerance)
    raised, how = False, []
    for name in ("max", "rms"):
        was, now = getattr(a, name), getattr(b, name)
        raised |= was is not None and (now is None or now > was)
        if was is not None and now is not None and was != now:
            how.append(f"{name} {'raised' if now > was else 'lowered'}{_times(was, now)}")
    return (Direction.LOOSENED if raised else Direction.TIGHTENED), ", ".join(how) or None


def _rules(before: AnySuite, after: AnySuite, ground: Ground) -> Iterator[PolicyChange]:
    for kind in ("relax", "quarantine"):
        old = _by_scope(getattr(before.policy, kind))
        new = _by_scope(getattr(after.policy, kind))
        for scope in [*new, *(s for s in old if s not in new)]:
            a, b = old.get(scope), new.get(scope)
            rule = b or a
            assert rule is not None
            if a is not None and b is not None and _content(a) == _content(b):
                continue
            covered = ground.covered(after.name, rule)
            slugs = tuple(sorted({place.slug for place in covered}))
            details = [f"reason: {rule.reason}", f"owner {rule.owner}, {rule.issue}"]
            if rule.tolerance.logprob is not None and (noise := ground.noise(after.name, slugs)):
                details.append(noise)
            yield PolicyChange(
                _rule_direction(a, b),
                kind,
                f"suites.{after.name} {_scope(rule)}",
                None if a is None else _rule(a),
                None if b is None else _rule(b),
                tuple(details),
                len(covered),
                slugs,
            )


def _by_scope(rules: Sequence[Rule]) -> dict[tuple[str, ...], Rule]:
    found: dict[tuple[str, ...], Rule] = {}
    for rule in rules:
        scope: tuple[str, ...] = (rule.case, rule.subject or "", _terms(rule.when.terms))
        while scope in found:  # two rules of one scope loosen two things
            scope = (*scope, "again")
        found[scope] = rule
    return found


def _content(rule: Rule) -> tuple[object, ...]:
    return rule.tolerance, _bounds(rule), rule.expires, rule.reason, rule.owner, rule.issue


def _rule_direction(a: Rule | None, b: Rule | None) -> Direction:
    if a is None or b is None:
        return Direction.LOOSENED if a is None else Direction.TIGHTENED
    directions = [
        _compare(old, new)[0]
        for old, new in (
            (a.tolerance.text, b.tolerance.text),
            (a.tolerance.logprob, b.tolerance.logprob),
        )
        if old != new
    ]
    # A bound that a rule does not name is the suite's own.
    directions += [
        _bound_direction(_bounds(a).get(name), _bounds(b).get(name))
        for name in sorted(_bounds(a).keys() | _bounds(b).keys())
        if _bounds(a).get(name) != _bounds(b).get(name)
    ]
    if b.expires != a.expires:
        directions.append(Direction.LOOSENED if b.expires > a.expires else Direction.TIGHTENED)
    if Direction.LOOSENED in directions:
        return Direction.LOOSENED
    return Direction.TIGHTENED if directions else Direction.CHANGED


def _allowances(before: AnySuite, after: AnySuite) -> Iterator[PolicyChange]:
    old, new = (
        {(entry.case, entry.finding): entry.reason for entry in suite.policy.allow}
        for suite in (before, after)
    )
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            gone, added = key not in new, key not in old
            direction = Direction.TIGHTENED if gone else Direction.LOOSENED
            if not gone and not added:
                direction = Direction.CHANGED
            case, finding = key
            where = f"suites.{after.name} {case}: {finding}"
            yield PolicyChange(direction, "allow", where, old.get(key), new.get(key))


# ---------------------------------------------------------------------------- words


def _limit(limit: Limit, what: str) -> str:
    if limit is None:
        return "equal" if what == "text" else "calibrated"
    if isinstance(limit, TextTolerance):
        return f"rouge_l ≥ {limit.rouge_l:g} ({limit.metric})"
    bounds = [f"{n} ≤ {v:g}" for n, v in (("max", limit.max), ("rms", limit.rms)) if v is not None]
    return ", ".join(bounds)


def _rule(rule: Rule) -> str:
    limits = [f"{name} ≤ {value:g}" for name, value in _bounds(rule).items()]
    said = ", ".join(filter(None, [_said_tolerance(rule.tolerance), *limits]))
    return f"{said + ', ' if said else ''}until {rule.expires}"


def _bounds(rule: Rule) -> dict[str, float]:
    """What a kernel suite's rule loosens."""
    if not isinstance(rule, KernelRule):
        return {}
    return {n: value for n, value in vars(rule.bounds).items() if value is not None}


def _said_tolerance(tolerance: Tolerance) -> str:
    limits = (("text", tolerance.text), ("logprob", tolerance.logprob))
    return ", ".join(f"{what} {_limit(limit, what)}" for what, limit in limits if limit is not None)


def _scope(rule: Rule) -> str:
    parts = [rule.case]
    if rule.subject is not None:
        parts.append(f"of {rule.subject}")
    if rule.when.terms:
        parts.append(f"where {_terms(rule.when.terms)}")
    return " ".join(parts)


def _terms(terms: Mapping[str, Json]) -> str:
    return ", ".join(f"{name} = {terms[name]!r}" for name in sorted(terms))


def _set(values: Iterable[object]) -> str:
    return ", ".join(map(str, sorted(values, key=str)))


def _said(value: object) -> str | None:
    return None if value is None else str(value)


def _times(was: float, now: float) -> str:
    return f" {now / was:.3g}x" if was > 0 else ""
