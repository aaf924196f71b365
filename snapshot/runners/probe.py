"""Reads the environment: versions, processor or accelerator, switches.

A device that is not going to be used is not initialised: counting goes by NVML or AMD SMI,
and properties are read only of the device in use. A broken driver costs its values, never
the run. Works without torch up to the point where torch itself is asked.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from snapshot import versions
from snapshot.errors import RunError
from snapshot.fingerprint import Cpu, Device, Readings, build, recordable
from snapshot.model import Fingerprint, Json


def fingerprint(
    *,
    dtype: str,
    batch_size: int | None,
    kernels: bool = False,
    extra: Mapping[str, Json] | None = None,
    device: str | None = None,
) -> Fingerprint:
    """The fingerprint of this process.

    Args:
        dtype, batch_size: as in `Identity`.
        kernels: whether Triton's version selects too.
        extra: provenance that only the runner knows; None values are left out.
        device: where the work runs (``cpu``, ``cuda``, ``cuda:1``); None: the accelerator
            that torch was built for, else the CPU.

    Raises:
        RunError: torch is not installed, or has no such device.
    """
    return build(
        probe(device=device), dtype=dtype, batch_size=batch_size, kernels=kernels, extra=extra
    )


@dataclass(frozen=True)
class Host:
    """What is read besides torch; tests put another one in its place.

    Attributes:
        environ: environment variables.
        root: of the file system.
        machine, system: as `platform` tells them.
        installed: version of a distribution; None where it is not installed.
    """

    environ: Mapping[str, str]
    root: Path
    machine: str
    system: str
    installed: Callable[[str], str | None]

    @classmethod
    def here(cls) -> Host:
        return cls(
            environ=os.environ,
            root=Path("/"),
            machine=platform.machine(),
            system=platform.system().lower(),
            installed=_installed,
        )

    def read(self, path: str) -> str:
        """A small file's text; empty where it cannot be read."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


def probe(
    *, device: str | None = None, torch_module: Any = None, host: Host | None = None
) -> Readings:
    """Read everything, of the device in use only; see `fingerprint`."""
    host = host or Host.here()
    torch = torch_module if torch_module is not None else _import_torch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns where switches are merely read
        return _probe(torch, device, host)


def _probe(torch: Any, device: str | None, host: Host) -> Readings:
    backend, index = _backend(torch, device)
    cpu = _cpu(torch, host)
    notes: list[str] = []
    accelerator = None
    if backend == "mps":
        accelerator = Device(arch=_name(cpu.model or f"apple {host.machine}"), name=cpu.model)
    elif backend != "cpu":
        accelerator = _accelerator(torch, backend, index, host, notes)
    gpu = accelerator is not None and backend in ("cuda", "rocm")
    runtimes, runtime_source = _runtimes(torch, backend, host, notes)
    return Readings(
        backend=backend,
        torch=_text(lambda: torch.__version__),
        cpu=cpu,
        device=accelerator,
        runtimes=runtimes,
        runtime_source=runtime_source,
        versions={
            **installed_versions(host),
            **_libraries(torch, backend if gpu else None, host),
            **_container(host, notes),
        },
        switches=_switches(torch, gpu),
        environment=recordable(host.environ),
        notes=tuple(notes),
    )


def _import_torch() -> Any:
    try:
        return importlib.import_module("torch")
    except (ImportError, OSError) as error:  # OSError: a library that it loads is missing
        absent = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        raise RunError(
            "torch is not installed" if absent else "torch is installed and cannot be imported",
            expected="torch, to tell this environment's fingerprint",
            got=None if absent else f"{type(error).__name__}: {error}",
            hint="pip install 'goldens[lora]'",
        ) from error


def _try(read: Callable[[], Any]) -> Any:
    """What `read` returns; None where it fails: drivers raise anything."""
    try:
        return read()
    except Exception:
        return None


def _text(read: Callable[[], Any]) -> str | None:
    value = _try(read)
    return None if value is None or str(value).strip() == "" else str(value).strip()


def _backend(torch: Any, device: str | None) -> tuple[str, int]:
    """What runs, and which one: as asked, else what torch was built for, visible or not."""
    built = "cpu"
    if _text(lambda: torch.version.hip):
        built = "rocm"
    elif _text(lambda: torch.version.cuda):
        built = "cuda"
    elif _text(lambda: torch.version.xpu):
        built = "xpu"
    elif _try(lambda: torch.backends.mps.is_available()) is True:
        built = "mps"
    if device is None:
        return built, 0
    asked = re.fullmatch(r"([a-z]+)(?::(\d{1,4}))?", device)
    # torch calls AMD's devices cuda too
    names = {"cpu", built} | ({"cuda"} if built == "rocm" else set())
    if asked is None or asked[1] not in names:
        raise RunError(
            f"this torch cannot run on {device!r}",
            expected=f"one of {', '.join(sorted(names))}",
            got=f"torch {_text(lambda: torch.__version__)}, a {built} build",
        )
    return ("cpu" if asked[1] == "cpu" else built), int(asked[2] or 0)


def _accelerator(
    torch: Any, backend: str, index: int, host: Host, notes: list[str]
) -> Device | None:
    """The logical device in use, masks applied by the runtime itself; None where there is none."""
    api: Any = getattr(torch, "xpu" if backend == "xpu" else "cuda", None)
    # device_count() asks NVML or AMD SMI; is_available() would initialise the driver.
    count = _try(lambda: int(api.device_count())) or 0
    if count < 1:
        notes.append(f"torch is a {backend} build and no device is visible{_hidden_by(host)}")
        return None
    properties = _try(lambda: api.get_device_properties(index))
    if properties is None:
        notes.append(f"{count} device(s) counted, and device {index} cannot be used")
        return None
    name = _text(lambda: properties.name)
    every = [_try(partial(api.get_device_properties, other)) for other in range(count)]
    others = {str(other.name) for other in every if other is not None} - {str(name)}
    if others:
        notes.append(f"other devices are visible and not used: {', '.join(sorted(others))}")
    units = "gpu_subslice_count" if backend == "xpu" else "multi_processor_count"
    memory = _try(lambda: int(properties.total_memory))
    return Device(
        arch=_device_arch(backend, properties),
        name=name,
        multiprocessors=_try(lambda: int(getattr(properties, units))),
        memory_gib=None if memory is None else round(memory / 2**30),
        partition=_partition(name, host),
        others=tuple(sorted(others)),
    )


def _device_arch(backend: str, properties: Any) -> str | None:
    if backend == "rocm":
        # gfx942:sramecc+:xnack- runs the same code as gfx942
        arch = (_text(lambda: properties.gcnArchName) or "").partition(":")[0]
        return arch if re.fullmatch(r"gfx[0-9a-z]+", arch) else None
    if backend == "cuda":
        return _text(lambda: f"sm_{int(properties.major)}{int(properties.minor)}")
    return _name(_text(lambda: properties.name) or "")


def _name(text: str) -> str | None:
    """A marketing name, fit to stand for an architecture."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40] or None


_MASKS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")


def _partition(name: str | None, host: Host) -> str | None:
    """The slice profile; the driver puts it into the name: NVIDIA A100 MIG 2g.10gb."""
    profile = re.search(r"\bMIG (\d+(?:c\.\d+)?g\.\d+gb(?:\+[\w.]+)?)", name or "")
    if profile is not None:
        return profile[1]
    first = host.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    return "MIG" if first.upper().startswith("MIG-") else None


def _hidden_by(host: Host) -> str:
    masks = [mask for mask in _MASKS if host.environ.get(mask, "0").strip() in ("", "-1")]
    return f": {' and '.join(masks)} hides every one" if masks else ""


def _cpu(torch: Any, host: Host) -> Cpu:
    told = _try(lambda: dict(torch.cpu.get_capabilities())) or {}  # newer releases only
    info = host.read("proc/cpuinfo")
    model = re.search(r"(?m)^model name\s*:\s*(.+)$", info)
    limits = (host.environ.get(f"{prefix}_MAX_CPU_ISA") for prefix in ("ONEDNN", "DNNL"))
    return Cpu(
        machine=host.machine,
        system=host.system,
        model=model[1].strip() if model else _text(lambda: told["cpu_name"]),
        capability=_text(lambda: torch.backends.cpu.get_cpu_capability()),
        features=_cpu_features(told, info),
        threads=_try(lambda: int(torch.get_num_threads())),
        isa_limit=next((limit for limit in limits if limit), None),
    )


def _cpu_features(told: Mapping[str, Any], info: str) -> frozenset[str]:
    """Hardware flags: torch's, else the kernel's; both spelt one way."""
    if told:
        names = {name for name, value in told.items() if value is True}
        names |= {f"sve{told['sve_max_length']}"} if told.get("sve_max_length") else set()
    else:
        line = re.search(r"(?im)^(?:flags|features)\s*:(.*)$", info)
        names = set(line[1].split()) if line else set()
    return frozenset(name.lower().replace("_", "") for name in names)


def _installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except Exception:  # not installed, or its metadata is broken
        return None


_PACKAGES = ("transformers", "peft", "tokenizers", "safetensors", "numpy")
_TRITON = ("triton", "pytorch-triton-rocm", "triton-rocm", "pytorch-triton", "triton-windows")


def installed_versions(host: Host | None = None) -> dict[str, str]:
    """Exact versions by name, from metadata: nothing is imported."""
    host = host or Host.here()
    found = {name: host.installed(name) for name in _PACKAGES}
    found |= {"python": platform.python_version(), "triton": _first_installed(host, _TRITON)}
    return {name: text for name, text in sorted(found.items()) if text}


def _first_installed(host: Host, distributions: tuple[str, ...]) -> str | None:
    return next(filter(None, map(host.installed, distributions)), None)


def _runtimes(
    torch: Any, backend: str, host: Host, notes: list[str]
) -> tuple[dict[str, str], str | None]:
    """Runtimes by name, and where the first of them was read."""
    source: str | None = f"torch.version.{backend}"
    if backend == "cpu":
        return {}, None
    if backend == "rocm":
        release, source = _rocm_release(host, notes)
        found = {"rocm": release, "hip": _text(lambda: torch.version.hip)}
        source = source if release else "torch.version.hip"
    elif backend == "mps":
        found, source = {"mps": platform.mac_ver()[0]}, "the macOS version"
    else:
        found = {backend: _text(lambda: getattr(torch.version, backend))}
    return {name: text for name, text in found.items() if text}, source


def _rocm_release(host: Host, notes: list[str]) -> tuple[str | None, str]:
    """The installed ROCm: of the wheels that torch loads from, else of the system."""
    packaged = _first_installed(host, ("rocm-sdk-core", "rocm"))
    folder = host.environ.get("ROCM_PATH") or "opt/rocm"
    lines = host.read(f"{folder}/.info/version").split()
    system = lines[0] if lines and versions.parse(lines[0]) else None
    if packaged and system and versions.major_minor(packaged) != versions.major_minor(system):
        notes.append(f"ROCm {packaged} is installed as a wheel, {system} on the system")
    if packaged:
        return packaged, "the installed ROCm wheels"
    return system, "the version file of the installed ROCm"


def _libraries(torch: Any, gpu: str | None, host: Host) -> dict[str, str]:
    """Versions of the libraries below torch, those of a GPU only where it is used."""
    # parallel_info() rather than show(): the latter asks the GPU runtimes.
    info = _text(lambda: torch.__config__.parallel_info()) or ""
    mkl = re.search(r"Math Kernel Library Version ([\d.]+)", info)
    onednn = re.search(r"MKL-DNN v([\d.]+)", info)
    found: dict[str, str | None] = {
        "mkl": mkl[1] if mkl else None,
        "onednn": onednn[1] if onednn else None,
    }
    if gpu is None:
        found["blas"] = "mkl" if _try(lambda: torch.backends.mkl.is_available()) else None
    else:
        # On ROCm the answer depends on the device.
        found["blas"] = _text(lambda: torch.backends.cuda.preferred_blas_library().name.lower())
    if gpu == "rocm":
        found["driver"] = host.read("sys/module/amdgpu/version").strip()
    if gpu == "cuda":
        driver = re.search(r"\s(\d{3,}(?:\.\d+)+)\s", host.read("proc/driver/nvidia/version"))
        found["driver"] = driver[1] if driver else None
        found["cudnn"] = _try(lambda: _cudnn_version(int(torch.backends.cudnn.version())))
        cublas = ("nvidia-cublas", "nvidia-cublas-cu13", "nvidia-cublas-cu12")
        found["cublas"] = _first_installed(host, cublas)
    return {name: text for name, text in found.items() if text}


def _cudnn_version(number: int) -> str:
    major, rest = divmod(number, 10000 if number >= 90000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


_SWITCHES = {
    "float32_matmul_precision": "get_float32_matmul_precision",
    "fp32_precision_mkldnn": "backends.mkldnn.matmul.fp32_precision",
    "deterministic_algorithms": "are_deterministic_algorithms_enabled",
    "mkldnn_enabled": "backends.mkldnn.enabled",
    "mkldnn_deterministic": "backends.mkldnn.deterministic",
    "sdp_flash": "backends.cuda.flash_sdp_enabled",
    "sdp_math": "backends.cuda.math_sdp_enabled",
}
_MATMUL = "backends.cuda.matmul"
_GPU_SWITCHES = {
    "tf32_matmul": f"{_MATMUL}.allow_tf32",
    "tf32_cudnn": "backends.cudnn.allow_tf32",
    "fp16_reduced_precision_reduction": f"{_MATMUL}.allow_fp16_reduced_precision_reduction",
    "bf16_reduced_precision_reduction": f"{_MATMUL}.allow_bf16_reduced_precision_reduction",
    "fp16_accumulation": f"{_MATMUL}.allow_fp16_accumulation",
    "cudnn_enabled": "backends.cudnn.enabled",
    "cudnn_benchmark": "backends.cudnn.benchmark",
    "cudnn_deterministic": "backends.cudnn.deterministic",
    "sdp_mem_efficient": "backends.cuda.mem_efficient_sdp_enabled",
    "sdp_cudnn": "backends.cuda.cudnn_sdp_enabled",
}


def _switches(torch: Any, gpu: bool) -> dict[str, Json]:
    def read(path: str) -> Any:
        value = attrgetter(path)(torch)
        return value() if callable(value) else value

    wanted = _SWITCHES | (_GPU_SWITCHES if gpu else {})
    found = {name: _try(partial(read, path)) for name, path in wanted.items()}
    if gpu and found["tf32_matmul"] is None:
        # The newer setting is in use, and torch refuses to answer to the older name.
        precision = _try(partial(read, f"{_MATMUL}.fp32_precision"))
        found["tf32_matmul"] = None if precision is None else precision == "tf32"
    return {name: value for name, value in found.items() if isinstance(value, bool | str)}


def _container(host: Host, notes: list[str]) -> dict[str, str]:
    """The image's digest alone: its name may hold hosts and paths."""
    container = host.environ.get("GOLDENS_CONTAINER", "")
    digest = re.search(r"sha256:[0-9a-f]{64}", container)
    if container and digest is None:
        notes.append("GOLDENS_CONTAINER holds no sha256 digest and is not recorded")
    return {"container": digest[0]} if digest else {}
