"""What an engine is to goldens: something that answers rows, and may score given tokens.

docs/add-an-engine.md shows how to write one; `examples/engine/` holds one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from snapshot.engineconfig import EngineConfig
from snapshot.errors import RunError
from snapshot.model import Fingerprint, GenerationCase, Json
from snapshot.plan import Plan
from snapshot.progress import Advance
from snapshot.runners.observe import Rows

TOKEN_IDS, LOGPROBS, TOPK = "token ids", "logprobs", "top-k logprobs"
SCORING = "forced scoring"


class Refused(RunError):
    """The engine understood and said no: asking again changes nothing, and it still runs."""


@dataclass(frozen=True)
class Ask:
    """One row to be answered greedily.

    Attributes:
        case: its key, adapter and prompt.
        prompt_ids: the prompt's tokens as the reference's golden has them; None without one.
        max_new_tokens: generated tokens, the stop token included, at most.
        top_logprobs: how many of the most likely tokens to tell at each step.
    """

    case: GenerationCase
    prompt_ids: tuple[int, ...] | None
    max_new_tokens: int
    top_logprobs: int

    @property
    def key(self) -> str:
        return self.case.key


@dataclass(frozen=True)
class About:
    """What an engine tells of itself, once it has answered.

    Attributes:
        provenance: name, version, reported model, adapters, dtype...; without any secret.
        cannot: the checks that cannot run, each with why.
        fingerprint: the environment, where the engine runs in this process's machine; None for
            a server, whose environment the user names.
    """

    provenance: Mapping[str, Json] = field(default_factory=dict)
    cannot: Mapping[str, str] = field(default_factory=dict)
    fingerprint: Fingerprint | None = None


class Engine(Protocol):
    """An engine that is open. A row that fails is a `GoldensError` among the rows, with the
    engine's own words; the others go on."""

    def run(self, asks: Sequence[Ask], advance: Advance) -> Rows:
        """One observation or error for each row; see `Observation` for what it may tell."""
        ...

    def score(
        self, asks: Sequence[Ask], tokens: Mapping[str, Sequence[int]], advance: Advance
    ) -> Rows:
        """The engine on given tokens, by case key: an observation whose token ids are those,
        and whose arrays hold their logprobs and the prompt's, in nats. Asked after `run`; a row
        that it has no scores for is left out."""
        ...

    def about(self) -> About:
        """Asked after `run`."""
        ...

    def close(self) -> None:
        """Ends what it started."""
        ...


class Opener(Protocol):
    """What a name of the entry-point group ``goldens.engines`` refers to."""

    def __call__(self, config: EngineConfig, plan: Plan) -> Engine:
        """Raises `UsageError` for a configuration it cannot work with, `RunError` where the
        engine cannot be reached or loaded."""
        ...
