"""``match = {...}`` and ``when = {...}`` of goldens.toml: conditions on an environment."""

from __future__ import annotations

import difflib
import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from snapshot import versions
from snapshot.errors import ConfigError
from snapshot.model import Fingerprint, Json

Term: TypeAlias = str | int | bool

NODEVICE: Final = "nodevice"
"""The arch of a GPU build of torch that sees no GPU. Such an environment runs nothing."""

_BACKEND_OF = {"cuda": "cuda", "cudnn": "cuda", "rocm": "rocm", "hip": "rocm", "xpu": "xpu"}


class Kind(enum.Enum):
    """What a field's condition looks like; the value says it in an error message."""

    VERSION = 'a version specifier such as ">=10,<11" or "2.11"'
    NAME = 'a glob such as "gfx94*"'
    INTEGER = 'a whole number, or a specifier such as ">=100"'
    SWITCH = "true or false"


def _kinds(kind: Kind, names: str) -> dict[str, Kind]:
    return dict.fromkeys(names.split(), kind)


FIELDS: dict[str, Kind] = {
    **_kinds(
        Kind.VERSION,
        "rocm hip cuda xpu mps torch triton transformers peft tokenizers safetensors numpy "
        "python driver cudnn cublas mkl onednn",
    ),
    **_kinds(
        Kind.NAME,
        "backend arch runtime dtype device partition cpu blas attention adapter_dtype "
        "adapter_path float32_matmul_precision fp32_precision_mkldnn container",
    ),
    **_kinds(Kind.INTEGER, "batch_size threads multiprocessors memory_gib"),
    **_kinds(
        Kind.SWITCH,
        "tf32_matmul tf32_cudnn fp16_reduced_precision_reduction "
        "bf16_reduced_precision_reduction fp16_accumulation deterministic_algorithms "
        "cudnn_enabled cudnn_benchmark cudnn_deterministic mkldnn_enabled mkldnn_deterministic "
        "sdp_flash sdp_mem_efficient sdp_math sdp_cudnn",
    ),
}
"""Every field that a condition may name, besides ``environment.VARIABLE`` (a glob)."""

_BACKENDS = ("cuda", "rocm", "xpu", "mps", "cpu")
_VARIABLE = re.compile(r"environment\.[A-Z][A-Z0-9_]*")


def facts(fingerprint: Fingerprint) -> dict[str, Json]:
    """Identity and provenance as one flat mapping.

    Exact versions win over the identity's major.minor. What belongs to another backend, or
    is not known, is left out. Nested values get dotted names (``environment.MKL_CBWR``).
    """
    identity = fingerprint.identity
    flat: dict[str, Json] = {"torch": identity.torch, "triton": identity.triton}
    if identity.runtime is not None:
        runtime = re.fullmatch(r"([a-z]+)([\d.]+)", identity.runtime)
        if runtime is not None:
            flat[runtime[1]] = runtime[2]
    for key, value in fingerprint.provenance.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{inner}": item for inner, item in value.items()}
        else:
            flat[key] = value
    flat |= {
        "backend": identity.backend,
        "arch": identity.arch,
        "runtime": identity.runtime,
        "dtype": identity.dtype,
        "batch_size": identity.batch_size,
    }
    return {
        key: value
        for key, value in flat.items()
        if value is not None and _BACKEND_OF.get(key, identity.backend) == identity.backend
    }


@dataclass(frozen=True)
class Predicate:
    """A condition that holds where every term holds; without terms, everywhere.

    Attributes:
        terms: condition by field: a version specifier for versions, a glob for names
            (case does not matter), a number, or a switch.
    """

    terms: Mapping[str, Term]

    def validate(self, where: str) -> None:
        """Raise ConfigError unless every term is well formed.

        Args:
            where: file and key of the table, such as ``goldens.toml: environments.x.match``.
        """
        for name, term in self.terms.items():
            _validate(name, term, f"{where}.{name}")

    def holds(self, fingerprint: Fingerprint) -> bool:
        """Whether an environment meets every term.

        A field that the environment does not have meets none. A GPU build without a GPU is
        no environment to run in: it meets only a condition that names ``arch = "nodevice"``.
        """
        if not self.terms:
            return True
        if fingerprint.identity.arch == NODEVICE and self.terms.get("arch") != NODEVICE:
            return False
        known = facts(fingerprint)
        return all(
            name in known and _meets(_kind(name), term, known[name])
            for name, term in self.terms.items()
        )


def _kind(name: str) -> Kind | None:
    return Kind.NAME if _VARIABLE.fullmatch(name) else FIELDS.get(name)


def _meets(kind: Kind | None, term: Term, value: Json) -> bool:
    if kind is Kind.VERSION:
        return isinstance(term, str) and versions.matches(value, term)
    if kind is Kind.NAME:
        return isinstance(term, str) and fnmatchcase(str(value).lower(), term.lower())
    if kind is Kind.INTEGER and isinstance(term, str):
        return versions.matches(str(value), term)
    return kind is not None and type(value) is type(term) and bool(value == term)


def _validate(name: str, term: Term, where: str) -> None:
    kind = _kind(name)
    if kind is None:
        raise ConfigError(
            f"{name!r} is not a field of an environment{_suggestion(name, FIELDS)}",
            where=where,
            expected=f"one of {', '.join(sorted(FIELDS))}, environment.VARIABLE",
            got=name,
            hint="goldens env  lists the fields of this machine",
        )
    problem = _problem(name, kind, term)
    if problem is not None:
        raise ConfigError(problem, where=where, expected=kind.value, got=_toml(term))


def _problem(name: str, kind: Kind, term: Term) -> str | None:
    if kind is Kind.SWITCH:
        return None if isinstance(term, bool) else f"{name} is a switch"
    if kind is Kind.INTEGER and type(term) is int:
        return None
    if not isinstance(term, str):
        plural = {Kind.VERSION: "a version", Kind.NAME: "a name", Kind.INTEGER: "a number"}
        return f"{name} is {plural[kind]}"
    if kind is not Kind.NAME:
        try:
            versions.check_specifier(term)
        except ValueError as error:
            return f"{name}: {error}"
        return None
    if not term or term.lstrip()[:1] in tuple("<>=!~"):
        return f"{name} is a name: it is matched by a glob, not compared"
    if name == "backend" and not any(fnmatchcase(known, term.lower()) for known in _BACKENDS):
        hint = _suggestion(term, _BACKENDS)
        return f"no backend is called {term!r}{hint}; there are {', '.join(_BACKENDS)}"
    return None


def _suggestion(name: str, known: Mapping[str, Kind] | tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _toml(term: Term) -> str:
    if isinstance(term, bool):
        return "true" if term else "false"
    return f'"{term}"' if isinstance(term, str) else str(term)
