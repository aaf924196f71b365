"""The verification as JSON, for scripts."""

from __future__ import annotations

import dataclasses
import json
import math

from snapshot import __version__
from snapshot.model import Json, Verdict
from snapshot.verification import Verification


def to_json(verification: Verification) -> str:
    """One JSON document; keys are the attributes of `Held` and `Result`."""
    document = {
        "schema": 1,
        "goldens": __version__,
        "exit_code": verification.exit_code,
        "runs": [
            {
                "suite": held.suite,
                "subject": held.subject,
                "fingerprint": held.slug,
                "golden": held.baseline.slug,
                "how": held.baseline.how,
                "results": [_result(dataclasses.asdict(result)) for result in held.results],
                "not_run": dict(held.not_run),
            }
            for held in verification.held
        ],
        "damaged": [
            {"what": e.what, "where": e.where, "expected": e.expected, "got": e.got}
            for e in verification.damage
        ],
        "expired": list(verification.expired),
    }
    # ASCII: what a model wrote reaches a terminal or a log as codes, whatever it is.
    return json.dumps(document, indent=2, allow_nan=False)


def _result(result: dict[str, Json]) -> dict[str, Json]:
    return {name: _plain(value) for name, value in result.items()}


def _plain(value: Json) -> Json:
    """With what JSON has no word for as text: a verdict's name, an infinite error."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, Verdict):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
