"""The state of a suite: what is recorded, what is missing, and what is held less strictly."""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path

import pytest

from snapshot.commands.generation_audit import _as_engine, _score
from snapshot.commands.status import status
from snapshot.config import Config, load
from snapshot.difference import Distance
from snapshot.history import remember
from snapshot.model import Golden, RecordedFingerprint
from snapshot.outcomes.status import SuiteStatus
from snapshot.plan import plans
from snapshot.resolve import Baseline
from snapshot.result import Result, Verdict
from snapshot.store import Store
from snapshot.verification import Held, Verification
from tests.snapshot.builders import (
    CUDA,
    DAY,
    ROCM10,
    SUITE_TOML,
    fingerprint,
    noise,
    observation,
    project,
)

RULE = """
[[suites.s.relax]]
case = "*"
when = { rocm = ">=10" }
logprob = { max = 0.1 }
reason = "r"
issue = "https://example.org/1"
owner = "@o"
expires = 2027-03-01
"""
ENVIRONMENT = """
[environments.mi300]
match = { rocm = ">=10" }
[environments.other]
match = { backend = "xpu" }
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load(project(tmp_path, SUITE_TOML + RULE + ENVIRONMENT))


def keys(config: Config) -> list[str]:
    return [case.key for case in plans(config, ())[0].cases]


def record(config: Config, *cases: str) -> None:
    store = Store(config.store)
    calibration = {**noise(batch_sizes=0.02), "adapter_effect": {"w": 0.05}}
    store.write_fingerprint(RecordedFingerprint("s", fingerprint(ROCM10), calibration))
    for case in cases:
        store.write(Golden("s", ROCM10.slug, "reference", observation(case=case)))


def verified(config: Config, slug: str, verdict: Verdict, case: str) -> None:
    moved = Distance(9, 0.02, 0.05, "step 1")
    result = Result("s", case, "reference", slug, None, verdict, "", distance=moved)
    held = Held("s", "reference", slug, Baseline(None, ""), (result,))
    remember(config, Verification((held,)))


def one(config: Config) -> SuiteStatus:
    (found,) = status(config, DAY)
    return found


def test_nothing_recorded_and_nothing_observed(config: Config) -> None:
    found = one(config)
    assert (found.suite, found.cases, found.recorded) == ("s", tuple(keys(config)), ())
    assert set(found.environments.values()) == {"no golden"}
    (entry,) = found.rules
    assert (entry.covers, entry.observed, entry.advice, entry.since) == (3, 0, (), None)
    assert entry.days_left == (datetime.date(2027, 3, 1) - DAY).days


def test_what_is_recorded_missing_and_stale(config: Config) -> None:
    first, *rest = keys(config)
    record(config, first, "base/no-longer-11111111")
    (recorded,) = one(config).recorded
    assert recorded.slug == ROCM10.slug and recorded.cases == 1
    assert recorded.missing == tuple(rest)
    assert recorded.stale == ("base/no-longer-11111111",)
    assert recorded.subjects == ("reference",)
    assert recorded.power == pytest.approx(2.5)
    assert ROCM10.slug in one(config).environments["mi300"]


def test_the_ledger_rests_on_what_was_observed_where_the_rule_holds(config: Config) -> None:
    case = keys(config)[0]
    record(config, case)
    verified(config, CUDA.slug, Verdict.MATCH, case)
    assert one(config).rules[0].observed == 0
    verified(config, ROCM10.slug, Verdict.WITHIN, case)
    (entry,) = one(config).rules
    assert (entry.observed, entry.needed, entry.worst) == (1, 1, "logprob max up to 0.05")
    assert f'narrow it to case = "{case}"' in entry.advice[0]
    assert "limit raised 5x, from 0.02 to 0.1" in entry.advice[1]  # over the recorded noise


def test_a_score_for_an_audit_knows_equal_and_unscorable_texts() -> None:
    base = Result("s", "c", "reference", None, None, Verdict.MATCH, "")

    def score(golden: str | None, candidate: str | None) -> float:
        return _score(dataclasses.replace(base, golden_text=golden, candidate_text=candidate))

    assert score(None, "a") == score("a", None) == score("a b", "a b") == 1.0
    assert score("a b", "a c") == 0.5
    assert score("a", "") == score("a b", "a  b") == 0.0  # no score sees that


def test_an_engine_in_an_audit_tells_neither_weights_nor_batch() -> None:
    row = observation()
    engine = _as_engine(row)
    assert engine.workload is None and engine.composition is None
    assert engine == dataclasses.replace(row, workload=None, composition=None)
