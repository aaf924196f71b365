"""A case file: one `Golden` as a JSON record of schema 1, strictly decoded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from snapshot.errors import StoreError
from snapshot.kernel_model import DECODE, Computed
from snapshot.model import GENERATION, Array, Composition, Generated, Golden, Json, Observation
from snapshot.store import canonical, kernelfile, migrate, strict

MAX_ARRAYS = 64

# fmt: off
_FIELDS = frozenset({
    "arrays", "case", "composition", "digest", "fingerprint", "input", "kind", "output",
    "recorded_by", "schema", "subject", "suite", "workload", "workload_digest",
})
# fmt: on
_COMPOSITION = frozenset({"digest", "row", "rows"})
_GENERATION_INPUT = frozenset({"prompt", "prompt_ids"})
_GENERATION_OUTPUT = frozenset({"finish_reason", "text", "token_ids"})
_ARRAY_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_BLOB = re.compile(r"[0-9a-f]{64}")

LoadArrays = Callable[[Mapping[str, str]], Mapping[str, Array]]


def encode(golden: Golden[Any], arrays: Mapping[str, str]) -> dict[str, Json]:
    """The signed record of a golden.

    Args:
        golden: what was recorded; its arrays are not looked at.
        arrays: name of each array to the digest of its blob.

    Raises:
        StoreError: it holds something that JSON cannot hold, or its output is of no known kind.
    """
    observation = golden.observation
    kind = next((k for k, codec in KINDS.items() if type(observation.output) is codec.type), None)
    if kind is None:
        raise StoreError(
            "an output of this type cannot be stored",
            where=f"{golden.suite}/{golden.subject}/{golden.case}",
            expected=", ".join(codec.type.__name__ for codec in KINDS.values()),
            got=type(observation.output).__name__,
        )
    workload, composition = observation.workload, observation.composition
    record = {
        "arrays": dict(arrays),
        "case": golden.case,
        "composition": None
        if composition is None
        else {
            "digest": composition.digest,
            "row": composition.row,
            "rows": list(composition.rows),
        },
        "fingerprint": golden.slug,
        "kind": kind,
        "recorded_by": dict(golden.recorded_by),
        "schema": migrate.GOLDEN.current,
        "subject": golden.subject,
        "suite": golden.suite,
        "workload": None if workload is None else dict(workload),
        "workload_digest": workload_digest(workload),
        **KINDS[kind].encode(observation.output),
    }
    try:
        return canonical.sign(record)
    except ValueError as error:
        raise StoreError(
            "an observation cannot be written as JSON",
            where=f"{golden.suite}/{golden.subject}/{golden.case}",
            got=str(error),
        ) from None


def decode(record: dict[str, Json], where: str, load: LoadArrays) -> Golden[Any]:
    """The golden in a record of the current schema whose digest was checked.

    Args:
        record: a parsed and migrated file.
        where: the file's path, for messages.
        load: makes the observation's arrays of their blobs' digests.

    Raises:
        DamagedGolden: any field is missing, unknown, or not exactly of its type; names the
            file and the JSON path.
    """
    strict.fields(record, _FIELDS, "$", where)
    kind = strict.one_of(record["kind"], tuple(KINDS), "$.kind", where)
    current = migrate.GOLDEN.current
    strict.integer(record["schema"], "$.schema", where, current, current)
    strict.digest(record["digest"], "$.digest", where)
    observation: Observation[Any] = Observation(
        case=strict.key(record["case"], "$.case", where),
        output=KINDS[kind].decode(record, where),
        arrays=load(_arrays(record["arrays"], where)),
        workload=_workload(record, where),
        composition=_composition(record["composition"], where),
    )
    return Golden(
        suite=strict.component(record["suite"], "$.suite", where),
        slug=strict.component(record["fingerprint"], "$.fingerprint", where),
        subject=strict.component(record["subject"], "$.subject", where),
        observation=observation,
        recorded_by=strict.texts(record["recorded_by"], "$.recorded_by", where),
    )


def workload_digest(workload: Mapping[str, str] | None) -> str | None:
    """``sha256:<hex>`` over the canonical bytes of a workload's components; None for None."""
    return None if workload is None else canonical.digest({"workload": dict(workload)})


# ------------------------------------------------------------------ common parts


def _arrays(value: Json, where: str) -> dict[str, str]:
    arrays = strict.texts(value, "$.arrays", where)
    if len(arrays) > MAX_ARRAYS:
        strict.refuse(where, "$.arrays", f"at most {MAX_ARRAYS} arrays", len(arrays))
    for name, digest in arrays.items():
        if not _ARRAY_NAME.fullmatch(name):
            strict.refuse(where, "$.arrays", "names of lower-case letters, digits and '_'", name)
        if not _BLOB.fullmatch(digest):
            strict.refuse(where, f"$.arrays.{name}", "64 hex digits", digest)
    return arrays


def _workload(record: dict[str, Json], where: str) -> dict[str, str] | None:
    value, stated = record["workload"], record["workload_digest"]
    workload = None if value is None else strict.texts(value, "$.workload", where)
    expected = workload_digest(workload)
    if stated != expected:
        strict.refuse(where, "$.workload_digest", repr(expected), stated)
    return workload


def _composition(value: Json, where: str) -> Composition | None:
    if value is None:
        return None
    at = "$.composition"
    strict.fields(value, _COMPOSITION, at, where)
    rows = value["rows"]
    if type(rows) is not list or not rows:
        strict.refuse(where, f"{at}.rows", "a list of case keys", rows)
    return Composition(
        rows=tuple(strict.key(r, f"{at}.rows[{i}]", where) for i, r in enumerate(rows)),
        row=strict.integer(value["row"], f"{at}.row", where, 0, len(rows) - 1),
        digest=strict.digest(value["digest"], f"{at}.digest", where),
    )


# ------------------------------------------------------------------------- kinds


def _encode_generated(output: Generated) -> dict[str, Json]:
    ids, prompt_ids = output.token_ids, output.prompt_ids
    return {
        "input": {
            "prompt": output.prompt,
            "prompt_ids": None if prompt_ids is None else list(prompt_ids),
        },
        "output": {
            "finish_reason": output.finish_reason,
            "text": output.text,
            "token_ids": None if ids is None else list(ids),
        },
    }


def _decode_generated(record: dict[str, Json], where: str) -> Generated:
    given = strict.fields(record["input"], _GENERATION_INPUT, "$.input", where)
    made = strict.fields(record["output"], _GENERATION_OUTPUT, "$.output", where)
    return Generated(
        text=strict.text(made["text"], "$.output.text", where),
        token_ids=strict.token_ids(made["token_ids"], "$.output.token_ids", where),
        finish_reason=strict.one_of(
            made["finish_reason"], ("stop", "length", None), "$.output.finish_reason", where
        ),
        prompt=strict.text(given["prompt"], "$.input.prompt", where),
        prompt_ids=strict.token_ids(given["prompt_ids"], "$.input.prompt_ids", where),
    )


class Kind(NamedTuple):
    """How the outputs of one kind of suite become JSON and come back.

    Attributes:
        type: the class of `Observation.output`.
        encode: gives the fields "input" and "output" of the record.
        decode: makes the output of a record and its path; raises `DamagedGolden`.
    """

    type: type
    encode: Callable[[Any], dict[str, Json]]
    decode: Callable[[dict[str, Json], str], Any]


KINDS: dict[str, Kind] = {
    GENERATION: Kind(Generated, _encode_generated, _decode_generated),
    DECODE: Kind(Computed, kernelfile.encode, kernelfile.decode),
}
"""By the record's "kind"; a new kind is one line here and one branch in the JSON Schema."""
