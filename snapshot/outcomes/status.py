"""What is configured, recorded and held less strictly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from snapshot.ledger import Entry


@dataclass(frozen=True)
class RecordedStatus:
    """One recorded fingerprint of a suite; of a kernel suite, one subject's goldens there.

    Attributes:
        slug: the fingerprint's.
        configured: how many cases the suite has there: a kernel's dtype is the fingerprint's.
        cases: how many of them have a golden.
        missing: keys of those that have none; a kernel may not support them.
        stale: keys with a golden that the suite no longer has.
        subjects: whose goldens lie there.
        power: weakest adapter's effect over the batch drift; None where not measured.
    """

    slug: str
    configured: int
    cases: int
    missing: tuple[str, ...]
    stale: tuple[str, ...]
    subjects: tuple[str, ...]
    power: float | None


@dataclass(frozen=True)
class SuiteStatus:
    """A suite with all that is recorded for it.

    Attributes:
        rules: the ledger of its relaxations.
        environments: by declared environment: the fingerprints that it is held to, or why
            there is none. A change of `inherits` shows here.
    """

    suite: str
    cases: tuple[str, ...]
    recorded: tuple[RecordedStatus, ...]
    rules: tuple[Entry, ...]
    environments: Mapping[str, str]
