"""The kernel half of a case file: `Computed` as JSON, strictly decoded."""

from __future__ import annotations

import re
from typing import Any

from snapshot.kernel_model import Computed, Errors, LseError, Misplaced, Tensor
from snapshot.model import Json
from snapshot.store import strict

_INPUT = frozenset({"lengths"})
_OUTPUT = frozenset({"baseline", "errors", "lse", "lse_error", "misplaced", "out"})
_TENSOR = frozenset({"digest", "dtype", "norm", "shape"})
_ERRORS = frozenset({"compared", "max_abs", "rel_l2", "row", "row_ulp", "ulp_max", "ulp_p50"})
_LSE_ERROR = frozenset({"abs", "row"})
_MISPLACED = frozenset({"array", "count", "first", "pattern", "value"})
_DTYPES = ("bfloat16", "float16", "float32")
_HEX = re.compile(r"[0-9a-f]{64}")
_MOST = 2**63 - 1
_ULPS = 2**64 - 1


def encode(output: Computed) -> dict[str, Json]:
    """The fields "input" and "output" of a record."""
    return {
        "input": {"lengths": list(output.lengths)},
        "output": {
            "baseline": _encode_errors(output.baseline),
            "errors": _encode_errors(output.errors),
            "lse": None if output.lse is None else _encode_tensor(output.lse),
            "lse_error": None
            if output.lse_error is None
            else {"abs": output.lse_error.abs, "row": list(output.lse_error.row)},
            "misplaced": [
                {
                    "array": bad.array,
                    "count": bad.count,
                    "first": list(bad.first),
                    "pattern": bad.pattern,
                    "value": bad.value,
                }
                for bad in output.misplaced
            ],
            "out": _encode_tensor(output.out),
        },
    }


def decode(record: dict[str, Json], where: str) -> Computed:
    """The output of a record. Raises `DamagedGolden` for anything not exactly of its type."""
    given = strict.fields(record["input"], _INPUT, "$.input", where)
    made = strict.fields(record["output"], _OUTPUT, "$.output", where)
    lse, lse_error = made["lse"], made["lse_error"]
    return Computed(
        lengths=_integers(given["lengths"], "$.input.lengths", where),
        out=_tensor(made["out"], "$.output.out", where),
        lse=None if lse is None else _tensor(lse, "$.output.lse", where),
        errors=_errors(made["errors"], "$.output.errors", where),
        baseline=_errors(made["baseline"], "$.output.baseline", where),
        lse_error=None if lse_error is None else _lse_error(lse_error, where),
        misplaced=_misplaced(made["misplaced"], where),
    )


def _encode_tensor(tensor: Tensor) -> dict[str, Json]:
    return {
        "digest": tensor.digest,
        "dtype": tensor.dtype,
        "norm": tensor.norm,
        "shape": list(tensor.shape),
    }


def _encode_errors(errors: Errors) -> dict[str, Json]:
    return {
        "compared": errors.compared,
        "max_abs": errors.max_abs,
        "rel_l2": errors.rel_l2,
        "row": list(errors.row),
        "row_ulp": errors.row_ulp,
        "ulp_max": errors.ulp_max,
        "ulp_p50": errors.ulp_p50,
    }


def _tensor(value: Json, at: str, where: str) -> Tensor:
    strict.fields(value, _TENSOR, at, where)
    return Tensor(
        dtype=strict.one_of(value["dtype"], _DTYPES, f"{at}.dtype", where),
        shape=_integers(value["shape"], f"{at}.shape", where),
        digest=_hex(value["digest"], f"{at}.digest", where),
        norm=_number(value["norm"], f"{at}.norm", where),
    )


def _errors(value: Json, at: str, where: str) -> Errors:
    strict.fields(value, _ERRORS, at, where)
    return Errors(
        compared=strict.integer(value["compared"], f"{at}.compared", where, 0, _MOST),
        rel_l2=_number(value["rel_l2"], f"{at}.rel_l2", where),
        row=_integers(value["row"], f"{at}.row", where),
        row_ulp=strict.integer(value["row_ulp"], f"{at}.row_ulp", where, 0, _ULPS),
        max_abs=_number(value["max_abs"], f"{at}.max_abs", where),
        ulp_p50=_number(value["ulp_p50"], f"{at}.ulp_p50", where),
        ulp_max=strict.integer(value["ulp_max"], f"{at}.ulp_max", where, 0, _ULPS),
    )


def _lse_error(value: Json, where: str) -> LseError:
    at = "$.output.lse_error"
    strict.fields(value, _LSE_ERROR, at, where)
    return LseError(
        _number(value["abs"], f"{at}.abs", where), _integers(value["row"], f"{at}.row", where)
    )


def _misplaced(value: Json, where: str) -> tuple[Misplaced, ...]:
    if type(value) is not list:
        strict.refuse(where, "$.output.misplaced", "a list", value)
    found = []
    for i, bad in enumerate(value):
        at = f"$.output.misplaced[{i}]"
        strict.fields(bad, _MISPLACED, at, where)
        found.append(
            Misplaced(
                array=strict.one_of(bad["array"], ("out", "lse"), f"{at}.array", where),
                count=strict.integer(bad["count"], f"{at}.count", where, 1, _MOST),
                first=_integers(bad["first"], f"{at}.first", where),
                value=strict.one_of(bad["value"], ("nan", "inf", "-inf"), f"{at}.value", where),
                pattern=_hex(bad["pattern"], f"{at}.pattern", where),
            )
        )
    return tuple(found)


def _integers(value: Json, at: str, where: str) -> tuple[int, ...]:
    if type(value) is not list:
        strict.refuse(where, at, "a list of integers", value)
    return tuple(strict.integer(n, f"{at}[{i}]", where, 0, _MOST) for i, n in enumerate(value))


def _number(value: Any, at: str, where: str) -> float:
    if type(value) is not float or value < 0:
        strict.refuse(where, at, "a number that is not negative", value)
    return float(value)


def _hex(value: Json, at: str, where: str) -> str:
    if type(value) is not str or not _HEX.fullmatch(value):
        strict.refuse(where, at, "64 hex digits", value)
    return str(value)
