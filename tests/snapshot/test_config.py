"""goldens.toml: every key that there is, and an error that helps for every mistake."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from snapshot.cli import main
from snapshot.commands.init import init
from snapshot.config import find, load
from snapshot.errors import ConfigError, GoldensError, UsageError
from snapshot.plan import plans
from snapshot.policy import LogprobTolerance, TextTolerance
from tests.snapshot.builders import SUITE_TOML, project

RULE = """
reason = "reference drifts by one word at batch 1"
issue = "https://example.org/1"
owner = "@amd-ci"
expires = 2027-03-01
"""
RELAX = f'[[suites.s.relax]]\ncase = "base/*"\n{RULE}text = {{ rouge_l = 0.9 }}\n'

WHOLE = f"""\
[store]
path = "references"

[environments.mi300-rocm7]
match = {{ rocm = ">=7,<8", arch = "gfx942" }}

[environments.mi300-rocm10]
match = {{ rocm = ">=10,<11", arch = "gfx942" }}
inherits = "mi300-rocm7"

[suites.multi-lora]
kind = "lora-generation"
model = "meta-llama/Llama-2-7b-hf"
adapters = {{ wizard = "winddude/wizard", norwegian = "RuterNorway/norwegian" }}
prompts = "prompts.jsonl"
dtype = ["float16", "float32"]
batch_sizes = [1, 3]
max_new_tokens = 16
top_logprobs = 7
attention = "eager"
device = "cpu"
timeout = 90

[suites.multi-lora.tolerance]
text = "equal"
logprob = "calibrated"

[[suites.multi-lora.relax]]
case = "base/*"
subject = "reference"
when = {{ rocm = ">=10", tf32_matmul = false, threads = 2 }}
text = {{ rouge_l = 0.9, metric = "sglang-char-lcs" }}
logprob = {{ max = 0.1, rms = 0.02 }}
{RULE}
[[suites.multi-lora.quarantine]]
case = "wizard/*"
{RULE}
[[suites.multi-lora.allow]]
case = "norwegian/*"
finding = "same-as-base"
reason = "a short answer that every row gives"
"""


def test_every_key_arrives_where_it_belongs(tmp_path: Path) -> None:
    config = load(project(tmp_path, WHOLE))
    suite = config.suites["multi-lora"]
    assert config.store == tmp_path / "references"
    assert config.environments["mi300-rocm10"].inherits == "mi300-rocm7"
    assert config.environments["mi300-rocm10"].match.terms == {"rocm": ">=10,<11", "arch": "gfx942"}
    assert suite.prompts == tmp_path / "prompts.jsonl"
    assert (suite.model, suite.root) == ("meta-llama/Llama-2-7b-hf", tmp_path)
    assert dict(suite.adapters) == {
        "wizard": "winddude/wizard",
        "norwegian": "RuterNorway/norwegian",
    }
    assert (suite.dtypes, suite.batch_sizes) == (("float16", "float32"), (1, 3))
    assert (suite.max_new_tokens, suite.top_logprobs, suite.timeout) == (16, 7, 90)
    assert (suite.attention, suite.device) == ("eager", "cpu")
    (relax,), (quarantine,), (allow,) = (
        suite.policy.relax,
        suite.policy.quarantine,
        suite.policy.allow,
    )
    assert suite.policy.tolerance.text is None and suite.policy.tolerance.logprob is None
    assert relax.tolerance.text == TextTolerance(0.9, "sglang-char-lcs")
    assert relax.tolerance.logprob == LogprobTolerance(max=0.1, rms=0.02)
    assert relax.when.terms == {"rocm": ">=10", "tf32_matmul": False, "threads": 2}
    assert (relax.subject, relax.owner) == ("reference", "@amd-ci")
    assert relax.expires == datetime.date(2027, 3, 1)
    assert relax.where == f"{tmp_path}/goldens.toml: suites.multi-lora.relax[0]"
    assert (quarantine.case, quarantine.subject) == ("wizard/*", None)
    assert (allow.case, allow.finding) == ("norwegian/*", "same-as-base")


def test_defaults_are_strict(tmp_path: Path) -> None:
    config = load(project(tmp_path))
    suite = config.suites["s"]
    assert config.store == tmp_path / "goldens"
    assert (suite.dtypes, suite.batch_sizes) == (("float16",), (1,))
    assert suite.policy.tolerance.text is None and suite.policy.tolerance.logprob is None
    assert not suite.policy.relax and not suite.policy.quarantine


def test_a_date_may_be_text(tmp_path: Path) -> None:
    toml = SUITE_TOML + RELAX.replace("2027-03-01", '"2027-03-01"')
    (rule,) = load(project(tmp_path, toml)).suites["s"].policy.relax
    assert rule.expires == datetime.date(2027, 3, 1)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    assert load(project(tmp_path, "\ufeff" + SUITE_TOML)).suites


MISTAKES: dict[str, tuple[str, str, str, str]] = {
    # toml: what is said, the key, what was expected, what was got
    "[store]\n": ('"suites" is missing', "", "suites", "store"),
    "suites = 3": ("wrong value", "suites", "a table", "3"),
    "[suites]": ("wrong value", "suites", "a table that is not empty", "{}"),
    "[suites]\ns = 3": ("wrong value", "suites.s", "a table", "3"),
    SUITE_TOML + "[stor]": ("unknown key", "stor", "store?", "stor"),
    SUITE_TOML + '[store]\npth = "x"': ("unknown key", "store.pth", "path?", "pth"),
    SUITE_TOML + '[store]\npath = ""': ("wrong value", "store.path", "not empty", "''"),
    SUITE_TOML + "max_token = 3": ("unknown key", "suites.s.max_token", "max_new_tokens?", ""),
    SUITE_TOML + "max_new_tokens = 0": ("wrong", "suites.s.max_new_tokens", "1 or more", "0"),
    SUITE_TOML + "max_new_tokens = 3.0": ("wrong", "suites.s.max_new_tokens", "whole", "3.0"),
    SUITE_TOML + "top_logprobs = 101": ("wrong", "suites.s.top_logprobs", "100 or less", "101"),
    SUITE_TOML + "batch_sizes = []": ("wrong", "suites.s.batch_sizes", "not empty", "[]"),
    SUITE_TOML + "batch_sizes = [1, 1]": ("wrong", "suites.s.batch_sizes", "each entry once", "["),
    SUITE_TOML + "batch_sizes = [1, 2.0]": ("wrong", "suites.s.batch_sizes[1]", "whole", "2.0"),
    SUITE_TOML + "batch_sizes = [true]": ("wrong", "suites.s.batch_sizes[0]", "whole", "True"),
    SUITE_TOML + "timeout = 0": ("wrong", "suites.s.timeout", "more than 0", "0"),
    SUITE_TOML + "timeout = nan": ("wrong", "suites.s.timeout", "a finite number", "nan"),
    SUITE_TOML + 'device = "gpu"': ("wrong", "suites.s.device", "one of auto, cpu", "'gpu'"),
    SUITE_TOML + "adapters = [1]": ("wrong", "suites.s.adapters", "a table", "[1]"),
    SUITE_TOML + 'adapters = { base = "b" }': ("cannot have", "adapters.base", "another", "base"),
    SUITE_TOML + "adapters = { a = 1 }": ("wrong value", "suites.s.adapters.a", "text", "1"),
    SUITE_TOML.replace('"m"', "3"): ("wrong value", "suites.s.model", "text", "3"),
    SUITE_TOML.replace('model = "m"', ""): ('"model" is missing', "suites.s", "model", "kind"),
    SUITE_TOML.replace("float16", "fp16"): ("wrong", "suites.s.dtype", "float16", "'fp16'"),
    SUITE_TOML.replace('"float16"', '["x"]'): ("wrong", "suites.s.dtype[0]", "float16", "'x'"),
    SUITE_TOML.replace("lora-generation", "lora"): (
        "wrong",
        "suites.s.kind",
        "one of grouped-decode, lora-gen",
        "'lora'",
    ),
    SUITE_TOML.replace("suites.s", 'suites."My S"'): (
        "folder's name",
        "suites.My S",
        "my-s",
        "My S",
    ),
    SUITE_TOML.replace("suites.s", "suites.blobs"): ("cannot have", "suites.blobs", "another", ""),
    SUITE_TOML + 'tolerance = "strict"': (
        "wrong value",
        "suites.s.tolerance",
        "a table",
        "'strict'",
    ),
    SUITE_TOML + 'tolerance.text = "like"': ("wrong", "tolerance.text", "'equal' or { rouge_l", ""),
    SUITE_TOML + "tolerance.text.rouge_l = 1.5": ("wrong", "text.rouge_l", "1 or less", "1.5"),
    SUITE_TOML + "tolerance.text.rouge_l = 0": ("wrong", "text.rouge_l", "more than 0", "0"),
    SUITE_TOML + "tolerance.text.rouge_l = nan": ("wrong", "text.rouge_l", "finite", "nan"),
    SUITE_TOML + "tolerance.logprob.max = inf": ("wrong", "logprob.max", "finite", "inf"),
    SUITE_TOML + "tolerance.logprob.max = -1": ("wrong", "logprob.max", "more than 0", "-1"),
    SUITE_TOML + "tolerance.logprob.mx = 1": ("unknown key", "logprob.mx", "max?", "mx"),
    SUITE_TOML + "tolerance.logprob = {}": ("wrong value", "tolerance.logprob", "not empty", "{}"),
    SUITE_TOML + RELAX + "why = 1": ("unknown key", "suites.s.relax[0].why", "reason", "why"),
    SUITE_TOML + RELAX.replace("text =", "txt ="): ("unknown key", "relax[0].txt", "text?", "txt"),
    SUITE_TOML + RELAX.replace("{ rouge_l = 0.9 }", '"equal"'): (
        "wrong",
        "relax[0].text",
        "{ ro",
        "",
    ),
    SUITE_TOML + RELAX + 'logprob = "calibrated"': ("wrong", "relax[0].logprob", "{ max = 0.1", ""),
    SUITE_TOML + RELAX.replace('owner = "@amd-ci"', ""): ('"owner"', "relax[0]", "owner", "case"),
    SUITE_TOML + RELAX.replace('"@amd-ci"', '""'): ("wrong", "relax[0].owner", "not empty", "''"),
    SUITE_TOML + RELAX.replace('"base/*"', "3"): ("wrong value", "relax[0].case", "text", "3"),
    SUITE_TOML + RELAX.replace("2027-03-01", '"soon"'): (
        "wrong",
        "[0].expires",
        "2027-03-01",
        "soon",
    ),
    SUITE_TOML + RELAX.replace("2027-03-01", "2027"): (
        "wrong",
        "[0].expires",
        "2027-03-01",
        "2027",
    ),
    SUITE_TOML + RELAX.replace("2027-03-01", "2027-03-01T00:00:00"): (
        "wrong",
        "expires",
        "a date",
        "",
    ),
    SUITE_TOML + RELAX + 'when = { rocmm = "7" }': ("not a field", "when.rocmm", "rocm", "rocmm"),
    SUITE_TOML + RELAX + "when = { rocm = [1] }": ("wrong", "relax[0].when.rocm", "text", "[1]"),
    SUITE_TOML + RELAX.replace("relax", "quarantine"): (
        "unknown",
        "quarantine[0].text",
        "one of",
        "",
    ),
    SUITE_TOML + RELAX.replace("[[", "[").replace("]]", "]"): (
        "wrong",
        "suites.s.relax",
        "a list",
        "",
    ),
    SUITE_TOML + f'[[suites.s.relax]]\ncase = "*"\n{RULE}': (
        "wrong",
        "relax[0]",
        '"text" or the key "log',
        "",
    ),
    SUITE_TOML + '[[suites.s.allow]]\ncase = "*"\nreason = "r"\nfinding = "emty"': (
        "wrong value",
        "allow[0].finding",
        "empty?",
        "'emty'",
    ),
    SUITE_TOML + "[environments.a]": ('"match" is missing', "environments.a", "match", "nothing"),
    SUITE_TOML + "[environments.a]\nmatch = {}": (
        "wrong",
        "environments.a.match",
        "not empty",
        "{}",
    ),
    SUITE_TOML + '[environments.a]\nmatch = { rocm = "~10" }': (
        "operator",
        "match.rocm",
        ">=10",
        "",
    ),
    SUITE_TOML
    + '[environments.a]\nmatch = { rocm = "7" }\n[environments.b]\nmatch = { rocm = "8" }\n'
    'inherits = "aa"': ("not declared", "environments.b.inherits", "a?", "aa"),
    SUITE_TOML
    + '[environments.mi300]\nmatch = { rocm = "7" }\n'
    + '[engines.e]\nkind = "openai"\nenvironment = "mi30"': (
        "not declared",
        "engines.e.environment",
        "mi300?",
        "mi30",
    ),
    SUITE_TOML + "timeout = 1e308": ("wrong value", "timeout", "604800 or less", "1e+308"),
    SUITE_TOML + '[engines.e]\nkind = "openai"\ntimeout = 1e30': (
        "wrong value",
        "engines.e.timeout",
        "604800 or less",
        "1e+30",
    ),
}


@pytest.mark.parametrize("toml", MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_names_file_and_key_expected_and_got(tmp_path: Path, toml: str) -> None:
    said, key, expected, got = MISTAKES[toml]
    path = project(tmp_path, toml)
    with pytest.raises(ConfigError) as error:
        load(path)
    assert said in error.value.what
    assert str(error.value.where).startswith(str(path)) and key in str(error.value.where)
    assert expected in str(error.value.expected)
    assert got in str(error.value.got)
    assert error.value.exit_code == 2
    for jargon in ("$ref", "#/", "minItems", "minLength", "is not valid", "schema"):
        assert jargon not in str(error.value)


@pytest.mark.parametrize("inherits", [("a", None), ("b", "a"), ("b", "c", "a"), ("b", "c", "b")])
def test_environments_that_inherit_in_a_circle_are_named(
    tmp_path: Path, inherits: tuple[str | None, ...]
) -> None:
    toml = SUITE_TOML
    for name, parent in zip("abc", inherits, strict=False):
        toml += f'[environments.{name}]\nmatch = {{ rocm = "{ord(name)}" }}\n'
        toml += f'inherits = "{parent}"\n' if parent else ""
    with pytest.raises(ConfigError, match="in a circle") as error:
        load(project(tmp_path, toml))
    assert "->" in str(error.value.got)


@pytest.mark.parametrize("text", [b"a = = 1", b"\xff", b"a = " + b"[" * 5000])
def test_what_is_not_toml_is_said_with_the_file(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "goldens.toml"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match="not TOML") as error:
        load(path)
    assert error.value.where == str(path)


def test_a_file_that_cannot_be_read_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "goldens.toml")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "folder")


def test_the_nearest_file_above_is_found(tmp_path: Path) -> None:
    path = project(tmp_path / "my repo")
    deep = path.parent / "a" / "b"
    deep.mkdir(parents=True)
    assert find(deep) == path
    with pytest.raises(ConfigError) as error:
        find(tmp_path)
    assert error.value.hint == "goldens init"


# --------------------------------------------------------------------------- init


def test_what_init_writes_loads(tmp_path: Path) -> None:
    folder = tmp_path / "my project" / "golden"
    written = init(folder)
    assert [path.name for path in written] == ["goldens.toml", "prompts.jsonl", ".gitattributes"]
    config = load(written[0])
    (plan,) = plans(config, ())
    assert len(plan.cases) == 2
    assert config.suites["generation"].policy.tolerance.text is None


def test_every_line_that_init_comments_out_is_a_key_that_works(tmp_path: Path) -> None:
    path = init(tmp_path)[0]
    lines = path.read_text("utf-8").splitlines()
    toml = [
        line.removeprefix("# ")
        if line.startswith("# ") and (" = " in line or "[" in line)
        else line
        for line in lines
    ]
    text = "\n".join(toml) + '\n[environments.mi300-rocm7]\nmatch = { rocm = "7" }\n'
    path.write_text(text, encoding="utf-8")
    config = load(path)
    assert config.suites["generation"].policy.relax
    assert config.environments["mi300-rocm10"].inherits == "mi300-rocm7"


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text("mine", encoding="utf-8")
    init(tmp_path)
    assert (tmp_path / "prompts.jsonl").read_text(encoding="utf-8") == "mine"
    with pytest.raises(UsageError, match="already") as error:
        init(tmp_path)
    assert isinstance(error.value, GoldensError)


def test_init_where_nothing_can_be_written_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written") as error:
        init(tmp_path / "file" / "below")
    assert "file" in str(error.value.where)


@pytest.mark.parametrize("key", ["prompts", "relax", "match"])
def test_what_a_file_says_moves_no_terminal(tmp_path: Path, key: str) -> None:
    evil = r"\u001b[31m\u202e::error::x"
    toml = {
        "prompts": SUITE_TOML.replace('"prompts.jsonl"', f'"{evil}"'),
        "relax": SUITE_TOML + RELAX.replace("base/*", evil),
        "match": SUITE_TOML + f'[environments.e]\nmatch = {{ rocm = "{evil}" }}\n',
    }[key]
    done = CliRunner().invoke(main, ["--config", str(project(tmp_path, toml)), "status"])
    assert done.exit_code == 2 and "u202e" in done.output
    assert not {"\x1b", "\u202e"} & set(done.output)
