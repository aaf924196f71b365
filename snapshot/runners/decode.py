"""Runs one kernel on one case at a time and measures it against the float64 oracle.

Imported in the worker's process only: what a kernel needs is imported with it.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from grouped_decode.candidates import Candidate, find_candidate
from grouped_decode.case import Case

from snapshot.errors import ConfigError, RunError
from snapshot.kernel_model import (
    LSE,
    OUT,
    Computed,
    KernelObservation,
    Masked,
    NotRun,
    Tensor,
)
from snapshot.kernel_policy import Bounds, within
from snapshot.metrics.movement import heat_map
from snapshot.metrics.tensors import errors, lse_error, misplaced, norm, row_errors
from snapshot.model import Array, Fingerprint, Observation
from snapshot.predicate import NODEVICE
from snapshot.runners.causes import Conditions, Experiments
from snapshot.runners.probe import fingerprint, probe
from snapshot.runners.process import Answer
from snapshot.store import blob

if TYPE_CHECKING:
    import torch
    from grouped_decode.inputs import Tensors


class Decode:
    """A kernel on a device.

    Args:
        name: of a candidate, or ``module:function``.
        device: as in `kernel_suite.KernelSuite`.
        root: folder that ``module:function`` may lie in.

    Attributes:
        fingerprint: the environment, with float32 for the dtype: each case has its own.
        problem: why the kernel cannot be imported; None where it can.

    Raises:
        ConfigError: no kernel has that name.
        RunError: torch is missing or has no such device.
    """

    def __init__(self, name: str, device: str, root: Path) -> None:
        warnings.simplefilter("ignore")
        sys.path.append(str(root))
        wanted = None if device == "auto" else device
        readings = probe(device=wanted)
        self._backend = readings.backend
        self._device = "cpu" if readings.backend == "cpu" else _torch_device(readings.backend)
        if self._device == "cpu":
            # Before Triton is imported; and it is in the fingerprint's provenance.
            os.environ["TRITON_INTERPRET"] = "1"
        self._visible = readings.backend == "cpu" or readings.device is not None
        self.fingerprint: Fingerprint = fingerprint(
            dtype="float32", batch_size=None, kernels=True, device=wanted
        )
        self.problem: RunError | None = None
        try:
            self._candidate = _find(name)
        except RunError as error:
            self.problem = error

    def run(self, key: str, mask: bool = False) -> KernelObservation | NotRun:
        """One observation of a case, or why it is not run.

        Args:
            mask: leave rows of sequences without keys out of every comparison.

        Raises:
            RunError: the kernel raised, or what it gave is no output.
        """
        case = Case.parse(key)
        if not self._visible:
            return NotRun(key, f"no device: torch is built for one and sees none ({NODEVICE})")
        reason = self._candidate.supports(case, self._backend)
        if reason is not None:
            return NotRun(key, reason)
        found = self._observe(case, key, mask, Conditions())
        if within(found.output, Bounds()):
            return found

        def attempt(case: Case, conditions: Conditions) -> Computed | None:
            try:
                return self._observe(case, key, mask, conditions).output
            except RunError:
                return None

        again = Experiments(case, found.output, attempt, self._candidate.splits)
        return replace(found, output=replace(found.output, causes=tuple(again.causes())))

    def _observe(
        self, case: Case, key: str, mask: bool, conditions: Conditions
    ) -> KernelObservation:
        from grouped_decode.baseline import attention_baseline
        from grouped_decode.inputs import generate
        from grouped_decode.oracle import attention_oracle

        inputs = generate(case)
        tensors = inputs.place(self._device)
        if conditions.clean is not None:
            conditions.clean(inputs, tensors)
        # The truth first: a kernel that writes its inputs must not move it.
        truth, truth_lse = (
            _array(t) for t in attention_oracle(*tensors.positional, **tensors.options)
        )
        _forget_compiled()
        usual = _array(attention_baseline(*tensors.positional, **tensors.options)[0])
        tensors.out.fill_(conditions.out)
        out, lse = _call(
            self._candidate,
            replace(tensors, workspace_fill=conditions.scratch, poisoned_split=conditions.split),
        )
        compared, masked = out, None
        if mask and 0 in case.lengths:
            empty = np.array(case.lengths) == 0
            masked = _masked(out, empty)
            out, lse = _as_agreed(out, lse, truth_lse, empty)
            compared = out.copy()
            compared[empty] = np.nan  # what is not finite is not compared
        arrays = {OUT: out} if lse is None else {OUT: out, LSE: lse}
        truths = {OUT: truth, LSE: truth_lse}
        bad = (misplaced(name, array, truths[name]) for name, array in arrays.items())
        return Observation(
            case=key,
            output=Computed(
                lengths=case.lengths,
                out=_tensor(out),
                lse=None if lse is None else _tensor(lse),
                errors=errors(compared, truth),
                baseline=errors(usual, truth),
                lse_error=None if lse is None else lse_error(lse, truth_lse),
                misplaced=tuple(found for found in bad if found is not None),
                rows=heat_map(row_errors(out, truth), "rel-L2 against the float64 oracle"),
                masked=masked,
            ),
            arrays=arrays,
            workload={"inputs": f"sha256:{inputs.digest()}"},
        )


def _masked(out: Array, empty: Array) -> Masked:
    """What rows of sequences without keys hold, which counts for nothing."""
    held = out[empty].astype(np.float64)
    finite = np.isfinite(held)
    return Masked(
        sequences=tuple(int(i) for i in np.flatnonzero(empty)),
        elements=held.size,
        nonfinite=int((~finite).sum()),
        nonzero=int((held[finite] != 0).sum()),
    )


def _as_agreed(
    out: Array, lse: Array | None, truth_lse: Array, empty: Array
) -> tuple[Array, Array | None]:
    """Copies in which rows of sequences without keys hold what the contract says: zeros, and the
    oracle's LSE."""
    out = out.copy()
    out[empty] = 0
    if lse is not None:
        lse = lse.copy()
        lse[empty] = truth_lse[empty]
    return out, lse


def _forget_compiled() -> None:
    """After eight shapes torch.compile gives up on a function and runs it as it is written: a
    case's bits would depend on the cases before it."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()


def load(name: str, device: str, root: Path) -> tuple[tuple[Fingerprint, RunError | None], Answer]:
    """For `runners.process`: the kernel's environment and problem, and `Decode.run`, which takes
    its arguments as one pair."""
    kernel = Decode(name, device, root)
    return (kernel.fingerprint, kernel.problem), lambda question: kernel.run(*question)


def _torch_device(backend: str) -> str:
    return "xpu" if backend == "xpu" else "cuda"  # torch calls AMD's devices cuda too


def _find(name: str) -> Candidate:
    try:
        return find_candidate(name)
    except Exception as error:  # another project's module: importing it may raise anything
        if isinstance(error, LookupError) and ":" not in name:
            known = str(error).partition("expected ")[2].rpartition(", got ")[0]
            raise ConfigError(
                "no kernel has this name", where="candidates", expected=known, got=name
            ) from None
        reason = f"{type(error).__name__}: {error}"
        raise RunError(f"a kernel cannot be imported: {reason}", where=name) from None


def _call(candidate: Candidate, tensors: Tensors) -> tuple[Array, Array | None]:
    """The kernel's output and LSE, on the host."""
    try:
        result = candidate.kernel(tensors)
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        raise RunError(
            f"the kernel raised {type(error).__name__}: {reason}",
            where=_line(error, candidate.kernel),
        ) from None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RunError(
            "the kernel gave no result",
            expected="a pair: out, and lse or None",
            got=type(result).__name__,
        )
    out, lse = result
    case = tensors.case
    shape = (case.batch, case.q_heads, case.dv)
    _require(OUT, out, shape, tensors.out.dtype)
    if lse is not None:
        _require(LSE, lse, shape[:2], None)
    return _array(out), None if lse is None else _array(lse.float())


def _line(error: Exception, kernel: Callable[..., Any]) -> str | None:
    """File and line of the kernel's own code that raised, or let through what it called."""
    file = getattr(getattr(kernel, "__code__", None), "co_filename", None)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None


def _require(name: str, tensor: Any, shape: tuple[int, ...], dtype: torch.dtype | None) -> None:
    got = (tuple(getattr(tensor, "shape", ())), getattr(tensor, "dtype", type(tensor).__name__))
    if got[0] != shape or (dtype is not None and got[1] != dtype):
        kind = "" if dtype is None else f"{dtype} "
        raise RunError(
            f"the kernel gave another {name} than was asked for",
            expected=f"{kind}{list(shape)}",
            got=f"{got[1]} {list(got[0])}",
        )


def _array(tensor: torch.Tensor) -> Array:
    """A host copy of any strides' tensor in its own dtype."""
    import torch

    tensor = tensor.detach().contiguous().cpu()
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return np.asarray(tensor.numpy())


def _tensor(array: Array) -> Tensor:
    return Tensor(array.dtype.name, array.shape, blob.digest(array), norm(array))
