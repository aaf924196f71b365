"""Asks an engine the cases of a suite, and holds what it says to the goldens.

Two questions are kept apart. Is it right? is asked of the reference's goldens. Did it move? is
asked of the engine's own: there, what it does differently for good drops out.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from snapshot.attribute import ENVIRONMENT
from snapshot.config import Config
from snapshot.engineconfig import EngineConfig
from snapshot.errors import GoldensError, RunError, UsageError
from snapshot.evidence import Evidence, Now
from snapshot.model import Fingerprint, Golden, Observation
from snapshot.plan import Plan
from snapshot.progress import Progress
from snapshot.resolve import Baseline, Shape, against, named_environment, resolve
from snapshot.result import Verdict
from snapshot.runners.engines import open_engine
from snapshot.runners.engines.engine import SCORING, About, Ask, Engine, Refused
from snapshot.runners.observe import Rows
from snapshot.store import Store
from snapshot.verification import Held, Run

Scores = Mapping[str, Observation]
"""The engine on given tokens, by case key; without the rows that it did not score."""

Attribute = Callable[[Mapping[str, Evidence], Baseline, Scores], Mapping[str, Now]]
"""Asks the reference about the cases that need it."""


@dataclass(frozen=True)
class Where:
    """What an engine's cases are held to, as the command line or goldens.toml says.

    Attributes:
        environment: a declared environment.
        slug: a recorded fingerprint.
        shape: dtype and batch size, where the environment has goldens of several.
    """

    environment: str | None = None
    slug: str | None = None
    shape: Shape = field(default_factory=lambda: Shape(None, None))


@dataclass(frozen=True)
class Answers:
    """All that an engine said.

    Attributes:
        rows: by case key: what the case gave, or why it gave nothing.
        scores: on the reference's goldens' tokens.
        own_scores: on its own goldens' tokens, where it did not say those again.
        about: what it tells of itself.
    """

    rows: Rows
    scores: Scores = field(default_factory=dict)
    own_scores: Scores = field(default_factory=dict)
    about: About = field(default_factory=About)


def baseline_of(
    config: Config,
    store: Store,
    plan: Plan,
    engine: EngineConfig,
    here: Fingerprint | None,
    where: Where,
) -> Baseline:
    """The goldens that an engine is held to.

    Raises:
        UsageError: nothing says in which environment it runs.
    """
    suite = plan.suite.name
    if where.slug is not None:
        return against(store, suite, where.slug, where.shape)
    environment = where.environment or engine.environment
    if environment is not None:
        return named_environment(config, store, suite, environment, where.shape)
    if here is not None:
        return resolve(config, store, suite, here)
    recorded = store.fingerprints(suite)
    raise UsageError(
        "a server does not say in which environment it runs",
        where=engine.where,
        expected="environment = NAME there, or --environment NAME or --against SLUG",
        got="none of them",
        hint=f"--against one of {', '.join(recorded)}" if recorded else "goldens record",
    )


def verify_engine(
    config: Config,
    store: Store,
    plan: Plan,
    settings: EngineConfig,
    where: Where,
    attribute: Attribute,
    day: datetime.date,
    progress: Progress,
) -> Iterator[Held]:
    """Asks the engine, and yields the answer to each question that has goldens.

    Raises:
        UsageError: nothing says where it runs, or it cannot be configured so.
        RunError: it cannot be reached or loaded.
    """
    with contextlib.closing(open_engine(settings, plan)) as engine:
        here = engine.about().fingerprint
        baseline = baseline_of(config, store, plan, settings, here, where)
        right = Run(plan, settings.name, here, baseline, store, day)
        right.check()  # before hours of work, not after
        own = own_run(right)
        answers = ask(engine, right, own, progress)
    held = _right(right, answers, attribute)
    yield held
    if own is not None:
        yield _moved(own, answers, held)


def own_run(right: Run) -> Run | None:
    """The same run held to the subject's own goldens; None where it has none there."""
    slug, suite = right.baseline.slug, right.plan.suite.name
    if slug is None or right.subject not in right.store.subjects(suite, slug):
        return None
    return dataclasses.replace(right, held_to=right.subject)


def ask(engine: Engine, right: Run, own: Run | None, progress: Progress) -> Answers:
    """Lets the engine answer the selected cases, then score what the goldens say.

    A row that it refuses to score is compared by what remains; one at which it breaks, and broke
    at none before, is an error, whatever it said before.
    """
    suite = right.plan.suite
    label = f"verify {suite.name} {right.subject}"
    asks = [
        Ask(case, right.shelf.prompt_ids(case.key), suite.max_new_tokens, suite.top_logprobs)
        for case in right.plan.cases
        if case.key in right.plan.chosen
    ]
    with progress(label, len(asks)) as advance:
        rows = engine.run(asks, advance)
    for missing in (a.key for a in asks if a.key not in rows):
        rows[missing] = RunError("the engine gave neither an output nor an error for this case")
    about = engine.about()
    if SCORING in about.cannot:
        return Answers(rows, about=about)
    failing = any(_broke(row) for row in rows.values())
    goldens = _goldens(right, asks, rows)
    scores = _score(engine, asks, goldens, f"{label}, on the golden's tokens", progress)
    rows = {key: _with_prompt(row, scores.get(key)) for key, row in rows.items()}
    others: Rows = {}
    if own is not None:
        again = {key: row for key, row in rows.items() if isinstance(row, Observation)}
        goldens = {
            key: golden
            for key, golden in _goldens(own, asks, rows).items()
            if golden.observation.output.token_ids != again[key].output.token_ids
        }
        others = _score(engine, asks, goldens, f"{label}, on its own golden's tokens", progress)
    broken: Rows = {
        key: RunError(f"answered, and failed when asked to score given tokens: {row.what}")
        for found in (scores, others)
        for key, row in found.items()
        if isinstance(row, GoldensError) and _broke(row)
    }
    if failing and broken:
        # An engine that had failed already: what it answered before stays answered.
        lost = {SCORING: f"the engine had failed before, and failed at {len(broken)} rows more"}
        about = dataclasses.replace(about, cannot={**about.cannot, **lost})
        broken = {}
    return Answers({**rows, **broken}, _scored(scores), _scored(others), about)


# -------------------------------------------------------------------- the questions


def _right(run: Run, answers: Answers, attribute: Attribute) -> Held:
    """Is it right? Each case against the reference's golden."""
    now = {key: Now(candidate_forced=row, asked=False) for key, row in answers.scores.items()}
    evidences = {
        key: dataclasses.replace(e, now=now.get(key))
        for key, e in run.evidences(answers.rows).items()
    }
    now |= attribute(evidences, run.baseline, answers.scores)
    about = answers.about
    held = run.held(evidences, now)
    return dataclasses.replace(held, engine=about.provenance, unchecked=about.cannot)


def _moved(run: Run, answers: Answers, right: Held) -> Held:
    """Did it move? Each case against the engine's own golden, with what the reference did
    meanwhile, where it was asked."""
    now = {key: Now(candidate_forced=row, asked=False) for key, row in answers.own_scores.items()}
    for result in right.results:
        found = result.attribution
        if found is not None and found.moves and found.moves[0].name == ENVIRONMENT:
            now[result.case] = dataclasses.replace(
                now.get(result.case, Now(asked=False)),
                reference_moved=not found.moves[0].still,
                follows=result.verdict.passes or result.verdict is Verdict.DRIFT,
            )
    return run.held(run.evidences(answers.rows), now)


# ------------------------------------------------------------------------- scoring


def _goldens(run: Run, asks: Sequence[Ask], rows: Rows) -> dict[str, Golden]:
    """The goldens of the rows that were answered, where they hold tokens to score."""
    found = {a.key: run.shelf.golden(a.key) for a in asks if isinstance(rows[a.key], Observation)}
    return {
        key: golden
        for key, golden in found.items()
        if isinstance(golden, Golden) and golden.observation.output.token_ids
    }


def _score(
    engine: Engine,
    asks: Sequence[Ask],
    goldens: Mapping[str, Golden],
    label: str,
    progress: Progress,
) -> Rows:
    """The engine on the goldens' tokens; each with the golden's output, whose scores they are."""
    outputs = {key: golden.observation.output for key, golden in goldens.items()}
    wanted = [a for a in asks if a.key in outputs]
    if not wanted:
        return {}
    with progress(label, len(wanted)) as advance:
        tokens = {key: output.token_ids or () for key, output in outputs.items()}
        rows = engine.score(wanted, tokens, advance)
    return {
        key: dataclasses.replace(row, output=outputs[key]) if isinstance(row, Observation) else row
        for key, row in rows.items()
    }


def _broke(row: Observation | GoldensError) -> bool:
    """Whether the engine failed at it; a refusal is an answer."""
    return isinstance(row, GoldensError) and not isinstance(row, Refused)


def _scored(rows: Rows) -> dict[str, Observation]:
    return {key: row for key, row in rows.items() if isinstance(row, Observation)}


def _with_prompt(
    row: Observation | GoldensError, scored: Observation | GoldensError | None
) -> Observation | GoldensError:
    """The row with the prompt's logprobs, which scoring told: the prompt is the same."""
    if not isinstance(row, Observation) or not isinstance(scored, Observation):
        return row
    same = row.output.prompt_ids == scored.output.prompt_ids
    if "prompt_logprobs" in row.arrays or "prompt_logprobs" not in scored.arrays or not same:
        return row
    prompt = scored.arrays["prompt_logprobs"]
    return dataclasses.replace(row, arrays={**row.arrays, "prompt_logprobs": prompt})
