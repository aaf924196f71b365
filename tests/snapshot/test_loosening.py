"""Which changes of goldens.toml lower strictness. What cannot be ordered counts as lowered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from snapshot.config import Config, load
from snapshot.loosening import calibration_changes, policy_changes
from snapshot.policy_change import Direction, Ground
from tests.snapshot.builders import SUITE_TOML, noise, project, recorded

RULE = """
[[suites.s.{kind}]]
case = "{case}"
{more}
reason = "r"
issue = "https://example.org/1"
owner = "@a"
expires = {expires}
"""
ENVIRONMENTS = """
[environments.old]
match = { rocm = "<10" }
[environments.new]
match = { rocm = ">=10" }
"""


def config(folder: Path, toml: str) -> Config:
    return load(project(folder, toml))


def rule(kind: str = "relax", more: str | None = None, expires: str = "2999-01-01") -> str:
    if more is None:
        more = "logprob = { max = 0.1 }" if kind == "relax" else ""
    return RULE.format(kind=kind, case="base/*", more=more, expires=expires)


def logprob(limits: str) -> str:
    return f"\n[suites.s.tolerance]\nlogprob = {{ {limits} }}\n"


def text(limits: str) -> str:
    return f"\n[suites.s.tolerance]\ntext = {{ {limits} }}\n"


LIMIT, SCORE = "tolerance.logprob", "tolerance.text"


L, T, C = Direction.LOOSENED, Direction.TIGHTENED, Direction.CHANGED


@pytest.mark.parametrize(
    ("before", "after", "what", "direction"),
    [
        ("", logprob("max = 0.1"), LIMIT, L),
        (logprob("max = 0.1"), "", LIMIT, T),
        (logprob("max = 0.1"), logprob("max = 0.2"), LIMIT, L),
        (logprob("max = 0.2"), logprob("max = 0.1"), LIMIT, T),
        (logprob("max = 0.1"), logprob("rms = 0.01"), LIMIT, L),
        (logprob("max = 0.1"), logprob("max = 0.1, rms = 0.1"), LIMIT, T),
        ("", text("rouge_l = 0.9"), SCORE, L),
        (text("rouge_l = 0.9"), text("rouge_l = 0.8"), SCORE, L),
        (text("rouge_l = 0.9"), text('rouge_l = 0.99, metric = "unicode-lcs"'), SCORE, L),
        ("", rule(), "relax", L),
        (rule(), "", "relax", T),
        (rule(), rule(expires="2999-06-01"), "relax", L),
        (rule(expires="2999-06-01"), rule(), "relax", T),
        (rule(), rule(more="logprob = { max = 0.5 }"), "relax", L),
        (rule(), rule(more="text = { rouge_l = 0.5 }"), "relax", L),
        ("", rule("quarantine"), "quarantine", L),
        (rule("quarantine"), "", "quarantine", T),
        ("", '\n[[suites.s.allow]]\ncase = "*"\nfinding = "empty"\nreason = "r"\n', "allow", L),
        (ENVIRONMENTS, ENVIRONMENTS + 'inherits = "old"\n', "inherits", L),
        (ENVIRONMENTS + 'inherits = "old"\n', ENVIRONMENTS, "inherits", T),
        (ENVIRONMENTS, ENVIRONMENTS.replace(">=10", ">=9"), "match", L),
        ("", ENVIRONMENTS, "environment", C),
    ],
)  # fmt: skip
def test_direction(
    tmp_path: Path, before: str, after: str, what: str, direction: Direction
) -> None:
    base = config(tmp_path / "a", SUITE_TOML + before)
    head = config(tmp_path / "b", SUITE_TOML + after)
    found = policy_changes(base, head, Ground(()))
    assert {(change.what, change.direction) for change in found} == {(what, direction)}
    assert policy_changes(base, base, Ground(())) == []


@pytest.mark.parametrize(
    ("key", "before", "after", "direction"),
    [
        ("batch_sizes", "[1, 3]", "[1]", L),
        ("batch_sizes", "[1]", "[1, 3]", C),
        ("max_new_tokens", "32", "8", L),
        ("max_new_tokens", "8", "32", T),
        ("top_logprobs", "5", "2", L),
        ("attention", '"eager"', '"sdpa"', C),
    ],
)
def test_checking_less_is_looser(
    tmp_path: Path, key: str, before: str, after: str, direction: Direction
) -> None:
    configs = [
        config(tmp_path / name, f"{SUITE_TOML}{key} = {value}\n")
        for name, value in (("a", before), ("b", after))
    ]
    (change,) = policy_changes(*configs, Ground(()))
    assert (change.what, change.direction) == (key, direction)


KERNELS = """
[suites.k]
kind = "grouped-decode"
candidates = ["sdpa"]
cases = ["B2-H16-1-D64-64-S5-float32"]
"""
KERNEL_RULE = """
[[suites.k.relax]]
case = "*"
rel_l2 = {limit}
reason = "r"
issue = "https://example.org/1"
owner = "@a"
expires = 2999-01-01
"""
NOT_RUN = '\n[[suites.k.not_run]]\ncase = "*"\nreason = "slow"\n'
REL_L2 = "\n[suites.k.tolerance]\nrel_l2 = 0.1\n"


@pytest.mark.parametrize(
    ("before", "after", "what", "direction"),
    [
        ("", REL_L2, "tolerance.rel_l2", L),
        (REL_L2, "", "tolerance.rel_l2", T),
        ("", KERNEL_RULE.format(limit=0.1), "relax", L),
        (KERNEL_RULE.format(limit=0.1), KERNEL_RULE.format(limit=0.2), "relax", L),
        (KERNEL_RULE.format(limit=0.2), KERNEL_RULE.format(limit=0.1), "relax", T),
        ("", NOT_RUN, "not_run", L),
    ],
)
def test_kernel_suites(
    tmp_path: Path, before: str, after: str, what: str, direction: Direction
) -> None:
    base, head = (
        config(tmp_path / name, KERNELS + more) for name, more in (("a", before), ("b", after))
    )
    found = policy_changes(base, head, Ground(()))
    assert [(change.what, change.direction) for change in found] == [(what, direction)]


def test_a_suite_that_is_no_longer_verified_is_loosened(tmp_path: Path) -> None:
    both = SUITE_TOML + SUITE_TOML.replace("suites.s", "suites.t")
    base, head = config(tmp_path / "a", both), config(tmp_path / "b", SUITE_TOML)
    (change,) = policy_changes(base, head, Ground(()))
    assert change.loosened and change.where == "t" and change.after == "no longer verified"
    (change,) = policy_changes(head, base, Ground(()))
    assert change.direction is C


def test_what_loosens_comes_first(tmp_path: Path) -> None:
    base = config(tmp_path / "a", SUITE_TOML + rule("quarantine"))
    head = config(tmp_path / "b", SUITE_TOML + "max_new_tokens = 64\n" + rule())
    found = policy_changes(base, head, Ground(()))
    assert [change.direction for change in found] == [L, T, T]


@pytest.mark.parametrize(
    ("before", "after", "rose"),
    [
        (
            noise(batch_sizes=0.1),
            noise(batch_sizes=0.2),
            ["row_rms 0.1 → 0.2 2x", "max 0.1 → 0.2 2x"],
        ),
        (noise(batch_sizes=0.2), noise(batch_sizes=0.1), []),
        (
            {},
            {"batch_sizes": {"max": 0.1, "tie_margin": 0.25}},
            ["max 0 → 0.1", "tie_margin 0 → 0.25"],
        ),
        ({"batch_sizes": {"tie_margin": 0.1}}, {"batch_sizes": {"tie_margin": 0.05}}, []),
        (
            {},
            {"adapter_effect": {"max": 0.3}, "power": 4.0, "triton": {"repeats": {"moved": 1}}},
            [],
        ),
        ({"batch_sizes": "?"}, {"batch_sizes": {"max": "?"}}, []),
    ],
)
def test_noise_that_rose_holds_cases_to_less(
    before: dict[str, Any], after: dict[str, Any], rose: list[str]
) -> None:
    found = calibration_changes(recorded(calibration=before), recorded(calibration=after))
    assert found == [f"batch_sizes.{words}" for words in rose]
