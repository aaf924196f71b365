"""What the reference is asked, and what becomes of its answers; nothing is run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from snapshot.config import load
from snapshot.errors import DamagedGolden, RunError
from snapshot.evidence import Evidence
from snapshot.inquiry import of_engine, of_reference
from snapshot.model import GenerationCase, Golden, Observation
from snapshot.plan import Plan, plans
from snapshot.result import Verdict
from snapshot.runners.rerun import Rerun
from snapshot.verdict import judge
from tests.snapshot.builders import (
    ROCM7,
    SUITE,
    SUITE_TOML,
    bare,
    batch,
    evidence,
    fingerprint,
    floats,
    noise,
    observation,
    project,
    recorded,
    token_ids,
)

TOML = SUITE_TOML + 'adapters = { wizard = "w" }\n'
PROMPTS = [f"prompt number {i}" for i in range(8)]


class Stub:
    """Answers of a reference that never ran; remembers what it was asked.

    A row's float32 logprobs are drawn by its prompt, its adapter's move is drawn by both.
    """

    def __init__(self, plan: Plan) -> None:
        self.cases = {case.key: case for case in plan.cases}
        self.asked: list[tuple[str, str, int, frozenset[str]]] = []
        self.notes: list[str] = ["reference: not run"]

    def _rows(
        self, kind: str, dtype: str, size: int, keys: Iterable[str], base: bool = False
    ) -> Mapping[str, Observation]:
        keys = frozenset(keys)
        self.asked.append((kind, dtype, size, keys))
        error = 0.0 if dtype == "float32" else 0.02
        return {key: answer(self.cases[key], error=error, base=base) for key in keys}

    def free(self, dtype: str, size: int, keys: Iterable[str]) -> Mapping[str, Observation]:
        return self._rows("free", dtype, size, keys)

    def afresh(self, dtype: str, size: int, keys: Iterable[str]) -> Mapping[str, Observation]:
        return self._rows("afresh", dtype, size, keys)

    def forced(
        self, dtype: str, size: int, keys: Iterable[str], tokens: Mapping[str, Sequence[int]]
    ) -> Mapping[str, Observation]:
        keys = list(keys)
        assert all(tokens[key] for key in keys)
        return self._rows("forced", dtype, size, keys)

    def as_base(
        self, dtype: str, size: int, keys: Iterable[str], tokens: Mapping[str, Sequence[int]]
    ) -> Mapping[str, Observation]:
        return self._rows("as base", dtype, size, keys, base=True)

    def kinds(self) -> list[str]:
        return [kind for kind, *_ in self.asked]


def answer(
    case: GenerationCase,
    *,
    strength: float = 1.0,
    error: float = 0.02,
    base: bool = False,
    seed: int = 0,
) -> Observation:
    """What a model gives: ten words of the prompt's, with an adapter `strength` strong."""
    text = " ".join(f"{case.prompt} word{i}" for i in range(4))
    count = len(token_ids(text)) + 2
    prompt = sum(map(ord, case.prompt))
    values = np.random.default_rng(prompt).normal(-3, 1, count)
    if case.adapter is not None and not base:
        values += strength * np.random.default_rng(prompt + 1).normal(0, 0.3, count)
    values += error * np.random.default_rng(prompt + 2 + seed).normal(0, 1, count)
    arrays = {"prompt_logprobs": floats(*values[:2]), "logprobs": floats(*values[2:])}
    return observation(text, case=case.key, arrays=arrays, composition=None)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (found,) = plans(load(project(tmp_path, TOML, PROMPTS)), ())
    return found


def engine(plan: Plan, **fields: Any) -> dict[str, Evidence]:
    """An engine's run, each row held to a golden that the reference gives here as well."""
    return {
        case.key: evidence(
            answer(case, seed=7, **fields),
            case=case.key,
            adapter=case.adapter,
            subject="vllm",
            here=None,
            golden=Golden(SUITE, ROCM7.slug, "reference", answer(case)),
            recorded=recorded(calibration=noise(batch_sizes=2.0)),
        )
        for case in plan.cases
    }


def asked(plan: Plan, evidences: Mapping[str, Evidence], keys: Iterable[str]) -> tuple[Stub, Any]:
    stub = Stub(plan)
    found = of_engine(cast(Rerun, stub), plan, evidences, keys, "bfloat16", 1)
    return stub, found


def judged(evidences: Mapping[str, Evidence], found: Mapping[str, Any]) -> dict[str, Verdict]:
    return {
        key: judge(dataclasses.replace(e, now=found.get(key))).verdict
        for key, e in evidences.items()
    }


def wizards(plan: Plan) -> list[str]:
    return [case.key for case in plan.cases if case.adapter == "wizard"]


# ----------------------------------------------------------------------------- engine


def test_a_sound_engine_passes_and_every_row_is_told_what_all_say(plan: Plan) -> None:
    evidences = engine(plan)
    stub, found = asked(plan, evidences, evidences)
    assert set(judged(evidences, found).values()) == {Verdict.MATCH}
    for key, now in found.items():
        assert now.candidate_batch is None and now.repeated is None
        assert now.candidate_forced is evidences[key].candidate
        assert now.notes == ("reference: not run",)
        assert {test.group for test in now.tests} == {"wizard" if key in wizards(plan) else "base"}
    assert stub.kinds() == ["free", "forced", "forced", "as base"]
    assert [dtype for _, dtype, *_ in stub.asked] == ["bfloat16", "bfloat16", "float32", "float32"]


@pytest.mark.parametrize("strength", [0.0, 0.9, 1.1])
def test_an_adapter_of_another_strength_is_found_though_every_row_is_within_noise(
    plan: Plan, strength: float
) -> None:
    evidences = engine(plan, strength=strength)
    assert {judge(e).verdict for e in evidences.values()} == {Verdict.MATCH}
    found = judged(evidences, asked(plan, evidences, evidences)[1])
    for key, verdict in found.items():
        assert verdict is (Verdict.REGRESSION if key in wizards(plan) else Verdict.MATCH)


def test_all_rows_are_scored_even_where_one_is_asked_about(plan: Plan) -> None:
    evidences = engine(plan, strength=0.5)
    key = wizards(plan)[0]
    stub, found = asked(plan, evidences, [key])
    assert set(found) == {key}
    assert found[key].tests[0].significant
    assert stub.asked[0][3] == {key}  # only that one runs freely
    assert all(len(keys) == len(plan.cases) for *_, keys in stub.asked[1:])


def test_a_float32_suite_is_its_own_truth(plan: Plan) -> None:
    evidences = engine(plan)
    stub = Stub(plan)
    found = of_engine(cast(Rerun, stub), plan, evidences, evidences, "float32", 1)
    assert stub.kinds() == ["free", "forced", "as base"]
    assert all(now.truth is None for now in found.values())
    assert {t.question for now in found.values() for t in now.tests} == {"adapter strength"}


def test_an_engine_that_tells_only_text_gets_no_test(plan: Plan) -> None:
    evidences = {
        key: dataclasses.replace(e, candidate=bare("other words", case=key))
        for key, e in engine(plan).items()
    }
    stub, found = asked(plan, evidences, evidences)
    assert all(now.tests == () and now.candidate_forced is None for now in found.values())
    assert "as base" not in stub.kinds()


def spoilt(plan: Plan, key: str, **fields: Any) -> dict[str, Evidence]:
    evidences = engine(plan, strength=0.5)
    return {**evidences, key: dataclasses.replace(evidences[key], **fields)}


def misshapen(case: str) -> Observation:
    return observation(case=case, arrays={"logprobs": floats(-1), "prompt_logprobs": floats(-1)})


def test_a_row_that_cannot_be_compared_costs_the_others_nothing(plan: Plan) -> None:
    key, other = wizards(plan)[:2]
    golden = engine(plan)[key].golden
    assert isinstance(golden, Golden)
    row = dataclasses.replace(golden.observation, workload=None)
    odd = dataclasses.replace(row.output, prompt_ids=(1, 5, 6, 7))
    arrays = {**row.arrays, "prompt_logprobs": floats(-1, -1, -1)}
    for fields, verdict in (
        ({"candidate": RunError("it died")}, Verdict.ERROR),
        ({"candidate": misshapen(key)}, Verdict.ERROR),
        ({"golden": DamagedGolden("its digest is wrong")}, Verdict.ERROR),
        ({"golden": dataclasses.replace(golden, observation=misshapen(key))}, Verdict.ERROR),
        ({"golden": None}, Verdict.MISSING),
        ({"candidate": dataclasses.replace(row, output=odd, arrays=arrays)}, Verdict.INVALID),
    ):
        evidences = spoilt(plan, key, **fields)
        _, found = asked(plan, evidences, evidences)
        verdicts = judged(evidences, found)
        assert verdicts[key] is verdict
        assert verdicts[other] is Verdict.REGRESSION
        assert found[other].tests[0].prompts == len(PROMPTS) - 1


# -------------------------------------------------------------------------- reference


def own(plan: Plan, size: int, **fields: Any) -> dict[str, Evidence]:
    return {
        case.key: dataclasses.replace(
            evidence(
                dataclasses.replace(answer(case), composition=batch(case.key, row=0)),
                case=case.key,
                here=fingerprint(ROCM7.at(size)),
                golden=Golden(
                    SUITE,
                    ROCM7.slug,
                    "reference",
                    dataclasses.replace(answer(case, seed=3), composition=batch(case.key)),
                ),
            ),
            **fields,
        )
        for case in plan.cases
    }


def test_the_reference_in_the_golden_s_batch_is_the_candidate_itself(plan: Plan) -> None:
    evidences = own(plan, 1, here=fingerprint(dataclasses.replace(ROCM7, torch="2.11")))
    stub = Stub(plan)
    found = of_reference(cast(Rerun, stub), evidences, list(evidences), "float16", 1)
    assert stub.kinds() == ["forced", "forced"]
    for key, now in found.items():
        assert now.golden_batch is evidences[key].candidate
        assert now.candidate_batch is None and now.repeated is None
        assert now.forced is now.candidate_forced and now.forced is not None
    assert set(judged(evidences, found).values()) == {Verdict.DRIFT}


def test_at_another_batch_size_the_golden_s_batch_is_run_as_well(plan: Plan) -> None:
    evidences = own(plan, 3)
    stub = Stub(plan)
    found = of_reference(cast(Rerun, stub), evidences, list(evidences), "float16", 3)
    free = {(size, keys) for kind, _, size, keys in stub.asked if kind == "free"}
    assert free == {(1, frozenset(evidences))}
    assert {size for kind, _, size, _ in stub.asked if kind == "forced"} == {3}
    for key, now in found.items():
        assert now.golden_batch is not None and now.golden_batch is not evidences[key].candidate


def test_what_moved_for_no_reason_is_run_once_more_in_a_fresh_process(plan: Plan) -> None:
    evidences = own(plan, 1)
    stub = Stub(plan)
    found = of_reference(cast(Rerun, stub), evidences, list(evidences), "float16", 1)
    assert all(now.repeated is not None for now in found.values())
    assert set(judged(evidences, found).values()) == {Verdict.REGRESSION}
    changed = own(plan, 1, here=fingerprint(dataclasses.replace(ROCM7, torch="2.11")))
    stub = Stub(plan)
    of_reference(cast(Rerun, stub), changed, list(changed), "float16", 1)
    assert "afresh" not in stub.kinds()


def test_only_the_rows_that_are_asked_about_are_run_again(plan: Plan) -> None:
    evidences = own(plan, 1)
    key = plan.cases[0].key
    stub = Stub(plan)
    found = of_reference(cast(Rerun, stub), evidences, [key], "float16", 1)
    assert set(found) == {key}
    assert all(keys == {key} for *_, keys in stub.asked)
