"""``fingerprint.json``: a `RecordedFingerprint` as a JSON record of schema 1."""

from __future__ import annotations

from snapshot.errors import StoreError
from snapshot.model import Fingerprint, Identity, Json, RecordedFingerprint
from snapshot.store import canonical, migrate, strict

NAME = "fingerprint.json"

_FIELDS = frozenset({"calibration", "digest", "identity", "provenance", "schema", "slug", "suite"})
_IDENTITY = frozenset({"arch", "backend", "batch_size", "dtype", "runtime", "torch", "triton"})
_MAX_BATCH = 2**31 - 1


def encode(recorded: RecordedFingerprint) -> dict[str, Json]:
    """The signed record of an environment.

    Raises:
        StoreError: provenance or calibration hold something that JSON cannot hold.
    """
    identity = recorded.fingerprint.identity
    record = {
        "calibration": dict(recorded.calibration),
        "identity": {name: getattr(identity, name) for name in _IDENTITY},
        "provenance": dict(recorded.fingerprint.provenance),
        "schema": migrate.FINGERPRINT.current,
        "slug": identity.slug,
        "suite": recorded.suite,
    }
    try:
        return canonical.sign(record)
    except (TypeError, ValueError) as error:
        raise StoreError(
            "an environment cannot be written as JSON",
            where=f"{recorded.suite}/{identity.slug}",
            got=str(error),
        ) from None


def decode(record: dict[str, Json], where: str) -> RecordedFingerprint:
    """The environment in a record of the current schema whose digest was checked.

    Raises:
        DamagedGolden: any field is missing, unknown, or not exactly of its type, or the slug
            is not that of the identity; names the file and the JSON path.
    """
    strict.fields(record, _FIELDS, "$", where)
    current = migrate.FINGERPRINT.current
    strict.integer(record["schema"], "$.schema", where, current, current)
    strict.digest(record["digest"], "$.digest", where)
    identity = _identity(record["identity"], where)
    if strict.component(record["slug"], "$.slug", where) != identity.slug:
        strict.refuse(where, "$.slug", repr(identity.slug), record["slug"])
    for name in ("provenance", "calibration"):
        if type(record[name]) is not dict:
            strict.refuse(where, f"$.{name}", "an object", record[name])
    return RecordedFingerprint(
        suite=strict.component(record["suite"], "$.suite", where),
        fingerprint=Fingerprint(identity, record["provenance"]),
        calibration=record["calibration"],
    )


def _identity(value: Json, where: str) -> Identity:
    at = "$.identity"
    strict.fields(value, _IDENTITY, at, where)
    optional = {
        name: None if value[name] is None else strict.component(value[name], f"{at}.{name}", where)
        for name in ("runtime", "triton")
    }
    size = value["batch_size"]
    return Identity(
        backend=strict.component(value["backend"], f"{at}.backend", where),
        arch=strict.component(value["arch"], f"{at}.arch", where),
        torch=strict.component(value["torch"], f"{at}.torch", where),
        dtype=strict.component(value["dtype"], f"{at}.dtype", where),
        batch_size=None
        if size is None
        else strict.integer(size, f"{at}.batch_size", where, 1, _MAX_BATCH),
        **optional,
    )
