"""The group that all commands hang from, and how it ends."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import click

from snapshot import __version__
from snapshot.errors import GoldensError


class _Stream(io.FileIO):
    """An output whose reader may leave (``| head -1``): what is left to say then goes nowhere,
    and the command ends as it would have, its reports written and its exit code its own."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return len(data)


def _outlive_readers() -> None:
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and stream is getattr(sys, f"__{name}__"):  # nobody captures it
            stream.flush()
            buffer = io.BufferedWriter(_Stream(stream.fileno(), "w", closefd=False))
            wrapped = io.TextIOWrapper(
                buffer, stream.encoding, stream.errors, line_buffering=stream.line_buffering
            )
            setattr(sys, name, wrapped)


class _Group(click.Group):
    """Prints our errors as what they are, without a traceback."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        _outlive_readers()
        return super().main(*args, **kwargs)

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


def load(context: click.Context) -> Any:
    from snapshot.config import find, load

    return load(context.obj or find(Path.cwd()))
