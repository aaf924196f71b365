"""The verification as JUnit XML, which every CI system reads."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from snapshot.report.attribution import attribution_lines
from snapshot.report.finding import sentence
from snapshot.report.plain import visible
from snapshot.result import Result, Verdict
from snapshot.verification import Held, Verification

# What XML 1.0 cannot hold, not even as a reference.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ERRORS = (Verdict.ERROR, Verdict.INVALID)


def to_junit(verification: Verification) -> str:
    """One test suite a run, one test case a case; damage and expired rules are cases too."""
    body = "".join(map(_suite, verification.held)) + _store(verification)
    results = verification.results
    failures = sum(_failed(r) for r in results)
    errors = sum(_error(r) for r in results)
    extra = len(verification.damage) + len(verification.expired)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="goldens" tests="{len(results) + extra}" failures="{failures}" '
        f'errors="{errors + extra}">\n{body}</testsuites>\n'
    )


def _suite(held: Held) -> str:
    name = f"{held.suite} {held.subject} on {held.place}"
    name += ", did it move?" if held.own else ""
    results = held.results
    counts = (
        f'tests="{len(results)}" failures="{sum(map(_failed, results))}" '
        f'errors="{sum(map(_error, results))}" '
        f'skipped="{sum(r.verdict is Verdict.QUARANTINED for r in results)}"'
    )
    golden = f"held to {held.baseline.slug or 'nothing'} ({held.baseline.full})"
    properties = (
        "    <properties>\n"
        f"      <property name={_quoted('golden')} value={_quoted(golden)}/>\n"
        "    </properties>\n"
    )
    cases = "".join(_case(result, name) for result in results)
    return f"  <testsuite name={_quoted(name)} {counts}>\n{properties}{cases}  </testsuite>\n"


def _case(result: Result, group: str) -> str:
    opened = f"    <testcase classname={_quoted(group)} name={_quoted(result.case)}"
    verdict = result.verdict
    if verdict is Verdict.MATCH and not result.headline:
        return f"{opened}/>\n"
    text = "\n".join(visible(line, 2000) for line in _said(result))
    message = f"message={_quoted(visible(f'{verdict.value}: {result.headline}', 1000))}"
    if verdict is Verdict.QUARANTINED:
        inner = f"      <skipped {message}/>\n"
    elif verdict.passes:
        inner = f"      <system-out>{_text(text)}</system-out>\n"
    else:
        tag = "error" if _error(result) else "failure"
        inner = f"      <{tag} type={_quoted(verdict.value)} {message}>{_text(text)}</{tag}>\n"
    return f"{opened}>\n{inner}    </testcase>\n"


def _said(result: Result) -> list[str]:
    said = [f"{result.verdict.value}: {result.headline}"]
    if result.golden_text != result.candidate_text:
        sides = (("golden", result.golden_text), ("candidate", result.candidate_text))
        said += [f"{name}: {text}" for name, text in sides if text is not None]
    if result.attribution is not None:
        said += attribution_lines(result.attribution)
    return [*said, *map(sentence, result.findings), *(f"note: {note}" for note in result.notes)]


def _store(verification: Verification) -> str:
    broken = [(f"{e.what}: {e.where}", str(e)) for e in verification.damage]
    broken += [("a rule has expired", rule) for rule in verification.expired]
    if not broken:
        return ""
    cases = "".join(
        f'    <testcase classname="goldens" name={_quoted(visible(name, 300))}>\n'
        f"      <error message={_quoted(visible(name, 300))}>"
        f"{_text(chr(10).join(visible(line, 2000) for line in text.split(chr(10))))}</error>\n"
        "    </testcase>\n"
        for name, text in broken
    )
    counts = f'tests="{len(broken)}" errors="{len(broken)}"'
    return f'  <testsuite name="goldens" {counts}>\n{cases}  </testsuite>\n'


def _error(result: Result) -> bool:
    return result.verdict in _ERRORS


def _failed(result: Result) -> bool:
    return not result.verdict.passes and not _error(result)


def _quoted(text: str) -> str:
    return quoteattr(_FORBIDDEN.sub("\ufffd", text))


def _text(text: str) -> str:
    return escape(_FORBIDDEN.sub("\ufffd", text))
