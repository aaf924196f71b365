"""goldens.toml: what is recorded and verified, where, and how strictly."""

from __future__ import annotations

import datetime
import difflib
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from snapshot.engineconfig import EngineConfig, decode_engines
from snapshot.errors import ConfigError
from snapshot.kernel_model import DECODE
from snapshot.kernel_suite import KernelSuite, kernel_suite
from snapshot.model import BASE, Json
from snapshot.names import check_distinct, safe_name
from snapshot.policy import Allowance, LogprobTolerance, Policy, Rule, TextTolerance, Tolerance
from snapshot.predicate import Predicate
from snapshot.rule_terms import terms
from snapshot.store.blobs import FOLDER
from snapshot.store.schemas import validator

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

FILE_NAME = "goldens.toml"


@dataclass(frozen=True)
class Environment:
    """A named set of machines.

    Attributes:
        match: which fingerprints belong to it.
        inherits: the environment whose goldens stand in where this one has none.
    """

    name: str
    match: Predicate
    inherits: str | None = None


@dataclass(frozen=True)
class Suite:
    """One declared suite of kind ``lora-generation``; the attributes are its keys.

    Attributes:
        model, adapters: hub ids or paths as written; paths are relative to `root`.
        root: folder of goldens.toml.
        timeout: seconds that one batch may take.
    """

    name: str
    kind: str
    root: Path
    model: str
    prompts: Path
    adapters: Mapping[str, str] = field(default_factory=dict)
    dtypes: tuple[str, ...] = ("float32",)
    batch_sizes: tuple[int, ...] = (1,)
    max_new_tokens: int = 32
    top_logprobs: int = 5
    attention: str | None = None
    device: str = "auto"
    timeout: float = 600.0
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True)
class Config:
    """A whole goldens.toml.

    Attributes:
        path: the file.
        store: folder of the goldens.
        suites: those of kind ``lora-generation``.
        kernels: suites of kind ``grouped-decode``.
        blob_budget: bytes of an array beyond which a golden keeps a sketch of it.
    """

    path: Path
    store: Path
    environments: Mapping[str, Environment]
    suites: Mapping[str, Suite]
    engines: Mapping[str, EngineConfig] = field(default_factory=dict)
    kernels: Mapping[str, KernelSuite] = field(default_factory=dict)
    blob_budget: int = 256 * 1024


def find(start: Path) -> Path:
    """The goldens.toml of a folder or of the nearest folder above it.

    Raises:
        ConfigError: there is none.
    """
    for folder in (start, *start.parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    raise ConfigError(
        f"no {FILE_NAME} here or in any folder above", where=str(start), hint="goldens init"
    )


def has_config(start: Path) -> bool:
    """Whether `find` would find one."""
    return any((folder / FILE_NAME).is_file() for folder in (start, *start.parents))


def load(path: Path) -> Config:
    """Reads and checks a goldens.toml.

    Raises:
        ConfigError: naming the key, what was expected and what was got.
    """
    try:
        data = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"not TOML: {error}", where=str(path)) from None
    data = _plain(data, path, "")
    _validate(data, path)
    store, kernels, suites = data.get("store", {}), {}, {}
    for name, table in data["suites"].items():
        where = f"{path}: suites.{name}"
        _check_name(name, where)
        if table["kind"] == DECODE:
            kernels[name] = kernel_suite(name, table, where, path.parent)
        else:
            suites[name] = _suite(name, table, where, path.parent)
    environments = _environments(data.get("environments", {}), path)
    engines = decode_engines(data.get("engines", {}), str(path))
    for engine in engines.values():
        if engine.environment is not None and engine.environment not in environments:
            raise ConfigError(
                "an engine runs in an environment that is not declared",
                where=f"{engine.where}.environment",
                expected=_one_of(environments, engine.environment),
                got=engine.environment,
            )
    return Config(
        path=path,
        store=path.parent / store.get("path", "goldens"),
        environments=environments,
        suites=suites,
        kernels=kernels,
        blob_budget=_bytes(store.get("blob_budget", "256 KiB")),
        engines=engines,
    )


_UNITS = {"B": 1, "KiB": 1024, "MiB": 1024**2}


def _bytes(text: str) -> int:
    """Bytes of a size that follows the schema, such as ``256 KiB``."""
    number, unit = text.split(" ")
    return int(number) * _UNITS[unit]


# --------------------------------------------------------------------- decoding


def _plain(value: Json, path: Path, key: str) -> Json:
    """TOML's dates as ISO text, so that JSON Schema can describe the file.

    Raises:
        ConfigError: NaN or an infinity, which no bound of a schema stops.
    """
    if isinstance(value, dict):
        return {name: _plain(entry, path, f"{key}.{name}") for name, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry, path, f"{key}[{i}]") for i, entry in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(
            "wrong value", where=_where(path, key), expected="a finite number", got=str(value)
        )
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else value


def _where(path: Path, key: str) -> str:
    return f"{path}: {key.lstrip('.')}" if key else str(path)


def _environments(table: Mapping[str, Json], path: Path) -> dict[str, Environment]:
    environments = {}
    for name, entry in table.items():
        match = Predicate(entry["match"])
        match.validate(f"{path}: environments.{name}.match")
        environments[name] = Environment(name, match, entry.get("inherits"))
    for name, environment in environments.items():
        chain = [name]
        while environment.inherits is not None:
            where = f"{path}: environments.{environment.name}.inherits"
            if environment.inherits not in environments:
                raise ConfigError(
                    "inherits from an environment that is not declared",
                    where=where,
                    expected=_one_of(environments, environment.inherits),
                    got=environment.inherits,
                )
            if environment.inherits in chain:
                loop = " -> ".join([*chain, environment.inherits])
                raise ConfigError("environments inherit in a circle", where=where, got=loop)
            chain.append(environment.inherits)
            environment = environments[environment.inherits]
    return environments


def _check_name(name: str, where: str) -> None:
    if safe_name(name) != name:
        raise ConfigError(
            "a suite's name is a folder's name", where=where, expected=safe_name(name), got=name
        )
    if name == FOLDER:
        raise ConfigError(
            "a suite cannot have this name: blobs lie there", where=where, expected="another name"
        )


def _suite(name: str, table: Mapping[str, Json], where: str, root: Path) -> Suite:
    adapters = _adapters(table.get("adapters", {}), f"{where}.adapters")
    dtype = table["dtype"]
    optional = ("max_new_tokens", "top_logprobs", "attention", "device", "timeout")
    return Suite(
        name=name,
        kind=table["kind"],
        root=root,
        model=table["model"],
        prompts=root / table["prompts"],
        adapters=adapters,
        dtypes=(dtype,) if isinstance(dtype, str) else tuple(dtype),
        batch_sizes=tuple(table.get("batch_sizes", [1])),
        policy=_policy(table, where),
        **{key: table[key] for key in optional if key in table},
    )


def _adapters(table: Mapping[str, Json], where: str) -> Mapping[str, str]:
    try:
        check_distinct(table, path_of=safe_name)
    except ConfigError as error:
        raise ConfigError(
            error.what, where=f"{where}: {error.where}", expected=error.expected, got=error.got
        ) from None
    for name in table:
        if safe_name(name) == BASE:
            raise ConfigError(
                "an adapter cannot have this name: rows without an adapter go by it",
                where=f"{where}.{name}",
                expected="another name",
                got=name,
            )
    return table


def _policy(table: Mapping[str, Json], where: str) -> Policy:
    def entries(kind: str) -> list[tuple[Json, str]]:
        return [(entry, f"{where}.{kind}[{i}]") for i, entry in enumerate(table.get(kind, []))]

    return Policy(
        tolerance=_tolerance(table.get("tolerance", {})),
        relax=tuple(_rule(entry, at) for entry, at in entries("relax")),
        quarantine=tuple(_rule(entry, at) for entry, at in entries("quarantine")),
        allow=tuple(Allowance(at, **entry) for entry, at in entries("allow")),
    )


def _tolerance(table: Mapping[str, Json]) -> Tolerance:
    text, logprob = table.get("text", "equal"), table.get("logprob", "calibrated")
    return Tolerance(
        text=None if text == "equal" else TextTolerance(**text),
        logprob=None if logprob == "calibrated" else LogprobTolerance(**logprob),
    )


def _rule(entry: Mapping[str, Json], where: str) -> Rule:
    return Rule(**terms(entry, where), tolerance=_tolerance(entry))


# ------------------------------------------------------------------- validation


def _validate(data: Json, path: Path) -> None:
    from jsonschema.exceptions import best_match

    error = best_match(_schema().iter_errors(data))
    if error is not None:
        raise _explain(error, path)


def _schema() -> Draft202012Validator:
    return validator("goldens-toml.v1")


def _explain(error: ValidationError, path: Path) -> ConfigError:
    """A validation error as: which key, what was expected, what was got."""
    key = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    got: Json = error.instance
    rule: Json = error.validator_value
    schema: Json = error.schema
    if error.validator == "additionalProperties":
        known = list(schema["properties"])
        unknown = next(name for name in got if name not in known)
        return ConfigError(
            "unknown key",
            where=_where(path, f"{key}.{unknown}"),
            expected=_one_of(known, unknown),
            got=unknown,
        )
    if error.validator == "required":
        missing = next(name for name in rule if name not in got)
        return ConfigError(
            f'the key "{missing}" is missing',
            where=_where(path, key),
            expected=", ".join(rule),
            got=", ".join(got) or "nothing",
        )
    if error.validator in _TITLED and "title" in schema:
        expected = str(schema["title"])
    else:
        expected = _EXPECTED[str(error.validator)](rule, got)
    return ConfigError("wrong value", where=_where(path, key), expected=expected, got=repr(got))


_TITLED = ("type", "enum", "pattern", "minItems", "maxItems")

_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a table",
    "array": "a list",
}

_EXPECTED: dict[str, Callable[[Json, Json], str]] = {
    "type": lambda rule, got: " or ".join(
        _TYPES[name] for name in ([rule] if isinstance(rule, str) else rule)
    ),
    "enum": lambda rule, got: _one_of(rule, got if isinstance(got, str) else ""),
    "const": lambda rule, got: repr(rule),
    "anyOf": lambda rule, got: " or ".join(map(_outline, rule)),
    "minimum": lambda rule, got: f"{rule} or more",
    "maximum": lambda rule, got: f"{rule} or less",
    "exclusiveMinimum": lambda rule, got: f"more than {rule}",
    "minLength": lambda rule, got: "text that is not empty",
    "minItems": lambda rule, got: "a list that is not empty",
    "minProperties": lambda rule, got: "a table that is not empty",
    "maxItems": lambda rule, got: f"{rule} entries at most",
    "pattern": lambda rule, got: f"text of the form {rule}",
    "uniqueItems": lambda rule, got: "each entry once",
}
"""In words, what each JSON Schema keyword that the schema uses expects."""


def _outline(choice: Mapping[str, Json]) -> str:
    if "$ref" in choice:
        whole: Json = _schema().schema
        return str(whole["$defs"][choice["$ref"].rsplit("/", 1)[1]]["title"])
    if "const" in choice:
        return repr(choice["const"])
    if "required" in choice:
        return f'the key "{choice["required"][0]}"'
    return _TYPES[choice["type"]]


def _one_of(known: object, got: str) -> str:
    names = sorted(map(str, known))  # type: ignore[call-overload]
    close = difflib.get_close_matches(got, names, n=1)
    listed = "one of " + ", ".join(names) if names else "none is known"
    return f"{close[0]}? ({listed})" if close else listed
