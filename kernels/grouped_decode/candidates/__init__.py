"""Kernels that can be held to the oracle, by name; every one is called the same way.

A candidate takes a case's `Tensors` and returns ``(out, lse)``: out [B, Hq, Dv], lse [B, Hq] in
natural units or None if it does not give one. What it documents not to support it declares; such
a case is *not run*, with the reason, and never a pass. What it merely gets wrong is run and found.

Other packages add candidates through the entry-point group ``goldens.kernels``: an entry loads a
`Candidate`, or a callable as above. ``module:function`` names such a callable directly.
"""

from grouped_decode.candidates.candidate import Candidate, Kernel, Result
from grouped_decode.candidates.registry import CANDIDATES, find_candidate

__all__ = ["CANDIDATES", "Candidate", "Kernel", "Result", "find_candidate"]
