"""What changed as JSON, complete: schema/changes.v1.json."""

from __future__ import annotations

import dataclasses
import json
import math

from snapshot import __version__
from snapshot.changes import ArrayChange, Changes, GoldenChange
from snapshot.model import Json


def to_json(changes: Changes) -> str:
    """One JSON document; keys are the attributes of `Changes` and what it holds."""
    document = {
        "schema": 1,
        "goldens": __version__,
        "base": changes.base,
        "head": changes.head,
        "counts": {group.value: count for group, count in changes.counts.items()},
        "policy": [
            {**dataclasses.asdict(change), "direction": change.direction.value}
            for change in changes.policy
        ],
        "environments": [
            {
                "group": change.group.value,
                "suite": change.suite,
                "fingerprint": change.slug,
                "differences": list(change.differences),
            }
            for change in changes.environments
        ],
        "goldens_changed": [_golden(change) for change in changes.goldens],
        "reach": [
            {
                "suite": reach.suite,
                "fingerprint": reach.slug,
                "subject": reach.subject,
                "batch_size": reach.identity.batch_size if reach.identity else None,
                "goldens": reach.goldens,
                "changed": {group.value: count for group, count in reach.counts.items()},
            }
            for reach in changes.reach
        ],
        "problems": [
            {"what": e.what, "where": e.where, "expected": e.expected, "got": e.got}
            for e in changes.problems
        ],
    }
    # ASCII: what a model wrote reaches a terminal or a log as codes, whatever it is.
    return json.dumps(document, indent=2, allow_nan=False)


def _golden(change: GoldenChange) -> dict[str, Json]:
    before, after = change.texts
    parted = change.divergence()
    return {
        "group": change.group.value,
        "suite": change.place.suite,
        "fingerprint": change.place.slug,
        "subject": change.place.subject,
        "case": change.place.case,
        "beside": change.beside,
        "reworded": change.reworded,
        "before": before,
        "after": after,
        "divergence": None if parted is None else dataclasses.asdict(parted),
        "arrays": [_array(array) for array in change.arrays()],
        "notes": list(change.notes),
    }


def _array(change: ArrayChange) -> dict[str, Json]:
    moved = change.movement
    if moved is None:
        return {"name": change.name, "why": change.why}
    return {
        "name": change.name,
        "elements": moved.elements,
        "moved": moved.moved,
        # JSON has no infinity: a row that was all zero before
        "rel_l2": moved.rel_l2 if math.isfinite(moved.rel_l2) else None,
        "worst_row": list(moved.worst_row),
        "max_abs": moved.max_abs,
        "ulp_p50": moved.ulp_p50,
        "ulp_max": moved.ulp_max,
        "ulp_where": list(moved.ulp_where),
        "nonfinite": {
            side: None if bad is None else {**dataclasses.asdict(bad), "first": list(bad.first)}
            for side, bad in (("before", moved.before), ("after", moved.after))
        },
    }
