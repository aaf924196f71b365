"""Every verdict on kernels, in its order."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from snapshot.errors import DamagedGolden, RunError
from snapshot.kernel_policy import Bounds, KernelRule, KernelStrictness, within
from snapshot.kernel_verdict import judge_alone, judge_kernel
from snapshot.model import Fingerprint, RecordedFingerprint
from snapshot.result import Verdict
from tests.snapshot.builders import rule
from tests.snapshot.kernel_builders import HERE, SUITE, evidence, golden, observe, right, truth

INPUTS = {"inputs": "sha256:" + "1" * 64}
BOTH = Bounds(rel_l2=0.01, max_abs=0.1)


def relaxing(bounds: Bounds, where: str = rule().where) -> KernelRule:
    return KernelRule(**vars(rule(where=where)), bounds=bounds)


def test_error_of_the_run_and_of_the_golden() -> None:
    died = judge_kernel(evidence(RunError("the kernel's process died with signal 11")))
    assert died.verdict is Verdict.ERROR and "signal 11" in died.headline
    damaged = judge_kernel(evidence(golden=DamagedGolden("its digest is wrong")))
    assert damaged.verdict is Verdict.ERROR and "digest is wrong" in damaged.headline


def test_other_inputs_are_invalid_whatever_came_out() -> None:
    out = right()
    out[0, 0, 0] = np.nan
    result = judge_kernel(evidence(observe(out, workload=INPUTS)))
    assert result.verdict is Verdict.INVALID and "inputs changed" in result.headline


def test_one_nan_is_named_with_coordinates_and_needs_no_golden() -> None:
    """C13: nothing else is asked, and the case alone fails."""
    want = truth((2, 128, 512))
    out = want.astype(np.float16)
    out[1, 77, 300] = np.nan
    result = judge_kernel(evidence(observe(out, causes=("depends on padding",)), golden=None))
    assert result.verdict is Verdict.NONFINITE
    assert result.headline == (
        "1 non-finite value in out, first at [1, 77, 300]; depends on padding"
    )
    (finding,) = result.findings
    assert (finding.where, finding.got) == ("sequence 1, head 77, element 300", "nan")


NAN = right()
NAN[0, 0, 3] = np.nan


@pytest.mark.parametrize(
    ("golden_out", "out", "masked", "verdict"),
    [
        (NAN, NAN, False, Verdict.NONFINITE),  # (b): equal NaN is no excuse
        (NAN, NAN, True, Verdict.MATCH),  # but under the mask
        (NAN, right(), False, Verdict.NONFINITE),  # (c)
        (NAN, right(), True, Verdict.NONFINITE),
        (right(), NAN, True, Verdict.NONFINITE),
    ],
)
def test_nan_in_the_golden(
    golden_out: np.ndarray, out: np.ndarray, masked: bool, verdict: Verdict
) -> None:
    """C23"""
    allowed = frozenset({"nonfinite"} if masked else ())
    result = judge_kernel(
        evidence(observe(out), golden=golden(observe(golden_out)), allowed=allowed)
    )
    assert result.verdict is verdict
    if verdict is Verdict.MATCH:
        assert any("masked" in note for note in result.notes)


def test_numeric_mode_is_noted() -> None:
    """C23 (d)"""
    then = RecordedFingerprint(SUITE, Fingerprint(HERE, {"tf32_matmul": True}))
    result = judge_kernel(evidence(recorded=then, here=Fingerprint(HERE, {"tf32_matmul": False})))
    assert result.verdict is Verdict.MATCH
    assert result.notes[0] == "numeric mode differs from recording: TF32 on -> off"


def test_wrong_names_the_row_its_errors_and_the_bound_and_needs_no_golden() -> None:
    """C20"""
    out = right("bfloat16", (2, 16, 64))
    out[1, 5] += np.float32(0.13).astype(out.dtype)
    result = judge_kernel(evidence(observe(out), golden=None))
    assert result.verdict is Verdict.WRONG
    assert result.headline.startswith("sequence 1, head 5: rel-L2 0.0")
    assert "bound 0.005" in result.headline and "ulp off" in result.headline


@pytest.mark.parametrize("fault", [0.0, 7.0])
def test_a_row_that_should_be_zero(fault: float) -> None:
    """C17: its error is absolute."""
    from snapshot.metrics.tensors import errors

    want = truth()
    want[1] = 0
    out = want.astype(np.float16)
    out[1] = fault
    found = observe()
    found = dataclasses.replace(
        found, output=dataclasses.replace(found.output, errors=errors(out, want))
    )
    assert within(found.output, Bounds()) is (fault == 0)


def test_an_lse_that_is_wrong_or_gone() -> None:
    lse = np.zeros((2, 4), np.float32)
    off = lse.copy()
    off[1, 3] = np.log(2)  # base 2
    result = judge_kernel(evidence(observe(lse=off), golden=golden(observe(lse=lse))))
    assert result.verdict is Verdict.WRONG
    assert "sequence 1, head 3: LSE 0.693" in result.headline
    gone = judge_kernel(evidence(observe(), golden=golden(observe(lse=lse))))
    assert gone.verdict is Verdict.WRONG and "no LSE is given any more" in gone.headline
    empty = np.full((2, 4), -np.inf)
    finite = judge_kernel(evidence(observe(lse=lse, lse_truth=empty), golden=None))
    assert finite.verdict is Verdict.WRONG and finite.computed is not None
    assert finite.computed.lse_error is not None and math.isinf(finite.computed.lse_error.abs)


def test_an_element_far_beyond_the_baselines_is_wrong_in_a_row_that_is_not() -> None:
    want = truth((1, 1, 512))
    out = want.astype(np.float16)
    out[0, 0, 9] += np.float16(0.02)
    result = judge_kernel(evidence(observe(out), golden=None))
    assert result.verdict is Verdict.WRONG and "where plain torch is at most" in result.headline


def test_nothing_compared_is_never_right() -> None:
    """C33"""
    result = judge_kernel(evidence(observe(right(shape=(2, 0, 64))), golden=None))
    assert result.verdict is Verdict.WRONG and result.headline.startswith("0 elements compared")


def test_missing_says_that_it_is_right() -> None:
    result = judge_kernel(evidence(golden=None, looked_for="looked for x; nothing yet"))
    assert result.verdict is Verdict.MISSING
    assert result.headline == "right, and no golden: looked for x; nothing yet"


@pytest.mark.parametrize("budget", [1 << 20, 16])
def test_match_needs_the_goldens_bits_and_is_decided_by_the_digest(budget: int) -> None:
    result = judge_kernel(evidence(golden=golden(budget=budget)))
    assert result.verdict is Verdict.MATCH and result.verdict.passes


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (1 << 20, "in 1 of 64 elements, 1 of 8 rows, up to 1 ulp"),
        (16, "in 1 of 8 rows, up to 1 ulp in the worst of 1 sampled row"),
    ],
)
def test_within_says_what_moved_and_both_errors_now_and_then(budget: int, said: str) -> None:
    out = right()
    out.view(np.int16)[0, 0, 0] += 1
    result = judge_kernel(evidence(observe(out), golden=golden(budget=budget)))
    assert result.verdict is Verdict.WITHIN and result.verdict.passes
    assert said in result.headline and "recorded, bound 0.001" in result.headline
    assert "plain torch" in result.headline
    assert result.moved is not None and result.recorded is not None


def test_a_grown_error_is_named_below_the_bound() -> None:
    out, usual = right(), right()
    out.view(np.int16)[1] += 1
    usual.view(np.int16)[0] += 4
    result = judge_kernel(evidence(observe(out, baseline=usual)))
    assert result.verdict is Verdict.WITHIN
    assert any(f.check == "grown" for f in result.findings) and "error grown" in result.headline
    # The other way round, it shrank.
    shrank = judge_kernel(evidence(golden=golden(observe(out))))
    assert shrank.verdict is Verdict.WITHIN and "error not grown" in shrank.headline


def test_an_lse_alone_can_move() -> None:
    lse = np.zeros((2, 4), np.float32)
    nudged = np.nextafter(lse, np.float32(1))
    result = judge_kernel(evidence(observe(lse=nudged), golden=golden(observe(lse=lse))))
    assert result.verdict is Verdict.WITHIN and "of the LSE alone" in result.headline


def test_a_golden_of_another_dtype_does_not_fit() -> None:
    result = judge_kernel(evidence(golden=golden(observe(right("bfloat16")))))
    assert result.verdict is Verdict.ERROR and "does not fit" in result.headline


def test_a_relaxed_bound_passes_and_is_shown() -> None:
    out = right()
    out[1] *= np.float16(1.004)
    assert judge_kernel(evidence(observe(out))).verdict is Verdict.WRONG
    strict = KernelStrictness(BOTH, relaxed=(relaxing(BOTH),))
    result = judge_kernel(evidence(observe(out), strictness=strict))
    assert result.verdict is Verdict.WITHIN and "bound 0.01" in result.headline
    assert result.relaxed == (rule().where,) and "relaxed by" in result.headline


def test_only_the_rules_that_were_needed_are_named() -> None:
    out = right()
    out[1] *= np.float16(1.004)
    rules = (relaxing(Bounds(rel_l2=0.01), "rel"), relaxing(Bounds(lse_abs=1.0), "lse"))
    strict = KernelStrictness(Bounds(rel_l2=0.01, max_abs=0.1, lse_abs=1.0), relaxed=rules)
    strict = dataclasses.replace(strict, suite=Bounds(max_abs=0.1))
    result = judge_kernel(evidence(observe(out), strictness=strict))
    assert result.verdict is Verdict.WITHIN and result.relaxed == ("rel",)


def test_a_rule_is_not_needed_for_what_an_allowance_lets_pass() -> None:
    strict = KernelStrictness(BOTH, relaxed=(relaxing(BOTH),))
    allowed = evidence(
        observe(NAN),
        golden=golden(observe(NAN)),
        strictness=strict,
        allowed=frozenset({"nonfinite"}),
    )
    result = judge_kernel(allowed)
    assert result.verdict is Verdict.MATCH and not result.relaxed


def test_quarantined_and_fixed() -> None:
    strict = KernelStrictness(quarantine=rule())
    held = judge_kernel(evidence(observe(NAN), strictness=strict))
    assert held.verdict is Verdict.QUARANTINED and held.headline.startswith("NONFINITE: 1 non-")
    fixed = judge_kernel(evidence(strictness=strict))
    assert fixed.verdict is Verdict.FIXED and not fixed.verdict.passes
    unrecorded = judge_kernel(evidence(golden=None, strictness=strict))
    assert unrecorded.verdict is Verdict.FIXED and "sound now (MISSING)" in unrecorded.headline


def test_an_expired_rule_is_noted() -> None:
    strict = KernelStrictness(expired=(rule(),))
    assert "rule expired on" in judge_kernel(evidence(strictness=strict)).notes[0]


def test_alone_asks_only_whether_it_is_right() -> None:
    assert judge_alone(evidence(golden=None)) is None
    out = right()
    out.view(np.int16)[0, 0, 0] += 1
    assert judge_alone(evidence(observe(out))) is None
    found = judge_alone(evidence(observe(NAN)))
    assert found is not None and found.verdict is Verdict.NONFINITE
    failed = judge_alone(evidence(RunError("it raised")))
    assert failed is not None and failed.verdict is Verdict.ERROR


def test_what_is_remembered_of_a_kernel_tells_rules_from_bits(tmp_path: Path) -> None:
    """Bits that moved need no rule; an error that only a relaxed bound lets pass does."""
    from snapshot.config import load
    from snapshot.history import recall, remember
    from snapshot.resolve import Baseline
    from snapshot.verification import Held, Verification

    nudged, off = right(), right()
    nudged.view(np.int16)[0, 0, 0] += 1
    off[1] *= np.float16(1.004)
    strict = KernelStrictness(BOTH, relaxed=(relaxing(BOTH),))
    results = (
        judge_kernel(evidence(observe(nudged), strictness=strict)),
        judge_kernel(evidence(observe(off), strictness=strict)),
    )
    assert [result.relaxed for result in results] == [(), (rule().where,)]
    (tmp_path / "goldens.toml").write_text(
        '[suites.k]\nkind = "grouped-decode"\ncandidates = ["triton"]\n'
    )
    config = load(tmp_path / "goldens.toml")
    remember(config, Verification((Held(SUITE, "triton", None, Baseline(None, ""), results),)))
    assert [entry.strict for entry in recall(config)] == [True, False]
