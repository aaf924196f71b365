"""Commands on changes of goldens, for pull requests."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from snapshot.cli import options
from snapshot.cli.root import load, main
from snapshot.errors import UsageError


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
@options.report(["html", "json", "markdown"])
@options.as_json
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
@options.as_json
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

    inbox = open_inbox(load(context), folder)
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
