"""What of a kernel's output goes into the repository: all of it, or what judges it without.

A tensor over the budget keeps, besides the whole one's digest in the readable file: a digest and
a norm of each row, and evenly spread rows in full. MATCH is decided by the digest all the same;
of a result whose bits moved, the rows that did are counted and the distances are sampled.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from snapshot.kernel_model import OUT, Computed, KernelObservation, Moved
from snapshot.metrics.tensors import moved, row_digests, row_norms, rows
from snapshot.model import Array, Golden

DIGESTS = "out_row_digests"
NORMS = "out_row_norms"
SAMPLED = "out_sampled_rows"
SAMPLE = "out_sample"


def trimmed(observation: KernelObservation, budget: int) -> KernelObservation:
    """The observation as it is recorded: an output over `budget` bytes gives way to a sketch.

    The sketch: `DIGESTS` uint32 [rows], `NORMS` float32 [rows], `SAMPLED` int32 [k], indices
    of rows, and `SAMPLE` [k, Dv], those rows: as many as fit, one at least.
    """
    out = observation.arrays[OUT]
    if out.nbytes <= budget:
        return observation
    table = rows(out)
    count = max(1, min(len(table), budget // max(1, table[0].nbytes)))
    chosen = (np.arange(count, dtype=np.int64) * len(table) // count).astype(np.int32)
    sketch = {
        DIGESTS: row_digests(out),
        NORMS: row_norms(out),
        SAMPLED: chosen,
        SAMPLE: table[chosen],
    }
    kept = {name: array for name, array in observation.arrays.items() if name != OUT}
    return replace(observation, arrays={**kept, **sketch})


def compare(golden: Golden[Computed], out: Array) -> Moved:
    """What of `out` [B, Hq, Dv] has not the golden's bits.

    Raises:
        ValueError: the golden's output has another dtype or shape, or its arrays do not fit.
        StoreError: a blob of the golden cannot be read.
    """
    arrays, recorded = golden.observation.arrays, golden.observation.output.out
    if (recorded.dtype, recorded.shape) != (out.dtype.name, out.shape):
        raise ValueError(
            f"expected the golden's {recorded.dtype} {list(recorded.shape)}, "
            f"got {out.dtype.name} {list(out.shape)}"
        )
    if OUT in arrays:
        return moved(arrays[OUT], out)
    table, chosen = rows(out), arrays[SAMPLED]
    digests = arrays[DIGESTS]
    if digests.shape != (len(table),) or not ((chosen >= 0) & (chosen < len(table))).all():
        raise ValueError(f"the golden's rows do not fit an output of {len(table)} rows")
    sampled = moved(arrays[SAMPLE], table[chosen])
    worst = int(chosen[sampled.row[0]]) if sampled.row else 0
    return replace(
        sampled,
        elements=None,
        sampled=len(chosen),
        rows=int((digests != row_digests(out)).sum()),
        of_rows=len(table),
        row=tuple(int(i) for i in np.unravel_index(worst, out.shape[:-1])),
    )
