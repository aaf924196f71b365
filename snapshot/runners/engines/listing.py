"""What an OpenAI-compatible server says it serves, and under which names."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from snapshot.engineconfig import EngineConfig
from snapshot.errors import GoldensError, RunError
from snapshot.model import Json
from snapshot.runners.engines.client import Client, Failed
from snapshot.runners.engines.engine import Refused


@dataclass(frozen=True)
class Listing:
    """The models of a server.

    Attributes:
        listed: their names; None where the server does not list any.
        base: what it calls the base model.
        adapters: the server's name of each adapter, by the suite's; one that is not named goes
            by its own name.
        where: the server, for messages.
        version, server: as it says; None where it does not.
    """

    listed: tuple[str, ...] | None
    base: str
    adapters: Mapping[str, str]
    where: str
    version: str | None = None
    server: str | None = None
    entries: Mapping[str, Json] = field(default_factory=dict)

    def model(self, adapter: str | None) -> str:
        """What to ask the server for.

        Raises:
            Refused: the adapter is not among what the server lists; it could answer with the
                base model.
        """
        if adapter is None:
            return self.base
        name = self.adapters.get(adapter, adapter)
        listed = self.listed or ()
        base, colon, own = name.rpartition(":")
        if name in listed or (colon and base == self.base and own in listed):
            return name
        raise Refused(
            f'adapter "{adapter}": the server does not list "{name}", and might answer with the '
            f"base model; it lists {', '.join(listed) or 'nothing'}",
            where=self.where,
            hint="load the adapter in the server, or name it in the engine's adapters",
        )

    def provenance(self, config: EngineConfig) -> dict[str, Json]:
        """For the report; without what is not known."""
        adapters = {name: served for name, served in self.adapters.items()}
        known = {
            "engine": self.server,
            "version": self.version,
            "url": self.where,
            "model": self.base,
            "root": self.entries.get("root"),
            "adapters": adapters or None,
            "listed": None if self.listed is None else list(self.listed),
            "dtype": config.dtype,
            "launch": config.launch,
        }
        return {name: value for name, value in known.items() if value is not None}


def read_listing(client: Client, config: EngineConfig, path: str = "models") -> Listing:
    """Asks the server what it serves.

    Args:
        path: of the list, below the client's address.

    Raises:
        RunError: it cannot be reached, or it does not say which of several is the base model.
    """
    try:
        answer = client.get(path)
    except (Refused, Failed):
        # Without a list the base model must be named, and no adapter is asked for. `transformers
        # serve` 5.19 answers 500 here where nothing was downloaded.
        answer = None
    entries = _entries(answer)
    listed = None if entries is None else tuple(entries)
    named = set(config.adapters.values())
    bases = [
        name
        for name, entry in (entries or {}).items()
        if entry.get("parent") is None and name not in named
    ]
    if config.model is None and len(bases) != 1:
        raise RunError(
            "the server does not say which model is the base model",
            where=client.url,
            expected="model = NAME in the engine's table",
            got="it has no list of models"
            if listed is None
            else f"it lists {', '.join(bases) or 'none'}",
        )
    base = config.model or bases[0]
    entry = (entries or {}).get(base, {})
    return Listing(
        listed=listed,
        base=base,
        adapters=dict(config.adapters),
        where=client.url,
        version=_version(client),
        server=entry.get("owned_by"),
        entries=entry,
    )


def _entries(answer: Json) -> dict[str, Mapping[str, Json]] | None:
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list):
        return None
    return {e["id"]: e for e in data if isinstance(e, dict) and isinstance(e.get("id"), str)}


def _version(client: Client) -> str | None:
    """Of vLLM and SGLang, which tell it beside the API; None elsewhere."""
    root = Client(
        client.url.removesuffix("/v1"), timeout=10.0, retries=0, transport=client.transport
    )
    with contextlib.closing(root):
        for path in ("version", "get_server_info"):
            with contextlib.suppress(GoldensError):
                answer = root.get(path)
                found = answer.get("version") if isinstance(answer, dict) else None
                if isinstance(found, str):
                    return found
    return None
