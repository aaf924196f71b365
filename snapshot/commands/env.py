"""``goldens env``: what this machine is called, why, and what is recorded of it."""

from __future__ import annotations

import dataclasses
import json
import sys

import click

from snapshot.errors import RunError
from snapshot.fingerprint import Readings, build
from snapshot.model import Fingerprint, Json
from snapshot.probe import installed_versions, probe


def run(*, dtype: str, batch_size: int | None, explain: bool, as_json: bool) -> int:
    """Print the fingerprint of this process; 0 also where there is no torch to ask."""
    readings, fingerprint, problem = None, None, None
    try:
        readings = probe()
        fingerprint = build(readings, dtype=dtype, batch_size=batch_size)
    except RunError as error:
        problem = error
    provenance = installed_versions() if fingerprint is None else fingerprint.provenance
    reasons = _reasons(readings, fingerprint) if explain and readings and fingerprint else {}
    if as_json:
        report: dict[str, Json] = {
            "slug": fingerprint.slug if fingerprint else None,
            "identity": dataclasses.asdict(fingerprint.identity) if fingerprint else None,
            "provenance": dict(provenance),
            "problem": problem.what if problem else None,
        }
        if explain:
            report["explain"] = {
                name: {"from": source, "changes_with": cause}
                for name, (source, cause) in reasons.items()
            }
        click.echo(json.dumps(report, indent=2, sort_keys=True, ensure_ascii=False))
        return 0
    if problem is not None:
        _heading(f"no fingerprint: {problem.what}")
        click.echo(f"  try: {problem.hint}\n" if problem.hint else "")
    if fingerprint is not None:
        _heading(fingerprint.slug)
        click.echo()
        _heading("selects a golden")
        for name, value in dataclasses.asdict(fingerprint.identity).items():
            if value is not None:
                click.echo(f"  {name:<12}{value}")
                if name in reasons:
                    source, cause = reasons[name]
                    click.echo(f"  {'':<12}from: {source}\n  {'':<12}changes with: {cause}")
        click.echo()
    _heading("only recorded" if fingerprint else "known without torch")
    width = max(map(len, provenance)) + 2
    for name, value in provenance.items():
        if name != "notes":
            click.echo(f"  {name:<{width}}{_shown(value)}")
    for note in provenance.get("notes", ()):
        click.echo(f"note: {note}")
    return 0


def _heading(text: str) -> None:
    if not sys.stdout.isatty():
        click.echo(text)
        return
    from rich.console import Console  # costs the other commands nothing

    Console(highlight=False).print(text, style="bold", markup=False, soft_wrap=True)


def _shown(value: Json) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _reasons(readings: Readings, fingerprint: Fingerprint) -> dict[str, tuple[str, str]]:
    """For each identity field: where its value came from, and what would change it."""
    if readings.backend == "cpu":
        arch = (
            "ATen's capability, what oneDNN may use of this processor, torch's threads",
            "another processor, ATEN_CPU_CAPABILITY, ONEDNN_MAX_CPU_ISA, OMP_NUM_THREADS",
        )
    elif readings.device is None:
        arch = ("torch, which counts no device", "a visible device")
    else:
        arch = (
            f"the driver, of the first visible device: {readings.device.name}",
            "another device first in CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES or their like",
        )
    known = {
        "backend": (f"torch {readings.torch}", "a torch built for something else"),
        "arch": arch,
        "runtime": (
            readings.runtime_source or "nothing that could be read",
            "the next major.minor of it; patch releases do not",
        ),
        "torch": (f"torch.__version__, {readings.torch}", "the next major.minor of torch"),
        "dtype": ("--dtype here, the suite's dtype in a run", "the suite"),
        "batch_size": ("--batch-size here, the suite's batch_sizes in a run", "the suite"),
    }
    identity = dataclasses.asdict(fingerprint.identity)
    return {name: reason for name, reason in known.items() if identity[name] is not None}


@click.command("env")
@click.option("--dtype", default="float32", show_default=True, help="Of the model or the inputs.")
@click.option("--batch-size", type=click.IntRange(min=1), help="Rows a batch, for generation.")
@click.option("--explain", is_flag=True, help="Say where each value came from.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(dtype: str, batch_size: int | None, explain: bool, as_json: bool) -> None:
    """Show this environment's fingerprint: what selects a golden, and what is only recorded."""
    sys.exit(run(dtype=dtype, batch_size=batch_size, explain=explain, as_json=as_json))
