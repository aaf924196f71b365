"""From what the probe read to a fingerprint, and what differs between two of them.

Pure: no torch, no environment variables, no files. Nothing that names a machine, a person
or a single board gets in.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from snapshot import versions
from snapshot.model import Fingerprint, Identity, Json
from snapshot.predicate import NODEVICE, facts


@dataclass(frozen=True)
class Cpu:
    """A processor as torch and oneDNN see it.

    Attributes:
        machine: ``x86_64``, ``aarch64``, ``arm64``...
        system: ``linux``, ``darwin``, ``windows``.
        model: the name it gives itself.
        capability: what ATen dispatches on (``AVX512``); honours ATEN_CPU_CAPABILITY.
        features: hardware flags, lower case, without underscores (``avx512bf16``).
        threads: intra-op threads of torch.
        isa_limit: ONEDNN_MAX_CPU_ISA (or DNNL_MAX_CPU_ISA) as set.
    """

    machine: str
    system: str = "linux"
    model: str | None = None
    capability: str | None = None
    features: frozenset[str] = frozenset()
    threads: int | None = None
    isa_limit: str | None = None


@dataclass(frozen=True)
class Device:
    """The accelerator in use.

    Attributes:
        arch: ``sm_90``, ``gfx942``...; None where the driver does not tell.
        name: marketing name.
        multiprocessors: SMs, CUs or their like; a slice has fewer than the whole.
        memory_gib: total memory, rounded.
        partition: slice profile, such as ``2g.20gb``.
        others: names of other visible devices, where they are of another kind.
    """

    arch: str | None
    name: str | None = None
    multiprocessors: int | None = None
    memory_gib: int | None = None
    partition: str | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Readings:
    """All that `snapshot.runners.probe` read.

    Attributes:
        backend: ``cuda``, ``rocm``, ``xpu``, ``mps`` or ``cpu``.
        torch: its exact version; None where it does not tell.
        cpu: the host's processor.
        device: the accelerator; None on a CPU, and where a GPU build sees none.
        runtimes: exact texts of this backend's, where known: ``cuda``, ``rocm`` (the installed
            release), ``hip``, ``xpu``, ``mps``.
        versions: exact versions of everything else, by name.
        switches: what changes numbers and is not a version, by name.
        environment: harmless environment variables, by name.
        notes: what a person should see.
        runtime_source: where the first runtime was read, in words.
    """

    backend: str
    torch: str | None
    cpu: Cpu
    device: Device | None = None
    runtimes: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    switches: Mapping[str, Json] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    runtime_source: str | None = None


# --------------------------------------------------------------------- identity


def build(
    readings: Readings,
    *,
    dtype: str,
    batch_size: int | None = None,
    kernels: bool = False,
    extra: Mapping[str, Json] | None = None,
) -> Fingerprint:
    """The fingerprint of an environment.

    Args:
        readings: what the probe read.
        dtype, batch_size: as in `Identity`.
        kernels: whether the Triton version selects too.
        extra: provenance that only the runner knows (``attention``, ``adapter_dtype``...).
    """
    triton = readings.versions.get("triton")
    identity = Identity(
        backend=readings.backend,
        arch=_arch(readings),
        runtime=_runtime(readings),
        torch=_number(readings.torch),
        dtype=dtype.removeprefix("torch."),
        batch_size=batch_size,
        triton=_number(triton) if kernels and triton is not None else None,
    )
    return Fingerprint(identity, _provenance(readings, extra or {}))


def _arch(readings: Readings) -> str:
    if readings.backend == "cpu":
        return cpu_arch(readings.cpu)
    if readings.device is None:
        return NODEVICE
    return readings.device.arch or _unknown(readings.device.name)


def _runtime(readings: Readings) -> str | None:
    """The first runtime that is known; a ROCm release is never guessed from HIP's number."""
    for name in ("cuda", "rocm", "hip", "mps"):
        if name in readings.runtimes:
            return f"{name}{_number(readings.runtimes[name])}"
    if "xpu" in readings.runtimes:
        return f"xpu{_plain(readings.runtimes['xpu'])}"  # a compiler's date: it has no minor
    return None if readings.backend == "cpu" else f"{readings.backend}_unknown"


def _number(text: str | None) -> str:
    return versions.major_minor(text) or _unknown(text)


def _unknown(text: str | None) -> str:
    """A stand-in that two different unreadable values do not share."""
    if not text:
        return "unknown"
    return f"unknown_{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _plain(text: str) -> str:
    """Fit for a folder name."""
    return re.sub(r"[^a-z0-9_.]+", "_", text.lower()).strip("_")[:40] or "unknown"


# -------------------------------------------------------------------- processors

# oneDNN's instruction sets as it nests them (its cpu_isa_traits.hpp), weakest first.
_AVX = frozenset({"sse41", "avx"})
_AVX2 = _AVX | {"avx2"}
_AVX2_VNNI = _AVX2 | {"avxvnni"}
_AVX2_VNNI_2 = _AVX2_VNNI | {"avxvnniint8", "avxneconvert"}
_AVX512 = _AVX2 | {"avx512f", "avx512bw", "avx512vl", "avx512dq"}
_AVX512_VNNI = _AVX512 | {"avx512vnni"}
_AVX512_BF16 = _AVX512_VNNI | {"avx512bf16"}
_AVX512_FP16 = _AVX512_BF16 | {"avx512fp16", "avxvnni"}
_AMX = _AVX512_FP16 | {"amxtile", "amxint8", "amxbf16"}
_AMX_FP16 = _AMX | {"amxfp16"}
_AVX10_2 = _AVX512_FP16 | _AVX2_VNNI_2 | {"avx102"}

_ONEDNN_ISAS: dict[str, frozenset[str]] = {
    "sse41": frozenset({"sse41"}),
    "avx": _AVX,
    "avx2": _AVX2,
    "avx2_vnni": _AVX2_VNNI,
    "avx2_vnni_2": _AVX2_VNNI_2,
    "avx512_core": _AVX512,
    "avx512_core_vnni": _AVX512_VNNI,
    "avx512_core_bf16": _AVX512_BF16,
    "avx512_core_fp16": _AVX512_FP16,
    "avx512_core_amx": _AMX,
    "avx512_core_amx_fp16": _AMX_FP16,
    "avx10_2_512": _AVX10_2,
    "avx10_2_512_amx_2": _AVX10_2 | _AMX_FP16,
}
_ONEDNN_ALIASES = {
    "avx10_1_512": "avx512_core_fp16",
    "avx10_1_512_amx": "avx512_core_amx",
    "avx10_1_512_amx_fp16": "avx512_core_amx_fp16",
}
_ONEDNN_DEFAULT = _AMX_FP16 | _AVX2_VNNI_2  # AVX10.2 is used only where it is asked for

_ARM_FEATURES = ("bf16", "i8mm", "sve", "sve128", "sve256", "sve512", "sve2", "sme", "sme2")


def onednn_isa(features: frozenset[str], limit: str | None = None) -> str:
    """The highest x86 instruction set that oneDNN may use.

    Args:
        features: hardware flags as in `Cpu.features`.
        limit: ONEDNN_MAX_CPU_ISA; a name that oneDNN does not know limits nothing, there as here.
    """
    name = (limit or "").strip().lower()
    usable = features & _ONEDNN_ISAS.get(_ONEDNN_ALIASES.get(name, name), _ONEDNN_DEFAULT)
    within = [isa for isa, needed in _ONEDNN_ISAS.items() if needed <= usable]
    return within[-1] if within else "none"


def cpu_arch(cpu: Cpu) -> str:
    """ATen's capability, what oneDNN may use, and the thread count: each moves bits."""
    if cpu.machine.lower() in ("x86_64", "amd64"):
        isa = onednn_isa(cpu.features, cpu.isa_limit) if cpu.features else "x86_unknown"
    else:
        # No ladder to descend here, so a limit is named rather than resolved.
        parts = ["apple" if cpu.system == "darwin" else cpu.machine]
        parts += [name for name in _ARM_FEATURES if name in cpu.features]
        parts += ["max", cpu.isa_limit] if cpu.isa_limit else []
        isa = _plain("_".join(parts))
    threads = "unknown" if cpu.threads is None else str(cpu.threads)
    return f"{_plain(cpu.capability or 'unknown')}-{isa}-t{threads}"


# -------------------------------------------------------------------- provenance

_UUID = re.compile(r"(?i)(?:(?:MIG|GPU)-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PCI_ADDRESS = re.compile(r"(?i)\b(?:[0-9a-f]{4}){1,2}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b")


def _provenance(readings: Readings, extra: Mapping[str, Json]) -> dict[str, Json]:
    cpu, device = readings.cpu, readings.device
    values: dict[str, Json] = {
        "torch": readings.torch,
        **readings.versions,
        **readings.runtimes,
        **readings.switches,
        "cpu": cpu.model,
        "threads": cpu.threads if readings.backend == "cpu" else None,
        "environment": dict(sorted(readings.environment.items())),
        "notes": [*readings.notes, *_disagreements(readings)],
    }
    if device is not None:
        values |= {
            "device": device.name,
            "multiprocessors": device.multiprocessors,
            "memory_gib": device.memory_gib,
            "partition": device.partition,
            "other_devices": list(device.others),
        }
    values |= extra
    known = {key: value for key, value in sorted(values.items()) if value not in (None, {}, [])}
    return {key: _anonymous(value) for key, value in known.items()}


def _anonymous(value: Json) -> Json:
    """The value without what names one board in the world."""
    if isinstance(value, str):
        return _PCI_ADDRESS.sub("(address)", _UUID.sub("(uuid)", value)).strip()
    if isinstance(value, Mapping):
        return {key: _anonymous(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_anonymous(item) for item in value]
    return value


_VARIABLE = re.compile(
    r"ATEN_CPU_CAPABILITY|NVIDIA_TF32_OVERRIDE|TRITON_(?:INTERPRET|F32_DEFAULT)"
    r"|TORCH_ALLOW_TF32_CUBLAS_OVERRIDE|TORCH_BLAS_PREFER_\w+|DISABLE_ADDMM_CUDA_LT"
    r"|KMP_DETERMINISTIC_REDUCTION|PYTORCH_\w*TUNABLEOP_\w+"
    r"|(?:MKL|ONEDNN|DNNL|CUBLAS|CUBLASLT|CUDNN|HIPBLASLT|ROCBLAS|MIOPEN)_\w+"
)
_NO_NUMBERS = re.compile(r"VERBOSE|LOG|PROFILE|FILE|PATH|DIR|ROOT|CACHE")
_HARMLESS_VALUE = re.compile(r"[A-Za-z0-9_.,:+=-]{1,64}")


def recordable(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that move numbers; a value that could name a place or a board is not kept."""
    found = {}
    for name, value in sorted(environ.items()):
        if value and _VARIABLE.fullmatch(name) and not _NO_NUMBERS.search(name):
            found[name] = value if _HARMLESS_VALUE.fullmatch(value) else "(set)"
    return found


def _disagreements(readings: Readings) -> list[str]:
    """One label can hide several environments: ROCm 10.0 with torch 2.11 reports HIP 7.15."""
    notes = []
    built_for = versions.local_runtime(readings.torch)
    rocm, hip = readings.runtimes.get("rocm"), readings.runtimes.get("hip")
    if rocm is not None and hip is not None and _number(rocm) != _number(hip):
        notes.append(f"ROCm {_number(rocm)} is installed, torch was built with HIP {_number(hip)}")
    if readings.backend == "rocm" and rocm is None:
        notes.append("the installed ROCm release is unknown; HIP's version stands in the identity")
    for name, text in (("rocm", rocm), ("cuda", readings.runtimes.get("cuda"))):
        if text is None or built_for is None or built_for[0] != name:
            continue
        if built_for[1] != _number(text):
            label = {"rocm": "ROCm", "cuda": "CUDA"}[name]
            notes.append(f"{label} is {_number(text)}, torch calls itself {readings.torch}")
    return notes


# -------------------------------------------------------------------- comparison

_UNCOMPARED = frozenset({"notes"})

# Recorded, compared and shown, but no reason for a number to move: what a workload reads
# and where from is told by its digest.
_INERT = frozenset({"adapters", "model", "numpy", "python", "safetensors", "tokenizers"})

_NUMERIC_MODE = {
    "tf32_matmul": "TF32",
    "tf32_cudnn": "TF32 in cuDNN",
    "float32_matmul_precision": "float32 matmul precision",
    "fp32_precision_mkldnn": "float32 precision in oneDNN",
    "fp16_reduced_precision_reduction": "float16 reduced-precision reduction",
    "bf16_reduced_precision_reduction": "bfloat16 reduced-precision reduction",
    "fp16_accumulation": "float16 accumulation",
    "deterministic_algorithms": "deterministic algorithms",
    "cudnn_enabled": "cuDNN",
    "cudnn_benchmark": "cuDNN benchmark",
    "cudnn_deterministic": "cuDNN deterministic",
    "mkldnn_enabled": "oneDNN",
    "mkldnn_deterministic": "oneDNN deterministic",
    "sdp_flash": "flash attention",
    "sdp_mem_efficient": "memory-efficient attention",
    "sdp_math": "math attention",
    "sdp_cudnn": "cuDNN attention",
    "blas": "BLAS library",
    "attention": "attention implementation",
    "adapter_dtype": "adapter dtype",
    "adapter_path": "adapter path",
    "threads": "threads",
}


@dataclass(frozen=True)
class Difference:
    """One of the `facts` that differs between a recording and here; None: not recorded."""

    name: str
    recorded: Json
    here: Json

    @property
    def numeric_mode(self) -> bool:
        """Whether it is a known setting that changes numbers, on both sides."""
        if self.name.startswith("environment."):
            return True  # only those that move numbers are recorded; absent means unset
        return self.name in _NUMERIC_MODE and None not in (self.recorded, self.here)

    @property
    def inert(self) -> bool:
        """Whether it cannot have moved a number."""
        return self.name.split(".")[0] in _INERT

    @property
    def change(self) -> str:
        """``TF32 off -> on``"""
        unset = "unset" if self.name.startswith("environment.") else "not recorded"
        label = _NUMERIC_MODE.get(self.name, self.name.replace("_", " "))
        if self.name.startswith("environment."):
            label = self.name.removeprefix("environment.")
        return f"{label} {_shown(self.recorded, unset)} -> {_shown(self.here, unset)}"

    def __str__(self) -> str:
        return f"numeric mode: {self.change}" if self.numeric_mode else self.change


def _shown(value: Json, unset: str) -> str:
    if value is None:
        return unset
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def differences(recorded: Fingerprint, here: Fingerprint) -> tuple[Difference, ...]:
    """Every fact that differs, identity first."""
    then, now = facts(recorded), facts(here)
    first = ("backend", "arch", "runtime", "torch", "dtype", "batch_size", "triton")
    rest = sorted({*then, *now} - {*first} - _UNCOMPARED)
    pairs = ((name, then.get(name), now.get(name)) for name in (*first, *rest))
    return tuple(Difference(name, a, b) for name, a, b in pairs if a != b)


def numeric_mode_warning(recorded: Fingerprint, here: Fingerprint) -> str | None:
    """One sentence where a setting that changes numbers is not the recording's; else None."""
    changes = [d.change for d in differences(recorded, here) if d.numeric_mode]
    return f"numeric mode differs from recording: {', '.join(changes)}" if changes else None
