"""What an environment is called, and how two differ."""

from __future__ import annotations

import dataclasses

import pytest

from snapshot.fingerprint import (
    Cpu,
    cpu_arch,
    differences,
    numeric_mode_warning,
    onednn_isa,
    recordable,
)
from snapshot.model import Fingerprint, Identity, Json

MIG = "MIG-377e0049-554c-540b-93c6-d0976f8426cb"


def compare(recorded: Fingerprint, here: Fingerprint) -> list[str]:
    return [str(difference) for difference in differences(recorded, here)]


def test_only_harmless_environment_values_are_kept() -> None:
    """C39: values that could name a place, a board or a machine are not written."""
    assert recordable(
        {
            "ATEN_CPU_CAPABILITY": "avx2",
            "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
            "MKL_CBWR": "AVX2,STRICT",
            "PYTORCH_TUNABLEOP_ENABLED": "1",
            "PYTORCH_TUNABLEOP_FILENAME": "some-host.csv",
            "HIPBLASLT_TENSILE_LIBPATH": "/opt/x",
            "TRITON_INTERPRET": "1",
            "MIOPEN_FIND_MODE": "/home/somebody",
            "MKL_VERBOSE": "1",
            "ONEDNN_MAX_CPU_ISA": "",
            "HOSTNAME": "some-host",
            "OMP_NUM_THREADS": "2",
            "CUDA_VISIBLE_DEVICES": MIG,
        }
    ) == {
        "ATEN_CPU_CAPABILITY": "avx2",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "MIOPEN_FIND_MODE": "(set)",
        "MKL_CBWR": "AVX2,STRICT",
        "PYTORCH_TUNABLEOP_ENABLED": "1",
        "TRITON_INTERPRET": "1",
    }


# ------------------------------------------------------------------- processors

SPR = frozenset(
    {"sse41", "avx", "avx2", "avxvnni", "avx512f", "avx512bw", "avx512vl", "avx512dq"}
    | {"avx512vnni", "avx512bf16", "avx512fp16", "amxtile", "amxint8", "amxbf16"}
)


@pytest.mark.parametrize(
    ("features", "limit", "isa"),
    [
        (SPR, None, "avx512_core_amx"),
        (SPR, "DEFAULT", "avx512_core_amx"),
        (SPR, "AVX2", "avx2"),
        (SPR, "avx2_vnni", "avx2_vnni"),
        (SPR, "AVX512_CORE", "avx512_core"),
        (SPR, "AVX512_CORE_BF16", "avx512_core_bf16"),
        (SPR, "AVX10_1_512", "avx512_core_fp16"),
        (SPR, "AVX512_CORE_AMX_FP16", "avx512_core_amx"),
        (SPR, "BOGUS", "avx512_core_amx"),
        (SPR | {"amxfp16"}, None, "avx512_core_amx_fp16"),
        (SPR - {"avx512fp16"}, None, "avx512_core_bf16"),
        (SPR - {"avx512bf16"}, None, "avx512_core_vnni"),
        (SPR - {"avx512vl"}, None, "avx2_vnni"),
        (frozenset({"sse41", "avx", "avx2", "avxvnni"}), "AVX512_CORE", "avx2"),
        (frozenset({"sse41"}), None, "sse41"),
        (frozenset(), None, "none"),
    ],
)
def test_onednn_ladder(features: frozenset[str], limit: str | None, isa: str) -> None:
    """The highest set within both the hardware and the limit, as oneDNN nests them."""
    assert onednn_isa(features, limit) == isa


def test_other_processors_get_safe_names() -> None:
    arm = Cpu("aarch64", capability="SVE256", features=frozenset({"bf16", "i8mm", "sve"}))
    arm = dataclasses.replace(arm, threads=64)
    assert cpu_arch(arm) == "sve256-aarch64_bf16_i8mm_sve-t64"
    capped = dataclasses.replace(arm, isa_limit="SVE_128")
    assert cpu_arch(capped) == "sve256-aarch64_bf16_i8mm_sve_max_sve_128-t64"
    apple = Cpu("arm64", "darwin", "Apple M2", "DEFAULT", frozenset({"neon", "bf16"}), 8)
    assert cpu_arch(apple) == "default-apple_bf16-t8"


# ------------------------------------------------------------------- comparison


def recorded(torch: str = "2.13", **provenance: Json) -> Fingerprint:
    identity = Identity("cuda", "sm_90", "cuda13.0", torch, "float32", 1)
    return Fingerprint(identity, provenance)


def test_compare_names_what_changed() -> None:
    then = recorded(transformers="5.23.0", torch="2.13.0", other_devices=["L4", "T4"])
    now = recorded(transformers="5.24.0", torch="2.13.1", notes=["not compared"])
    assert compare(then, now) == [
        "torch 2.13.0 -> 2.13.1",
        "other devices L4, T4 -> not recorded",
        "transformers 5.23.0 -> 5.24.0",
    ]
    assert numeric_mode_warning(then, now) is None
    assert compare(then, then) == []


def test_identity_comes_first() -> None:
    then, now = recorded(peft="0.20"), recorded("2.14", peft="0.21")
    now = dataclasses.replace(now, identity=now.identity.at(3))
    assert compare(then, now) == ["torch 2.13 -> 2.14", "batch size 1 -> 3", "peft 0.20 -> 0.21"]


@pytest.mark.parametrize(
    ("name", "then", "now", "change"),
    [
        ("tf32_matmul", True, False, "TF32 on -> off"),
        ("attention", "sdpa", "eager", "attention implementation sdpa -> eager"),
        ("deterministic_algorithms", False, True, "deterministic algorithms off -> on"),
        ("threads", 2, 1, "threads 2 -> 1"),
        ("adapter_dtype", "float32", "bfloat16", "adapter dtype float32 -> bfloat16"),
        (
            "bf16_reduced_precision_reduction",
            True,
            False,
            "bfloat16 reduced-precision reduction on -> off",
        ),
        ("environment", {}, {"MKL_CBWR": "COMPATIBLE"}, "MKL_CBWR unset -> COMPATIBLE"),
    ],
)
def test_numeric_mode(name: str, then: Json, now: Json, change: str) -> None:
    """C23(d): recorded under another numeric mode is said in as many words."""
    old, new = recorded(**{name: then}), recorded(**{name: now})
    assert compare(old, new) == [f"numeric mode: {change}"]
    assert numeric_mode_warning(old, new) == f"numeric mode differs from recording: {change}"


def test_unrecorded_switch_is_no_other_mode() -> None:
    """A recording by an older tool, which did not ask, is not accused."""
    assert numeric_mode_warning(recorded(), recorded(tf32_matmul=True)) is None
    (difference,) = differences(recorded(), recorded(tf32_matmul=True))
    assert str(difference) == "TF32 not recorded -> on"
