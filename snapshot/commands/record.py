"""``goldens record``: runs the reference and the kernels, and keeps what they give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from snapshot.commands.generation_record import record_generation
from snapshot.commands.kernels_record import record_kernels
from snapshot.config import Config
from snapshot.model import REFERENCE
from snapshot.plan import Plan, both_kinds, narrow
from snapshot.progress import Progress, silent
from snapshot.recording import Recorded, target


def record(
    config: Config,
    selectors: Sequence[str] = (),
    *,
    batch_size: int | None = None,
    dtype: str | None = None,
    candidate: str | None = None,
    new_only: bool = False,
    repeat: int = 2,
    pending: Path | None = None,
    update_in_ci: bool = False,
    progress: Progress = silent,
) -> list[Recorded]:
    """Records the selected cases at the suite's batch sizes and dtypes.

    Nothing is written for a generation suite and dtype unless all of it may be. Kernels' cases
    stand alone: what may be is written, what may not is refused.

    Args:
        candidate: only this one of the kernel suites' candidates.
        new_only: leave every golden that exists as it is.
        repeat: runs of every batch; each one after the first in a fresh process.
        pending: write there instead of into the store.
        update_in_ci: write into the store although this is a CI job.

    Raises:
        UsageError: nothing is selected, or this is a CI job.
        RecordRefused: naming the rows that must not become goldens.
        RunError: a batch could not be run.
        StoreError: an existing golden is damaged; it is not overwritten.
    """
    to = target(config.store, pending, update_in_ci=update_in_ci)
    done: list[Recorded] = []
    generation, kernels = both_kinds(config, selectors, batch_size=batch_size, candidate=candidate)
    for plan in generation:
        suite = plan.suite

        def wanted(slug: str, plan: Plan = plan) -> frozenset[str]:
            if not new_only:
                return plan.chosen
            return plan.chosen - set(to.goldens.cases(plan.suite.name, slug, REFERENCE))

        sizes = narrow(suite, "batch_sizes", suite.batch_sizes, batch_size)
        for name in narrow(suite, "dtype", suite.dtypes, dtype):
            done += record_generation(
                to, plan, name, sizes, wanted, repeat=repeat, progress=progress
            )
    for kernel_plan in kernels:
        done += record_kernels(
            config,
            to,
            kernel_plan,
            dtype=dtype,
            new_only=new_only,
            repeat=repeat,
            progress=progress,
        )
    return done
