"""One exit code for a whole run: the strongest reason wins."""

from __future__ import annotations

import itertools

import pytest

from snapshot.errors import DamagedGolden
from snapshot.resolve import Baseline
from snapshot.result import Result, Verdict
from snapshot.verification import Held, Verification

FAILING = {
    Verdict.ERROR,
    Verdict.INVALID,
    Verdict.NONFINITE,
    Verdict.WRONG,
    Verdict.REGRESSION,
    Verdict.UNATTRIBUTED,
    Verdict.FIXED,
}
PASSING = {Verdict.MATCH, Verdict.VARIANT, Verdict.TIE, Verdict.WITHIN, Verdict.QUARANTINED}


def held(*verdicts: Verdict, expired: tuple[str, ...] = ()) -> Held:
    results = tuple(Result("s", "c", "reference", None, None, v, "") for v in verdicts)
    return Held("s", "reference", None, Baseline(None, ""), results, expired)


def code(*verdicts: Verdict) -> int:
    return Verification((held(*verdicts),)).exit_code


def test_every_verdict_has_its_exit_code() -> None:
    for verdict in Verdict:
        expected = 1 if verdict in FAILING else 0
        expected = {Verdict.MISSING: 3, Verdict.DRIFT: 5}.get(verdict, expected)
        assert code(verdict) == expected, verdict
        assert verdict.passes == (verdict in PASSING)


def test_nothing_run_is_not_a_pass() -> None:
    assert Verification().exit_code == 4
    assert Verification((held(),)).exit_code == 4


@pytest.mark.parametrize(
    ("strong", "weak"),
    list(
        itertools.combinations(
            [Verdict.REGRESSION, Verdict.MISSING, Verdict.DRIFT, Verdict.MATCH], 2
        )
    ),
)
def test_the_stronger_of_two_decides_in_any_order_and_across_runs(
    strong: Verdict, weak: Verdict
) -> None:
    assert code(strong, weak) == code(weak, strong) == code(strong)
    assert Verification((held(weak), held(strong))).exit_code == code(strong)


def test_damage_fails_whatever_else_passes() -> None:
    damage = (DamagedGolden("its digest is wrong"),)
    assert Verification((held(Verdict.MATCH),), damage).exit_code == 1
    assert Verification((held(Verdict.MISSING),), damage).exit_code == 1
    assert Verification((), damage).exit_code == 1


def test_an_expired_rule_fails_and_is_told_once() -> None:
    two = Verification((held(Verdict.MATCH, expired=("r",)), held(Verdict.MATCH, expired=("r",))))
    assert two.exit_code == 1
    assert two.expired == ["r"]
