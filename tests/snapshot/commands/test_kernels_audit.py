"""Faults of kernels, injected: which ones the bounds see, and which a relax rule lets through."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from snapshot.commands.kernels_audit import FAULTS, audit_kernels
from snapshot.config import load
from snapshot.kernel_detection import Exposure
from snapshot.kernel_suite import KernelSuite
from snapshot.result import Verdict

CASES = (
    "B3-H8-2-D64-64-S200-float32-sinks",
    "B3-H8-2-D64-64-S200-bfloat16-page4",
    "B3-H8-2-D64-64-S200-float16",
)


@pytest.fixture(scope="module")
def exposures(tmp_path_factory: pytest.TempPathFactory) -> list[Exposure]:
    """By a suite that relaxes one case for one candidate."""
    path = tmp_path_factory.mktemp("audit") / "goldens.toml"
    path.write_text(
        '[suites.k]\nkind = "grouped-decode"\ncandidates = ["triton", "sdpa"]\n'
        f'device = "cpu"\ncases = {list(CASES)}\n'
        '[[suites.k.relax]]\ncase = "*-float16"\nsubject = "sdpa"\nrel_l2 = 0.5\nmax_abs = 1\n'
        'lse_abs = 0.5\nreason = "r"\nissue = "i"\nowner = "@o"\nexpires = 2100-01-01\n'
    )
    return list(audit_kernels(load(path).kernels["k"]))


def test_every_fault_is_caught_wherever_it_has_an_effect(exposures: list[Exposure]) -> None:
    assert len(exposures) == len(FAULTS) * len(CASES)
    assert [e for e in exposures if e.missed] == []
    for e in exposures:
        assert e.caught is e.effect
        if e.caught:
            assert e.verdict is Verdict.WRONG and e.headline.startswith("sequence")
            assert e.rel_l2 is not None


def test_a_fault_without_effect_is_neither_caught_nor_missed(exposures: list[Exposure]) -> None:
    idle = {(e.fault, e.case) for e in exposures if not e.effect}
    assert idle == {("sink counted twice", case) for case in CASES[1:]}


def test_a_relax_rule_that_lets_a_fault_through_is_named(exposures: list[Exposure]) -> None:
    through = [e for e in exposures if e.let_through]
    assert through and {e.case for e in through} == {"B3-H8-2-D64-64-S200-float16"}
    for e in through:
        assert list(e.let_through) == ["sdpa"]
        (rule,) = e.let_through["sdpa"]
        assert rule.endswith("suites.k.relax[0]")


def test_a_fault_that_is_let_through_by_the_suites_own_tolerance_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "goldens.toml"
    path.write_text(
        '[suites.k]\nkind = "grouped-decode"\ncandidates = ["triton"]\ndevice = "cpu"\n'
        f"cases = {[CASES[2]]}\ntolerance = {{ rel_l2 = 0.1, max_abs = 1, lse_abs = 1 }}\n"
    )
    suite: KernelSuite = load(path).kernels["k"]
    gain = {"output gain +2%": FAULTS["output gain +2%"]}
    (found,) = audit_kernels(suite, faults=gain)
    assert found.missed and found.rel_l2 == pytest.approx(0.02, rel=0.05)
    dies = {"dies": "tests.snapshot.fake_kernels:fragile"}
    (other,) = audit_kernels(suite, ["B2-H4-2-D16-16-S9-float16"], faults=dies)
    assert other.caught and other.verdict is Verdict.ERROR and other.rel_l2 is None
