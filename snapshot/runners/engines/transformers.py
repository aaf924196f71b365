"""transformers + peft as a candidate: another batch size, dtype or attention implementation, or
continuous batching."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from snapshot.config import Suite
from snapshot.engineconfig import EngineConfig
from snapshot.errors import ConfigError
from snapshot.model import Json
from snapshot.plan import Plan
from snapshot.progress import Advance
from snapshot.runners.engines.engine import LOGPROBS, SCORING, TOPK, About, Ask
from snapshot.runners.observe import Rows, observe
from snapshot.runners.worker import Worker, load_reference

if TYPE_CHECKING:
    from snapshot.runners.reference import Reference

_OPTIONS: Mapping[str, tuple[type, str]] = {
    "batch_size": (int, "a whole number of rows, 1 or more"),
    "dtype": (str, "float32, bfloat16 or float16"),
    "attention": (str, "an implementation that transformers knows, such as eager"),
    "continuous": (bool, "true or false"),
}
_DTYPES = ("float32", "bfloat16", "float16")


class Transformers:
    """See `Engine`.

    Raises:
        ConfigError: an option is unknown or wrong, or continuous batching with adapters.
        RunError: the model cannot be loaded.
    """

    def __init__(self, config: EngineConfig, plan: Plan) -> None:
        self._options = _read(config, plan.suite)
        self._plan = plan
        self._size = int(self._options["batch_size"])
        suite = dataclasses.replace(plan.suite, attention=self._options["attention"])
        load = _load_continuous if self._options["continuous"] else load_reference
        self._worker = Worker(suite, str(self._options["dtype"]), load)

    def close(self) -> None:
        self._worker.close()

    def about(self) -> About:
        here = self._worker.fingerprint.at(self._size)
        versions = {n: here.provenance.get(n) for n in ("transformers", "peft", "torch")}
        names = {"engine": "transformers", **versions, "attention": None, **self._options}
        names["attention"] = here.provenance.get("attention")
        why = "continuous batching does not tell it"
        lacking = (LOGPROBS, TOPK, SCORING) if self._options["continuous"] else ()
        return About(
            {name: value for name, value in names.items() if value is not None},
            dict.fromkeys(lacking, why),
            here,
        )

    def run(self, asks: Sequence[Ask], advance: Advance) -> Rows:
        return self._observed(asks, None, advance)

    def score(
        self, asks: Sequence[Ask], tokens: Mapping[str, Sequence[int]], advance: Advance
    ) -> Rows:
        return {} if self._options["continuous"] else self._observed(asks, tokens, advance)

    def _observed(
        self, asks: Sequence[Ask], tokens: Mapping[str, Sequence[int]] | None, advance: Advance
    ) -> Rows:
        """Whole batches run, so what is asked never changes a number."""
        wanted = frozenset(ask.key for ask in asks)
        rows = observe(self._worker, self._plan.groups(self._size, wanted), advance, tokens)
        return {key: row for key, row in rows.items() if key in wanted}


def _read(config: EngineConfig, suite: Suite) -> dict[str, Json]:
    """The options, with their defaults.

    Raises:
        ConfigError: one is unknown or wrong.
    """
    config.known_options(*_OPTIONS)
    for name, value in config.options.items():
        kind, expected = _OPTIONS[name]
        known = name != "dtype" or value in _DTYPES
        if type(value) is not kind or not known or (type(value) is int and value < 1):
            raise ConfigError(
                "wrong value",
                where=f"{config.where}.options.{name}",
                expected=expected,
                got=repr(value),
            )
    options = {
        "batch_size": suite.batch_sizes[0],
        "dtype": suite.dtypes[0],
        "attention": suite.attention,
        "continuous": False,
        **config.options,
    }
    if options["continuous"] and suite.adapters:
        raise ConfigError(
            "continuous batching ignores adapters: every row would be the base model's",
            where=f"{config.where}.options.continuous",
            expected="a suite without adapters",
            got=f"suite {suite.name} with {', '.join(suite.adapters)}",
        )
    return options


def _load_continuous(suite: Suite, dtype: str) -> Reference:
    from snapshot.runners.engines.continuous import Continuous

    return Continuous(suite, dtype)
