"""What a command line selects."""

from __future__ import annotations

from pathlib import Path

import pytest

from snapshot.config import Config, load
from snapshot.errors import ConfigError, UsageError
from snapshot.plan import narrow, plans
from tests.snapshot.builders import SUITE_TOML, project

TWO = (
    SUITE_TOML
    + '\n[suites.s.adapters]\nwizard = "w"\n\n'
    + SUITE_TOML.replace("suites.s", "suites.t")
)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load(project(tmp_path, TWO))


def test_everything_is_selected_without_a_selector(config: Config) -> None:
    s, t = plans(config, ())
    assert (len(s.chosen), len(t.chosen)) == (6, 3)
    assert s.whole and t.whole


def test_a_suite_is_selected_by_name(config: Config) -> None:
    (only,) = plans(config, ["t"])
    assert only.suite.name == "t" and only.whole


def test_a_glob_selects_cases_of_every_suite(config: Config) -> None:
    s, t = plans(config, ["base/*"])
    assert all(key.startswith("base/") for key in s.chosen | t.chosen)
    assert not s.whole and t.whole
    (only,) = plans(config, ["wizard/*"])
    assert only.suite.name == "s"


def test_a_suite_and_a_glob_add_up(config: Config) -> None:
    s, t = plans(config, ["t", "wizard/*"])
    assert len(s.chosen) == 3 and t.whole


def test_a_selection_runs_whole_groups(config: Config) -> None:
    """Picking a case never changes its numbers."""
    (whole,) = plans(config, ["s"])
    key = whole.cases[3].key
    (picked,) = plans(config, [key]) if key.startswith("wizard") else plans(config, [key])[:1]
    (group,) = picked.groups(2)
    assert picked.chosen == {key}
    assert group == whole.groups(2)[1]


def test_a_selector_that_selects_nothing_is_an_error(config: Config) -> None:
    with pytest.raises(UsageError, match="nothing is selected") as error:
        plans(config, ["t", "wizzard/*"])
    assert error.value.got == "wizzard/*"
    assert error.value.exit_code == 2
    assert "wizard/" in str(error.value.expected)


def test_a_rule_that_matches_no_case_is_an_error_whatever_is_selected(tmp_path: Path) -> None:
    rule = (
        '[[suites.s.quarantine]]\ncase = "base/nothing*"\nreason = "r"\nissue = "i"\n'
        'owner = "o"\nexpires = 2027-03-01\n'
    )
    with pytest.raises(ConfigError, match="matches no case") as error:
        plans(load(project(tmp_path, SUITE_TOML + rule)), ["s"])
    assert str(error.value.where).endswith("goldens.toml: suites.s.quarantine[0]")


def test_only_configured_values_can_be_asked_for(config: Config) -> None:
    suite = config.suites["s"]
    assert narrow(suite, "dtype", ("float32", "float16"), None) == ("float32", "float16")
    assert narrow(suite, "dtype", ("float32", "float16"), "float16") == ("float16",)
    with pytest.raises(UsageError, match="not configured") as error:
        narrow(suite, "batch_sizes", (1, 3), 2)
    assert (error.value.where, error.value.expected) == ("suites.s.batch_sizes", "1, 3")
