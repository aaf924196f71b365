"""`[engines.NAME]`: what is read, and what every mistake says."""

from __future__ import annotations

from pathlib import Path

import pytest

from snapshot.config import load
from snapshot.engineconfig import EngineConfig, chosen
from snapshot.errors import ConfigError, UsageError
from snapshot.plan import plans
from snapshot.runners.engines import open_engine
from tests.snapshot.builders import SUITE_TOML, project


def engines(tmp_path: Path, table: str, name: str = "mine") -> dict[str, EngineConfig]:
    declared = '[environments.e]\nmatch = { rocm = "7" }\n'
    toml = f"{declared}[engines.{name}]\n{table}\n\n{SUITE_TOML}"
    return dict(load(project(tmp_path, toml)).engines)


def test_a_whole_table_is_read(tmp_path: Path) -> None:
    found = engines(
        tmp_path,
        'kind = "openai"\nurl = "http://h:8000/v1/"\nmodel = "m"\nadapters = { a = "b:a" }\n'
        'environment = "e"\ndtype = "float16"\nlaunch = "serve"\napi_key_env = "KEY"\n'
        "concurrency = 2\nscoring_concurrency = 3\ntimeout = 1.5\nretries = 0\n"
        "options = { x = 1 }",
    )["mine"]
    assert found.required_url() == "http://h:8000/v1"
    assert (found.model, found.adapters, found.environment) == ("m", {"a": "b:a"}, "e")
    assert (found.concurrency, found.scoring_concurrency) == (2, 3)
    assert (found.timeout, found.retries, found.options) == (1.5, 0, {"x": 1})


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('kind = "openai"\nconcurrency = 0', "1 or more"),
        ('kind = "openai"\ntimeout = 0', "more than 0"),
        ('kind = "openai"\nulr = "x"', "url?"),
        ('url = "http://h"', '"kind" is missing'),
        ('kind = "openai"\nurl = "h:8000"', "http://127.0.0.1:8000/v1"),
        ('kind = "openai"\nurl = "http://h:port"', "http://127.0.0.1:8000/v1"),
        ('kind = "openai"\napi_key_env = "sk-123-456"', "the name of an environment variable"),
    ],
)
def test_a_mistake_names_the_key_and_what_was_expected(
    tmp_path: Path, table: str, said: str
) -> None:
    with pytest.raises(ConfigError) as error:
        engines(tmp_path, table)
    assert said in str(error.value) and "engines.mine" in str(error.value)


def test_a_password_in_an_address_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        engines(tmp_path, 'kind = "openai"\nurl = "http://me:hunter2@h/v1"')
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize("name", ["reference", "con", '"a b"'])
def test_an_engine_is_not_called_like_the_reference_or_a_device(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="folder's name"):
        engines(tmp_path, 'kind = "openai"', name)


def test_a_kind_and_an_address_are_enough() -> None:
    assert chosen({}, "openai", "http://h/v1").kind == "openai"
    mine = EngineConfig("mine", "openai", url="http://h/v1")
    assert chosen({"mine": mine}, "mine", "http://other/v1").url == "http://other/v1"
    with pytest.raises(UsageError, match="no such engine") as error:
        chosen({"mine": mine}, "mime", None)
    assert error.value.expected is not None and error.value.expected.startswith("mine?")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (EngineConfig("x", "nothing"), "no engine of this kind"),
        (EngineConfig("x", "openai"), "nothing says where"),
        (EngineConfig("x", "openai", options={"batch": 1}), "unknown option"),
        (EngineConfig("x", "transformers", options={"batch_size": 0}), "wrong value"),
        (EngineConfig("x", "transformers", options={"batch_size": True}), "wrong value"),
        (EngineConfig("x", "transformers", options={"dtype": "int4"}), "wrong value"),
    ],
)
def test_an_engine_that_cannot_be_opened_says_why(
    tmp_path: Path, config: EngineConfig, said: str
) -> None:
    (plan,) = plans(load(project(tmp_path)), ())
    with pytest.raises(UsageError, match=said):
        open_engine(config, plan)


def test_continuous_batching_is_refused_with_adapters(tmp_path: Path) -> None:
    toml = SUITE_TOML + '[suites.s.adapters]\nwizard = "w"\n'
    (plan,) = plans(load(project(tmp_path, toml)), ())
    config = EngineConfig("x", "transformers", options={"continuous": True})
    with pytest.raises(ConfigError, match="ignores adapters"):
        open_engine(config, plan)
