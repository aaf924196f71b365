"""What must not become a golden.

A golden that was wrong on the day it was recorded makes every later run wrong with it, so
recording looks for the faults that have been recorded as truth before: an adapter that was
not applied, a base row that an adapter leaked into, a row that is not reproducible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from snapshot.difference import Finding
from snapshot.errors import RecordRefused
from snapshot.metrics.logprobs import distance
from snapshot.metrics.nonfinite import nonfinite
from snapshot.model import Array, GenerationCase, Observation
from snapshot.policy import Allowance, allowed

SAME_AS_BASE = "same-as-base"
UNSTABLE = "unstable"
ORDER_DEPENDENT = "order-dependent"
NONFINITE = "nonfinite"
EMPTY = "empty"

ORDER_BOUND = 1e-3
"""Largest logprob change, in nats, that row order may cause in float32. Measured: batch shape
moves float32 by less than 5e-5, a base model in an adapter's place by 2e-2."""

Run = Mapping[str, Observation]


def refusals(
    cases: Sequence[GenerationCase],
    first: Run,
    *,
    repeats: Sequence[Run] = (),
    reordered: Run | None = None,
    allow: Iterable[Allowance] = (),
) -> list[Finding]:
    """Why these observations must not be recorded; empty if they may.

    Args:
        cases: what was run.
        first: observations by case key.
        repeats: the same batches run again, in other processes and in another group order; a
            row that one of them lacks is compared with the others.
        reordered: in float32, the same rows in the opposite order within each batch.
        allow: the suite's ``allow`` entries.

    Returns:
        One finding a fault; `Finding.check` is the name that an ``allow`` entry takes.
    """
    allow = tuple(allow)
    base = {case.prompt: first[case.key] for case in cases if case.adapter is None}
    found: list[Finding] = []
    for case in cases:
        row = first[case.key]
        faults = [*_nonfinite(row), *_empty(row)]
        if case.adapter is not None and case.prompt in base:
            faults += _same_as_base(case, row, base[case.prompt])
        for repeat in repeats:
            if case.key in repeat:
                faults += _unstable(row, repeat[case.key])
        if reordered is not None:
            faults += _order_dependent(row, reordered[case.key])
        accepted = allowed(allow, case.key)
        found += [fault for fault in faults if fault.check not in accepted]
    return found


def refused(suite: str, found: Sequence[Finding]) -> RecordRefused:
    """The error that names these rows of a suite."""
    shown = [
        f"    {f.where}: {f.message}" + (f" (expected {f.expected}, got {f.got})" if f.got else "")
        for f in found
    ]
    names = " or ".join(f'"{name}"' for name in sorted({f.check for f in found}))
    return RecordRefused(
        f"{len(found)} row(s) must not become goldens; nothing was written\n" + "\n".join(shown),
        where=f"suite {suite}",
        hint=f"where it is legitimate: [[suites.{suite}.allow]] with case, "
        f"finding = {names} and reason",
    )


def _nonfinite(row: Observation) -> Iterable[Finding]:
    for name, array in row.arrays.items():
        bad = nonfinite(array)
        if bad is not None:
            yield Finding(
                NONFINITE,
                f"{bad.count} non-finite value(s) in {name}, first at {list(bad.first)}",
                where=row.case,
                expected="finite numbers",
                got=bad.value,
            )


def _empty(row: Observation) -> Iterable[Finding]:
    if not row.output.text:
        yield Finding(EMPTY, "the output is empty", where=row.case, expected="some text", got="''")


def _same_as_base(case: GenerationCase, row: Observation, base: Observation) -> Iterable[Finding]:
    if row.output.text != base.output.text or row.output.token_ids != base.output.token_ids:
        return
    moved = distance(base, row)
    numbers = (
        "its logprobs are the base's too"
        if moved is None or moved.max == 0
        else f"only its logprobs differ ({moved}), which the text does not show"
    )
    yield Finding(
        SAME_AS_BASE,
        f'the row of adapter "{case.adapter}" equals the row without adapter: the adapter had no '
        f"effect, or it leaked into the base row; {numbers}",
        where=f"{case.key} and {base.case}",
        expected="an adapter that changes the text",
        got=repr(row.output.text[:80]),
    )


def _unstable(row: Observation, repeat: Observation) -> Iterable[Finding]:
    if row.output != repeat.output:
        yield Finding(
            UNSTABLE,
            "the row changes between identical runs",
            where=row.case,
            expected=repr(row.output.text[:80]),
            got=repr(repeat.output.text[:80]),
        )
    elif not same_arrays(row, repeat):
        yield Finding(
            UNSTABLE,
            "the row's numbers change between identical runs, its text does not",
            where=row.case,
            expected="the same bits",
            got=str(distance(row, repeat)),
        )


def same_arrays(a: Observation, b: Observation) -> bool:
    """Whether two observations have the same arrays, bit for bit."""
    return a.arrays.keys() == b.arrays.keys() and all(
        _same_bits(array, b.arrays[name]) for name, array in a.arrays.items()
    )


def _same_bits(a: Array, b: Array) -> bool:
    # Bytes, not values: NaN equals itself here, and 0.0 is not -0.0.
    return (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes()


def _order_dependent(row: Observation, other: Observation) -> Iterable[Finding]:
    moved = distance(row, other)
    if row.output != other.output:
        got = repr(other.output.text[:80])
    elif moved is not None and not moved.max <= ORDER_BOUND:
        got = str(moved)
    else:
        return
    yield Finding(
        ORDER_DEPENDENT,
        "the row changes with the order of the batch, in float32: rows leak into each other",
        where=row.case,
        expected=repr(row.output.text[:80]),
        got=got,
    )
