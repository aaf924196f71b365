"""Runs one kernel on one case at a time and measures it against the float64 oracle.

Imported in the worker's process only: what a kernel needs is imported with it.
"""

from __future__ import annotations

import os
import sys
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
    NotRun,
    Tensor,
)
from snapshot.kernel_policy import Bounds, within
from snapshot.metrics.movement import heat_map
from snapshot.metrics.tensors import errors, lse_error, misplaced, norm, row_errors
from snapshot.model import Array, Fingerprint, Observation
from snapshot.predicate import NODEVICE
from snapshot.runners.probe import fingerprint, probe
from snapshot.runners.process import Answer
from snapshot.store import blob

if TYPE_CHECKING:
    import torch
    from grouped_decode.inputs import Inputs, Tensors

PADDING = ("nanpad", "garbagepad")
"""Traits that fill slots which no sequence owns."""


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

    def run(self, key: str) -> KernelObservation | NotRun:
        """One observation of a case, or why it is not run.

        Raises:
            RunError: the kernel raised, or what it gave is no output.
        """
        case = Case.parse(key)
        if not self._visible:
            return NotRun(key, f"no device: torch is built for one and sees none ({NODEVICE})")
        reason = self._candidate.supports(case)
        if reason is not None:
            return NotRun(key, reason)
        found = self._observe(case, key)
        causes = self._causes(case, key) if not within(found.output, Bounds()) else ()
        return replace(found, output=replace(found.output, causes=causes))

    def _observe(
        self,
        case: Case,
        key: str,
        fill: float = float("nan"),
        clean: Callable[[Inputs, Tensors], None] | None = None,
    ) -> KernelObservation:
        """Runs it with `fill` in output and scratch, on a cache that `clean` has changed."""
        from grouped_decode.baseline import attention_baseline
        from grouped_decode.inputs import generate
        from grouped_decode.oracle import attention_oracle

        inputs = generate(case)
        tensors = inputs.place(self._device)
        if clean is not None:
            clean(inputs, tensors)
        # The truth first: a kernel that writes its inputs must not move it.
        truth, truth_lse = (
            _array(t) for t in attention_oracle(*tensors.positional, **tensors.options)
        )
        _forget_compiled()
        usual = _array(attention_baseline(*tensors.positional, **tensors.options)[0])
        tensors.out.fill_(fill)
        out, lse = _call(self._candidate, replace(tensors, workspace_fill=fill))
        arrays = {OUT: out} if lse is None else {OUT: out, LSE: lse}
        truths = {OUT: truth, LSE: truth_lse}
        bad = (misplaced(name, array, truths[name]) for name, array in arrays.items())
        return Observation(
            case=key,
            output=Computed(
                lengths=case.lengths,
                out=_tensor(out),
                lse=None if lse is None else _tensor(lse),
                errors=errors(out, truth),
                baseline=errors(usual, truth),
                lse_error=None if lse is None else lse_error(lse, truth_lse),
                misplaced=tuple(found for found in bad if found is not None),
                rows=heat_map(row_errors(out, truth), "rel-L2 against the float64 oracle"),
            ),
            arrays=arrays,
            workload={"inputs": f"sha256:{inputs.digest()}"},
        )

    def _causes(self, case: Case, key: str) -> tuple[str, ...]:
        """What a wrong result depends on and must not: runs it again without one thing each."""

        def right(*args: Any) -> bool:
            try:
                return within(self._observe(*args).output, Bounds())
            except RunError:
                return False

        found = []
        if right(case, key, 0.0):
            found.append("depends on what output or scratch held: right where they held zeros")
        for trait in PADDING:
            if trait in case.traits and right(_without(case, trait), key):
                tails = case.page_size > 1 and right(case, key, float("nan"), _clean_tails)
                where = "the unused slots of last pages" if tails else "slots that nobody owns"
                found.append(f"depends on padding: right where {where} hold zeros")
        return tuple(found)


def _forget_compiled() -> None:
    """After eight shapes torch.compile gives up on a function and runs it as it is written: a
    case's bits would depend on the cases before it."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()


def _clean_tails(inputs: Inputs, tensors: Tensors) -> None:
    """Zeros in the slots of each sequence's last page that hold no key."""
    import torch

    case, page = inputs.case, inputs.case.page_size
    tails = [
        int(inputs.kv_indices[end - 1]) * page + offset
        for end, length in zip(inputs.kv_indptr[1:], case.lengths, strict=True)
        for offset in range((length - 1) % page + 1 if length else page, page)
    ]
    slots = torch.tensor(tails, dtype=torch.long, device=tensors.q.device)
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[tensors.k_buffer.element_size()]
    for buffer in (tensors.k_buffer, tensors.v_buffer):
        buffer.view(bits)[slots] = 0


def load(name: str, device: str, root: Path) -> tuple[tuple[Fingerprint, RunError | None], Answer]:
    """For `runners.process`: the kernel's environment and problem, and its `Decode.run`."""
    kernel = Decode(name, device, root)
    return (kernel.fingerprint, kernel.problem), kernel.run


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


def _without(case: Case, trait: str) -> Case:
    return replace(case, traits=tuple(t for t in case.traits if t != trait))


def _call(candidate: Candidate, tensors: Tensors) -> tuple[Array, Array | None]:
    """The kernel's output and LSE, on the host."""
    try:
        result = candidate.kernel(tensors)
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        raise RunError(f"the kernel raised {type(error).__name__}: {reason}") from None
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
