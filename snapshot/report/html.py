"""The verification as one HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from snapshot import __version__
from snapshot.attribution import Attribution
from snapshot.difference import RowErrors, Step
from snapshot.kernel_model import Computed, KernelResult
from snapshot.metrics.words import Run, word_diff
from snapshot.model import Json
from snapshot.report.attribution import WAYS, moved
from snapshot.report.finding import sentence
from snapshot.report.page import (
    Alert,
    Cell,
    Page,
    Row,
    Status,
    columns,
    lines,
    marked,
    shown,
    table,
    without_dtype,
    words,
)
from snapshot.report.plain import count, visible
from snapshot.result import Result, Verdict
from snapshot.verification import Verification

STATUSES = (
    Status("ERROR", "!", "bad", "the run raised, died or timed out"),
    Status("INVALID", "⊘", "bad", "the workload is another one: nothing was compared"),
    Status("NONFINITE", "∞", "bad", "NaN, or infinity where none belongs"),
    Status("WRONG", "✕", "bad", "over its bound against the float64 oracle"),
    Status("REGRESSION", "✕", "bad", "the candidate moved and the reference did not"),
    Status("UNATTRIBUTED", "≠", "bad", "differs, and the reference could not be run to tell"),
    Status("DRIFT", "~", "warn", "the reference itself moved, and the candidate follows it"),
    Status("MISSING", "?", "warn", "no golden for this fingerprint"),
    Status("FIXED", "↑", "warn", "quarantined and passing: remove the rule"),
    Status("QUARANTINED", "Q", "mute", "a live rule covers the failure"),
    Status("WITHIN", "≈", "info", "inside the tolerance"),
    Status("TIE", "=", "info", "parted at a near-tie"),
    Status("VARIANT", "v", "info", "the reference's own answer at another batch size"),
    Status("MATCH", "✓", "good", "equal"),
)
_SEARCHED = 2000  # characters of a text that the search looks through


def to_html(verification: Verification) -> str:
    """The document: self-contained, works from a file."""
    return str(page(verification))


def page(verification: Verification) -> Page:
    """The page that `to_html` writes."""
    names = list(dict.fromkeys(_column(result) for result in verification.results))
    index = {name: i for i, name in enumerate(names)}
    made = columns(names)
    by_case: dict[tuple[str, str], dict[int, Result]] = {}
    for result in verification.results:
        cells = by_case.setdefault((result.suite, result.case), {})
        cells[index[_column(result)]] = result
    rows = [
        Row(
            group=suite + (f" / {case.split('/')[0]}" if "/" in case else ""),
            key=case,
            cells={i: _cell(result) for i, result in results.items()},
            blocks=tuple(_wordings(results, [(c.group, c.label) for c in made])),
        )
        for (suite, case), results in by_case.items()
    ]
    rows.sort(key=lambda row: row.group)
    counts = Counter(result.verdict for result in verification.results)
    failing = [r for r in verification.results if not r.verdict.passes]
    total = len(verification.results)
    if verification.exit_code == 0:
        verdict, tone = f"All {total:,} pass", "good"
    elif not total:
        verdict, tone = "Nothing was run", "warn"
    else:
        verdict = f"{len(failing):,} of {total:,} need{'s' * (len(failing) == 1)} a look"
        tone = "warn" if verification.exit_code in (3, 5) else "bad"
    other = [h for h in verification.held if not h.baseline.exact]
    held = sorted(
        {f"{h.suite} held to {h.baseline.slug or 'nothing'} ({h.baseline.how})" for h in other}
    )
    held += sorted(
        {f"  {h.suite}: {h.baseline.instead}" for h in other if h.baseline.identity is None}
    )
    return Page(
        title=f"goldens verify: {verdict}",
        verdict=verdict,
        tone=tone,
        facts=f"goldens verify, version {__version__}, exit code {verification.exit_code}",
        statuses=STATUSES,
        columns=made,
        rows=rows,
        alerts=tuple(_alerts(verification, held)),
        corner=f"{count(rows, 'case')}, {extent(names)}",
        plain=[
            ", ".join(f"{n} {v.value}" for v, n in counts.items()),
            *(f"{r.verdict.value} {r.case} {r.place}" for r in failing[:200]),
        ],
    )


def extent(names: Sequence[tuple[str, str]]) -> str:
    """What the columns are: ``1 environment, 4 subjects``"""
    environments = {environment for environment, _ in names}
    subjects = {subject for _, subject in names}
    said = count(environments, "environment")
    return said if len(subjects) < 2 else f"{said}, {count(subjects, 'subject')}"


def _column(result: Result) -> tuple[str, str]:
    kernel = isinstance(result, KernelResult)
    return without_dtype(result.place) if kernel else result.place, result.subject


def _alerts(verification: Verification, held: Sequence[str]) -> Iterator[Alert]:
    if verification.damage:
        said = [f"{error.what}: {error.where}" for error in verification.damage]
        yield Alert("bad", "Files that cannot be trusted", tuple(visible(s, 400) for s in said))
    if verification.expired:
        yield Alert(
            "bad", "Rules that have expired", tuple(visible(r, 400) for r in verification.expired)
        )
    if held:
        yield Alert("warn", "Not held to their own goldens", tuple(visible(h, 600) for h in held))


def _cell(result: Result) -> Cell:
    differs = result.golden_text != result.candidate_text
    compared = result.golden_text is not None and result.candidate_text is not None
    blocks: list[Json] = []
    if differs and compared and result.verdict is not Verdict.INVALID:
        blocks.append(words(result.golden_text, result.candidate_text, "Golden → candidate"))
    elif result.candidate_text and not compared:
        blocks.append(words(result.candidate_text, result.candidate_text, "Candidate"))
    if result.steps:
        blocks.append(plot(result.steps, "golden", "candidate"))
    if result.rows is not None:
        blocks.append(heat(result.rows))
    if isinstance(result, KernelResult) and result.computed is not None:
        blocks.append(_kernel(result.computed, result.recorded))
    if result.attribution is not None:
        blocks += _attribution(result.attribution)
    if result.distance is not None and result.verdict is not Verdict.MATCH:
        blocks.append(lines("Logprobs", [str(result.distance)]))
    if result.scores:
        scores = [f"{metric}: ROUGE-L {score:.4f}" for metric, score in result.scores.items()]
        blocks.append(lines("Scores", scores))
    blocks.append(lines("Findings", map(sentence, result.findings)))
    blocks.append(lines("Relaxed by", result.relaxed))
    blocks.append(lines("Notes", result.notes))
    text = f"{result.candidate_text or ''}\n{result.golden_text or '' if differs else ''}"
    return Cell(
        result.verdict.value,
        result.headline,
        tuple(block for block in blocks if block is not None),
        shown(text[:_SEARCHED]),
    )


def plot(steps: Sequence[Step], before: str, after: str) -> Json:
    """Logprobs of the chosen tokens of both sides around a difference."""
    old, new = ([_brief(step.logprobs[side]) for step in steps] for side in (0, 1))
    if not any(value is not None for value in (*old, *new)):
        return None
    return {
        "type": "plot",
        "title": "Log-probability of each token, nats",
        "first": steps[0].index,
        "a": old,
        "b": new,
        "parted": next((s.index for s in steps if s.tokens[0] != s.tokens[1]), None),
        "names": [before, after],
    }


def _brief(logprob: float | None) -> float | None:
    return None if logprob is None else round(logprob, 4)


def heat(rows: RowErrors) -> Json:
    """A heat map over (sequence, head)."""
    return {
        "type": "heat",
        "title": rows.quantity,
        "unit": rows.quantity,
        "axes": ["sequence", "head"],
        "values": rows.values,
        "bound": rows.bound,
    }


def _kernel(here: Computed, recorded: Computed | None) -> Json:
    """How far a kernel, its golden and plain torch in its dtype are from the oracle."""
    sides = [("here", here.errors), ("plain torch", here.baseline)]
    if recorded is not None:
        sides.append(("golden", recorded.errors))
    rows = [
        [name, f"{e.rel_l2:.3g}", str(list(e.row)), f"{e.max_abs:.3g}", f"{e.ulp_p50:.3g}",
         f"{e.ulp_max:,}"]
        for name, e in sides
    ]  # fmt: skip
    head = ["", "rel-L2", "worst row", "max", "ULP p50", "ULP max"]
    return table("Against the float64 oracle", head, rows)


def _attribution(found: Attribution) -> Iterator[Json]:
    if found.moves:
        moves = [[move.name, WAYS[move.name], moved(move)] for move in found.moves]
        yield table("Who moved", ["step", "from, to", ""], moves)
    if found.errors:
        errors = [[name, f"{value:.3g} nats"] for name, value in found.errors.items()]
        yield table("Distance from the float32 answer", ["", "rms"], errors)
    if found.tests:
        tests = [
            [
                t.group,
                t.question,
                f"{t.estimate:.3g} [{t.low:.3g}, {t.high:.3g}]",
                f"{t.expected:.3g}",
                f"{t.p:.2g}",
                "wrong" if t.significant else "–",
            ]
            for t in found.tests
        ]
        head = ["rows", "question", "estimate, 95 %", "expected", "p", ""]
        yield table("All rows of the adapter together", head, tests)
    yield lines("Could not be run", found.notes)


def _wordings(results: Mapping[int, Result], labels: Sequence[tuple[str, str]]) -> Iterator[Json]:
    """Which wording the case has at which batch size, where there is more than one."""
    texts: dict[str, str] = {}
    said: dict[tuple[str, str], int] = {}
    for i, result in results.items():
        text = result.candidate_text
        if text is None:
            continue
        texts.setdefault(text, chr(ord("A") + len(texts) % 26))
        said[labels[i]] = list(texts).index(text)
    if len(texts) < 2 or len(said) < 2:
        return
    yield wordings(list(texts), list(texts.values()), said)


def wordings(
    texts: Sequence[str], names: Sequence[str], said: Mapping[tuple[str, str], int]
) -> Json:
    """A matrix of wordings: each is a letter, told apart word by word from the first.

    Args:
        said: by heading and label of a column, the index of its text.
    """
    down = list(dict.fromkeys(group for group, _ in said))
    across = list(dict.fromkeys(label for _, label in said))
    first = texts[0]
    return {
        "type": "wordings",
        "title": f"{len(texts)} wordings by batch size",
        "down": down,
        "across": across,
        "names": list(names),
        "cells": [[said.get((group, label)) for label in across] for group in down],
        "texts": [marked([Run(t, t)] if t == first else word_diff(first, t)) for t in texts[:6]],
    }
