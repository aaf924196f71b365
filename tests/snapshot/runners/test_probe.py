"""What is read to know an environment."""

from __future__ import annotations

import dataclasses
import getpass
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot.errors import RunError
from snapshot.fingerprint import (
    Cpu,
    Device,
    Readings,
    build,
    cpu_arch,
    differences,
)
from snapshot.model import Fingerprint
from snapshot.predicate import Predicate
from snapshot.runners import probe as probing
from snapshot.runners.probe import Host, probe

MIG = "MIG-377e0049-554c-540b-93c6-d0976f8426cb"
GPU = "GPU-52a3a85d-3c55-ca3a-a955-82c69ed360fc"


# ------------------------------------------------------------------------ fakes


def forbidden(*_: object, **__: object) -> Any:
    raise AssertionError("a device was initialised")


def device(name: str, **values: Any) -> SimpleNamespace:
    return SimpleNamespace(name=name, total_memory=80 * 2**30 - 12345, **values)


def nvidia(name: str = "NVIDIA H100", sms: int = 132, major: int = 9, minor: int = 0) -> Any:
    return device(name, multi_processor_count=sms, major=major, minor=minor)


def amd(arch: str = "gfx942:sramecc+:xnack-", cus: int = 304) -> Any:
    return device("AMD Instinct MI300X", multi_processor_count=cus, gcnArchName=arch)


def fake_torch(
    version: str | None = "2.11.0",
    *,
    devices: tuple[Any, ...] = (),
    cuda: str | None = None,
    hip: str | None = None,
    xpu: str | None = None,
    properties: Callable[[int], Any] | None = None,
) -> Any:
    """A torch whose every way to initialise a device fails, unless it has `devices`."""
    api = SimpleNamespace(
        device_count=lambda: len(devices),
        get_device_properties=properties or (devices.__getitem__ if devices else forbidden),
        is_available=forbidden,
        init=forbidden,
        _lazy_init=forbidden,
        current_device=forbidden,
    )
    return SimpleNamespace(
        __version__=version,
        version=SimpleNamespace(cuda=cuda, hip=hip, xpu=xpu),
        cuda=api,
        xpu=api,
        cpu=SimpleNamespace(get_capabilities=lambda: {"avx2": True, "avx": True, "sse4_1": True}),
        get_num_threads=lambda: 4,
        backends=SimpleNamespace(
            cpu=SimpleNamespace(get_cpu_capability=lambda: "AVX2"),
            cudnn=SimpleNamespace(allow_tf32=True, version=lambda: 91002),
            cuda=SimpleNamespace(
                matmul=SimpleNamespace(allow_tf32=False),
                preferred_blas_library=(lambda: SimpleNamespace(name="Cublas"))
                if devices
                else forbidden,
            ),
        ),
    )


def host(root: Path, environ: Mapping[str, str] | None = None, **installed: str) -> Host:
    names = {name.replace("_", "-"): version for name, version in installed.items()}
    return Host(environ or {}, root, "x86_64", "linux", names.get)


def fingerprint(readings: Readings) -> Fingerprint:
    return build(readings, dtype="float16", batch_size=1)


def slug(readings: Readings) -> str:
    return fingerprint(readings).slug


# ----------------------------------------------------------------------- builds


def test_rocm_release_and_hip_are_kept_apart(tmp_path: Path) -> None:
    """C35: ROCm 10.0 with torch 2.11 reports HIP 7.15; both are shown, and that they part."""
    torch = fake_torch("2.11.0+rocm10.0", hip="7.15.26015", devices=(amd(),))
    here = fingerprint(probe(torch_module=torch, host=host(tmp_path, rocm_sdk_core="10.0.0")))
    assert here.slug == "rocm10.0-gfx942-torch2.11-float16-bs1"
    assert here.provenance["rocm"] == "10.0.0" and here.provenance["hip"] == "7.15.26015"
    assert here.provenance["notes"] == ["ROCm 10.0 is installed, torch was built with HIP 7.15"]
    assert here.provenance["multiprocessors"] == 304
    assert here.provenance["memory_gib"] == 80


def test_unknown_rocm_release_is_not_guessed(tmp_path: Path) -> None:
    """C35: torch's own suffix is no proof of what is installed."""
    torch = fake_torch("2.11.0+rocm10.0", hip="7.15.26015", devices=(amd(),))
    here = fingerprint(probe(torch_module=torch, host=host(tmp_path)))
    assert here.slug == "hip7.15-gfx942-torch2.11-float16-bs1"
    assert any("ROCm release is unknown" in note for note in here.provenance["notes"])
    assert not Predicate({"rocm": ">=0"}).holds(here)


@pytest.mark.parametrize("variable", [None, "ROCM_PATH"])
def test_rocm_release_from_its_version_file(tmp_path: Path, variable: str | None) -> None:
    folder = tmp_path / ("elsewhere" if variable else "opt/rocm") / ".info"
    folder.mkdir(parents=True)
    (folder / "version").write_text("7.2.0-43\n")
    environ = {variable: str(folder.parent)} if variable else {}
    torch = fake_torch("2.11.0+rocm7.1", hip="7.2.26015", devices=(amd(),))
    readings = probe(torch_module=torch, host=host(tmp_path, environ))
    assert slug(readings).startswith("rocm7.2-gfx942-")
    notes = fingerprint(readings).provenance["notes"]
    assert notes == ["ROCm is 7.2, torch calls itself 2.11.0+rocm7.1"]
    assert str(tmp_path) not in json.dumps(fingerprint(readings).provenance)


@pytest.mark.parametrize(
    ("hip", "runtime"),
    [
        ("6.4.43482-0f2d60242", "hip6.4"),
        ("7.2.26015", "hip7.2"),
        ("HIP version: 7.1.25421-32f9fa6ca5", "hip7.1"),
        ("nonsense", "hipunknown_"),
    ],
)
def test_odd_hip_versions(tmp_path: Path, hip: str, runtime: str) -> None:
    """C35: never a crash, and two unreadable versions never share a name."""
    torch = fake_torch("2.9.0a0+gitabc1234", hip=hip, devices=(amd(),))
    found = slug(probe(torch_module=torch, host=host(tmp_path)))
    assert found.startswith(runtime)
    assert found.endswith("-gfx942-torch2.9-float16-bs1")


@pytest.mark.parametrize("version", ["", None, "unknown", "built by hand"])
def test_odd_torch_versions(tmp_path: Path, version: str | None) -> None:
    """C35: an unreadable torch is its own environment."""
    torch = fake_torch(version, cuda="13.0", devices=(nvidia(),))
    here = fingerprint(probe(torch_module=torch, host=host(tmp_path)))
    assert here.identity.torch.startswith("unknown")
    assert not Predicate({"torch": "!=1"}).holds(here)


def test_cuda(tmp_path: Path) -> None:
    proc = tmp_path / "proc/driver/nvidia"
    proc.mkdir(parents=True)
    (proc / "version").write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build"
        "  (builder@some-host)\nGCC version:  gcc version 12.3.0\n"
    )
    torch = fake_torch("2.13.0+cu128", cuda="13.0", devices=(nvidia(), nvidia("NVIDIA L4", 58)))
    here = build(
        probe(torch_module=torch, host=host(tmp_path, triton="3.9.0", nvidia_cublas="13.1.0")),
        dtype="torch.bfloat16",
        kernels=True,
    )
    assert here.slug == "cuda13.0-sm_90-torch2.13-triton3.9-bfloat16"
    got = here.provenance
    assert (got["driver"], got["cudnn"], got["cublas"]) == ("580.159.04", "9.10.2", "13.1.0")
    assert (got["blas"], got["tf32_matmul"], got["tf32_cudnn"]) == ("cublas", False, True)
    assert got["other_devices"] == ["NVIDIA L4"]
    assert got["notes"] == [
        "other devices are visible and not used: NVIDIA L4",
        "CUDA is 13.0, torch calls itself 2.13.0+cu128",
    ]
    assert "some-host" not in json.dumps(got)


def test_second_device_is_used_where_asked(tmp_path: Path) -> None:
    torch = fake_torch(cuda="13.0", devices=(nvidia(), nvidia("NVIDIA L4", 58, 8, 9)))
    assert probe(device="cuda:1", torch_module=torch, host=host(tmp_path)).device.arch == "sm_89"
    assert probe(device="cuda:7", torch_module=torch, host=host(tmp_path)).device is None


def test_tf32_where_torch_refuses_the_older_name(tmp_path: Path) -> None:
    class Matmul:
        fp32_precision = "tf32"

        @property
        def allow_tf32(self) -> bool:
            raise RuntimeError("mix of the legacy and new APIs")

    torch = fake_torch(cuda="13.0", devices=(nvidia(),))
    torch.backends.cuda.matmul = Matmul()
    assert probe(torch_module=torch, host=host(tmp_path)).switches["tf32_matmul"] is True


def test_xpu(tmp_path: Path) -> None:
    torch = fake_torch(xpu="20250301", devices=(device("Intel(R) Arc(TM) B580"),))
    assert slug(probe(torch_module=torch, host=host(tmp_path))) == (
        "xpu20250301-intel_r_arc_tm_b580-torch2.11-float16-bs1"
    )


@pytest.mark.parametrize("device", ["cuda", "tpu", "cpu:x", ""])
def test_a_device_that_torch_cannot_use(tmp_path: Path, device: str) -> None:
    with pytest.raises(RunError, match="cannot run on"):
        probe(device=device, torch_module=fake_torch(), host=host(tmp_path))


# -------------------------------------------------------------------- no device


@pytest.mark.parametrize("environ", [{"HIP_VISIBLE_DEVICES": ""}, {}])
def test_hip_build_without_a_gpu(tmp_path: Path, environ: dict[str, str]) -> None:
    """C37: its own key, neither CPU nor GPU, and no device is initialised to learn it."""
    torch = fake_torch("2.11.0+rocm7.2", hip="7.2.26015")
    here = fingerprint(probe(torch_module=torch, host=host(tmp_path, environ, rocm="7.2.0")))
    assert here.slug == "rocm7.2-nodevice-torch2.11-float16-bs1"
    assert here.identity.backend == "rocm"
    note = here.provenance["notes"][0]
    assert "no device is visible" in note
    assert ("HIP_VISIBLE_DEVICES" in note) == bool(environ)
    assert not {"device", "multiprocessors", "driver"} & set(here.provenance)
    assert not Predicate({"rocm": ">=7"}).holds(here)


def test_cuda_build_without_a_gpu(tmp_path: Path) -> None:
    """C37: the same for CUDA; work that is sent to the CPU on purpose is a CPU's."""
    torch = fake_torch("2.13.0+cu130", cuda="13.0")
    assert slug(probe(torch_module=torch, host=host(tmp_path))).startswith("cuda13.0-nodevice-")
    on_cpu = fingerprint(probe(device="cpu", torch_module=torch, host=host(tmp_path)))
    assert on_cpu.slug == "cpu-avx2-avx2-t4-torch2.11-float16-bs1".replace("2.11", "2.13")
    assert "cuda" not in on_cpu.provenance


def test_a_device_that_is_not_used_is_not_initialised(tmp_path: Path) -> None:
    """C37: with device="cpu" a GPU is not even counted."""
    torch = fake_torch(cuda="13.0", devices=(nvidia(),), properties=forbidden)
    torch.cuda.device_count = forbidden
    torch.backends.cuda.preferred_blas_library = forbidden
    assert probe(device="cpu", torch_module=torch, host=host(tmp_path)).backend == "cpu"


@pytest.mark.parametrize("error", [RuntimeError, OSError, AssertionError, AttributeError])
def test_broken_driver(tmp_path: Path, error: type[Exception]) -> None:
    """C37: a device that can be counted and not used is no device."""

    def broken(_: int) -> Any:
        raise error("/dev/nvidia0: CUDA error 999 on some-host")

    torch = fake_torch(cuda="13.0", devices=(nvidia(),), properties=broken)
    here = fingerprint(probe(torch_module=torch, host=host(tmp_path)))
    assert here.identity.arch == "nodevice"
    assert here.provenance["notes"] == ["1 device(s) counted, and device 0 cannot be used"]


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
@settings(max_examples=100, deadline=None)
def test_any_answer_gives_a_folder_name(version: str, runtime: str, name: str, cpu: str) -> None:
    """C35, C39: whatever a stack calls itself, building never fails and the slug is plain."""
    gpu = Device(None, name)
    for readings in (
        Readings("rocm", version, Cpu("x86_64"), gpu, {"hip": runtime}),
        Readings("xpu", version, Cpu("x86_64"), gpu, {"xpu": runtime}),
        Readings("cpu", version, Cpu(cpu, capability=name, isa_limit=runtime)),
    ):
        assert re.fullmatch(r"[a-z0-9_.-]+", slug(readings))


def test_a_torch_that_answers_nothing(tmp_path: Path) -> None:
    here = fingerprint(probe(torch_module=SimpleNamespace(), host=host(tmp_path)))
    assert here.identity.backend == "cpu"
    assert here.slug == "cpu-unknown-x86_unknown-tunknown-torchunknown-float16-bs1"


# ------------------------------------------------------------------------ masks


@pytest.mark.parametrize("mask", [MIG, GPU, f"0,{MIG}", "0", "-1", ""])
@pytest.mark.parametrize("variable", ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"])
def test_device_masks(tmp_path: Path, mask: str, variable: str) -> None:
    """C39: no mask crashes or is kept; what torch calls device 0 is used."""
    seen = () if mask in ("-1", "") else (nvidia(),)
    torch = fake_torch(cuda="13.0", devices=seen)
    here = fingerprint(probe(torch_module=torch, host=host(tmp_path, {variable: mask})))
    assert here.identity.arch == ("sm_90" if seen else "nodevice")
    text = json.dumps(dataclasses.asdict(here))
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}", text)
    assert MIG not in text and GPU not in text


def test_a_slice_is_not_the_whole_gpu(tmp_path: Path) -> None:
    """C39: same key, and the slice and its SM count show in every comparison."""
    whole = fingerprint(
        probe(
            torch_module=fake_torch(cuda="13.0", devices=(nvidia(),)),
            host=host(tmp_path, {"CUDA_VISIBLE_DEVICES": GPU}),
        )
    )
    part = nvidia("NVIDIA H100 MIG 2g.20gb", sms=32)
    sliced = fingerprint(
        probe(
            torch_module=fake_torch(cuda="13.0", devices=(part,)),
            host=host(tmp_path, {"CUDA_VISIBLE_DEVICES": MIG}),
        )
    )
    assert sliced.provenance["partition"] == "2g.20gb"
    assert [str(difference) for difference in differences(whole, sliced)] == [
        "device NVIDIA H100 -> NVIDIA H100 MIG 2g.20gb",
        "multiprocessors 132 -> 32",
        "partition not recorded -> 2g.20gb",
    ]
    nameless = probe(
        torch_module=fake_torch(cuda="13.0", devices=(nvidia(sms=32),)),
        host=host(tmp_path, {"CUDA_VISIBLE_DEVICES": MIG}),
    )
    assert nameless.device is not None and nameless.device.partition == "MIG"


# --------------------------------------------------------------------- privacy


def test_names_of_boards_are_scrubbed(tmp_path: Path) -> None:
    """C39: wherever a driver puts them."""
    torch = fake_torch(cuda="13.0", devices=(nvidia(f"NVIDIA A100 ({GPU}) 0000:3b:00.0"),))
    here = fingerprint(probe(torch_module=torch, host=host(tmp_path)))
    assert here.provenance["device"] == "NVIDIA A100 ((uuid)) (address)"


@pytest.mark.parametrize("named", [True, False])
def test_container_digest(tmp_path: Path, named: bool) -> None:
    digest = f"sha256:{'a1' * 32}"
    environ = {"GOLDENS_CONTAINER": f"host.example/x@{digest}" if named else "host.example/x:1"}
    here = fingerprint(probe(torch_module=fake_torch(), host=host(tmp_path, environ)))
    assert here.provenance.get("container") == (digest if named else None)
    assert "host.example" not in json.dumps(here.provenance)


# ------------------------------------------------------------------- processors


def test_kernel_flags_say_the_same_as_torch() -> None:
    """Older releases of torch do not tell capabilities; the name must not depend on that."""
    torch = pytest.importorskip("torch")
    if not hasattr(torch.cpu, "get_capabilities") or not Path("/proc/cpuinfo").exists():
        pytest.skip("only one source here")
    older = SimpleNamespace(
        **{name: getattr(torch, name) for name in ("__version__", "version", "backends")},
        get_num_threads=torch.get_num_threads,
        cpu=SimpleNamespace(),
        cuda=torch.cuda,
    )
    arches = [cpu_arch(probe(device="cpu", torch_module=t).cpu) for t in (torch, older)]
    assert arches[0] == arches[1]


_SCRIPT = """
import json, dataclasses, torch
from snapshot.runners.probe import fingerprint
here = fingerprint(dtype="float32", batch_size=1, device="cpu")
torch.ones(4, 8).to_mkldnn().relu()
print("RESULT", json.dumps({"slug": here.slug, **dataclasses.asdict(here)}))
"""
_ONEDNN_SAYS = {
    "Intel AVX2": "avx2",
    "Intel AVX-512 with AVX512BW, AVX512VL, and AVX512DQ extensions": "avx512_core",
    "Intel AVX-512 with Intel DL Boost": "avx512_core_vnni",
    "Intel AVX-512 with Intel DL Boost and bfloat16 support": "avx512_core_bf16",
    "Intel AVX 10.1": "avx512_core_fp16",
    "Intel AVX10.1 and Intel AMX with bfloat16 and 8-bit integer support": "avx512_core_amx",
}


def real(**environ: str) -> tuple[dict[str, Any], str | None]:
    """The fingerprint of a fresh process, and the instruction set that oneDNN itself names."""
    pytest.importorskip("torch")
    clean = {
        name: value
        for name, value in os.environ.items()
        if not re.match(r"(ATEN|ONEDNN|DNNL|OMP|MKL|TRITON)_", name)
    }
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env={**clean, "ONEDNN_VERBOSE": "1", **environ},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = re.search(r"info,cpu,isa:(.*)", done.stdout)
    return json.loads(done.stdout.split("RESULT ")[1].splitlines()[0]), said[1] if said else None


def test_real_processes_get_different_slugs() -> None:
    """Each of these moves bits on a CPU, so each is an environment of its own."""
    plain, said = real()
    arch = plain["identity"]["arch"]
    if not arch.startswith("avx512-avx512_core"):
        pytest.skip(f"this processor is {arch}")
    if said in _ONEDNN_SAYS:
        assert _ONEDNN_SAYS[said] == arch.split("-")[1]
    slugs = {plain["slug"]}
    for environ, part in (
        ({"ATEN_CPU_CAPABILITY": "avx2"}, "cpu-avx2-"),
        ({"ONEDNN_MAX_CPU_ISA": "AVX2"}, "-avx2-t"),
        ({"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}, "-avx512_core-t"),
        ({"OMP_NUM_THREADS": "1" if "-t1" not in arch else "2"}, "-t"),
    ):
        other, said = real(**environ)
        assert part in other["slug"]
        if said in _ONEDNN_SAYS:
            assert _ONEDNN_SAYS[said] == other["identity"]["arch"].split("-")[1]
        slugs.add(other["slug"])
        kept = {name: value for name, value in environ.items() if name != "OMP_NUM_THREADS"}
        assert other["provenance"].get("environment", {}) == kept
    assert len(slugs) == 5


def test_nothing_names_this_machine() -> None:
    """C39: no host name, user name, UUID or path in what is written."""
    pytest.importorskip("torch")
    here = probing.fingerprint(dtype="float32", batch_size=1, kernels=True)
    again = probing.fingerprint(dtype="float32", batch_size=1, kernels=True)
    text = json.dumps(dataclasses.asdict(here))
    assert text == json.dumps(dataclasses.asdict(again))
    # Whole words: a machine may be called by a word that a processor's name holds too.
    for name in (socket.gethostname(), *{getpass.getuser()} - {"root"}):
        assert not re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", text)
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}", text)
    assert not re.search(r'"[^"]*(?:/|\\\\)(?:home|opt|usr|tmp|root|work)', text)


# ---------------------------------------------------------------- without torch


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Base install: an error that says what to install."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RunError) as caught:
        probing.fingerprint(dtype="float32", batch_size=1)
    assert caught.value.hint == "pip install 'goldens[lora]'"


def test_imports_nothing_heavy() -> None:
    """C37: importing these rooms touches no torch, so it cannot touch a device."""
    code = (
        "import sys, snapshot.runners.probe, snapshot.predicate, snapshot.commands.env; "
        "print({'torch', 'transformers', 'triton', 'rich.console'} & set(sys.modules))"
    )
    root = Path(__file__).parents[3]
    out = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert out.stdout == "set()\n", out.stderr


def test_extra_provenance_is_kept(tmp_path: Path) -> None:
    readings = probe(torch_module=fake_torch(), host=host(tmp_path))
    here = build(readings, dtype="float32", extra={"attention": "sdpa", "adapter_dtype": None})
    assert here.provenance["attention"] == "sdpa"
    assert "adapter_dtype" not in here.provenance
