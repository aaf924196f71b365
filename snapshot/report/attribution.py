"""Who moved, as lines of plain text: the way from the golden to the candidate."""

from __future__ import annotations

from collections.abc import Iterator

from snapshot.attribute import said
from snapshot.attribution import Attribution, Move
from snapshot.report.plain import visible

WAYS = {
    "environment": "golden -> reference here, in the golden's batch",
    "batch": "-> reference here, in the candidate's batch",
    "candidate": "-> candidate",
}


def attribution_lines(attribution: Attribution) -> Iterator[str]:
    """One line a step, then the errors against float32, the tests, and what was not run."""
    for move in attribution.moves:
        yield f"{move.name:<12}{WAYS[move.name]}: {moved(move)}"
    if attribution.errors:
        known = ", ".join(f"{name} {rms:.2g}" for name, rms in attribution.errors.items())
        yield f"{'float32':<12}rms from the float32 answer on the golden's tokens: {known}"
    for test in attribution.tests:
        yield f"{'together':<12}{said(test)}{'' if test.significant else ', as expected'}"
    for note in attribution.notes:
        yield f"{'not run':<12}{visible(note)}"


def moved(move: Move) -> str:
    """How far one step is, in words."""
    if move.still:
        return "nothing moved"
    found = []
    if move.step is not None:
        found.append(f"tokens part at step {move.step}")
    elif move.words:
        found.append("the words differ")
    if move.distance is not None and move.distance.max:
        found.append(f"logprobs {move.distance}")
    if move.allowed_rms is not None and move.allowed_max is not None:
        found.append(f"noise rms {move.allowed_rms:.2g}, max {move.allowed_max:.2g}")
    return ", ".join(found)
