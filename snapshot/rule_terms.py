"""What every ``relax`` and ``quarantine`` entry holds, whatever the kind of its suite."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TypedDict

from snapshot.errors import ConfigError
from snapshot.model import Json
from snapshot.predicate import Predicate


class Terms(TypedDict):
    """The fields of a `policy.Rule` but for what it loosens."""

    where: str
    case: str
    subject: str | None
    when: Predicate
    reason: str
    issue: str
    owner: str
    expires: datetime.date


def terms(entry: Mapping[str, Json], where: str) -> Terms:
    """The common fields of an entry that follows the schema.

    Args:
        where: file and key, for messages.

    Raises:
        ConfigError: a condition on nothing known, or a day that is none.
    """
    when = Predicate(entry.get("when", {}))
    when.validate(f"{where}.when")
    try:
        expires = datetime.date.fromisoformat(entry["expires"])
    except ValueError:
        raise ConfigError(
            "wrong value",
            where=f"{where}.expires",
            expected="a date such as 2027-03-01",
            got=entry["expires"],
        ) from None
    return Terms(
        where=where,
        case=entry["case"],
        subject=entry.get("subject"),
        when=when,
        reason=entry["reason"],
        issue=entry["issue"],
        owner=entry["owner"],
        expires=expires,
    )
