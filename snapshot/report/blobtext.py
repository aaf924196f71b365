"""A blob as text, so that ``git diff`` shows numbers: git's textconv runs it on a file.

git keeps old blobs in temporary files of other names, so the digest is not compared with the
name here; every other check of the format holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from snapshot.errors import UsageError
from snapshot.metrics.nonfinite import nonfinite
from snapshot.store import blob, files

_ROWS, _COLUMNS = 200, 16  # of the array that are printed


def blob_text(path: Path) -> Iterator[str]:
    """Dtype, shape, summary and first values of a blob file.

    Raises:
        StoreError: the file cannot be read, or is no intact blob.
        UsageError: there is no such file.
    """
    try:
        data = files.read_bounded(path, blob.MAX_BYTES)
    except FileNotFoundError:
        raise UsageError("there is no such file", where=str(path)) from None
    array = blob.decode(data, None, str(path))
    yield f"{array.dtype.name} {list(array.shape)}"
    if array.size:
        values = array.astype(np.float64 if array.dtype.kind != "c" else np.complex128)
        bad = nonfinite(array)
        if array.dtype.kind != "c":
            finite = values[np.isfinite(values)]
            if finite.size:
                yield f"min {finite.min():.6g}, mean {finite.mean():.6g}, max {finite.max():.6g}"
        if bad is not None:
            yield f"{bad.count} non-finite, first {bad.value} at {list(bad.first)}"
        rows = values.reshape(-1, array.shape[-1]) if array.ndim > 1 else values.reshape(-1, 1)
        for index, row in enumerate(rows[:_ROWS]):
            more = " ..." if len(row) > _COLUMNS else ""
            yield f"{index}: " + " ".join(f"{v:.6g}" for v in row[:_COLUMNS]) + more
        if len(rows) > _ROWS:
            yield f"... {len(rows) - _ROWS} more rows"
