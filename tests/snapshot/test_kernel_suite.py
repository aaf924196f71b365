"""Suites of kind grouped-decode in goldens.toml: what they hold, and every mistake."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from grouped_decode.case import Case

from snapshot import kernel_matrix
from snapshot.config import Config, load
from snapshot.errors import ConfigError, UsageError
from snapshot.kernel_policy import Bounds, kernel_strictness
from snapshot.model import Fingerprint
from snapshot.plan import both_kinds, kernel_plans, plans
from tests.snapshot.builders import ROCM7, ROCM10, SUITE_TOML, project

TOML = '[suites.k]\nkind = "grouped-decode"\ncandidates = ["triton"]\n'
CASES = 'cases = ["B1-H1-1-D16-16-S8-float16", "B1-H1-1-D16-16-S9-bfloat16-sinks"]\n'
WHY = 'reason = "r"\nissue = "i"\nowner = "@o"\nexpires = 2027-03-01\n'


def config(tmp_path: Path, toml: str) -> Config:
    return load(project(tmp_path, toml))


def test_the_default_matrix_is_the_usual_shapes_and_every_trap(tmp_path: Path) -> None:
    suite = config(tmp_path, TOML).kernels["k"]
    assert len(suite.cases) == 24 + sum(map(len, kernel_matrix.TRAPS.values()))
    assert suite.cases[0] == "B2-H16-16-D64-64-S5-float16"
    assert suite.dtypes == ("float16", "bfloat16", "float32")
    assert (suite.device, suite.timeout, suite.policy.tolerance) == ("auto", 300, Bounds())
    cases = [Case.parse(key) for key in suite.cases]
    assert max(case.length for case in cases) <= 512
    assert any(0 in case.lengths for case in cases)
    assert any(case.group > 16 and case.group % 16 for case in cases)
    for trait in ("nanpad", "garbagepad", "faraway", "interleaved", "sinks", "mla", "constant"):
        assert any(trait in case.traits for case in cases), trait


def test_shapes_lengths_dtypes_and_traits_multiply_and_cases_are_added(tmp_path: Path) -> None:
    toml = (
        TOML
        + 'shapes = [[1, 2, 1, 16, 16]]\nlengths = [4, 5]\ndtypes = ["float32"]\n'
        + 'traits = ["", "ragged-sinks"]\ncases = ["B1-H1-1-D16-16-S8-float16"]\n'
    )
    assert set(config(tmp_path, toml).kernels["k"].cases) == {
        "B1-H1-1-D16-16-S8-float16",
        "B1-H2-1-D16-16-S4-float32",
        "B1-H2-1-D16-16-S4-float32-ragged-sinks",
        "B1-H2-1-D16-16-S5-float32",
        "B1-H2-1-D16-16-S5-float32-ragged-sinks",
    }


def test_a_whole_suite(tmp_path: Path) -> None:
    toml = (
        '[store]\nblob_budget = "2 MiB"\n'
        + TOML
        + CASES
        + 'device = "cpu"\ntimeout = 5\ntolerance = { rel_l2 = 1e-4 }\n'
        + f'[[suites.k.relax]]\ncase = "*-sinks"\nsubject = "triton"\nlse_abs = 0.1\n{WHY}'
        + f'[[suites.k.quarantine]]\ncase = "*-float16"\nwhen = {{ rocm = ">=10" }}\n{WHY}'
        + '[[suites.k.allow]]\ncase = "*"\nfinding = "unstable"\nreason = "atomics"\n'
        + '[[suites.k.not_run]]\ncase = "*-S9-*"\ndevice = "cpu"\nreason = "slow"\n'
    )
    whole = config(tmp_path, toml)
    policy = whole.kernels["k"].policy
    assert whole.blob_budget == 2 * 1024**2 and policy.tolerance == Bounds(rel_l2=1e-4)
    assert policy.relax[0].bounds == Bounds(lse_abs=0.1)
    assert policy.quarantine[0].expires == datetime.date(2027, 3, 1)
    key = "B1-H1-1-D16-16-S9-bfloat16-sinks"
    assert policy.excluded(key, "triton", "cpu") == "slow"
    assert policy.excluded(key, "triton", "cuda") is None
    assert policy.excluded("B1-H1-1-D16-16-S8-float16", "triton", "cpu") is None


MISTAKES: Mapping[str, tuple[str, str, str, str]] = {
    TOML.replace('candidates = ["triton"]', ""): ("candidates", "suites.k", "candidates", "kind"),
    TOML.replace('["triton"]', "[]"): ("wrong", "suites.k.candidates", "not empty", "[]"),
    TOML.replace('["triton"]', '"triton"'): ("wrong", "k.candidates", "a list", "'triton'"),
    TOML.replace('"triton"', '"reference"'): ("cannot", "candidates", "kernels", "reference"),
    TOML.replace('"triton"', '"Ab", "Ab"'): ("wrong", "k.candidates", "once", "Ab"),
    TOML + 'model = "m"\n': ("unknown key", "suites.k.model", "candidates", "model"),
    TOML + 'case = ["x"]\n': ("unknown key", "suites.k.case", "cases?", "case"),
    TOML + 'cases = ["B1-H1-1-D16-16-S8-fp16"]\n': ("no such", "cases[0]", "B<batch>", "fp16"),
    TOML + 'cases = ["B1-H1-1-D16-16-S8-float16-nan"]\n': ("no such", "cases[0]", "nanpad", "nan"),
    TOML + 'cases = ["B01-H1-1-D16-16-S8-float16"]\n': ("no such", "cases[0]", "B1-", "B01-"),
    TOML + 'cases = ["B1-H3-2-D16-16-S8-float16"]\n': ("no such", "cases[0]", "multiple", "H3-2"),
    TOML + f"cases = {['B1-H1-1-D16-16-S8-float16'] * 2}\n": ("twice", "suites.k", "once", "B1"),
    TOML + "shapes = [[1, 2, 1, 16, 16]]\n": ('"lengths"', "suites.k", "lengths", "shapes"),
    TOML + 'dtypes = ["float32"]\n': ('"shapes"', "suites.k", "shapes", "dtypes"),
    TOML + "shapes = [[1, 2, 1, 16]]\nlengths = [1]\n": ("wrong", "shapes[0]", "[batch,", "16"),
    TOML + "shapes = [[1, 3, 2, 9, 9]]\nlengths = [1]\n": ("wrong", "shapes[0]", "multiple", "3"),
    TOML + "lengths = [-1]\nshapes = [[1, 1, 1, 16, 16]]\n": ("wrong", "lengths[0]", "0 or", "-1"),
    TOML + 'device = "gpu"\n': ("wrong", "suites.k.device", "cpu", "'gpu'"),
    TOML + "timeout = 0\n": ("wrong", "suites.k.timeout", "more than 0", "0"),
    TOML + "tolerance = { rel_l2 = 0 }\n": ("wrong", "tolerance.rel_l2", "more than 0", "0"),
    TOML + 'tolerance = { text = "equal" }\n': ("unknown", "tolerance.text", "rel_l2", "text"),
    TOML + '[[suites.k.relax]]\ncase = "*"\n' + WHY: ("wrong", "relax[0]", '"rel_l2"', ""),
    TOML + '[[suites.k.quarantine]]\ncase = "*"\n': ("missing", "quarantine[0]", "owner", "case"),
    TOML + f'[[suites.k.quarantine]]\ncase = "*"\nsubject = "tritn"\n{WHY}': (
        "does not run",
        "quarantine[0].subject",
        "triton",
        "tritn",
    ),
    TOML + '[[suites.k.not_run]]\ncase = "*"\n': ('"reason"', "not_run[0]", "reason", "case"),
    '[store]\nblob_budget = "big"\n' + TOML: ("wrong", "store.blob_budget", "256 KiB", "'big'"),
}


@pytest.mark.parametrize("toml", MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_names_file_and_key_expected_and_got(tmp_path: Path, toml: str) -> None:
    said, key, expected, got = MISTAKES[toml]
    path = project(tmp_path, toml)
    with pytest.raises(ConfigError) as error:
        load(path)
    assert said in error.value.what
    assert str(path) in str(error.value.where) and key in str(error.value.where)
    assert expected in str(error.value.expected) and got in str(error.value.got)
    for jargon in ("$ref", "#/", "minItems", "anyOf", "is not valid", "schema"):
        assert jargon not in str(error.value)


def test_both_kinds_are_selected_together_and_apart(tmp_path: Path) -> None:
    both = config(tmp_path, SUITE_TOML + TOML + CASES)
    assert [p.suite.name for p in plans(both, ())] == ["s"]
    (kernels,) = kernel_plans(both, ())
    assert kernels.whole and kernels.dtypes() == ("float16", "bfloat16")
    assert plans(both, ["k"]) == [] and kernel_plans(both, ["s"]) == []
    (part,) = kernel_plans(both, ["*-sinks"])
    assert plans(both, ["*-sinks"]) == [] and not part.whole
    assert part.dtypes() == ("bfloat16",) and part.keys("float16") == ()
    with pytest.raises(UsageError, match="nothing is selected") as error:
        plans(both, ["B1-H1-1-D16-16-S9-bfloat16"])
    assert "bfloat16-sinks" in str(error.value.expected)
    with pytest.raises(UsageError, match="not configured") as other:
        kernels.dtypes("float32")
    assert other.value.where == "suites.k.dtypes"


def test_an_option_of_one_kind_leaves_the_other_out_or_is_refused(tmp_path: Path) -> None:
    both = config(tmp_path, SUITE_TOML + TOML.replace('"triton"', '"triton", "sdpa"') + CASES)
    assert [len(found) for found in both_kinds(both, ())] == [1, 1]
    assert [len(found) for found in both_kinds(both, (), batch_size=3)] == [1, 0]
    with pytest.raises(UsageError, match="no batch size"):
        both_kinds(both, ["k"], batch_size=3)
    generation, (kernels,) = both_kinds(both, (), candidate="sdpa")
    assert generation == [] and kernels.suite.candidates == ("sdpa",)
    with pytest.raises(UsageError, match="no kernel suite is selected"):
        both_kinds(both, ["s"], candidate="sdpa")
    with pytest.raises(UsageError, match="not configured") as error:
        both_kinds(both, (), candidate="flex")
    assert error.value.expected == "triton, sdpa"


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (f'[[suites.k.relax]]\ncase = "B7-*"\nrel_l2 = 1\n{WHY}', "matches no case"),
        (f'[[suites.k.quarantine]]\ncase = "B7-*"\n{WHY}', "matches no case"),
        ('[[suites.k.not_run]]\ncase = "B7-*"\nreason = "r"\n', "matches no case"),
        (
            f'[[suites.k.relax]]\ncase = "*"\nrel_l2 = 1\n{WHY}'
            f'[[suites.k.relax]]\ncase = "*-sinks"\nrel_l2 = 1\n{WHY}',
            "two rules cover the same thing",
        ),
    ],
)
def test_rules_that_match_nothing_or_overlap_are_errors(
    tmp_path: Path, rules: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        kernel_plans(config(tmp_path, TOML + CASES + rules), ())


def strictness(tmp_path: Path, rules: str, **fields: Any) -> Any:
    policy = config(tmp_path, TOML + CASES + rules).kernels["k"].policy
    usual = {
        "case": "B1-H1-1-D16-16-S8-float16",
        "subject": "triton",
        "environment": Fingerprint(ROCM10),
        "day": datetime.date(2026, 12, 1),
    }
    return kernel_strictness(policy, **{**usual, **fields})


def test_each_bound_is_loosened_by_its_own_rule(tmp_path: Path) -> None:
    """Two rules on one case, one for each bound, are no overlap."""
    rules = (
        f'[[suites.k.relax]]\ncase = "*"\nrel_l2 = 1\n{WHY}'
        f'[[suites.k.relax]]\ncase = "*-float16"\nlse_abs = 2\nwhen = {{ rocm = ">=10" }}\n{WHY}'
    )
    found = strictness(tmp_path, rules)
    assert found.bounds == Bounds(rel_l2=1, lse_abs=2) and len(found.relaxed) == 2
    there = strictness(tmp_path, rules, environment=Fingerprint(ROCM7))
    assert there.bounds == Bounds(rel_l2=1) and len(there.relaxed) == 1


def test_a_rule_past_its_day_covers_nothing(tmp_path: Path) -> None:
    rules = (
        f'[[suites.k.relax]]\ncase = "*"\nrel_l2 = 1\nlse_abs = 1\n{WHY}'
        f'[[suites.k.quarantine]]\ncase = "*"\nsubject = "triton"\n{WHY}'
    )
    live = strictness(tmp_path, rules)
    assert live.quarantine is not None and len(live.relaxed) == 1 and not live.expired
    assert strictness(tmp_path, rules, subject="sdpa").quarantine is None
    past = strictness(tmp_path, rules, day=datetime.date(2027, 3, 1))
    assert past.bounds == Bounds() and past.quarantine is None and len(past.expired) == 2
