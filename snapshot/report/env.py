"""This environment, for people and as JSON."""

from __future__ import annotations

import dataclasses
import json

from rich.console import Console

from snapshot.model import Json
from snapshot.outcomes.here import Here


def print_env(here: Here, *, explain: bool) -> None:
    """What selects, what is only recorded, and which goldens it is held to."""
    console = Console(highlight=False)

    def say(line: str = "", style: str = "") -> None:
        console.print(line, style=style, markup=False, soft_wrap=True)

    if here.problem is not None:
        say(f"no fingerprint: {here.problem}", "bold")
    if here.fingerprint is not None:
        say(here.fingerprint.slug, "bold")
        say("\nselects a golden", "bold")
        for name, value in dataclasses.asdict(here.fingerprint.identity).items():
            if value is not None:
                say(f"  {name:<12}{value}")
                if explain and name in here.reasons:
                    source, cause = here.reasons[name]
                    say(f"  {'':<12}from: {source}", "dim")
                    say(f"  {'':<12}changes with: {cause}", "dim")
    say("\nonly recorded" if here.fingerprint else "\nknown without torch", "bold")
    width = max(map(len, here.provenance), default=0) + 2
    for name, value in here.provenance.items():
        if name != "notes":
            say(f"  {name:<{width}}{_shown(value)}")
    for note in here.provenance.get("notes", ()):
        say(f"note: {note}", "yellow")
    if here.baselines:
        say("\nheld to", "bold")
    missing: dict[str, str] = {}
    for (suite, slug), baseline in here.baselines.items():
        if baseline.identity is None:
            missing[suite] = baseline.instead
        say(f"  {suite} {slug}")
        say(f"    {baseline.slug or 'MISSING'}: {baseline.how}", "" if baseline.exact else "yellow")
    for suite, said in missing.items():
        say(f"  {suite}: {said}", "dim")


def as_json_text(here: Here, *, explain: bool) -> str:
    """One JSON document."""
    fingerprint = here.fingerprint
    document: dict[str, Json] = {
        "slug": fingerprint.slug if fingerprint else None,
        "identity": dataclasses.asdict(fingerprint.identity) if fingerprint else None,
        "provenance": dict(here.provenance),
        "problem": here.problem.what if here.problem else None,
        "goldens": [
            {"suite": suite, "fingerprint": slug, "golden": baseline.slug, "how": baseline.full}
            for (suite, slug), baseline in here.baselines.items()
        ],
    }
    if explain:
        document["explain"] = {
            name: {"from": source, "changes_with": cause}
            for name, (source, cause) in here.reasons.items()
        }
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)


def _shown(value: Json) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
