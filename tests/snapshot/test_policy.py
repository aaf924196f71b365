"""Rules loosen what they name, where and until when they say, and nothing else."""

from __future__ import annotations

import datetime

import pytest

from snapshot.errors import ConfigError
from snapshot.policy import (
    Allowance,
    LogprobTolerance,
    Policy,
    Rule,
    TextTolerance,
    Tolerance,
    allowed,
    check_rules,
    strictness,
)
from tests.snapshot.builders import CUDA, DAY, ROCM7, ROCM10, fingerprint, rule

TEXT = Tolerance(text=TextTolerance(0.9))
LOGPROB = Tolerance(logprob=LogprobTolerance(max=0.1))
BOTH = Tolerance(text=TextTolerance(0.8), logprob=LogprobTolerance(rms=0.02))
CASES = ["base/a-11111111", "base/b-22222222", "wizard/a-11111111"]


def strict(policy: Policy, case: str = CASES[0], **where: object) -> object:
    usual: dict[str, object] = {
        "subject": "reference",
        "environment": fingerprint(ROCM10),
        "day": DAY,
    }
    return strictness(policy, case=case, **{**usual, **where})  # type: ignore[arg-type]


def test_strict_is_the_default() -> None:
    assert strict(Policy()).tolerance == Tolerance(None, None)  # type: ignore[attr-defined]


def test_a_rule_loosens_only_what_it_names() -> None:
    """C01: a tolerance belongs to the named row and environment."""
    policy = Policy(relax=(rule("base/*", when={"rocm": ">=10"}, tolerance=TEXT),))
    found = strict(policy)
    assert found.tolerance == TEXT and found.relaxed == policy.relax  # type: ignore[attr-defined]
    for other in (
        strict(policy, "wizard/a-11111111"),
        strict(policy, environment=fingerprint(ROCM7)),
        strict(policy, environment=fingerprint(CUDA)),
        strict(policy, environment=None),
    ):
        assert other.tolerance == Tolerance() and not other.relaxed  # type: ignore[attr-defined]


def test_an_unknown_environment_meets_no_condition_but_none() -> None:
    everywhere, somewhere = rule(), rule(when={"backend": "*"})
    assert everywhere.covers("base/a", "file", None)
    assert not somewhere.covers("base/a", "file", None)


def test_a_rule_may_cover_one_subject() -> None:
    one = rule(subject="vllm")
    assert one.covers("base/a", "vllm", None)
    assert not one.covers("base/a", "reference", None)


def test_globs_over_case_keys_mind_their_case() -> None:
    assert not rule("Base/*").covers("base/a", "reference", None)
    assert rule("*/a-*").covers("wizard/a-11111111", "reference", None)


def test_text_and_logprobs_may_be_loosened_by_two_rules() -> None:
    policy = Policy(relax=(rule(tolerance=TEXT), rule("base/*", tolerance=LOGPROB)))
    found = strict(policy)
    assert found.tolerance == Tolerance(TEXT.text, LOGPROB.logprob)  # type: ignore[attr-defined]
    assert found.relaxed == policy.relax  # type: ignore[attr-defined]


def test_a_rule_replaces_the_suite_s_tolerance_for_its_cases() -> None:
    policy = Policy(tolerance=BOTH, relax=(rule("wizard/*", tolerance=TEXT),))
    assert strict(policy).tolerance == BOTH  # type: ignore[attr-defined]
    loosened = strict(policy, "wizard/a-11111111").tolerance  # type: ignore[attr-defined]
    assert loosened == Tolerance(TEXT.text, BOTH.logprob)


def test_a_rule_holds_until_the_day_it_expires() -> None:
    last = rule(expires=datetime.date(2027, 3, 1), tolerance=TEXT)
    policy = Policy(relax=(last,), quarantine=(last,))
    before = strict(policy, day=datetime.date(2027, 2, 28))
    after = strict(policy, day=datetime.date(2027, 3, 1))
    assert before.tolerance == TEXT and before.quarantine == last  # type: ignore[attr-defined]
    assert after.tolerance == Tolerance() and after.quarantine is None  # type: ignore[attr-defined]
    assert after.expired == (last, last)  # type: ignore[attr-defined]
    assert not before.expired  # type: ignore[attr-defined]


def test_an_expired_rule_elsewhere_is_not_this_case_s() -> None:
    gone = rule(when={"rocm": ">=10"}, expires=DAY)
    here = strict(Policy(quarantine=(gone,)), environment=fingerprint(CUDA))
    assert here.expired == ()  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["relax", "quarantine"])
def test_two_rules_in_force_for_the_same_thing_are_an_error(kind: str) -> None:
    pair = (
        rule("base/*", when={"rocm": ">=10"}, tolerance=TEXT, where="first"),
        rule("*/a-*", when={"arch": "gfx9*"}, tolerance=BOTH, where="second"),
    )
    policy = Policy(**{kind: pair})  # type: ignore[arg-type]
    check_rules(policy, CASES)  # an environment decides whether both hold
    with pytest.raises(ConfigError, match="two rules cover the same") as error:
        strict(policy)
    assert error.value.where == "first and second"
    strict(policy, environment=fingerprint(CUDA))


def overlapping(**other: object) -> tuple[Rule, Rule]:
    return rule(tolerance=TEXT, where="first"), rule(**{"tolerance": TEXT, **other})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pair",
    [
        overlapping(),
        overlapping(case="base/*", when={"rocm": ">=10"}),
        overlapping(subject="vllm"),
        overlapping(tolerance=BOTH),
        overlapping(expires=datetime.date(2020, 1, 1)),
    ],
)
def test_rules_that_surely_overlap_are_found_before_anything_runs(pair: tuple[Rule, Rule]) -> None:
    for rules in (pair, pair[::-1]):
        with pytest.raises(ConfigError, match="two rules cover the same"):
            check_rules(Policy(relax=rules), CASES)


@pytest.mark.parametrize(
    "pair",
    [
        overlapping(tolerance=LOGPROB),
        (rule("base/*", tolerance=TEXT), rule("wizard/*", tolerance=TEXT)),
        (rule(subject="vllm", tolerance=TEXT), rule(subject="sglang", tolerance=TEXT)),
        (rule(when={"rocm": "7"}, tolerance=TEXT), rule(when={"rocm": "10"}, tolerance=TEXT)),
    ],
)
def test_rules_that_need_not_overlap_are_let_be(pair: tuple[Rule, Rule]) -> None:
    check_rules(Policy(relax=pair), CASES)


@pytest.mark.parametrize("kind", ["relax", "quarantine", "allow"])
def test_a_rule_that_matches_no_configured_case_is_an_error(kind: str) -> None:
    entry = rule("bse/*", where="here") if kind != "allow" else Allowance("here", "bse/*", "e", "r")
    with pytest.raises(ConfigError, match="matches no case") as error:
        check_rules(Policy(**{kind: (entry,)}), CASES)  # type: ignore[arg-type]
    assert (error.value.where, error.value.got) == ("here", "bse/*")
    assert CASES[0] in str(error.value.expected)


def test_a_rule_for_another_machine_matches_a_case_all_the_same() -> None:
    check_rules(Policy(quarantine=(rule("base/*", when={"rocm": ">=99"}),)), CASES)


def test_allowances_add_up_case_by_case() -> None:
    entries = (
        Allowance("", "base/*", "empty", ""),
        Allowance("", "base/a-*", "nonfinite", ""),
    )
    assert allowed(entries, "base/a-11111111") == {"empty", "nonfinite"}
    assert allowed(entries, "base/b-22222222") == {"empty"}
    assert allowed(entries, "wizard/a-11111111") == frozenset()


def test_a_rule_says_all_that_a_reader_needs() -> None:
    said = str(rule("base/*"))
    for part in ("base/*", "drifts", "@amd-ci", "https://example.org/1", "2027-03-01"):
        assert part in said
