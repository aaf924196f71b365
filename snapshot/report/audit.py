"""What the injected faults say of the tolerances, for people and as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console

from snapshot import __version__
from snapshot.calibrate import POWER
from snapshot.detection import METRIC, OWN, SCENARIOS, Cell, Detection, Loosest, loosest
from snapshot.kernel_detection import Exposure, KernelDetection
from snapshot.model import Json
from snapshot.outcomes.audit import Audit
from snapshot.report.plain import visible
from snapshot.result import Verdict

_SHOWN = 6  # missed cases named a scenario


def print_audit(audit: Audit) -> None:
    """A table a fingerprint: a row a fault, a column a scenario, then what follows from it."""
    console = Console(highlight=False, emoji=False)
    for detection in audit.detections:
        console.print(f"\n{detection.suite}  {detection.slug}", style="bold", soft_wrap=True)
        console.print(f"  held to {detection.golden_slug}", style="dim", soft_wrap=True)
        for line, style in (*_table(detection), *_conclusions(detection)):
            console.print("  " + line, style=style, soft_wrap=True, markup=False)
    for kernels in audit.kernels:
        console.print(f"\n{kernels.suite}", style="bold", soft_wrap=True)
        for line, style in _kernel_lines(kernels):
            console.print("  " + line, style=style, soft_wrap=True, markup=False)
    for advice in audit.advice:
        console.print(f"POLICY  {visible(advice)}", style="yellow", soft_wrap=True, markup=False)
    for rule in audit.expired:
        console.print(f"EXPIRED  {visible(rule)}", style="red", soft_wrap=True, markup=False)


def _table(detection: Detection) -> Iterator[tuple[str, str]]:
    """Padded lines: a log has no width to fit."""
    scenarios = detection.scenarios
    yield from _padded(
        ["fault", *scenarios],
        *(
            [fault, *(outcome(detection.of(scenario, fault)) for scenario in scenarios)]
            for fault in detection.faults
        ),
        ["none", *(_counts(detection.clean.get(scenario, {})) for scenario in scenarios)],
    )


def _padded(*rows: Sequence[str]) -> Iterator[tuple[str, str]]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip(), "dim" if row is rows[0] else ""


def _kernel_lines(detection: KernelDetection) -> Iterator[tuple[str, str]]:
    """How many of the cases that a fault changes see it, and the bound that still would."""
    faults = dict.fromkeys(exposure.fault for exposure in detection.exposures)
    yield from _padded(
        ["fault", "caught", "rel-L2 bound below"],
        *(_kernel_row(fault, detection.exposures) for fault in faults),
    )
    for fault in detection.unseen:
        yield f"MISSED  {fault}: no case sees it", "red"
    for rule, through in detection.let_through.items():
        yield f"this rule lets faults through: {rule}: {', '.join(sorted(through))}", "red"


def _kernel_row(fault: str, exposures: Sequence[Exposure]) -> list[str]:
    affected = [e for e in exposures if e.fault == fault and e.effect]
    missed = [e.case for e in affected if e.missed]
    unseen = f" (not in {', '.join(missed[:2])}{', ...' if missed[2:] else ''})" if missed else ""
    worst = max((e.rel_l2 for e in affected if e.rel_l2 is not None), default=None)
    caught = sum(e.caught for e in affected)
    return [fault, f"{caught} of {len(affected)}{unseen}", "" if worst is None else f"{worst:.2g}"]


def outcome(cells: Sequence[Cell]) -> str:
    """``16 of 16``, and how those that passed or were called drift ended."""
    caught = sum(cell.caught for cell in cells)
    others = Counter(
        cell.verdict for cell in cells if not cell.caught or cell.verdict is Verdict.DRIFT
    )
    told = f" ({_counts(others)})" if others else ""
    return f"{caught} of {len(cells)}{told}"


def _counts(counts: Counter[Verdict] | Json) -> str:
    return ", ".join(
        f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts.get(verdict)
    )


def _conclusions(detection: Detection) -> Iterator[tuple[str, str]]:
    for scenario in detection.scenarios:
        score = detection.score(scenario)
        if score is None:
            continue
        style = "green" if score == 1.0 else "red" if scenario == OWN else "yellow"
        yield f"{scenario}: {score:.1%} caught ({SCENARIOS[scenario]})", style
    for fault, why in detection.unreached.items():
        yield f"{fault}: says nothing here: {visible(why)}", "dim"
    missed = detection.missed(OWN)
    for cell in missed[:_SHOWN]:
        yield f"MISSED  {cell.fault} in {cell.case}: {cell.verdict.value}", "red"
    if len(missed) > _SHOWN:
        yield f"and {len(missed) - _SHOWN} more", "red"
    for rule, cells in detection.let_through.items():
        faults = ", ".join(sorted({cell.fault for cell in cells}))
        yield f"this rule lets faults through: {rule}: {faults}", "red"
    yield from ((line, "") for line in _loosest(loosest(detection.of(OWN))))
    if detection.power is not None:
        weak = detection.power < POWER
        told = "underpowered: " if weak else ""
        yield (
            f"{told}adapters move the logprobs {detection.power:.3g} times what the batch does",
            "red" if weak else "",
        )


def _loosest(found: Loosest) -> Iterator[str]:
    if found.rms is not None and found.max is not None:
        yield (
            "the loosest logprob tolerance that still catches every fault somewhere: "
            f"rms below {found.rms:.2g}, or max below {found.max:.2g}"
        )
    if found.blind:
        yield f"text alone catches no {', no '.join(found.blind)}"
    elif found.rouge_l is not None:
        yield f"the loosest ROUGE-L ({METRIC}) that does: above {found.rouge_l:.3g}"


def as_json_text(audit: Audit) -> str:
    """One JSON document."""
    document = {
        "schema": 1,
        "goldens": __version__,
        "exit_code": audit.exit_code,
        "expired": list(audit.expired),
        "advice": list(audit.advice),
        "detections": [_detection(detection) for detection in audit.detections],
        "kernels": [
            {
                "suite": kernels.suite,
                "unseen": kernels.unseen,
                "let_through": {rule: sorted(f) for rule, f in kernels.let_through.items()},
                "cells": [_exposure(exposure) for exposure in kernels.exposures],
            }
            for kernels in audit.kernels
        ],
    }
    return json.dumps(document, indent=2, allow_nan=False)


def _detection(detection: Detection) -> dict[str, Json]:
    own = loosest(detection.of(OWN))
    return {
        "suite": detection.suite,
        "fingerprint": detection.slug,
        "golden": detection.golden_slug,
        "power": detection.power,
        "scores": {name: detection.score(name) for name in detection.scenarios},
        "loosest": {k: _plain(v) for k, v in dataclasses.asdict(own).items()},
        "let_through": {
            rule: sorted({cell.fault for cell in cells})
            for rule, cells in detection.let_through.items()
        },
        "unreached": dict(detection.unreached),
        "clean": {
            name: {verdict.value: count for verdict, count in counts.items()}
            for name, counts in detection.clean.items()
        },
        "cells": [
            {
                "scenario": cell.scenario,
                "fault": cell.fault,
                "case": cell.case,
                "verdict": cell.verdict.value,
                "caught": cell.caught,
                "rms": None if cell.distance is None else _plain(cell.distance.rms),
                "max": None if cell.distance is None else _plain(cell.distance.max),
                "score": cell.score,
                "relaxed": list(cell.relaxed),
            }
            for cell in detection.cells
        ],
    }


def _exposure(exposure: Exposure) -> dict[str, Json]:
    return {
        "fault": exposure.fault,
        "case": exposure.case,
        "effect": exposure.effect,
        "verdict": None if exposure.verdict is None else exposure.verdict.value,
        "caught": exposure.caught,
        "rel_l2": _plain(exposure.rel_l2),
        "let_through": {name: list(rules) for name, rules in exposure.let_through.items()},
    }


def _plain(value: Json) -> Json:
    """JSON has no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
