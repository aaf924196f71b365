"""``goldens verify --from``: recorded outputs held to goldens, without torch."""

from __future__ import annotations

import dataclasses
import datetime
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from snapshot.cli import main
from snapshot.commands.verify import Request, verify
from snapshot.config import Config, load
from snapshot.errors import RunError, UsageError
from snapshot.evidence import Now
from snapshot.model import Golden, Identity
from snapshot.plan import plans
from snapshot.report.jsonreport import to_json
from snapshot.report.terminal import print_verification
from snapshot.resolve import against
from snapshot.result import Verdict
from snapshot.shelf import Shelf
from snapshot.store import Store
from snapshot.verification import Run, Said, Verification
from tests.snapshot.builders import (
    DAY,
    MASSIVE,
    MOVED,
    ROCM7,
    ROCM10,
    SUITE_TOML,
    fingerprint,
    noise,
    observation,
    project,
    recorded,
)

ENVIRONMENTS = """
[environments.old]
match = { rocm = ">=7,<8" }

[environments.new]
match = { rocm = ">=10" }
inherits = "old"
"""


def rule(kind: str, when: str = "{}", text: str = "", expires: str = "2027-03-01") -> str:
    return (
        f'\n[[suites.s.{kind}]]\ncase = "base/*"\nwhen = {when}\nreason = "r"\nissue = "i"\n'
        f'owner = "@o"\nexpires = {expires}\n{text}\n'
    )


def relax(when: str = "{}", **more: Any) -> str:
    text = 'text = { rouge_l = 0.8, metric = "unicode-lcs" }'
    return rule("relax", when, text, **more)


@dataclasses.dataclass
class Project:
    """A project of one prompt with goldens for a base row and an adapter row."""

    config: Config
    store: Store
    keys: list[str]

    @classmethod
    def make(cls, folder: Path, toml: str = "", *identities: Identity) -> Project:
        adapters = '\n[suites.s.adapters]\nwizard = "w"\n'
        config = load(project(folder, SUITE_TOML + adapters + ENVIRONMENTS + toml, ["x"]))
        (plan,) = plans(config, ())
        made = cls(config, Store(config.store), [case.key for case in plan.cases])
        for identity in identities or (ROCM7,):
            environment = recorded(identity, calibration=noise(0.0, 0.3))
            made.store.write_fingerprint(dataclasses.replace(environment, suite="s"))
            for key, text in zip(made.keys, (MASSIVE, "An adapter's own words"), strict=True):
                row = observation(text, case=key)
                made.store.write(Golden("s", identity.slug, "reference", row))
        return made

    def outputs(self, base: str = MASSIVE, wizard: str | None = "An adapter's own words") -> Path:
        path = self.config.path.parent / "outputs.jsonl"
        rows = zip(self.keys, (base, wizard), strict=True)
        lines = [json.dumps({"case": k, "text": text}) for k, text in rows if text is not None]
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    def verify(self, outputs: Path | None = None, **request: Any) -> Verification:
        given = {"outputs": outputs or self.outputs(), "day": DAY, **request}
        return verify(self.config, Request(**given))


def verdicts(found: Verification) -> list[Verdict]:
    return [result.verdict for result in found.results]


def test_outputs_that_are_the_goldens_match(tmp_path: Path) -> None:
    found = Project.make(tmp_path).verify(against=ROCM7.slug)
    assert verdicts(found) == [Verdict.MATCH, Verdict.MATCH]
    assert found.exit_code == 0
    assert found.held[0].slug is None and found.held[0].baseline.slug == ROCM7.slug


def test_outputs_that_differ_are_unattributed(tmp_path: Path) -> None:
    """C01, held strictly"""
    p = Project.make(tmp_path)
    found = p.verify(p.outputs(base=MOVED), environment="old")
    assert verdicts(found) == [Verdict.UNATTRIBUTED, Verdict.MATCH]
    assert found.exit_code == 1


def test_an_adapter_without_effect_is_diagnosed_from_text_alone(tmp_path: Path) -> None:
    """C04, comparing"""
    p = Project.make(tmp_path)
    found = p.verify(p.outputs(wizard=MASSIVE), environment="old")
    assert found.results[1].headline == "matches the base golden: adapter had no effect"


def test_a_case_without_an_output_is_an_error(tmp_path: Path) -> None:
    p = Project.make(tmp_path)
    found = p.verify(p.outputs(wizard=None), environment="old")
    assert verdicts(found) == [Verdict.MATCH, Verdict.ERROR]
    assert found.results[1].headline == "no output for this case"
    chosen = p.verify(p.outputs(wizard=None), environment="old", selectors=["base/*"])
    assert chosen.exit_code == 0


def test_a_golden_that_is_not_there_is_missing(tmp_path: Path) -> None:
    """C30"""
    p = Project.make(tmp_path)
    p.store.path("s", ROCM7.slug, "reference", p.keys[1]).unlink()
    before = sorted(p.config.store.rglob("*"))
    found = p.verify(environment="old")
    assert verdicts(found) == [Verdict.MATCH, Verdict.MISSING]
    assert found.exit_code == 3
    assert sorted(p.config.store.rglob("*")) == before


def test_an_environment_without_goldens_is_missing_and_lists_what_exists(tmp_path: Path) -> None:
    """C41"""
    other = '[environments.h100]\nmatch = { backend = "cuda" }\n'
    found = Project.make(tmp_path, other).verify(environment="h100")
    assert set(verdicts(found)) == {Verdict.MISSING}
    assert found.results[0].headline == "no golden: looked for environment h100"
    text = to_json(found)
    assert f"looked for environment h100; recorded for this suite: {ROCM7.slug}" in text
    file = io.StringIO()
    print_verification(found, Console(file=file, width=200, highlight=False))
    said = file.getvalue()
    assert said.count(ROCM7.slug) == said.count("no golden: looked for") == 1  # not by case
    assert len(found.results) == 2


def test_what_the_reference_said_stays_with_the_run(tmp_path: Path) -> None:
    """Its own run, or its answers about another's: never what the other gave."""
    p = Project.make(tmp_path)
    (plan,) = plans(p.config, ())
    here, baseline = fingerprint(ROCM7), against(p.store, "s", ROCM7.slug)
    base, wizard = p.keys
    rows = {base: observation("a candidate's words", case=base), wizard: RunError("died")}
    own = Run(plan, "reference", here, baseline, p.store, DAY)
    assert own.held(own.evidences(rows), {}).said == Said(here, {base: rows[base]})
    engine = Run(plan, "vllm", None, baseline, p.store, DAY)
    assert engine.held(engine.evidences(rows), {}).said is None
    answer = observation("the reference's words", case=base)
    now = {base: Now(golden_batch=answer, here=here), wizard: Now(here=here)}
    assert engine.held(engine.evidences(rows), now).said == Said(here, {base: answer})


def test_what_cannot_be_kept_for_review_is_a_usage_error(tmp_path: Path) -> None:
    p = Project.make(tmp_path)
    with pytest.raises(UsageError, match="keeps what the reference says"):
        p.verify(against=ROCM7.slug, attribute="never", pending=tmp_path / "pending")


@pytest.mark.parametrize("damage", ["case", "blob", "fingerprint"])
def test_a_damaged_file_fails_the_run_and_names_the_file(tmp_path: Path, damage: str) -> None:
    p = Project.make(tmp_path)
    path = {
        "case": p.store.path("s", ROCM7.slug, "reference", p.keys[0]),
        "blob": next((p.config.store / "blobs").rglob("*.zst")),
        "fingerprint": p.config.store / "s" / ROCM7.slug / "fingerprint.json",
    }[damage]
    path.write_bytes(path.read_bytes()[:-3])
    command = ["--config", str(p.config.path), "verify", "--against", ROCM7.slug, "--from"]
    result = CliRunner().invoke(main, [*command, str(p.outputs())])
    assert result.exit_code == 1
    assert path.name in result.output.replace("\n", "")
    assert result.exception is None or isinstance(result.exception, SystemExit)


# ------------------------------------------------------------- rules and environments


def test_a_rule_holds_for_outputs_of_a_declared_environment(tmp_path: Path) -> None:
    p = Project.make(tmp_path, relax('{ rocm = "<8" }'))
    found = p.verify(p.outputs(base=MOVED), environment="old")
    assert verdicts(found) == [Verdict.WITHIN, Verdict.MATCH]


@pytest.mark.parametrize("request_", [{"environment": "new"}, {"against": ROCM7.slug}])
def test_conditions_of_the_baseline_s_environment_are_not_the_candidate_s(
    tmp_path: Path, request_: dict[str, str]
) -> None:
    """Outputs of ROCm 10 held to ROCm 7's goldens are not excused by a rule for ROCm 7."""
    p = Project.make(tmp_path, relax('{ rocm = "<8" }'))
    found = p.verify(p.outputs(base=MOVED), **request_)
    assert verdicts(found)[0] is Verdict.UNATTRIBUTED


def test_a_rule_without_a_condition_holds_wherever_it_was(tmp_path: Path) -> None:
    p = Project.make(tmp_path, relax())
    assert verdicts(p.verify(p.outputs(base=MOVED), against=ROCM7.slug))[0] is Verdict.WITHIN


def test_an_inherited_baseline_is_named(tmp_path: Path) -> None:
    """C41"""
    found = Project.make(tmp_path).verify(environment="new")
    assert found.held[0].baseline.how == "inherited: new -> old, not this environment's own"
    own = Project.make(tmp_path / "both", "", ROCM7, ROCM10).verify(environment="new")
    assert own.held[0].baseline.identity == ROCM10


def test_an_expired_rule_fails_where_it_would_cover_a_case(tmp_path: Path) -> None:
    p = Project.make(tmp_path, rule("quarantine", '{ rocm = "<8" }', expires="2026-11-30"))
    found = p.verify(environment="old")
    assert verdicts(found) == [Verdict.MATCH, Verdict.MATCH]
    assert found.exit_code == 1
    assert len(found.expired) == 1 and "owner @o" in found.expired[0]
    earlier = p.verify(environment="old", day=datetime.date(2026, 11, 29))
    assert verdicts(earlier)[0] is Verdict.FIXED and not earlier.expired


def test_an_expired_rule_for_other_machines_or_cases_does_not_fail_this_run(
    tmp_path: Path,
) -> None:
    p = Project.make(tmp_path, rule("quarantine", '{ rocm = ">=10" }', expires="2026-11-30"))
    assert p.verify(environment="old").exit_code == 0
    q = Project.make(tmp_path / "q", rule("quarantine", expires="2026-11-30"))
    assert q.verify(environment="old", selectors=["wizard/*"]).exit_code == 0


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({}, "do not say where they were made"),
        ({"environment": "old", "against": ROCM7.slug}, "two environments"),
        ({"environment": "older"}, "no such environment"),
        ({"against": "rocm7"}, "was not recorded"),
        ({"against": ROCM7.slug, "batch_size": 99}, "contradicts --against"),
        ({"against": ROCM7.slug, "batch_size": -1}, "contradicts --against"),
        ({"against": ROCM7.slug, "dtype": "float64"}, "contradicts --against"),
        ({"environment": "old", "selectors": ["none/*"]}, "nothing is selected"),
    ],
)
def test_a_request_that_cannot_be_met_is_a_usage_error(
    tmp_path: Path, request_: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said) as error:
        Project.make(tmp_path).verify(**request_)
    assert error.value.exit_code == 2


def test_an_environment_is_said_of_outputs_only(tmp_path: Path) -> None:
    p = Project.make(tmp_path)
    with pytest.raises(UsageError, match="where recorded outputs were made"):
        verify(p.config, Request(environment="old"))


# ------------------------------------------------------------------------ the command


def test_the_command_prints_a_report_and_exits_with_its_code(tmp_path: Path) -> None:
    p = Project.make(tmp_path)
    common = ["--config", str(p.config.path), "verify", "--environment", "old", "--from"]
    text = CliRunner().invoke(main, [*common, str(p.outputs(base=MOVED))])
    assert text.exit_code == 1
    assert "[-amount-]{+amounts+}" in text.output
    as_json = CliRunner().invoke(main, [*common, str(p.outputs(base=MOVED)), "--json"])
    report = json.loads(as_json.output)
    assert as_json.exit_code == report["exit_code"] == 1
    assert [r["verdict"] for r in report["runs"][0]["results"]] == ["UNATTRIBUTED", "MATCH"]


# -------------------------------------------------------------------------- the shelf


def test_a_shelf_finds_goldens_siblings_and_variants(tmp_path: Path) -> None:
    p = Project.make(tmp_path, "", ROCM7, ROCM7.at(3), ROCM10)
    (plan,) = plans(p.config, ())
    shelf = Shelf(p.store, "s", ROCM7.slug, plan.cases)
    base, wizard = plan.cases
    found = shelf.golden(base.key)
    assert isinstance(found, Golden) and found.observation.output.text == MASSIVE
    assert set(shelf.siblings(base)) == {"wizard"} and set(shelf.siblings(wizard)) == {"base"}
    ((variant, environment),) = shelf.variants(base.key)
    assert variant.slug == ROCM7.at(3).slug
    assert environment.fingerprint.identity.batch_size == 3


def test_a_shelf_without_an_environment_is_empty(tmp_path: Path) -> None:
    p = Project.make(tmp_path)
    (plan,) = plans(p.config, ())
    shelf = Shelf(p.store, "s", None, plan.cases)
    assert shelf.golden(plan.cases[0].key) is None
    assert shelf.siblings(plan.cases[0]) == {} and shelf.variants(plan.cases[0].key) == []


def test_a_damaged_sibling_is_left_out(tmp_path: Path) -> None:
    p = Project.make(tmp_path)
    p.store.path("s", ROCM7.slug, "reference", p.keys[1]).write_text("{}", encoding="utf-8")
    (plan,) = plans(p.config, ())
    shelf = Shelf(p.store, "s", ROCM7.slug, plan.cases)
    assert shelf.siblings(plan.cases[0]) == {}
    assert not isinstance(shelf.golden(p.keys[1]), Golden)
