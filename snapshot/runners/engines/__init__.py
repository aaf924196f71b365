"""Engines that are held to the reference: one file and one line of `KINDS` each."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points

from snapshot.engineconfig import EngineConfig
from snapshot.errors import ConfigError
from snapshot.plan import Plan
from snapshot.runners.engines.engine import Engine

GROUP = "goldens.engines"

KINDS = {
    "openai": "snapshot.runners.engines.openai:OpenAI",
    "sglang": "snapshot.runners.engines.sglang:SGLang",
    "transformers": "snapshot.runners.engines.transformers:Transformers",
}


def open_engine(config: EngineConfig, plan: Plan) -> Engine:
    """The engine of a configuration, ready to be asked about the plan's cases.

    Raises:
        ConfigError: no engine of this kind is installed, or an option is wrong.
        RunError: it cannot be reached or loaded.
    """
    if config.kind in KINDS:
        module, name = KINDS[config.kind].split(":")
        engine: Engine = getattr(importlib.import_module(module), name)(config, plan)
        return engine
    found = {point.name: point for point in entry_points(group=GROUP)}
    if config.kind not in found:
        raise ConfigError(
            "no engine of this kind",
            where=f"{config.where}: kind",
            expected=f"one of {', '.join(sorted({*KINDS, *found}))}",
            got=config.kind,
            hint=f"install the package that provides it (entry-point group {GROUP})",
        )
    try:
        opener = found[config.kind].load()
    except Exception as error:  # a package of someone else
        raise ConfigError(
            "the package of this kind of engine cannot be imported",
            where=f"{config.where}: kind",
            expected=found[config.kind].value,
            got=f"{type(error).__name__}: {error}",
        ) from None
    made: Engine = opener(config, plan)
    return made
