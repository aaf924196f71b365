"""Commands that read what is configured and recorded; none runs a model."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import click

from snapshot.cli import options
from snapshot.cli.root import load, main


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
def init(folder: Path) -> None:
    """Write a commented goldens.toml to start from."""
    from snapshot.commands.init import init as run

    for path in run(folder):
        click.echo(f"wrote {path}")


@main.command()
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    default="float32",
    show_default=True,
    help="Of the model or the inputs.",
)
@click.option("--batch-size", type=click.IntRange(1), help="Rows a batch, for generation.")
@click.option("--explain", is_flag=True, help="Say where each value comes from.")
@options.as_json
@click.pass_context
def env(
    context: click.Context, dtype: str, batch_size: int | None, explain: bool, as_json: bool
) -> None:
    """Show this environment: what selects goldens, what is only recorded, what it is held to."""
    from snapshot.commands.env import env as run
    from snapshot.config import has_config
    from snapshot.report.env import as_json_text, print_env

    config = None  # the machine has a name without any suite
    if context.obj is not None or has_config(Path.cwd()):
        config = load(context)
    here = run(config, dtype=dtype, batch_size=batch_size)
    if as_json:
        click.echo(as_json_text(here, explain=explain))
    else:
        print_env(here, explain=explain)


@main.command()
@options.as_json
@options.as_of
@click.pass_context
def status(context: click.Context, as_json: bool, as_of: datetime.date) -> None:
    """Show what is configured, recorded, and held less strictly."""
    from snapshot.commands.status import status as run
    from snapshot.report.status import as_json_text, print_status

    found = run(load(context), as_of)
    if as_json:
        click.echo(as_json_text(found))
    else:
        print_status(found, as_of)


@main.command()
@options.as_json
@click.pass_context
def check(context: click.Context, as_json: bool) -> None:
    """Read every golden and every rule; fail on any that cannot be trusted."""
    import json

    from snapshot.commands.check import check as run
    from snapshot.report.plain import visible_lines

    found = run(load(context))
    if as_json:
        damaged = [{"what": e.what, "where": e.where} for e in found.damage]
        click.echo(json.dumps({"damaged": damaged, "unreferenced": found.unreferenced}, indent=2))
    else:
        for error in found.damage:
            click.echo(f"{visible_lines(error)}\n")
        for path in found.unreferenced:
            click.echo(f"note: no golden uses {path}")
        sound = f"{found.goldens} goldens, every one sound" if found.goldens else "no goldens yet"
        click.echo(f"damaged files: {len(found.damage)}" if found.damage else sound)
    sys.exit(1 if found.damage else 0)


@main.command()
@click.argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@click.pass_context
def export(context: click.Context, selectors: tuple[str, ...]) -> None:
    """Print the requests as JSON Lines, for an engine's own harness; see `verify --from`.

    SELECTOR is a suite's name or a glob over case keys.
    """
    from snapshot.commands.export import export as run

    for line in run(load(context), selectors):
        click.echo(line)
