"""The command line: options in, exit code out. What a verb does stands in its own file.

Imports are inside the commands, so that ``goldens --help`` costs nothing.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from snapshot import __version__
from snapshot.errors import GoldensError, UsageError

F = TypeVar("F", bound=Callable[..., Any])


class _Group(click.Group):
    """Prints our errors as what they are, without a traceback."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except GoldensError as error:
            from snapshot.report.plain import visible_lines  # it may quote what others wrote

            click.echo(f"goldens: {visible_lines(error)}", err=True)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("goldens: interrupted; every file is whole, run it again", err=True)
            sys.exit(130)


def _day(context: click.Context, parameter: click.Parameter, value: Any) -> datetime.date:
    return datetime.date.today() if value is None else value.date()


def _selection(command: F) -> F:
    """The arguments that choose what to run."""
    for decorate in (
        click.option("--dtype", help="Only this one of the suite's dtypes."),
        click.option("--batch-size", type=int, metavar="N", help="Only this batch size."),
        click.argument("selectors", nargs=-1, metavar="[SELECTOR]..."),
    ):
        command = decorate(command)
    return command


_outputs = click.option(
    "--from",
    "outputs",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Hold outputs in a JSON Lines file instead of running the reference; needs no torch.",
)
_environment = click.option(
    "--environment", metavar="NAME", help="Where the engine runs, or those outputs were made."
)
_against = click.option("--against", metavar="SLUG", help="Hold to this recorded fingerprint.")
_candidate = click.option("--candidate", metavar="NAME", help="Only this kernel; no generation.")


def _engine(command: F) -> F:
    """The arguments that choose an engine, and what it is held to."""
    for decorate in (
        _against,
        _environment,
        click.option("--url", metavar="URL", help="Where it is; NAME may then be its kind."),
        click.option("--engine", metavar="NAME", help="Ask this engine of goldens.toml."),
    ):
        command = decorate(command)
    return command


_attribute = click.option(
    "--attribute",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Run the reference to tell who moved: where a case fails and it can be run; for every "
    "case, also where outputs from elsewhere are held to it; or never.",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_as_of = click.option(
    "--as-of", type=click.DateTime(["%Y-%m-%d"]), callback=_day, help="Judge expiry then."
)


def _report(formats: Sequence[str]) -> Callable[[F], F]:
    return click.option(
        "--report",
        "reports",
        multiple=True,
        metavar="FORMAT:PATH",
        help=f"Also write a report: {', '.join(formats)}. May be given several times.",
    )


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="goldens")
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The goldens.toml to use; default: the nearest one here or above.",
)
@click.pass_context
def main(context: click.Context, config: Path | None) -> None:
    """Golden references for LLM inference: recorded per environment, reviewed in pull requests.

    \b
    Exit codes: 0 all pass, 1 something failed, 2 usage or configuration,
    3 goldens are missing, 4 nothing was run, 5 drift only.
    """
    context.obj = config


def _load(context: click.Context) -> Any:
    from snapshot.config import find, load

    return load(context.obj or find(Path.cwd()))


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
@_as_json
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
        config = _load(context)
    here = run(config, dtype=dtype, batch_size=batch_size)
    if as_json:
        click.echo(as_json_text(here, explain=explain))
    else:
        print_env(here, explain=explain)


@main.command()
@_as_json
@_as_of
@click.pass_context
def status(context: click.Context, as_json: bool, as_of: datetime.date) -> None:
    """Show what is configured, recorded, and held less strictly."""
    from snapshot.commands.status import status as run
    from snapshot.report.status import as_json_text, print_status

    found = run(_load(context), as_of)
    if as_json:
        click.echo(as_json_text(found))
    else:
        print_status(found, as_of)


@main.command()
@_as_json
@click.pass_context
def check(context: click.Context, as_json: bool) -> None:
    """Read every golden and every rule; fail on any that cannot be trusted."""
    import json

    from snapshot.commands.check import check as run
    from snapshot.report.plain import visible_lines

    found = run(_load(context))
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
@_selection
@_candidate
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
@_engine
@_as_json
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
    from snapshot.commands.engine import Where
    from snapshot.commands.record import record as run
    from snapshot.commands.record_engine import Asked, record_engine
    from snapshot.engineconfig import chosen
    from snapshot.report.progress import progress
    from snapshot.report.recorded import as_json_text, print_recorded
    from snapshot.resolve import Shape

    config = _load(context)
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
        print_recorded(done)
    sys.exit(1 if any(item.refused for item in done) else 0)


@main.command()
@click.argument("selectors", nargs=-1, metavar="[SELECTOR]...")
@click.pass_context
def export(context: click.Context, selectors: tuple[str, ...]) -> None:
    """Print the requests as JSON Lines, for an engine's own harness; see `verify --from`.

    SELECTOR is a suite's name or a glob over case keys.
    """
    from snapshot.commands.export import export as run

    for line in run(_load(context), selectors):
        click.echo(line)


@main.command()
@_selection
@_candidate
@_outputs
@_engine
@_attribute
@_report(["github", "html", "json", "junit", "markdown"])
@_as_of
@_as_json
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
    reports: tuple[str, ...],
    as_of: datetime.date,
    as_json: bool,
) -> None:
    """Run the selected cases and diff them against the matching goldens. Writes nothing.

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
    )
    config = _load(context)
    found = run(config, request)
    remember(config, found)
    if as_json:
        from snapshot.report.jsonreport import to_json

        click.echo(to_json(found))
    else:
        from snapshot.report.terminal import print_verification

        print_verification(found, Console(highlight=False))
    write(wanted, FORMATS, found, click.echo)
    sys.exit(found.exit_code)


@main.command()
@click.argument("case")
@click.option("--batch-size", type=int, metavar="N", help="Only this batch size.")
@click.option("--dtype", help="Only this one of the suite's dtypes.")
@_outputs
@_environment
@_against
@_as_of
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
    found = run(_load(context), request)
    print_explanation(found, Console(highlight=False))
    sys.exit(found.exit_code)


@main.command()
@_selection
@click.option("--against", "slug", metavar="SLUG", help="Hold to this recorded fingerprint.")
@_as_of
@_as_json
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
        _load(context),
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
@_selection
@click.option(
    "--orders",
    type=click.IntRange(0, 1000),
    default=0,
    metavar="N",
    help="Shuffled batches to add.",
)
@click.option("--markdown", is_flag=True, help="Print markdown, for a pull request.")
@_as_json
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
        _load(context),
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


@main.command()
@click.argument("base", default="HEAD")
@click.argument("head", required=False)
@click.option("--merge-base", is_flag=True, help="Start where the two parted, as a PR does.")
@click.option(
    "--fail-on",
    type=click.Choice(["loosen", "fix", "create", "environment-only", "trim"]),
    multiple=True,
    help="Exit 1 where there are such changes; may be given several times.",
)
@_report(["html", "json", "markdown"])
@_as_json
@click.pass_context
def diff(
    context: click.Context,
    base: str,
    head: str | None,
    merge_base: bool,
    fail_on: tuple[str, ...],
    reports: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show what changed in the goldens between two git revisions.

    BASE is HEAD by default, HEAD the work tree. What lowers strictness comes first.

    \b
    Exit codes: 0 compared, whatever changed; 1 a golden cannot be trusted, or there are
    changes of a --fail-on group; 2 usage or configuration.
    """
    from rich.console import Console

    from snapshot.commands.diff import diff as run
    from snapshot.config import find
    from snapshot.report.changes.formats import FORMATS
    from snapshot.report.changes.terminal import print_changes
    from snapshot.report.output import parse, write

    outputs = [parse(report, list(FORMATS)) for report in reports]
    config = context.obj or find(Path.cwd())
    with run(config, base, head, merge_base=merge_base) as changes:
        write(outputs, FORMATS, changes, click.echo)
        if as_json:
            click.echo(FORMATS["json"](changes))
        elif not any(output.path == "-" for output in outputs):
            print_changes(changes, Console(highlight=False))
        code = changes.exit_code(fail_on)
    sys.exit(code)


@main.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@click.option("--accept", multiple=True, metavar="GLOB", help="Accept these; repeatable.")
@click.option("--reject", multiple=True, metavar="GLOB", help="Reject these; repeatable.")
@click.option("--reason", metavar="TEXT", help="Why, needed to accept many at once; kept.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@_as_json
@click.pass_context
def review(
    context: click.Context,
    folder: Path | None,
    accept: tuple[str, ...],
    reject: tuple[str, ...],
    reason: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Accept or reject pending goldens, one by one or by glob.

    DIR is what `goldens record --pending DIR` wrote, pending-goldens by default. Without
    --accept and --reject it asks on the terminal, and every key takes effect at once. GLOB is
    over case keys, or over suite/fingerprint/subject/case.

    \b
    Exit codes: 0 done; 1 a golden cannot be reviewed or accepted; 2 usage, or no terminal
    and nothing to do; 4 nothing is pending.
    """
    from rich.console import Console

    from snapshot.commands.review import converse, decide, open_inbox
    from snapshot.report import reviewing
    from snapshot.report.keyboard import key_by_key

    inbox = open_inbox(_load(context), folder)
    waiting = inbox.look()
    if (accept or reject) and (waiting.items or waiting.problems):
        done = decide(inbox, accept, reject, reason=reason, dry_run=dry_run)
    elif as_json or dry_run or not waiting.items:
        if as_json:
            click.echo(reviewing.waiting_json(waiting))
        else:
            reviewing.print_waiting(waiting)
        sys.exit(1 if waiting.problems else 0 if waiting.items else 4)
    elif not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            f"{len(waiting.items)} goldens are pending, and there is no terminal to ask on",
            where=str(inbox.folder),
            expected="--accept GLOB or --reject GLOB",
            hint="goldens review --accept '*'; goldens review --dry-run lists them",
        )
    else:
        talk = reviewing.Conversation(Console(highlight=False))
        with key_by_key():
            done = converse(inbox, talk.show, talk.key, talk.ask_reason, talk.say)
    if as_json:
        click.echo(reviewing.reviewed_json(done))
    else:
        reviewing.print_reviewed(done, dry_run)
    sys.exit(done.exit_code)


@main.command(hidden=True)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def textconv(file: Path) -> None:
    """Print a blob as text, for git diff: see docs/review.md."""
    from snapshot.report.blobtext import blob_text

    for line in blob_text(file):
        click.echo(line)


if __name__ == "__main__":
    main()
