"""Options that several commands share."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def _day(context: click.Context, parameter: click.Parameter, value: Any) -> datetime.date:
    return datetime.date.today() if value is None else value.date()


def selection(command: F) -> F:
    """The arguments that choose what to run."""
    for decorate in (
        click.option("--dtype", help="Only this one of the suite's dtypes."),
        click.option("--batch-size", type=int, metavar="N", help="Only this batch size."),
        click.argument("selectors", nargs=-1, metavar="[SELECTOR]..."),
    ):
        command = decorate(command)
    return command


outputs = click.option(
    "--from",
    "outputs",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Hold outputs in a JSON Lines file instead of running the reference; needs no torch.",
)
environment = click.option(
    "--environment", metavar="NAME", help="Where the engine runs, or those outputs were made."
)
against = click.option("--against", metavar="SLUG", help="Hold to this recorded fingerprint.")
candidate = click.option("--candidate", metavar="NAME", help="Only this kernel; no generation.")


def engine(command: F) -> F:
    """The arguments that choose an engine, and what it is held to."""
    for decorate in (
        against,
        environment,
        click.option("--url", metavar="URL", help="Where it is; NAME may then be its kind."),
        click.option("--engine", metavar="NAME", help="Ask this engine of goldens.toml."),
    ):
        command = decorate(command)
    return command


attribute = click.option(
    "--attribute",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Run the reference to tell who moved: where a case fails and it can be run; for every "
    "case, also where outputs from elsewhere are held to it; or never.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
as_of = click.option(
    "--as-of", type=click.DateTime(["%Y-%m-%d"]), callback=_day, help="Judge expiry then."
)


def report(formats: Sequence[str]) -> Callable[[F], F]:
    return click.option(
        "--report",
        "reports",
        multiple=True,
        metavar="FORMAT:PATH",
        help=f"Also write a report: {', '.join(formats)}. May be given several times.",
    )
