"""``goldens sweep``: the reference alone, at every batch size: which wording does each give?

Run before a recording, or when a reference is said to have moved: a word that changes with
the batch is no regression of anything.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from snapshot.config import Config
from snapshot.errors import GoldensError
from snapshot.metrics.tokens import divergence
from snapshot.model import Observation
from snapshot.outcomes.sweep import Cell, Sweep, SweptCase
from snapshot.plan import Plan, generation_plans, narrow
from snapshot.progress import Progress, silent
from snapshot.runners.observe import Rows, observe
from snapshot.runners.worker import Worker
from snapshot.statistics import SEED
from snapshot.suite import Group


def sweep(
    config: Config,
    selectors: Sequence[str],
    *,
    batch_size: int | None = None,
    dtype: str | None = None,
    orders: int = 0,
    progress: Progress = silent,
) -> list[Sweep]:
    """Runs the selected cases at every batch size. Writes nothing.

    Args:
        orders: shuffled compositions to run beside the file's at each batch size above one.

    Raises:
        UsageError: nothing is selected.
        RunError: the model cannot be loaded.
    """
    found = []
    for plan in generation_plans(config, selectors):
        sizes = narrow(plan.suite, "batch_sizes", plan.suite.batch_sizes, batch_size)
        for name in narrow(plan.suite, "dtype", plan.suite.dtypes, dtype):
            batches = _columns(plan, sizes, orders)
            with Worker(plan.suite, name) as worker:
                runs: dict[str, Rows] = {}
                for column, run in batches.items():
                    label = f"sweep {plan.suite.name} {name} {column}"
                    with progress(label, sum(len(group.rows) for group in run)) as advance:
                        runs[column] = observe(worker, run, advance)
            found.append(
                Sweep(
                    suite=plan.suite.name,
                    dtype=name,
                    slug=worker.fingerprint.slug,
                    columns=tuple(runs),
                    cases=tuple(
                        _case(case.key, list(runs.values()))
                        for case in plan.cases
                        if case.key in plan.chosen
                    ),
                )
            )
    return found


def _columns(plan: Plan, sizes: Sequence[int], orders: int) -> dict[str, list[Group]]:
    """The batches of each column; shuffles are seeded, so a sweep repeats."""
    found: dict[str, list[Group]] = {}
    for size in sizes:
        found[f"batch {size}"] = plan.groups(size)
        for number in range(1, orders + 1 if size > 1 else 1):
            cases = list(plan.cases)
            random.Random(SEED + number).shuffle(cases)
            shuffled = replace(plan, cases=tuple(cases))
            found[f"batch {size}, order {number}"] = shuffled.groups(size)
    return found


def _case(key: str, runs: Sequence[Rows]) -> SweptCase:
    wordings: dict[str, int] = {}
    cells: list[Cell] = []
    first: Observation | None = None
    for run in runs:
        row = run[key]
        if isinstance(row, GoldensError):
            cells.append(Cell(None, error=row.what))
            continue
        first = first or row
        wording = wordings.setdefault(row.output.text, len(wordings))
        cells.append(Cell(wording, divergence(first, row)))
    return SweptCase(key, tuple(wordings), tuple(cells))
