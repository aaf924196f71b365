"""What recording runs, compares and measures; the model's answers are made up."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from snapshot.commands import generation_record
from snapshot.commands.generation_record import record_generation
from snapshot.config import load
from snapshot.errors import RecordRefused, RunError
from snapshot.model import Observation
from snapshot.plan import Plan, plans
from snapshot.progress import silent
from snapshot.recording import Recorded, Target
from snapshot.store import Store
from snapshot.suite import Group
from tests.snapshot.builders import ROCM7, SUITE_TOML, fingerprint, observation, project

PROMPTS = ["one", "two", "three"]


def answer(group: Group, row: int) -> Observation:
    """Its own words, and numbers that another batch size moves."""
    case = group.rows[row]
    return observation(
        f"{case.key} says this",
        case=case.key,
        shift=0.01 * group.size,
        composition=group.composition(row),
    )


class Model:
    """A worker's process; remembers every batch that ran in it."""

    ran: list[list[tuple[int, str]]]
    answer: Callable[[Group, int], Observation]

    def __init__(self, suite: object, dtype: str) -> None:
        self.fingerprint = fingerprint(ROCM7.at(None))
        self.ran.append([])

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def run(self, group: Group, forced: object, fault: object) -> list[Observation]:
        self.ran[-1] += [(group.size, case.key) for case in group.rows]
        return [type(self).answer(group, row) for row in range(len(group.rows))]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> type[Model]:
    class Fresh(Model):
        answer = staticmethod(answer)

    Fresh.ran = []
    monkeypatch.setattr(generation_record, "Worker", Fresh)
    return Fresh


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    toml = SUITE_TOML + 'adapters = { a = "a" }\nbatch_sizes = [2, 4]\n'
    (found,) = plans(load(project(tmp_path, toml, PROMPTS)), ())
    return found


def record(tmp_path: Path, plan: Plan, wanted: dict[int, set[str]], **how: Any) -> list[Recorded]:
    target = Target(Store(tmp_path / "goldens"), Store(tmp_path / "pending"))
    slugs = {ROCM7.at(size).slug: frozenset(keys) for size, keys in wanted.items()}
    return record_generation(
        target,
        plan,
        "float16",
        (2, 4),
        lambda slug: slugs.get(slug, frozenset()),
        repeat=how.pop("repeat", 1),
        progress=silent,
        **how,
    )


def said(plan: Plan, size: int, key: str, **changes: Any) -> dict[int, dict[str, Observation]]:
    (group,) = plan.groups(size, frozenset({key}))
    row = [case.key for case in group.rows].index(key)
    return {size: {key: dataclasses.replace(answer(group, row), **changes)}}


def test_what_one_size_wants_is_measured_against_the_others(
    tmp_path: Path, plan: Plan, model: type[Model]
) -> None:
    """As where a batch size is added later: only its goldens are new."""
    key = plan.cases[3].key  # an adapter row of the second prompt
    quiet, done = record(tmp_path, plan, {4: {key}}, repeat=2)
    assert not quiet.changes and list(done.changes) == [key]
    assert done.calibration["batch_sizes"]["max"] == pytest.approx(0.02, rel=1e-3)
    assert done.calibration["repeats"]["max"] == 0 and "orders" in done.calibration
    first, again = model.ran
    assert {size for size, _ in first} == {2, 4} and {size for size, _ in again} == {4}
    assert (2, plan.cases[2].key) in first and (2, plan.cases[0].key) not in first


def test_what_verify_was_told_is_a_run_that_must_come_out_again(
    tmp_path: Path, plan: Plan, model: type[Model]
) -> None:
    key = plan.cases[3].key
    _, done = record(tmp_path, plan, {4: {key}}, said=said(plan, 4, key))
    assert done.calibration["repeats"]["max"] == 0
    assert len(model.ran) == 1  # and no third process
    other = said(plan, 4, key, output=observation("something else", case=key).output)
    with pytest.raises(RecordRefused, match="changes between identical runs"):
        record(tmp_path / "again", plan, {4: {key}}, said=other)
    assert not (tmp_path / "again" / "pending").exists()


def test_a_row_that_is_not_wanted_there_may_fail_there(
    tmp_path: Path, plan: Plan, model: type[Model]
) -> None:
    """A batch that is too large for the machine holds up no other batch size."""

    def too_large(group: Group, row: int) -> Observation:
        if group.size == 4:
            raise RunError("out of memory")
        return answer(group, row)

    model.answer = staticmethod(too_large)
    key = plan.cases[3].key
    done, _ = record(tmp_path, plan, {2: {key}})
    assert list(done.changes) == [key] and "batch_sizes" not in done.calibration
    with pytest.raises(RunError, match="out of memory"):
        record(tmp_path, plan, {4: {key}})
