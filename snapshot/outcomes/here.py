"""This environment, and what it is held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from snapshot.errors import RunError
from snapshot.model import Fingerprint, Json
from snapshot.resolve import Baseline


@dataclass(frozen=True)
class Here:
    """This environment.

    Attributes:
        fingerprint: None where it cannot be read, without torch for instance.
        provenance: what is recorded and does not select; without a fingerprint, the versions
            that are known all the same.
        reasons: by identity field: where its value comes from, and what would change it.
        problem: why there is no fingerprint.
        baselines: by suite and fingerprint slug: the goldens it is held to.
    """

    fingerprint: Fingerprint | None
    provenance: Mapping[str, Json]
    reasons: Mapping[str, tuple[str, str]]
    problem: RunError | None
    baselines: Mapping[tuple[str, str], Baseline]
