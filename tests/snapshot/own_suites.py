"""This repository's own suites as a verification, without running their model.

Every recorded environment is held to the goldens of batch size 1 and its dtype: float32 says the
same everywhere, bfloat16 words some rows otherwise. What is shown is real, and needs no torch.
"""

from __future__ import annotations

from pathlib import Path

from snapshot.config import load
from snapshot.model import Golden
from snapshot.plan import plans
from snapshot.resolve import against
from snapshot.result import Result
from snapshot.shelf import Shelf
from snapshot.store import Store
from snapshot.verdict import Evidence, judge
from snapshot.verification import Held, Verification

ROOT = Path(__file__).resolve().parents[2]


def verification(variants: bool = True) -> Verification:
    """Args: variants: whether other batch sizes' wordings are known, as verify knows them."""
    config = load(ROOT / "goldens.toml")
    store = Store(config.store)
    (plan,) = plans(config, ["multi-lora"])
    suite = plan.suite.name
    held = []
    for slug in store.fingerprints(suite):
        here = store.read_fingerprint(suite, slug).fingerprint
        baseline = against(store, suite, here.identity.at(1).slug)
        shelf = Shelf(store, suite, baseline.slug, plan.cases)
        results: list[Result] = []
        for case in plan.cases:
            candidate = store.read(suite, slug, "reference", case.key).observation
            golden = shelf.golden(case.key)
            assert isinstance(golden, Golden)
            evidence = Evidence(
                suite=suite,
                case=case.key,
                adapter=case.adapter,
                subject="reference",
                here=here,
                candidate=candidate,
                golden=golden,
                recorded=shelf.recorded,
                siblings=shelf.siblings(case),
                variants=shelf.variants(case.key) if variants else (),
            )
            results.append(judge(evidence))
        held.append(Held(suite, "reference", slug, baseline, tuple(results)))
    return Verification(tuple(held))
