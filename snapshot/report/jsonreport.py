"""The verification as JSON, for scripts."""

from __future__ import annotations

import dataclasses
import json
import math

from snapshot import __version__
from snapshot.model import Json
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
                "how": held.baseline.full,
                "held_to": held.held_to,
                "engine": dict(held.engine),
                "unchecked": dict(held.unchecked),
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


def _result(result: dict[str, Json]) -> Json:
    return _finite({**result, "verdict": result["verdict"].value})


def _finite(value: Json) -> Json:
    """JSON has no NaN and no infinity: they stand as text."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
