"""One kernel on one case: what is wrong with it is seen, and why where that can be told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from snapshot.errors import ConfigError, GoldensError, RunError
from snapshot.fingerprint import Cpu, Readings
from snapshot.kernel_model import KernelObservation, Masked, NotRun
from snapshot.kernel_verdict import judge_alone, judge_kernel
from snapshot.result import Verdict
from snapshot.runners import decode
from snapshot.runners.decode import Decode
from tests.snapshot.kernel_builders import evidence

FAKE = "tests.snapshot.fake_kernels"
SMALL = "B2-H4-2-D16-16-S8-float16"
RAGGED = "B4-H2-1-D16-16-S17-float16-ragged"  # lengths 17, 0, 1, 8


def run(fake: str, case: str) -> KernelObservation | NotRun | GoldensError:
    try:
        return Decode(f"{FAKE}:{fake}", "cpu", Path()).run(case)
    except GoldensError as error:
        return error


@pytest.mark.parametrize(
    ("fake", "case", "verdict", "said"),
    [
        # C13: coordinates and count; without a golden
        (
            "one_nan",
            "B2-H128-1-D576-512-S5-float16",
            Verdict.NONFINITE,
            "1 non-finite value in out, first at [1, 77, 300]; not from memory it must not read: "
            "the same where output and scratch hold zeros",
        ),
        # C15
        (
            "reads_padding",
            "B3-H4-2-D16-16-S13-bfloat16-nanpad-page4-ragged",
            Verdict.NONFINITE,
            "in out, first at [1, 0, 0]: every element of 8 rows, sequences 1 and 2, heads 0 to 3; "
            "depends on padding: right where page 0, which no sequence owns and padded page tables "
            "show, holds zeros",
        ),
        (
            "reads_whole_pages",
            "B2-H4-2-D16-16-S13-float16-nanpad-page4",
            Verdict.NONFINITE,
            "depends on padding: right where the unused slots of last pages (slot 1 of sequence "
            "0's is the first to show) hold zeros",
        ),
        (
            "reads_whole_pages",
            "B2-H4-2-D16-16-S13-float16-garbagepad-page4",
            Verdict.WRONG,
            "rel-L2",
        ),
        (  # zeros there do not make it right: they are three keys too many
            "takes_last_pages_as_full",
            "B2-H4-2-D16-16-S13-float16-nanpad-page4",
            Verdict.NONFINITE,
            "depends on padding: finite, though wrong (rel-L2 0.206), where the unused slots",
        ),
        (
            "takes_last_pages_as_full",
            "B2-H4-2-D16-16-S13-float16-garbagepad-page4",
            Verdict.WRONG,
            "depends on padding: less wrong (rel-L2 0.206) where the unused slots of last pages",
        ),
        # C17: never written, and stale
        (
            "leaves_empty_rows",
            RAGGED,
            Verdict.NONFINITE,
            "32 non-finite values in out, first at [1, 0, 0]: every element of 2 rows, sequence 1, "
            "without keys, heads 0 and 1; rows are never written: right where the output buffer",
        ),
        (
            "merges_unused_splits",
            SMALL,
            Verdict.NONFINITE,
            "scratch is read that was never written: right where it held zeros; the first split "
            "that shows is 4 of 8",
        ),
        ("stale_empty_rows", RAGGED, Verdict.WRONG, "sequence 1, head 0: rel-L2 28, bound 0.001"),
        (
            "lse_zero_for_empty_rows",
            RAGGED,
            Verdict.WRONG,
            "sequence 1, head 0: the LSE is finite where there is nothing",
        ),
        # C20
        ("off_at_length_8", SMALL, Verdict.WRONG, "sequence 0, head 3: rel-L2"),
        ("writes_its_inputs", SMALL, Verdict.WRONG, "rel-L2"),
        ("fragile", SMALL, Verdict.ERROR, "the kernel raised ValueError: no such tile"),
        ("another_shape", SMALL, Verdict.ERROR, "gave another out"),
        ("another_dtype", SMALL, Verdict.ERROR, "gave another out"),
        ("no_pair", SMALL, Verdict.ERROR, "gave no result"),
    ],
)
def test_a_kernel_that_is_wrong_is_caught(
    fake: str, case: str, verdict: Verdict, said: str
) -> None:
    ran = run(fake, case)
    for result in (
        judge_alone(evidence(ran, case=case, golden=None)),
        judge_kernel(evidence(ran, case=case, golden=None)),
    ):
        assert result is not None and result.verdict is verdict
        assert said in result.headline


@pytest.mark.parametrize(
    ("fake", "nonfinite", "nonzero"),
    [("correct", 0, 0), ("leaves_empty_rows", 32, 0), ("stale_empty_rows", 0, 32)],
)
def test_rows_without_keys_may_be_masked(fake: str, nonfinite: int, nonzero: int) -> None:
    """C17: then what they hold counts for nothing, is told, and is not in the result."""
    kernel = Decode(f"{FAKE}:{fake}", "cpu", Path())
    ran, truth = kernel.run(RAGGED, mask=True), run("correct", RAGGED)
    assert not isinstance(ran, NotRun) and not isinstance(truth, NotRun | GoldensError)
    assert judge_alone(evidence(ran, case=RAGGED, golden=None)) is None
    assert ran.output.masked == Masked((1,), 32, nonfinite, nonzero)
    assert truth.output.masked is None
    assert (ran.output.out, ran.output.lse) == (truth.output.out, truth.output.lse)
    assert (ran.output.errors.compared, truth.output.errors.compared) == (3 * 32, 4 * 32)


def test_rows_with_keys_are_compared_under_the_mask() -> None:
    ran = Decode(f"{FAKE}:wrong_and_leaves_empty_rows", "cpu", Path()).run(RAGGED, mask=True)
    result = judge_alone(evidence(ran, case=RAGGED, golden=None))
    assert result is not None and result.verdict is Verdict.WRONG
    assert result.headline.startswith("sequence 0, head 1: rel-L2 0.02")
    assert "masked by an allow entry" in result.notes[0] and "32 non-finite" in result.notes[0]


def test_nothing_but_masked_rows_is_no_pass() -> None:
    case = "B2-H2-1-D16-16-S0-float16"
    ran = Decode(f"{FAKE}:correct", "cpu", Path()).run(case, mask=True)
    result = judge_alone(evidence(ran, case=case, golden=None))
    assert result is not None and "0 elements compared" in result.headline


@pytest.mark.parametrize(
    "case",
    [
        RAGGED,  # C17: zeros and an LSE of -inf
        "B2-H128-1-D576-512-S13-float16-mla-nanpad-page4",  # C15
        "B2-H4-2-D16-16-S9-float32-e4m3-garbagepad",
        "B2-H4-2-D16-16-S9-bfloat16-sinks-window3",
        "B1-H1-1-D16-16-S0-float16",
    ],
)
def test_a_kernel_that_is_right_is_right(case: str) -> None:
    ran = run("correct", case)
    assert not isinstance(ran, NotRun | GoldensError)
    assert judge_alone(evidence(ran, case=case)) is None
    # One: torch rounds float64 to half precision by way of float32.
    assert ran.output.causes == () and ran.output.errors.ulp_max <= 1


def test_an_exception_says_which_line_of_the_kernel() -> None:
    ran = run("fragile", SMALL)
    assert isinstance(ran, RunError) and str(ran.where).startswith("fake_kernels.py:")


def test_padding_changes_no_bit_of_a_right_kernel() -> None:
    """C15: the poisoned run equals the zero-filled one."""
    kernel = Decode(f"{FAKE}:correct", "cpu", Path())
    plain, nan, garbage = (
        kernel.run(f"B3-H4-2-D16-16-S13-float16{pad}-page4-ragged")
        for pad in ("", "-nanpad", "-garbagepad")
    )
    assert not isinstance(plain, NotRun)
    for other in (nan, garbage):
        assert not isinstance(other, NotRun)
        assert other.output.out == plain.output.out
        assert other.workload != plain.workload  # the poison is part of the input


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_arrays_come_in_their_own_dtype(dtype: str) -> None:
    ran = run("correct", f"B2-H4-2-D16-16-S8-{dtype}")
    assert not isinstance(ran, NotRun | GoldensError)
    assert ran.arrays["out"].dtype.name == ran.output.out.dtype == dtype
    assert ran.arrays["out"].shape == (2, 4, 16) and ran.arrays["lse"].dtype == np.float32


def test_a_case_outside_its_limits_is_not_run() -> None:
    ran = Decode("sdpa", "cpu", Path()).run("B1-H1-1-D16-16-S9-float16-sinks")
    assert ran == NotRun("B1-H1-1-D16-16-S9-float16-sinks", "no sinks")


def test_no_device_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """C37: a GPU build of torch that sees no GPU."""
    gpu = Readings("cuda", "2.11.0+cu130", Cpu("x86_64"), runtimes={"cuda": "13.0"})
    monkeypatch.setattr(decode, "probe", lambda device: gpu)
    ran = Decode("sdpa", "auto", Path()).run(SMALL)
    assert isinstance(ran, NotRun) and ran.reason.startswith("no device")


def test_names_that_are_no_kernels_and_modules_that_do_not_import() -> None:
    with pytest.raises(ConfigError, match="no kernel has this name") as error:
        Decode("nosuch", "cpu", Path())
    assert "triton" in str(error.value.expected)
    kernel = Decode(f"{FAKE}:nosuch", "cpu", Path())
    assert kernel.problem is not None and "AttributeError" in kernel.problem.what


def test_a_device_that_torch_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    if torch.version.cuda or torch.version.hip:
        pytest.skip("this torch is built for a GPU")
    with pytest.raises(RunError, match="cannot run on 'cuda'"):
        Decode("sdpa", "cuda", Path())


def test_a_case_starts_with_nothing_compiled_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is selected never changes a number: torch.compile gives up after eight shapes."""
    import sys
    import types

    resets: list[str] = []
    fake = types.SimpleNamespace(reset=lambda: resets.append("reset"))
    monkeypatch.setitem(sys.modules, "torch._dynamo", fake)
    kernel = Decode(f"{FAKE}:correct", "cpu", Path())
    kernel.run(SMALL)
    kernel.run(RAGGED)
    assert len(resets) == 2
