"""Verdicts for a tired person: one line for a case that passes, the words for one that does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from snapshot.metrics.words import word_diff
from snapshot.model import Json
from snapshot.report.attribution import attribution_lines
from snapshot.report.excerpt import around_first
from snapshot.report.finding import finding_line
from snapshot.report.plain import QUOTE, count, visible
from snapshot.result import Result, Verdict
from snapshot.verification import Held, Verification

_STYLES = {
    Verdict.MATCH: "green",
    Verdict.VARIANT: "cyan",
    Verdict.TIE: "cyan",
    Verdict.WITHIN: "cyan",
    Verdict.DRIFT: "yellow",
    Verdict.MISSING: "yellow",
    Verdict.QUARANTINED: "magenta",
}
_LONGEST = 600  # characters of any one sentence
_WORDLESS = (Verdict.MATCH, Verdict.INVALID)  # nothing differs, or nothing was compared
_WIDTH = max(len(verdict.value) for verdict in Verdict)


def print_verification(verification: Verification, console: Console) -> None:
    """Writes the whole report."""
    told: set[str] = set()
    for held in verification.held:
        for line in _held(held, told):
            console.print(line, soft_wrap=True)
    for damage in verification.damage:
        lines = [visible(line, _LONGEST) for line in str(damage).split("\n")]
        console.print(
            Text("\n".join(["\nDAMAGED  " + lines[0], *lines[1:]]), "red"), soft_wrap=True
        )
    for rule in verification.expired:
        console.print(Text(f"\nEXPIRED  {visible(rule, _LONGEST)}", "red"), soft_wrap=True)
    console.print(_summary(verification), soft_wrap=True)


def _held(held: Held, told: set[str]) -> Iterator[Text]:
    """Args: told: suites whose recorded environments were listed; once is enough."""
    where = held.slug or "outputs of an engine"
    yield Text(f"\n{held.suite}  {held.subject} on {where}", "bold")
    golden = held.baseline.slug or "none"
    style = "dim" if held.baseline.exact else "yellow"
    yield Text(f"  held to {golden} ({held.baseline.how})", style)
    if held.baseline.identity is None and held.suite not in told:
        told.add(held.suite)
        yield Text(f"  {held.baseline.instead}", "dim")
    if held.own:
        yield Text("  did it move? held to its own goldens there", "bold")
    if held.engine:
        known = ", ".join(f"{name} {_told(value)}" for name, value in held.engine.items())
        yield Text(f"  {known}", "dim")
    for check, why in held.unchecked.items():
        yield Text(f"  not checked: {check}: {visible(why, _LONGEST)}", "yellow")
    before = None
    for result in held.results:
        yield from _result(result, before)
        before = result
    for reason in dict.fromkeys(held.not_run.values()):
        skipped = [case for case, why in held.not_run.items() if why == reason]
        yield Text(f"  not run: {count(skipped, 'case')}: {visible(reason, _LONGEST)}", "yellow")


def _told(value: Json) -> str:
    """A value of an engine's provenance on one line."""
    if isinstance(value, dict):
        return " ".join(f"{k}={visible(str(v), 80)}" for k, v in value.items())
    if isinstance(value, list):
        return " ".join(visible(str(v), 80) for v in value)
    return visible(str(value), 160)


def _result(result: Result, before: Result | None) -> Iterator[Text]:
    style = _STYLES.get(result.verdict, "red")
    line = Text("  ").append(f"{result.verdict.value:<{_WIDTH}}", style).append(f"  {result.case}")
    yield line
    indent = " " * (_WIDTH + 4)
    again = before is not None and (before.verdict, before.headline) == (
        result.verdict,
        result.headline,
    )
    if result.headline and not (again and result.verdict is Verdict.MISSING):
        yield Text(indent + visible(result.headline, _LONGEST), style)
    if result.verdict not in _WORDLESS and result.golden_text != result.candidate_text:
        yield from _words(result, indent + QUOTE)
    if result.attribution is not None:
        yield from (Text(indent + line, "dim") for line in attribution_lines(result.attribution))
    elif not result.verdict.passes:
        yield from (Text(indent + finding_line(finding), "dim") for finding in result.findings)
    yield from (Text(f"{indent}note: {visible(note, _LONGEST)}", "dim") for note in result.notes)


def _words(result: Result, indent: str) -> Iterator[Text]:
    if result.golden_text is None or result.candidate_text is None:
        return
    line = Text(indent)
    for run in around_first(word_diff(result.golden_text, result.candidate_text)):
        if run.equal:
            line.append(visible(run.golden))
        else:  # git's notation for word differences, readable without colour
            if run.golden:
                line.append(f"[-{visible(run.golden)}-]", "red")
            if run.candidate:
                line.append(f"{{+{visible(run.candidate)}+}}", "green")
    yield line


def _summary(verification: Verification) -> Text:
    counts = Counter(result.verdict for result in verification.results)
    listed = ", ".join(
        f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]
    )
    not_run = f", {len(verification.not_run)} not run" if verification.not_run else ""
    damaged = f", {len(verification.damage)} damaged files" if verification.damage else ""
    style = "bold green" if verification.exit_code == 0 else "bold red"
    total = count(verification.results, "case")
    hint = _HINTS.get(verification.exit_code, "")
    return Text(f"\n{total}: {listed or 'nothing was run'}{not_run}{damaged}{hint}", style)


_HINTS = {
    3: "\nto record what is missing: goldens record --new-only, then review it in a pull request",
    5: "\nonly drift: the environment moved; record it anew and review it in a pull request",
}
