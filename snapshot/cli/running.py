"""Commands that run the reference, kernels or an engine."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import click

from snapshot.cli import options
from snapshot.cli.root import load, main
from snapshot.errors import UsageError


@main.command()
@options.selection
@options.candidate
@click.option("--new-only", is_flag=True, help="Leave every golden that exists as it is.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Run every batch this often, each time in a fresh process, and refuse what changes.",
)
@click.option(
    "--pending",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write to DIR, outside the goldens, for review.",
)
@click.option("--update-in-ci", is_flag=True, help="Write goldens although CI is set.")
@options.engine
@options.as_json
@click.pass_context
def record(
    context: click.Context,
    selectors: tuple[str, ...],
    batch_size: int | None,
    dtype: str | None,
    engine: str | None,
    url: str | None,
    environment: str | None,
    against: str | None,
    candidate: str | None,
    new_only: bool,
    repeat: int,
    pending: Path | None,
    update_in_ci: bool,
    as_json: bool,
) -> None:
    """Run the reference, the kernels or an engine, and keep what they give as their goldens.

    SELECTOR is a suite's name or a glob over case keys.
    """
    from rich.console import Console

    from snapshot.commands.engine import Where
    from snapshot.commands.record import record as run
    from snapshot.commands.record_engine import Asked, record_engine
    from snapshot.engineconfig import chosen
    from snapshot.report.progress import progress
    from snapshot.report.recorded import as_json_text, print_recorded
    from snapshot.resolve import Shape

    config = load(context)
    if engine is None and (url or environment or against):
        raise UsageError(
            "--url, --environment and --against are about an engine",
            where="the command line",
            expected="--engine NAME",
            got="no --engine",
        )
    if engine is None:
        done = run(
            config,
            selectors,
            batch_size=batch_size,
            dtype=dtype,
            candidate=candidate,
            new_only=new_only,
            repeat=repeat,
            pending=pending,
            update_in_ci=update_in_ci,
            progress=progress,
        )
    else:
        asked = Asked(
            engine=chosen(config.engines, engine, url),
            where=Where(environment, against, Shape(dtype, batch_size)),
            selectors=selectors,
            new_only=new_only,
            repeat=repeat,
            pending=pending,
            update_in_ci=update_in_ci,
            progress=progress,
        )
        done = record_engine(config, asked)
    if as_json:
        click.echo(as_json_text(done))
    else:
        print_recorded(done, Console(highlight=False))
    sys.exit(1 if any(item.refused for item in done) else 0)


@main.command()
@options.selection
@options.candidate
@options.outputs
@options.engine
@options.attribute
@click.option(
    "--pending",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Record what a new golden answers (drift, missing goldens) into DIR, for review.",
)
@options.report(["github", "html", "json", "junit", "markdown"])
@options.as_of
@options.as_json
@click.pass_context
def verify(
    context: click.Context,
    selectors: tuple[str, ...],
    batch_size: int | None,
    dtype: str | None,
    candidate: str | None,
    outputs: Path | None,
    engine: str | None,
    url: str | None,
    environment: str | None,
    against: str | None,
    attribute: str,
    pending: Path | None,
    reports: tuple[str, ...],
    as_of: datetime.date,
    as_json: bool,
) -> None:
    """Run the selected cases and diff them against the matching goldens. Never writes there.

    SELECTOR is a suite's name or a glob over case keys.
    """
    from rich.console import Console

    from snapshot.commands.verify import Request
    from snapshot.commands.verify import verify as run
    from snapshot.history import remember
    from snapshot.report.formats import FORMATS
    from snapshot.report.output import parse, write
    from snapshot.report.progress import progress

    # Before hours of work whose report could not be written.
    wanted = [parse(report, list(FORMATS)) for report in reports]
    request = Request(
        selectors=selectors,
        batch_size=batch_size,
        dtype=dtype,
        outputs=outputs,
        engine=engine,
        url=url,
        environment=environment,
        against=against,
        attribute=attribute,
        day=as_of,
        progress=progress,
        candidate=candidate,
        pending=pending,
    )
    config = load(context)
    found = run(config, request)
    remember(config, found)
    # Reports first: recording takes as long again, and may be cut short.
    if as_json:
        from snapshot.report.jsonreport import to_json

        click.echo(to_json(found))
    else:
        from snapshot.report.terminal import print_verification

        print_verification(found, Console(highlight=False))
    write(wanted, FORMATS, found, click.echo)
    if pending is None:
        sys.exit(found.exit_code)
    from snapshot.commands.offer import offer
    from snapshot.report.recorded import print_offered

    offered = offer(config, found, pending, request)
    print_offered(offered, Console(highlight=False, stderr=as_json))
    sys.exit(1 if offered.failed else found.exit_code)


@main.command()
@click.argument("case")
@click.option("--batch-size", type=int, metavar="N", help="Only this batch size.")
@click.option("--dtype", help="Only this one of the suite's dtypes.")
@options.outputs
@options.environment
@options.against
@options.as_of
@click.pass_context
def explain(
    context: click.Context,
    case: str,
    batch_size: int | None,
    dtype: str | None,
    outputs: Path | None,
    environment: str | None,
    against: str | None,
    as_of: datetime.date,
) -> None:
    """Show one case in full: words, steps, margins, who moved, and what to do next.

    CASE is a case key, or a glob over them. The reference is always asked; exit codes are those
    of `goldens verify`.
    """
    from rich.console import Console

    from snapshot.commands.verify import ALWAYS, Request
    from snapshot.commands.verify import verify as run
    from snapshot.report.explain import print_explanation
    from snapshot.report.progress import progress

    request = Request(
        selectors=(case,),
        batch_size=batch_size,
        dtype=dtype,
        outputs=outputs,
        environment=environment,
        against=against,
        attribute=ALWAYS,
        day=as_of,
        progress=progress,
    )
    found = run(load(context), request)
    print_explanation(found, Console(highlight=False))
    sys.exit(found.exit_code)


@main.command()
@options.selection
@click.option("--against", "slug", metavar="SLUG", help="Hold to this recorded fingerprint.")
@options.as_of
@options.as_json
@click.pass_context
def audit(
    context: click.Context,
    selectors: tuple[str, ...],
    batch_size: int | None,
    dtype: str | None,
    slug: str | None,
    as_of: datetime.date,
    as_json: bool,
) -> None:
    """Inject known faults and say which of them the tolerances would let through.

    Runs at the suite's largest batch size unless told otherwise; a run a fault.
    Exit codes: 0 all caught, 1 a fault passes, a rule has expired or a suite is underpowered.
    """
    from snapshot.commands.audit import audit as run
    from snapshot.report.audit import as_json_text, print_audit
    from snapshot.report.progress import progress

    found = run(
        load(context),
        selectors,
        batch_size=batch_size,
        dtype=dtype,
        slug=slug,
        day=as_of,
        progress=progress,
    )
    if as_json:
        click.echo(as_json_text(found))
    else:
        print_audit(found)
    sys.exit(found.exit_code)


@main.command()
@options.selection
@click.option(
    "--orders",
    type=click.IntRange(0, 1000),
    default=0,
    metavar="N",
    help="Shuffled batches to add.",
)
@click.option("--markdown", is_flag=True, help="Print markdown, for a pull request.")
@options.as_json
@click.pass_context
def sweep(
    context: click.Context,
    selectors: tuple[str, ...],
    batch_size: int | None,
    dtype: str | None,
    orders: int,
    markdown: bool,
    as_json: bool,
) -> None:
    """Run the reference alone at every batch size and show which wording each gives.

    Writes nothing; `goldens record` keeps the same runs as variants. Exit code 1 where a case
    could not be run.
    """
    from snapshot.commands.sweep import sweep as run
    from snapshot.report.progress import progress
    from snapshot.report.sweep import as_json_text, as_markdown, print_sweeps

    found = run(
        load(context),
        selectors,
        batch_size=batch_size,
        dtype=dtype,
        orders=orders,
        progress=progress,
    )
    if as_json:
        click.echo(as_json_text(found))
    elif markdown:
        click.echo(as_markdown(found))
    else:
        print_sweeps(found)
    sys.exit(1 if any(swept.failed for swept in found) else 0)
