"""Kernel observations, goldens and evidence, for tests that run no kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from snapshot.kernel_model import LSE, OUT, Computed, KernelObservation, Tensor
from snapshot.kernel_verdict import KernelEvidence
from snapshot.metrics.tensors import errors, lse_error, misplaced, norm
from snapshot.model import Array, Fingerprint, Golden, Identity, Observation, RecordedFingerprint
from snapshot.payload import trimmed
from snapshot.store import blob

SUITE = "decode"
KEY = "B2-H4-1-D64-8-S100-float16"
SHAPE = (2, 4, 8)
HERE = Identity("cuda", "sm_90", "cuda13.0", "2.11", "float16", triton="3.6")
DTYPES = {"float16": np.float16, "float32": np.float32, "bfloat16": ml_dtypes.bfloat16}


def truth(shape: tuple[int, ...] = SHAPE) -> Array:
    """Float64 values of size 1 to 2."""
    return 1 + np.random.default_rng(7).random(shape)


def right(dtype: str = "float16", shape: tuple[int, ...] = SHAPE) -> Array:
    """The truth, rounded."""
    return truth(shape).astype(DTYPES[dtype])


def observe(
    out: Array | None = None,
    *,
    lse: Array | None = None,
    lse_truth: Array | None = None,
    case: str = KEY,
    baseline: Array | None = None,
    workload: Mapping[str, str] | None = None,
    causes: tuple[str, ...] = (),
) -> KernelObservation:
    """What a kernel that gives `out` is observed as, against `truth`."""
    out = right() if out is None else out
    want = truth(out.shape)
    usual = want.astype(out.dtype) if baseline is None else baseline
    arrays = {OUT: out} if lse is None else {OUT: out, LSE: lse}
    lse_want = np.zeros(out.shape[:-1]) if lse_truth is None else lse_truth
    bad = [misplaced(OUT, out, want)]
    if lse is not None:
        bad.append(misplaced(LSE, lse, lse_want))
    return Observation(
        case=case,
        output=Computed(
            lengths=(100,) * out.shape[0],
            out=tensor(out),
            lse=None if lse is None else tensor(lse),
            errors=errors(out, want),
            baseline=errors(usual, want),
            lse_error=None if lse is None else lse_error(lse, lse_want),
            misplaced=tuple(found for found in bad if found is not None),
            causes=causes,
        ),
        arrays=arrays,
        workload={"inputs": "sha256:" + "0" * 64} if workload is None else workload,
    )


def tensor(array: Array) -> Tensor:
    return Tensor(array.dtype.name, array.shape, blob.digest(array), norm(array))


def golden(
    observation: KernelObservation | None = None, *, budget: int = 1 << 20, subject: str = "triton"
) -> Golden[Computed]:
    found = observe() if observation is None else observation
    return Golden(SUITE, HERE.slug, subject, trimmed(found, budget))


def evidence(candidate: Any = None, **fields: Any) -> KernelEvidence:
    """A candidate that equals its golden, in the golden's environment."""
    usual: dict[str, Any] = {
        "suite": SUITE,
        "case": KEY,
        "subject": "triton",
        "here": Fingerprint(HERE),
        "candidate": observe() if candidate is None else candidate,
        "golden": golden(),
        "recorded": RecordedFingerprint(SUITE, Fingerprint(HERE)),
    }
    return KernelEvidence(**{**usual, **fields})
