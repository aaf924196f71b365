"""One case in full: the words, the steps around the difference, who moved, what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from snapshot.difference import Step
from snapshot.metrics.words import word_diff
from snapshot.report.attribution import attribution_lines
from snapshot.report.finding import finding_line
from snapshot.report.plain import QUOTE, visible
from snapshot.result import Result, Verdict
from snapshot.verification import Held, Verification


def print_explanation(verification: Verification, console: Console) -> None:
    """Every run of the selected cases, each in full."""
    for held in verification.held:
        for result in held.results:
            for line in _lines(held, result):
                console.print(line, soft_wrap=True)


def _lines(held: Held, result: Result) -> Iterator[Text]:
    style = "green" if result.verdict.passes else "yellow" if _drift(result) else "red"
    yield Text(f"\n{result.verdict.value}  {result.case}", f"bold {style}")
    yield Text(f"  {held.subject} on {held.place}", "dim")
    yield Text(f"  held to {held.baseline.slug or 'nothing'} ({held.baseline.full})", "dim")
    if result.headline:
        yield Text(f"  {visible(result.headline)}", style)
    yield from _words(result)
    yield from _steps(result.steps)
    if result.attribution is not None:
        yield Text("\n  who moved", "bold")
        yield from (Text(f"    {line}") for line in attribution_lines(result.attribution))
    if result.findings:
        yield Text("\n  findings", "bold")
        yield from (Text(f"    {finding_line(finding)}") for finding in result.findings)
    yield from (Text(f"  note: {visible(note)}", "dim") for note in result.notes)
    yield Text("\n  next", "bold")
    yield from (Text(f"    {line}") for line in next_steps(held, result))


def _drift(result: Result) -> bool:
    return result.verdict in (Verdict.DRIFT, Verdict.MISSING)


def _words(result: Result) -> Iterator[Text]:
    golden, candidate = result.golden_text, result.candidate_text
    if golden is None or candidate is None:
        return
    sides = [("golden", golden), ("candidate", candidate)]
    here = None if result.attribution is None else result.attribution.reference_text
    if here is not None:
        sides.append(("reference", here))
    yield Text("\n  words", "bold")
    for name, text in sides:
        line = Text(f"    {name:<11}{QUOTE}")
        if text == golden:
            line.append(visible(text))
        else:
            for run in word_diff(golden, text):
                line.append(visible(run.candidate), "" if run.equal else "bold reverse")
        yield line


def _steps(steps: Sequence[Step]) -> Iterator[Text]:
    if not steps:
        return
    yield Text(
        "\n  steps (token id, logprob, margin to the second; then the best of each side)", "bold"
    )
    for step in steps:
        parted = step.tokens[0] != step.tokens[1]
        sides = [_side(step, i) for i in (0, 1)]
        line = f"    {step.index:>4}  golden {sides[0]:<30} candidate {sides[1]:<30}"
        yield Text(line.rstrip(), "red" if parted else "")
        if parted:
            for name, top in zip(("golden", "candidate"), step.tops, strict=True):
                best = ", ".join(f"{token} {value:.3f}" for token, value in top)
                if best:
                    yield Text(f"          {name}'s best: {best}", "dim")
            return  # what follows was said in another context


def _side(step: Step, i: int) -> str:
    token, logprob, margin = step.tokens[i], step.logprobs[i], step.margins[i]
    if token is None:
        return "(ended)"
    known = [f"{value:.3f}" for value in (logprob, margin) if value is not None]
    return ", ".join([str(token), *known])


def next_steps(held: Held, result: Result) -> Iterator[str]:
    """What a maintainer does now, as commands."""
    selector = f"{held.suite} " if result.verdict is Verdict.MISSING else f"'{result.case}'"
    if result.verdict.passes and result.verdict is not Verdict.QUARANTINED:
        yield "nothing"
    elif result.verdict in (Verdict.DRIFT, Verdict.MISSING):
        if result.verdict is Verdict.DRIFT:
            yield f"goldens sweep '{result.case}'          is it the batch, or the environment?"
        yield f"goldens record {selector}         then review the change in a pull request"
        if result.verdict is Verdict.DRIFT:  # a rule cannot stand in for a golden
            rule = f"[[suites.{held.suite}.relax]]"
            yield f"or, in the open and for a while, a {rule} of this one case"
    elif result.verdict is Verdict.REGRESSION:
        yield "find what changed in the candidate; the golden and the environment are not to blame"
        yield f"goldens verify '{result.case}' --attribute always          after each attempt"
    elif result.verdict is Verdict.UNATTRIBUTED:
        yield "run this where the reference can run, with --attribute always"
        yield "or let the engine give token ids and logprobs: docs/verify.md"
    elif result.verdict is Verdict.QUARANTINED:
        yield "it is covered until the rule expires; repair it before then"
    elif result.verdict is Verdict.FIXED:
        yield "remove the quarantine rule from goldens.toml"
    else:
        yield "see the findings above"
