"""``goldens record --engine``: keeps what an engine gives as that engine's own goldens.

They lie beside the reference's, in the engine's own folder, and can only ever say whether the
engine moved; never whether it is right.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path

from snapshot.admission import UNSTABLE, refusals, refused
from snapshot.commands.engine import Where, ask, baseline_of
from snapshot.config import Config
from snapshot.difference import Finding
from snapshot.engineconfig import EngineConfig
from snapshot.errors import UsageError
from snapshot.model import Json, Observation
from snapshot.plan import Plan, plans
from snapshot.progress import Progress, silent
from snapshot.recording import Recorded, Target, target, write_goldens
from snapshot.resolve import Baseline
from snapshot.runners.engines import open_engine
from snapshot.runners.observe import complete
from snapshot.verification import Run


@dataclasses.dataclass(frozen=True)
class Asked:
    """What is to be recorded of which engine; see `goldens record --help`."""

    engine: EngineConfig
    where: Where = dataclasses.field(default_factory=Where)
    selectors: Sequence[str] = ()
    new_only: bool = False
    repeat: int = 2
    pending: Path | None = None
    update_in_ci: bool = False
    progress: Progress = silent


def record_engine(config: Config, asked: Asked) -> list[Recorded]:
    """Asks the engine and keeps what it gives, beside the goldens that it is held to.

    Raises:
        UsageError: nothing is selected, nothing says where the engine runs, or the reference
            was not recorded there.
        RecordRefused: naming the rows that must not become goldens.
        RunError: the engine cannot be reached, or failed at a row.
        StoreError: an existing golden is damaged; it is not overwritten.
    """
    to = target(config.store, asked.pending, update_in_ci=asked.update_in_ci)
    return [record_plan(config, plan, asked, to) for plan in plans(config, asked.selectors)]


def record_plan(config: Config, plan: Plan, asked: Asked, to: Target) -> Recorded:
    """As `record_engine`, for the selected cases of one suite."""
    store, name, suite = to.goldens, asked.engine.name, plan.suite.name
    runs: list[dict[str, Observation]] = []
    about: Mapping[str, Json] = {}
    with contextlib.closing(open_engine(asked.engine, plan)) as engine:
        here = engine.about().fingerprint
        baseline = baseline_of(config, store, plan, asked.engine, here, asked.where)
        slug = _slug(baseline, asked.engine)
        if asked.new_only:
            kept = set(store.cases(suite, slug, name))
            plan = dataclasses.replace(plan, chosen=plan.chosen - kept)
        wanted = dataclasses.replace(plan, chosen=plan.with_base_rows(plan.chosen))
        run = Run(wanted, name, here, baseline, store, datetime.date.today())
        for _ in range(asked.repeat):
            runs.append(complete(ask(engine, run, None, asked.progress).rows))
        about = engine.about().provenance
    found = _faults(wanted, runs)
    if found:
        raise refused(suite, found)
    done = write_goldens(
        to,
        suite,
        name,
        store.read_fingerprint(suite, slug).fingerprint,
        [row for key, row in runs[0].items() if key in plan.chosen],
        {},
        whole=False,
        by={k: str(about[k]) for k in ("engine", "version") if k in about},
    )
    return dataclasses.replace(done, calibration={})


def _slug(baseline: Baseline, engine: EngineConfig) -> str:
    if baseline.slug is None:
        raise UsageError(
            "an engine's goldens lie beside the reference's, and there are none",
            where=engine.where,
            expected="goldens of the reference in the engine's environment",
            got=baseline.full,
            hint="goldens record there, or --against SLUG",
        )
    return baseline.slug


def _faults(plan: Plan, runs: Sequence[Mapping[str, Observation]]) -> list[Finding]:
    """Why these rows must not become goldens. An engine's batches change from run to run, and
    with them its numbers' last bits; its words must not."""
    first, allow = runs[0], plan.suite.policy.allow
    cases = [case for case in plan.cases if case.key in first]
    words = [{k: dataclasses.replace(row, arrays={}) for k, row in run.items()} for run in runs]
    changed = refusals(cases, words[0], repeats=words[1:], allow=allow)
    return [
        *refusals(cases, first, allow=allow),
        *(finding for finding in changed if finding.check == UNSTABLE),
    ]
