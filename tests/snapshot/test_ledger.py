"""The ledger of relaxations: what each has covered, and what is proposed instead."""

from __future__ import annotations

import dataclasses
import datetime
import fnmatch
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot.calibrate import Floor
from snapshot.ledger import QUARANTINE, RELAX, TOLERANCE, Entry, ledger
from snapshot.outcomes.status import RecordedStatus, SuiteStatus
from snapshot.policy import LogprobTolerance, Policy, Rule, TextTolerance, Tolerance, strictness
from snapshot.report.status import as_json_text, print_status
from snapshot.result import Observed
from tests.snapshot.builders import CUDA, DAY, ROCM7, ROCM10, fingerprint, rule

SUITE = "s"
CASES = [f"{name}/{i}" for name in ("base", "norwegian", "wizard") for i in range(6)]
LOOSE = Tolerance(logprob=LogprobTolerance(max=0.1))
TEXT = Tolerance(text=TextTolerance(0.9, "unicode-lcs"))
WHERE = rule().where
KNOWN = {i.slug: fingerprint(i) for i in (ROCM7, ROCM10, CUDA)}


def seen(
    case: str = CASES[0],
    most: float | None = 0.0,
    verdict: str = "WITHIN",
    *,
    day: str = "2026-11-01",
    **fields: Any,
) -> Observed:
    """One earlier verification of a case."""
    usual: dict[str, Any] = {
        "day": day,
        "suite": SUITE,
        "subject": "reference",
        "slug": ROCM7.slug,
        "verdict": verdict,
        "strict": verdict in ("MATCH", "VARIANT", "TIE"),
        "rms": None if most is None else most / 2,
        "max": most,
    }
    return Observed(case=case, **{**usual, **fields})


def entries(policy: Policy, *history: Observed, **fields: Any) -> list[Entry]:
    usual: dict[str, Any] = {"since": {}, "floor": Floor("", 0.0, 0.0), "environments": KNOWN}
    return ledger(SUITE, policy, fields.pop("cases", CASES), history, DAY, **{**usual, **fields})


def relaxed(one: Rule, *history: Observed, suite: Tolerance | None = None, **fields: Any) -> Entry:
    """The entry of one relax rule."""
    found = entries(Policy(tolerance=suite or Tolerance(), relax=(one,)), *history, **fields)
    return found[-1]


def proposed(entry: Entry) -> list[str]:
    return [case for advice in entry.advice for case in re.findall(r'case = "([^"]+)"', advice)]


# -------------------------------------------------------------------------------- C21

SHAPES = [f"B1-H8-D64-S{100 * i}-float16" for i in range(1, 11)]
STRICT = Tolerance(logprob=LogprobTolerance(max=3e-4))
RAISED = rule("*", tolerance=LOOSE)


def runs_of_c21() -> list[Observed]:
    """A hundred runs of the grid; one shape's numbers are larger than all others'."""
    values = [0.000488] * 5 + [0.042] + [0.000244] * 4
    wide = [seen(SHAPES[0], value) for value in values]
    return wide + [seen(shape, 0.000244) for shape in SHAPES[1:] for _ in range(10)]


def test_a_limit_raised_for_everyone_is_flagged_with_what_was_observed() -> None:
    """C21"""
    found = relaxed(RAISED, *runs_of_c21(), suite=STRICT, cases=SHAPES)
    assert (found.covers, found.observed, found.needed) == (10, 100, 6)
    assert found.worst == "logprob max up to 0.042"
    assert found.advice == (
        f'it covers 10 cases and 1 needed it: narrow it to case = "{SHAPES[0]}"',
        f"only {ROCM7.slug} needed it: say so with when",
        "logprob max: limit raised 333x, from 0.0003 to 0.1, "
        "99% of 100 observations at or below 0.000488",
    )


def test_under_the_narrowed_rule_the_other_shapes_keep_their_limit() -> None:
    """C21"""
    (shape,) = proposed(relaxed(RAISED, *runs_of_c21(), suite=STRICT, cases=SHAPES))
    policy = Policy(tolerance=STRICT, relax=(dataclasses.replace(RAISED, case=shape),))
    here = fingerprint()
    bounds = {
        case: strictness(policy, case=case, subject="reference", environment=here, day=DAY)
        for case in SHAPES
    }
    assert bounds.pop(SHAPES[0]).tolerance == LOOSE
    assert all(strict.tolerance == STRICT for strict in bounds.values())


def test_a_limit_raised_over_the_measured_noise_is_flagged_as_well() -> None:
    """C21, where the suite had no bound of its own."""
    found = relaxed(RAISED, *runs_of_c21(), cases=SHAPES, floor=Floor("", 1e-4, 3e-4))
    assert (
        "logprob max: limit raised 333x, from 0.0003 to 0.1, 99% of 100 observations "
        in (found.advice[-1])
    )


def test_a_suite_s_own_tolerance_loosens_everyone_without_a_word() -> None:
    """C21: a reason, an owner, a scope and an expiry are required, which only a rule has."""
    (found,) = entries(
        Policy(tolerance=LOOSE), *runs_of_c21(), cases=SHAPES, floor=Floor("", 1e-4, 3e-4)
    )
    assert (found.kind, found.rule, found.days_left, found.covers) == (TOLERANCE, None, None, 10)
    assert "without reason, owner or expiry" in found.advice[0]
    assert "limit raised 333x" in found.advice[1]
    assert "99% of 100 observations at or below 0.000488" in found.advice[1]
    assert found.worst == "logprob max up to 0.042"


@pytest.mark.parametrize(
    ("before", "said"), [(0.08, "1.2x, from 0.08"), (0.03, "3.3x"), (1e-4, "1000x")]
)
def test_how_many_times_is_never_rounded_to_nothing(before: float, said: str) -> None:
    suite = Tolerance(logprob=LogprobTolerance(max=before))
    assert f"limit raised {said}" in relaxed(RAISED, suite=suite).advice[0]


def test_each_bound_is_weighed_against_noise_of_its_own_kind() -> None:
    both = rule(tolerance=Tolerance(logprob=LogprobTolerance(max=0.3, rms=0.3)))
    most, rms = relaxed(both, floor=Floor("", rms=0.01, max=0.1)).advice
    assert most == "logprob max: limit raised 3x, from 0.1 to 0.3"
    assert rms == "logprob rms: limit raised 30x, from 0.01 to 0.3"


def test_a_limit_that_is_not_raised_or_used_up_is_not_flagged() -> None:
    assert not relaxed(RAISED, suite=LOOSE).advice
    assert not any(
        "limit" in a for a in relaxed(RAISED, seen(most=0.1), floor=Floor("", 0.1, 0.1)).advice
    )


# ------------------------------------------------------------------------- not needed


def test_a_rule_that_nothing_needed_says_what_would_still_have_passed() -> None:
    history = [
        seen(CASES[0], 0.01, "MATCH", day="2026-11-20"),
        seen(CASES[1], 0.03, "VARIANT", day="2026-11-03"),
        seen(CASES[2], 0.02, "TIE", day="2026-11-09"),
    ]
    found = relaxed(rule("base/*", tolerance=LOOSE), *history)
    assert (found.observed, found.needed) == (3, 0)
    assert found.advice[0] == (
        "not needed in 3 observations from 2026-11-03 to 2026-11-20: remove it; "
        "the tightest that would still have passed: logprob max up to 0.03"
    )


def test_a_rule_of_text_says_the_lowest_score() -> None:
    history = [
        seen(verdict="WITHIN", scores={"unicode-lcs": s, "other": 0.1}) for s in (0.95, 0.92)
    ]
    found = relaxed(rule("base/*", tolerance=TEXT), *history)
    assert found.worst == "unicode-lcs ROUGE-L down to 0.9200"
    assert found.needed == 2


def test_without_observations_nothing_is_advised() -> None:
    assert relaxed(rule("base/*", tolerance=LOOSE)).advice == ()


@pytest.mark.parametrize(
    ("entry", "needed"),
    [
        (seen(most=2e-4), False),  # the suite's own tolerance let it pass
        (seen(most=4e-4), True),
        (seen(most=None), False),
        (seen(most=2e-4, verdict="REGRESSION"), True),
        (seen(most=2e-4, verdict="MATCH"), False),
        (seen(most=2e-4, scores={"unicode-lcs": 0.5}), False),  # not what this rule is about
    ],
)
def test_what_passes_by_the_suite_s_tolerance_needed_no_rule(entry: Observed, needed: bool) -> None:
    assert bool(relaxed(rule(tolerance=LOOSE), entry, suite=STRICT).needed) == needed


@pytest.mark.parametrize(
    ("scores", "suite", "needed"),
    [
        ({}, None, False),
        ({"unicode-lcs": 0.96}, None, True),
        ({"unicode-lcs": 0.96}, TextTolerance(0.95, "unicode-lcs"), False),
        ({"unicode-lcs": 0.94}, TextTolerance(0.95, "unicode-lcs"), True),
        ({"unicode-lcs": 0.96}, TextTolerance(0.95, "rouge-score"), True),
    ],
)
def test_so_it_is_with_texts(
    scores: dict[str, float], suite: TextTolerance | None, needed: bool
) -> None:
    found = relaxed(rule(tolerance=TEXT), seen(scores=scores), suite=Tolerance(text=suite))
    assert bool(found.needed) == needed


def test_a_kernel_s_rule_is_needed_by_what_passed_by_it() -> None:
    """Its bounds are on errors, of which history keeps nothing but whether one was relaxed."""
    history = [seen(most=None), seen(most=None, strict=True)]
    assert relaxed(rule(), *history).needed == 1


@pytest.mark.parametrize(
    ("verdict", "needed"),
    [("QUARANTINED", 1), ("REGRESSION", 1), ("FIXED", 0), ("MATCH", 0), ("WITHIN", 0)],
)
def test_a_quarantine_is_needed_by_what_fails_without_it(verdict: str, needed: int) -> None:
    (found,) = entries(Policy(quarantine=(rule(),)), seen(verdict=verdict))
    assert (found.kind, found.observed, found.needed) == (QUARANTINE, 1, needed)
    assert ("not needed" in "".join(found.advice)) == (not needed)
    assert found.worst == ""


# -------------------------------------------------------------------------- whose case


def test_only_what_a_rule_is_about_counts() -> None:
    history = [
        seen(CASES[0], 0.05),
        seen(CASES[0], 0.06, suite="another"),
        seen(CASES[6], 0.07),
        seen("base/no-longer-configured", 0.08),
        seen(CASES[1], 0.09, subject="vllm"),
    ]
    found = relaxed(rule("base/*", subject="reference", tolerance=LOOSE), *history)
    assert (found.covers, found.observed, found.worst) == (6, 1, "logprob max up to 0.05")


def test_runs_elsewhere_say_nothing_of_a_rule_for_one_environment() -> None:
    """A machine of another kind must not advise to remove what it never needed."""
    rocm10 = rule("base/*", when={"rocm": ">=10"}, tolerance=LOOSE)
    elsewhere = [seen(verdict="MATCH", slug=i.slug) for i in (CUDA, ROCM7)]
    assert relaxed(rocm10, *elsewhere).observed == 0
    assert relaxed(rocm10, *elsewhere).advice == ()
    there = relaxed(rocm10, *elsewhere, seen(most=0.05, slug=ROCM10.slug))
    assert (there.observed, there.needed) == (1, 1)


def test_runs_in_an_unknown_environment_speak_only_for_a_rule() -> None:
    rocm10 = rule("base/*", when={"rocm": ">=10"}, tolerance=LOOSE)
    history = [seen(most=0.05, slug="new"), seen(verdict="MATCH", slug="new")]
    assert relaxed(rocm10, *history).observed == 1
    assert relaxed(rule("base/*", tolerance=LOOSE), *history).observed == 2


def test_rules_come_with_their_days() -> None:
    late = rule(expires=DAY - datetime.timedelta(3), where="a", tolerance=LOOSE)
    live = rule(expires=DAY + datetime.timedelta(90), where="b", tolerance=LOOSE)
    policy = Policy(relax=(late, live), quarantine=(live,))
    found = entries(policy, since={"b": DAY - datetime.timedelta(14)})
    assert [(e.kind, e.days_left, e.age(DAY)) for e in found] == [
        (RELAX, -3, None),
        (RELAX, 90, 14),
        (QUARANTINE, 90, 14),
    ]
    before = DAY - datetime.timedelta(20)  # --as-of a day on which it was not yet there
    assert [e.age(before) for e in found] == [None, None, None]


# -------------------------------------------------------------------------- narrowing


def test_a_rule_broader_than_what_needed_it_gets_a_narrower_one() -> None:
    one = relaxed(rule(tolerance=LOOSE), seen(CASES[0], 0.05), seen(CASES[7], 0.0, "MATCH"))
    assert proposed(one) == [CASES[0]]
    two = relaxed(rule(tolerance=LOOSE), seen(CASES[0], 0.05), seen(CASES[7], 0.05))
    assert proposed(two) == [CASES[0], CASES[7]]
    many = relaxed(rule(tolerance=LOOSE), *(seen(case, 0.05) for case in CASES[:5]))
    assert proposed(many) == ["base/*"]


def test_a_rule_that_every_case_needed_gets_none() -> None:
    exact = relaxed(rule("base/*", tolerance=LOOSE), *(seen(case, 0.05) for case in CASES[:6]))
    assert proposed(exact) == []
    spread = relaxed(rule(tolerance=LOOSE), *(seen(case, 0.05) for case in CASES[3:9]))
    assert proposed(spread) == []


def test_a_proposal_is_never_broader_than_the_rule() -> None:
    cases = [f"base/a{i}" for i in range(6)] + [f"base/b{i}" for i in range(6)]
    found = relaxed(
        rule("base/a*", tolerance=LOOSE), *(seen(case, 0.05) for case in cases[:5]), cases=cases
    )
    assert proposed(found) == []


def test_another_spelling_of_the_same_cases_is_no_proposal() -> None:
    found = relaxed(rule("base/?", tolerance=LOOSE), *(seen(case, 0.05) for case in CASES[:5]))
    assert proposed(found) == []


def test_a_condition_is_proposed_where_one_environment_needed_it() -> None:
    only = f"only {ROCM10.slug} needed it: say so with when"
    there = seen(most=0.05, slug=ROCM10.slug)
    assert only in relaxed(rule(tolerance=LOOSE), there, seen(verdict="MATCH")).advice
    assert only not in relaxed(rule(when={"rocm": "10"}, tolerance=LOOSE), there).advice
    assert not any(
        "say so" in a for a in relaxed(rule(tolerance=LOOSE), there, seen(most=1)).advice
    )


OBSERVATIONS = st.lists(
    st.builds(
        seen,
        st.sampled_from([*CASES, "base/gone", "wizard/gone"]),
        st.none() | st.floats(0, 0.1),
        st.sampled_from(["MATCH", "WITHIN", "REGRESSION", "QUARANTINED", "FIXED", "DRIFT"]),
        slug=st.sampled_from([ROCM7.slug, ROCM10.slug, "unknown"]),
    ),
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(OBSERVATIONS, st.sampled_from(["*", "base/*", "*/1", "base/[0-3]"]), st.booleans())
def test_a_proposal_still_covers_every_case_that_needed_the_rule(
    history: list[Observed], glob: str, quarantine: bool
) -> None:
    one = rule(glob, tolerance=LOOSE)
    policy = Policy(quarantine=(one,)) if quarantine else Policy(relax=(one,))
    (found,) = entries(policy, *history)
    globs = proposed(found)
    if not globs:
        return
    passes = {"MATCH", "WITHIN", "FIXED"} if quarantine else {"MATCH"}
    needed = {
        e.case
        for e in history
        if e.verdict not in passes
        and not (e.verdict == "WITHIN" and not e.max)
        and fnmatch.fnmatchcase(e.case, glob)
        and e.case in CASES
    }
    covered = {case for case in CASES for g in globs if fnmatch.fnmatchcase(case, g)}
    assert needed <= covered
    assert all(any(fnmatch.fnmatchcase(case, g) for case in CASES) for g in globs)
    assert len(covered) < found.covers
    assert covered <= {case for case in CASES if fnmatch.fnmatchcase(case, glob)}


# ----------------------------------------------------------------------------- report


def status_of(*found: Entry) -> SuiteStatus:
    recorded = RecordedStatus(
        ROCM7.slug, 18, 4, ("a", "b", "c", "d"), ("old",), ("reference",), 2.5
    )
    return SuiteStatus(SUITE, tuple(CASES), (recorded,), found, {"mi300": "no golden"})


def test_the_ledger_is_told_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    """C21: reason, owner, scope, age, days left, and the margins observed."""
    policy = Policy(
        tolerance=STRICT,
        relax=(RAISED,),
        quarantine=(rule("base/*", expires=DAY, where="q"),),
    )
    found = entries(policy, *runs_of_c21(), cases=SHAPES, since={WHERE: datetime.date(2026, 11, 1)})
    print_status([status_of(*found)], DAY)
    out = capsys.readouterr().out
    for part in (
        "s: 18 cases",
        f"  {ROCM7.slug}: 4 of 18 recorded; missing a, b, c and 1 more; no longer configured old; "
        "adapter effect 2.5 times the batch drift, underpowered",
        "  environment mi300: no golden",
        "  tolerance *: covers 10 cases; 100 observations, 100 needed it, logprob max up to 0.042",
        "  relax *: drifts by one word; @amd-ci, https://example.org/1; 90 days left; "
        "30 days old; covers 10 cases; 100 observations, 6 needed it, logprob max up to 0.042",
        "    logprob max: limit raised 333x",
        "  quarantine base/*: drifts by one word; @amd-ci, https://example.org/1; "
        "expired on 2026-12-01; not committed yet; covers 0 cases; 0 observations",
    ):
        assert part in out, part


def test_a_reason_is_text_and_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    odd = dataclasses.replace(RAISED, reason="[bold]x[/bold] :fire: \x1b[2J")
    print_status([status_of(*entries(Policy(relax=(odd,))))], DAY)
    out = capsys.readouterr().out
    assert "[bold]x[/bold] :fire:" in out and "\x1b" not in out


def test_the_ledger_as_json() -> None:
    policy = Policy(tolerance=STRICT, relax=(rule(when={"rocm": ">=10"}, tolerance=LOOSE),))
    found = entries(policy, *runs_of_c21(), cases=SHAPES)
    (suite,) = json.loads(as_json_text([status_of(*found)]))
    assert suite["rules"][1]["rule"]["expires"] == "2027-03-01"
    assert suite["rules"][1]["rule"]["when"]["terms"] == {"rocm": ">=10"}
    assert suite["rules"][0]["rule"] is None
