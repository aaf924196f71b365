"""``goldens export``: the requests as JSON Lines, for an engine's own harness.

The format is `schema/requests.v1.json`; what the harness writes back is
`schema/outputs.v1.json`, read by ``goldens verify --from``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from snapshot.config import Config
from snapshot.model import Json
from snapshot.plan import generation_plans
from snapshot.shelf import Shelf
from snapshot.store import Store


def export(config: Config, selectors: Sequence[str] = ()) -> Iterator[str]:
    """One line a selected case, without its newline.

    The prompt's tokens come from a recorded golden; null where the case has none yet.

    Raises:
        UsageError: nothing is selected.
    """
    store = Store(config.store)
    for plan in generation_plans(config, selectors):
        suite = plan.suite
        shelf = Shelf(store, suite.name, None, plan.cases)
        for case in plan.cases:
            if case.key in plan.chosen:
                ids = shelf.prompt_ids(case.key)
                request: dict[str, Json] = {
                    "suite": suite.name,
                    "case": case.key,
                    "adapter": case.adapter,
                    "prompt": case.prompt,
                    "prompt_ids": None if ids is None else list(ids),
                    "max_new_tokens": suite.max_new_tokens,
                    "temperature": 0,
                    "top_logprobs": suite.top_logprobs,
                }
                yield json.dumps(request, ensure_ascii=False)
