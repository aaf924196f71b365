"""A suite of kind ``grouped-decode``: kernels, the cases they run, and how strictly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from grouped_decode.case import Case

from snapshot import kernel_matrix
from snapshot.errors import ConfigError
from snapshot.kernel_policy import Bounds, Exclusion, KernelPolicy, KernelRule
from snapshot.model import REFERENCE, Json
from snapshot.names import check_distinct, safe_name
from snapshot.policy import Allowance, Rule
from snapshot.rule_terms import terms

_MATRIX = ("shapes", "lengths", "dtypes", "traits")
_BOUNDS = ("rel_l2", "max_abs", "lse_abs")


@dataclass(frozen=True)
class KernelSuite:
    """One declared suite of kind ``grouped-decode``; the attributes are its keys.

    Attributes:
        root: folder of goldens.toml; ``module:function`` candidates may lie there.
        candidates: names of kernels, each a subject.
        cases: case keys, in order.
        device: ``auto`` (the accelerator that torch was built for, else the CPU through
            Triton's interpreter), ``cpu``, ``cuda`` or ``xpu``.
        timeout: seconds that one case may take.
    """

    name: str
    root: Path
    candidates: tuple[str, ...]
    cases: tuple[str, ...]
    device: str = "auto"
    timeout: float = 300.0
    policy: KernelPolicy = field(default_factory=KernelPolicy)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of its cases, each once, in order."""
        return tuple(dict.fromkeys(dtype_of(key) for key in self.cases))


def dtype_of(key: str) -> str:
    """The dtype of a case, which its fingerprint's identity holds."""
    return str(Case.parse(key).dtype)


def kernel_suite(name: str, table: Mapping[str, Json], where: str, root: Path) -> KernelSuite:
    """The suite that a table of goldens.toml declares which follows the schema.

    Args:
        where: file and key of the table, for messages.

    Raises:
        ConfigError: naming the key, what was expected and what was got.
    """
    candidates, policy = (
        _candidates(table["candidates"], f"{where}.candidates"),
        _policy(table, where),
    )
    for rule in (*policy.relax, *policy.quarantine):
        if rule.subject is not None and rule.subject not in candidates:
            raise ConfigError(
                "a rule is about a kernel that the suite does not run",
                where=f"{rule.where}.subject",
                expected=f"one of {', '.join(candidates)}",
                got=rule.subject,
            )
    return KernelSuite(
        name=name,
        root=root,
        candidates=candidates,
        cases=_cases(table, where),
        policy=policy,
        **{key: table[key] for key in ("device", "timeout") if key in table},
    )


def _candidates(names: list[str], where: str) -> tuple[str, ...]:
    if REFERENCE in names:
        raise ConfigError(
            "a candidate cannot have this name: goldens of the reference go by it",
            where=where,
            expected="the names of kernels",
            got=REFERENCE,
        )
    try:
        check_distinct(names, path_of=safe_name)
    except ConfigError as error:
        raise ConfigError(
            error.what, where=f"{where}: {error.where}", expected=error.expected, got=error.got
        ) from None
    return tuple(names)


def _cases(table: Mapping[str, Json], where: str) -> tuple[str, ...]:
    keys = [(key, f"{where}.cases[{i}]") for i, key in enumerate(table.get("cases", ()))]
    declared = [name for name in _MATRIX if name in table]
    if declared:
        for needed in ("shapes", "lengths"):
            if needed not in table:
                raise ConfigError(
                    f'the key "{needed}" is missing',
                    where=where,
                    expected="shapes and lengths, with dtypes and traits where wanted",
                    got=", ".join(declared),
                )
        shapes = [_shape(shape, f"{where}.shapes[{i}]") for i, shape in enumerate(table["shapes"])]
        dtypes, traits = table.get("dtypes", ["float16"]), table.get("traits", [""])
        made = kernel_matrix.product(shapes, table["lengths"], dtypes, traits)
        keys += [(key, f"{where}.traits") for key in made]
    elif not keys:
        keys = [(key, where) for key in kernel_matrix.default()]
    for key, at in keys:
        _check(key, at)
    found = tuple(key for key, _ in keys)
    twice = next((key for key in found if found.count(key) > 1), None)
    if twice is not None:
        raise ConfigError("a case stands twice", where=where, expected="each case once", got=twice)
    return found


def _shape(value: list[int], where: str) -> kernel_matrix.Shape:
    batch, q_heads, kv_heads, dk, dv = value
    if q_heads % kv_heads:
        raise ConfigError(
            "wrong value",
            where=where,
            expected=f"query heads that are a multiple of the {kv_heads} KV heads",
            got=str(q_heads),
        )
    return batch, q_heads, kv_heads, dk, dv


def _check(key: str, where: str) -> None:
    try:
        case = Case.parse(key)
    except ValueError as error:
        _, _, expected = str(error).partition("expected ")
        raise ConfigError(
            "no such case", where=where, expected=expected.rpartition(", got")[0], got=key
        ) from None
    if case.q_heads % max(case.kv_heads, 1) or 0 in (case.batch, case.q_heads, case.kv_heads):
        raise ConfigError(
            "no such case",
            where=where,
            expected="a batch, and query heads that are a multiple of the KV heads",
            got=key,
        )
    if case.key != key:  # leading zeros: one workload, one key
        raise ConfigError("no such case", where=where, expected=case.key, got=key)


def _policy(table: Mapping[str, Json], where: str) -> KernelPolicy:
    def entries(kind: str) -> list[tuple[Json, str]]:
        return [(entry, f"{where}.{kind}[{i}]") for i, entry in enumerate(table.get(kind, []))]

    return KernelPolicy(
        tolerance=_bounds(table.get("tolerance", {})),
        relax=tuple(
            KernelRule(**terms(entry, at), bounds=_bounds(entry)) for entry, at in entries("relax")
        ),
        quarantine=tuple(Rule(**terms(entry, at)) for entry, at in entries("quarantine")),
        allow=tuple(Allowance(at, **entry) for entry, at in entries("allow")),
        not_run=tuple(Exclusion(at, **entry) for entry, at in entries("not_run")),
    )


def _bounds(table: Mapping[str, Json]) -> Bounds:
    return Bounds(**{key: float(table[key]) for key in _BOUNDS if key in table})
