"""How much of `goldens verify` is not the model: wall time outside the model's process.

    python bench/verify_overhead.py [SELECTOR ...] [--batch-size N] [--dtype D]

Times every wait for the model's process (loading it, and each batch) in this run, and prints
what is left: reading, checking and comparing goldens, sending rows between processes, imports.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections.abc import Callable
from typing import Any

START = time.perf_counter()

from snapshot.cli import main  # noqa: E402  imports count
from snapshot.runners import worker  # noqa: E402

waited = 0.0


def timed(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        global waited
        begin = time.perf_counter()
        try:
            return method(*args, **kwargs)
        finally:
            waited += time.perf_counter() - begin

    return call


if __name__ == "__main__":
    worker.Worker._receive = timed(worker.Worker._receive)  # type: ignore[method-assign]
    profile = cProfile.Profile()
    profile.enable()
    try:
        main(["verify", *sys.argv[1:]])
    except SystemExit as end:
        code = end.code
    profile.disable()
    wall = time.perf_counter() - START
    pstats.Stats(profile).sort_stats("cumulative").print_stats("snapshot", 15)
    if code:
        sys.exit(f"verify ended with exit code {code}: the figure would mean nothing")
    outside = wall - waited
    print(f"wall {wall:.1f} s, model {waited:.1f} s, outside {outside:.2f} s (profiled)")
    print(f"share outside the model: {100 * outside / wall:.1f}%")
