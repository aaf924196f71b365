"""``goldens verify --pending``: what a new golden answers is recorded, and waits for review.

It is recorded as `goldens record` does, by the same code: admitted, calibrated, beside what is
known of the environment. What verify was told by the reference counts as one of the runs, and
must come out again: what waits for review is what was judged.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from snapshot.commands.engine import Where
from snapshot.commands.generation_record import record_generation
from snapshot.commands.kernels_record import record_kernels
from snapshot.commands.record_engine import Asked, record_plan
from snapshot.commands.verify import Request
from snapshot.config import Config
from snapshot.engineconfig import chosen
from snapshot.errors import GoldensError
from snapshot.model import REFERENCE, Observation
from snapshot.offer import Offer, offers
from snapshot.outcomes.offered import Offered
from snapshot.plan import kernel_plans, plans
from snapshot.recording import Recorded, Target, target
from snapshot.resolve import Shape
from snapshot.verification import Verification


def offer(config: Config, found: Verification, folder: Path, request: Request) -> Offered:
    """Records what answers the failures of a verification, into a folder for review.

    What goes wrong meanwhile is told in `Offered.problems`: the verification stands.

    Args:
        request: the one that was verified.

    Raises:
        UsageError: the folder overlaps the goldens.
    """
    to, done = target(config.store, folder), Offered(folder)
    for record in _recordings(config, to, found, request):
        try:
            done.recorded += record()
        except GoldensError as error:
            done.problems.append(error)
    return done


def _recordings(
    config: Config, to: Target, found: Verification, request: Request
) -> Iterator[Callable[[], list[Recorded]]]:
    """Each records a part that stands or falls by itself."""
    for suite, group in itertools.groupby(found.held, lambda held: held.suite):
        offered = offers(list(group), to.goldens, kernels=suite in config.kernels)
        of_reference = [one for one in offered if one.subject == REFERENCE]
        # The model is loaded once a dtype, and its batch sizes are measured against each other.
        for dtype in dict.fromkeys(map(_dtype, of_reference)):
            same = [one for one in of_reference if _dtype(one) == dtype]
            yield functools.partial(_reference, config, to, same, dtype, request)
        for one in offered:
            if one.held.own:
                yield functools.partial(_engine, config, to, one, request)
            elif one.subject != REFERENCE:
                yield functools.partial(_kernel, config, to, one, request)


def _dtype(offer: Offer) -> str:
    assert offer.held.said is not None
    return offer.held.said.here.identity.dtype


def _reference(
    config: Config, to: Target, offered: Sequence[Offer], dtype: str, request: Request
) -> list[Recorded]:
    (plan,) = plans(config, [offered[0].held.suite])
    wanted = {one.slug: one.cases for one in offered}
    said: dict[int, dict[str, Observation]] = {}
    for one in offered:
        assert one.held.said is not None
        size = one.held.said.here.identity.batch_size or 1
        said[size] = {key: one.held.said.rows[key] for key in one.cases}
    done = record_generation(
        to,
        plan,
        dtype,
        tuple(dict.fromkeys([*plan.suite.batch_sizes, *said])),
        lambda slug: wanted.get(slug, frozenset()),
        repeat=1,
        progress=request.progress,
        said=said,
    )
    return [item for item in done if item.slug in wanted]


def _kernel(config: Config, to: Target, offered: Offer, request: Request) -> list[Recorded]:
    (plan,) = kernel_plans(config, [offered.held.suite])
    narrowed = replace(
        plan,
        suite=replace(plan.suite, candidates=(offered.held.subject,)),
        chosen=tuple(key for key in plan.chosen if key in offered.cases),
    )
    return list(
        record_kernels(
            config, to, narrowed, dtype=None, new_only=False, repeat=2, progress=request.progress
        )
    )


def _engine(config: Config, to: Target, offered: Offer, request: Request) -> list[Recorded]:
    assert request.engine is not None  # only an engine has goldens of its own beside
    (plan,) = plans(config, [offered.held.suite])
    asked = Asked(
        engine=chosen(config.engines, request.engine, request.url),
        where=Where(request.environment, request.against, Shape(request.dtype, request.batch_size)),
        progress=request.progress,
    )
    return [record_plan(config, replace(plan, chosen=offered.cases), asked, to)]
