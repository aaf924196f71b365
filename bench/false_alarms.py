"""How often is a clean run called a regression?

Runs the reference, which has no fault, at several batch sizes, in several batch orders and with
two attention implementations, and holds every row to the goldens of one batch size: once as the
reference itself, and once as an engine of which nothing but its answers is known, with the
reference asked (`verify --attribute always`). Prints how the rows end. None may be REGRESSION.

    python bench/false_alarms.py [--dtype bfloat16] [--golden-batch 2] [--orders 2]
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from snapshot.config import load
from snapshot.inquiry import of_engine
from snapshot.model import REFERENCE, Observation
from snapshot.plan import Plan, plans
from snapshot.progress import silent
from snapshot.resolve import resolve
from snapshot.result import Verdict
from snapshot.runners.observe import observe
from snapshot.runners.rerun import Rerun
from snapshot.runners.worker import Worker
from snapshot.store import Store
from snapshot.suite import Group, groups
from snapshot.verification import Run

ROOT = Path(__file__).resolve().parents[1]
ATTENTION = ("sdpa", "eager")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--dtype", default="bfloat16")
    options.add_argument("--golden-batch", type=int, default=2)
    options.add_argument("--orders", type=int, default=2, help="shuffled orders beside the file's")
    asked = options.parse_args()
    config = load(ROOT / "goldens.toml")
    store, day = Store(config.store), datetime.date.today()
    (plan,) = plans(config, ["multi-lora"])
    total: Counter[tuple[str, Verdict]] = Counter()
    with Rerun(plan, silent) as rerun:
        for attention in ATTENTION:
            suite = dataclasses.replace(plan.suite, attention=attention)
            with Worker(suite, asked.dtype) as worker:
                for size in plan.suite.batch_sizes[1:]:
                    here = worker.fingerprint.at(size)
                    baseline = resolve(config, store, suite.name, here.at(asked.golden_batch))
                    for name, batches in orders(plan, size, asked.orders):
                        rows = observe(worker, batches, lambda done: None)
                        own = Run(plan, REFERENCE, here, baseline, store, day)
                        verdicts = {
                            "reference": own.held(own.evidences(rows), {}).results,
                        }
                        foreign = {k: as_engine(row) for k, row in rows.items()}
                        engine = Run(plan, "engine", None, baseline, store, day)
                        evidences = engine.evidences(foreign)
                        now = of_engine(
                            rerun, plan, evidences, evidences, asked.dtype, asked.golden_batch
                        )
                        verdicts["engine"] = engine.held(evidences, now).results
                        for relation, results in verdicts.items():
                            counts = Counter(result.verdict for result in results)
                            total.update({(relation, v): n for v, n in counts.items()})
                            told = ", ".join(f"{n} {v.value}" for v, n in sorted_(counts))
                            print(
                                f"{attention} batch {size} {name}: {relation}: {told}", flush=True
                            )
    for relation in ("reference", "engine"):
        counts = Counter({v: n for (r, v), n in total.items() if r == relation})
        told = ", ".join(f"{n} {v.value}" for v, n in sorted_(counts))
        rows = sum(counts.values())
        print(f"{relation}: {rows} clean rows: {told}; REGRESSION {counts[Verdict.REGRESSION]}")


def orders(plan: Plan, size: int, shuffled: int) -> Iterator[tuple[str, list[Group]]]:
    """The file's batches, then those of seeded shuffles."""
    yield "file order", plan.groups(size)
    for number in range(1, shuffled + 1):
        cases = list(plan.cases)
        random.Random(number).shuffle(cases)
        yield f"order {number}", groups(cases, size)


def as_engine(row: object) -> Observation:
    assert isinstance(row, Observation), row
    return dataclasses.replace(row, workload=None, composition=None)


def sorted_(counts: Counter[Verdict]) -> list[tuple[Verdict, int]]:
    return [(verdict, counts[verdict]) for verdict in Verdict if counts[verdict]]


if __name__ == "__main__":
    main()
