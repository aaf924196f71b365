"""``goldens verify --engine``: a server held to the goldens, and what happens when it fails."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from snapshot.cli import main
from snapshot.config import load
from snapshot.model import Golden
from snapshot.plan import plans
from snapshot.store import Store
from tests.snapshot.builders import ROCM7, SUITE_TOML, noise, observation, project, recorded
from tests.snapshot.runners.engines.server import Answer, Fake, serving

PROMPTS = ["one", "two", "three", "four"]
ADAPTERS = ("pirate", "haiku")
SHIFTS = {"base": 0, "pirate": 100, "haiku": 200}


def said(name: str, number: int) -> tuple[int, ...]:
    return tuple(1000 + SHIFTS[name] + 10 * number + i for i in range(4))


def text(ids: tuple[int, ...]) -> str:
    return "".join(f" w{i}" for i in ids)


def prompt_ids(number: int) -> tuple[int, ...]:
    return (5, 6, 7 + number)


@dataclasses.dataclass
class Project:
    """Goldens of four prompts with two adapters, and a server that answers with them."""

    path: Path
    fake: Fake
    url: str

    @classmethod
    def make(cls, folder: Path, url: str, toml: str, fake: Fake) -> Project:
        suite = SUITE_TOML.replace("[suites.s]", f"{toml}\n[suites.s]")
        suite += "max_new_tokens = 4\ntop_logprobs = 2\n"
        suite += '[suites.s.adapters]\npirate = "p"\nhaiku = "h"\n'
        path = project(folder, suite.replace("URL", url), PROMPTS)
        config = load(path)
        store = Store(config.store)
        environment = recorded(ROCM7, calibration=noise(0.0, 0.3))
        store.write_fingerprint(dataclasses.replace(environment, suite="s"))
        (plan,) = plans(config, ())
        for case in plan.cases:
            number = PROMPTS.index(case.prompt)
            ids = said(case.adapter or "base", number)
            row = observation(text(ids), ids=ids, case=case.key, prompt_ids=prompt_ids(number))
            row = dataclasses.replace(
                row, output=dataclasses.replace(row.output, prompt=case.prompt)
            )
            store.write(Golden("s", ROCM7.slug, "reference", row))
        return cls(path, fake, url)

    def run(self, *arguments: str, **environment: str) -> Result:
        command = ["--config", str(self.path), *arguments]
        return CliRunner(env=environment).invoke(main, command)

    def verify(self, *arguments: str) -> Any:
        flags = (
            "verify",
            "--engine",
            "mine",
            "--against",
            ROCM7.slug,
            "--json",
            "--attribute",
            "never",
        )
        done = self.run(*flags, "--attribute", "never", *arguments)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        report = json.loads(done.stdout)
        assert report["exit_code"] == done.exit_code
        return report


TOML = '[engines.mine]\nkind = "openai"\nurl = "URL"\ntimeout = 5\nretries = 1\n'


def words() -> dict[str, dict[tuple[int, ...], tuple[int, ...]]]:
    return {
        model: {prompt_ids(n): said(name, n) for n in range(len(PROMPTS))}
        for model, name in {"smol": "base", "pirate": "pirate", "haiku": "haiku"}.items()
    }


def fake(**changes: Any) -> Fake:
    usual: dict[str, Any] = {
        "words": words(),
        "listed": {"smol": None, "pirate": "smol", "haiku": "smol"},
    }
    return Fake(**{**usual, **changes})


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:

        def build(toml: str = TOML, **changes: Any) -> Project:
            server = fake(**changes)
            url = stack.enter_context(serving(server))
            return Project.make(tmp_path / "p", url, toml, server)

        yield build


def verdicts(report: Mapping[str, Any], run: int = 0) -> dict[str, str]:
    return {row["case"]: row["verdict"] for row in report["runs"][run]["results"]}


def test_a_server_that_answers_as_the_reference_matches(make: Any) -> None:
    report = make().verify()
    assert report["exit_code"] == 0
    assert set(verdicts(report).values()) == {"MATCH"} and len(verdicts(report)) == 12
    run = report["runs"][0]
    assert run["subject"] == "mine" and run["unchecked"] == {}
    assert run["engine"]["engine"] == "vllm" and run["engine"]["version"] == "0.0.1"
    assert run["engine"]["model"] == "smol"
    (note,) = run["results"][0]["notes"]
    assert note == "not checked, a side does not tell: workload"


def test_prompts_are_sent_as_the_recorded_tokens_one_a_request(make: Any) -> None:
    project = make()
    project.verify()
    sent = [body["prompt"] for body in project.fake.asked]
    assert all(isinstance(prompt, list) and type(prompt[0]) is int for prompt in sent)
    assert [*prompt_ids(0), *said("pirate", 0)] in sent  # forced scoring


def test_moved_logprobs_are_seen(make: Any) -> None:
    report = make(shift=-1.0).verify()
    assert report["exit_code"] == 1
    assert set(verdicts(report).values()) == {"UNATTRIBUTED"}


def test_swapped_adapters_are_named(make: Any) -> None:
    swapped = words()
    swapped["pirate"], swapped["haiku"] = swapped["haiku"], swapped["pirate"]
    report = make(words=swapped).verify()
    for row in report["runs"][0]["results"]:
        if not row["case"].startswith("base"):
            assert row["verdict"] == "REGRESSION" and "adapters swapped" in row["headline"]


def test_an_adapter_that_is_not_listed_is_an_error_and_is_not_asked_for(make: Any) -> None:
    project = make(listed={"smol": None, "haiku": "smol"})
    report = project.verify()
    assert report["exit_code"] == 1
    for key, verdict in verdicts(report).items():
        assert verdict == ("ERROR" if key.startswith("pirate") else "MATCH")
    headline = next(r["headline"] for r in report["runs"][0]["results"] if r["verdict"] == "ERROR")
    assert 'does not list "pirate"' in headline
    assert all(body["model"] != "pirate" for body in project.fake.asked)


def test_a_server_that_answers_with_its_base_model_is_caught(make: Any) -> None:
    def fall_back(body: Mapping[str, Any]) -> Answer | None:
        if body["model"] != "pirate":
            return None
        return server._completion({**body, "model": "smol"})

    server = fake()
    project = make(before=fall_back)
    report = project.verify("pirate/*")
    assert set(verdicts(report).values()) == {"ERROR"}
    assert 'asked for "pirate", answered by "smol"' in report["runs"][0]["results"][0]["headline"]


def test_adapters_go_by_the_names_that_the_configuration_gives(make: Any) -> None:
    names = 'adapters = { pirate = "smol:arr", haiku = "h2" }\n'
    known = words()
    known |= {"smol:arr": known["pirate"], "h2": known["haiku"]}
    report = make(
        TOML + names, words=known, listed={"smol": None, "arr": "smol", "h2": "smol"}
    ).verify()
    assert set(verdicts(report).values()) == {"MATCH"}


def test_text_alone_is_compared_and_what_did_not_run_is_said(make: Any) -> None:
    report = make(knows=frozenset(), tells=frozenset()).verify("base/*")
    run = report["runs"][0]
    assert set(run["unchecked"]) == {"token ids", "logprobs", "forced scoring"}
    assert all("token ids" in row["notes"][0] for row in run["results"])


def test_the_environment_of_its_table_says_what_it_is_held_to(make: Any) -> None:
    old = '[environments.old]\nmatch = { rocm = ">=7,<8" }\n'
    project = make(TOML + 'environment = "old"\n' + old)
    flags = ("verify", "--engine", "mine", "--attribute", "never", "--json")
    report = json.loads(project.run(*flags).stdout)
    assert report["exit_code"] == 0 and report["runs"][0]["golden"] == ROCM7.slug
    unknown = project.run(*flags, "--environment", "new")
    assert unknown.exit_code == 2 and "no such environment" in unknown.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--engine", "mine"), "does not say in which environment"),
        (("--engine", "mine", "--from", "x.jsonl"), "two candidates"),
        (("--url", "http://127.0.0.1:9"), "no --engine"),
        (("--engine", "nobody"), "no such engine"),
        (("--engine", "mine", "--url", "http://a:b@h/v1", "--against", ROCM7.slug), "credentials"),
    ],
)
def test_a_request_that_cannot_be_met_is_a_usage_error(
    make: Any, flags: tuple[str, ...], said: str
) -> None:
    done = make().run("verify", *flags)
    assert done.exit_code == 2 and said in done.stderr, done.output


# ---------------------------------------------------------------------------- failures


def test_a_server_that_dies_half_way_keeps_what_was_done(make: Any) -> None:
    count = 0

    def die(body: Mapping[str, Any]) -> Answer | None:
        nonlocal count
        count += 1
        return None if count <= 8 else (500, {"error": {"message": "EngineCore died: sk-secret"}})

    project = make(TOML + "concurrency = 1\n", before=die)
    started = time.monotonic()
    report = project.verify()
    assert report["exit_code"] == 1 and time.monotonic() - started < 20
    found = list(verdicts(report).values())
    assert found == ["MATCH"] * 6 + ["ERROR"] * 6
    assert "forced scoring" in report["runs"][0]["unchecked"]
    errors = [r["headline"] for r in report["runs"][0]["results"] if r["verdict"] == "ERROR"]
    assert any("HTTP 500: EngineCore died" in headline for headline in errors)
    assert any("not asked: the engine failed 3 rows in a row" in headline for headline in errors)
    # Three rows, each twice, answering and scoring: the rest cost no request.
    assert count <= 8 + 2 * 3 * 2


def test_a_server_that_breaks_while_scoring_fails_the_rows(make: Any) -> None:
    def die(body: Mapping[str, Any]) -> Answer | None:
        scoring = "prompt_logprobs" in body and len(body["prompt"]) > 4
        return (500, {"error": {"message": "einsum mismatch"}}) if scoring else None

    report = make(before=die).verify()
    assert report["exit_code"] == 1
    assert set(verdicts(report).values()) == {"ERROR"}


def test_a_busy_server_is_asked_again(make: Any) -> None:
    busy = iter([429, 503])

    def before(body: Mapping[str, Any]) -> Answer | None:
        status = next(busy, None)
        return None if status is None else (status, {"error": {"message": "busy"}})

    report = make(TOML.replace("retries = 1", "retries = 3"), before=before).verify("base/*")
    assert set(verdicts(report).values()) == {"MATCH"}


def test_a_server_that_does_not_answer_in_time_is_an_error_and_no_hang(make: Any) -> None:
    def sleep(body: Mapping[str, Any]) -> Answer | None:
        time.sleep(3)
        return None

    started = time.monotonic()
    report = make(TOML.replace("timeout = 5", "timeout = 0.3"), before=sleep).verify("base/*")
    assert set(verdicts(report).values()) == {"ERROR"} and time.monotonic() - started < 3
    assert "no answer in 0.3 s" in report["runs"][0]["results"][0]["headline"]


def test_a_server_that_is_not_there_is_an_error_without_a_traceback(make: Any) -> None:
    done = make().run(
        "verify", "--engine", "openai", "--url", "http://127.0.0.1:9/v1", "--against", ROCM7.slug
    )
    assert done.exit_code == 1 and "cannot be reached" in done.stderr


@pytest.mark.parametrize("answer", [b"<html>", {"choices": []}, {"choices": [{"text": 3}]}, [1]])
def test_an_answer_of_another_form_is_an_error(make: Any, answer: Any) -> None:
    report = make(before=lambda body: (200, answer)).verify("base/*")
    assert set(verdicts(report).values()) == {"ERROR"}


# ------------------------------------------------------------------------------- keys


def test_a_key_comes_from_the_environment_and_is_told_to_nobody_else(make: Any) -> None:
    def echo(body: Mapping[str, Any]) -> Answer | None:
        return 500, {"error": {"message": "Incorrect API key provided: sk-secret-1"}}

    project = make(TOML + 'api_key_env = "MINE_KEY"\n', before=echo)
    flags = ("verify", "--engine", "mine", "--against", ROCM7.slug)
    unset = project.run(*flags)
    assert unset.exit_code == 2 and "MINE_KEY" in unset.stderr
    done = project.run(*flags, "--json", MINE_KEY="sk-secret-1")
    assert "sk-secret-1" not in done.output and "provided: ***" in done.output
    assert project.fake.headers[-1]["Authorization"] == "Bearer sk-secret-1"


# ----------------------------------------------------------------- its own goldens


def test_its_own_goldens_answer_whether_it_moved(make: Any) -> None:
    """A constant offset fails the one question and drops out of the other."""
    project = make(shift=-1.0)
    done = project.run("record", "--engine", "mine", "--against", ROCM7.slug)
    assert done.exit_code == 0, done.output + done.stderr
    assert (project.path.parent / "goldens/s" / ROCM7.slug / "mine/pirate").is_dir()
    assert project.run("check").exit_code == 0
    report = project.verify()
    assert set(verdicts(report, 0).values()) == {"UNATTRIBUTED"}
    assert [run["held_to"] for run in report["runs"]] == ["reference", "mine"]
    assert set(verdicts(report, 1).values()) == {"MATCH"}
    project.fake.shift = 0.0
    moved = project.verify()
    assert set(verdicts(moved, 0).values()) == {"MATCH"}
    assert set(verdicts(moved, 1).values()) == {"UNATTRIBUTED"}


def test_its_own_missing_goldens_wait_for_review_where_it_is_right(make: Any) -> None:
    """One is wrong here: neither its own golden nor anything of the reference's."""
    project = make()
    root = project.path.parent
    assert project.run("record", "--engine", "mine", "--against", ROCM7.slug).exit_code == 0
    store = Store(root / "goldens")
    right, wrong, *_ = store.cases("s", ROCM7.slug, "mine")
    for case in (right, wrong):
        store.path("s", ROCM7.slug, "mine", case).unlink()
    number = next(n for n, prompt in enumerate(PROMPTS) if wrong.startswith(f"base/{prompt}-"))
    project.fake.words["smol"][prompt_ids(number)] = (9, 9, 9, 9)
    flags = ("--engine", "mine", "--against", ROCM7.slug, "--attribute", "never")
    done = project.run("verify", *flags, "--json", "--pending", str(root / "p"), CI="true")
    assert json.loads(done.stdout)["exit_code"] == done.exit_code == 1, done.stderr
    pending = Store(root / "p")
    assert pending.subjects("s", ROCM7.slug) == ["mine"]
    assert pending.cases("s", ROCM7.slug, "mine") == [right]
    assert "1 goldens wait in" in done.stderr
    assert store.cases("s", ROCM7.slug, "mine")[:1] != [right]  # and nothing was accepted
    accepted = project.run("review", str(root / "p"), "--accept", "*/mine/*")
    assert accepted.exit_code == 0, accepted.output
    assert store.read("s", ROCM7.slug, "mine", right).observation.case == right
    assert project.run("check").exit_code == 0


def test_recording_an_engine_refuses_words_that_change(make: Any) -> None:
    server = fake()
    calls = 0

    def flaky(body: Mapping[str, Any]) -> Answer | None:
        nonlocal calls
        calls += body["model"] == "haiku"
        if calls != 3:
            return None
        calls += 1
        status, answer = server._completion(body)
        answer["choices"][0]["text"] += " indeed"
        return status, answer

    project = make(before=flaky)
    done = project.run("record", "--engine", "mine", "--against", ROCM7.slug)
    assert done.exit_code == 1 and "changes between identical runs" in done.stderr
    assert not (project.path.parent / "goldens/s" / ROCM7.slug / "mine").exists()
