"""What a candidate is, and the words for what it does not support."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grouped_decode.case import Case
from grouped_decode.inputs import Tensors

if TYPE_CHECKING:
    import torch

Result = tuple["torch.Tensor", "torch.Tensor | None"]
Kernel = Callable[[Tensors], Result]
Limits = Callable[[Case], str | None]
"""Why a case is outside what a kernel documents, or None where it is inside."""


def no_limits(case: Case) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A named kernel.

    Attributes:
        name: what it is called on the command line and in goldens.
        kernel: the callable; it imports what it needs when called.
        limits: see `Limits`.
        modules: what must be importable for it to run here.
        backends: of ``cpu``, ``cuda``, ``rocm``, ``xpu``, those it runs on; empty: all.
        splits: how many splits its scratch has, where it names their axis in `Tensors.scratch`.
    """

    name: str
    kernel: Kernel
    limits: Limits = no_limits
    modules: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    splits: int | None = None

    def supports(self, case: Case, backend: str) -> str | None:
        """None, or the reason why the case is not run on a machine of that backend."""
        if self.backends and backend not in self.backends:
            return f"runs on {' and '.join(self.backends)} only"
        for module in self.modules:
            if not _importable(module):
                return f"{module} is not installed"
        return self.limits(case)


def refuse(case: Case, **limits: bool) -> str | None:
    """The first limit that holds, in words: underscores are spaces."""
    return next((name.replace("_", " ") for name, holds in limits.items() if holds), None)


def interpreted() -> bool:
    """Whether Triton kernels run in the interpreter, whose bfloat16 products are garbage."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of a package that it lies in
        return False
