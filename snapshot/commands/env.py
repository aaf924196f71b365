"""``goldens env``: what this machine is called, why, and which goldens it is held to."""

from __future__ import annotations

import dataclasses

from snapshot.config import Config, Suite
from snapshot.errors import GoldensError, RunError
from snapshot.fingerprint import Readings, build
from snapshot.kernel_suite import KernelSuite
from snapshot.model import Fingerprint
from snapshot.outcomes.here import Here
from snapshot.resolve import Baseline, resolve
from snapshot.runners.probe import installed_versions, probe
from snapshot.store import Store


def env(config: Config | None, *, dtype: str, batch_size: int | None) -> Here:
    """Reads the environment; never fails for want of torch or a device.

    Args:
        config: where there is one, its suites' goldens are looked up.
        dtype, batch_size: those of the fingerprint to show.
    """
    try:
        readings = probe()
        fingerprint = build(readings, dtype=dtype, batch_size=batch_size)
    except RunError as error:
        return Here(None, installed_versions(), {}, error, {})
    return Here(
        fingerprint,
        fingerprint.provenance,
        _reasons(readings, fingerprint),
        None,
        {} if config is None else _baselines(config),
    )


def _baselines(config: Config) -> dict[tuple[str, str], Baseline]:
    store = Store(config.store)
    found = {}
    suites: list[Suite | KernelSuite] = [*config.suites.values(), *config.kernels.values()]
    for suite in suites:
        try:
            for here in _fingerprints(suite):
                found[suite.name, here.slug] = resolve(config, store, suite.name, here)
        except GoldensError as error:  # a device that is not here, a damaged fingerprint
            found[suite.name, suite.device] = Baseline(None, error.what)
    return found


def _fingerprints(suite: Suite | KernelSuite) -> list[Fingerprint]:
    readings = probe(device=None if suite.device == "auto" else suite.device)
    if isinstance(suite, KernelSuite):
        return [build(readings, dtype=dtype, kernels=True) for dtype in suite.dtypes]
    return [
        build(readings, dtype=dtype, batch_size=size)
        for dtype in suite.dtypes
        for size in suite.batch_sizes
    ]


def _reasons(readings: Readings, fingerprint: Fingerprint) -> dict[str, tuple[str, str]]:
    """For each identity field: where its value came from, and what would change it."""
    if readings.backend == "cpu":
        arch = (
            "ATen's capability, what oneDNN may use of this processor, torch's threads",
            "another processor, ATEN_CPU_CAPABILITY, ONEDNN_MAX_CPU_ISA, OMP_NUM_THREADS",
        )
    elif readings.device is None:
        arch = ("torch, which counts no device", "a visible device")
    else:
        arch = (
            f"the driver, of the first visible device: {readings.device.name}",
            "another device first in CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES or their like",
        )
    known = {
        "backend": (f"torch {readings.torch}", "a torch built for something else"),
        "arch": arch,
        "runtime": (
            readings.runtime_source or "nothing that could be read",
            "the next major.minor of it; patch releases do not",
        ),
        "torch": (f"torch.__version__, {readings.torch}", "the next major.minor of torch"),
        "dtype": ("--dtype here, the suite's dtype in a run", "the suite"),
        "batch_size": ("--batch-size here, the suite's batch_sizes in a run", "the suite"),
    }
    identity = dataclasses.asdict(fingerprint.identity)
    return {name: reason for name, reason in known.items() if identity[name] is not None}
