"""``[engines.NAME]`` of goldens.toml: an engine that ships, and how to ask it."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from snapshot.errors import ConfigError, UsageError
from snapshot.model import REFERENCE, Json
from snapshot.names import safe_name


@dataclass(frozen=True)
class EngineConfig:
    """One configured engine; the attributes are its keys.

    Attributes:
        name: what its goldens, reports and rules call it.
        kind: ``openai``, ``sglang``, ``transformers``, or a name of the entry-point group
            ``goldens.engines``.
        where: file and key, for messages.
        url: of the server.
        model: what the server calls the base model; None: the only one that it lists.
        adapters: by the suite's name of an adapter, the server's; its own name where absent.
        environment: the declared environment that it runs in.
        dtype: what it computes in, as its owner says; provenance.
        launch: the command that started it; provenance.
        api_key_env: the environment variable that holds the key, never the key.
        concurrency: requests at once.
        scoring_concurrency: the same, of requests that score given tokens.
        timeout: seconds that one request may take.
        retries: attempts after the first, where the server is busy, fails or is gone.
        options: what else an engine of this kind takes.
    """

    name: str
    kind: str
    where: str = "the command line"
    url: str | None = None
    model: str | None = None
    adapters: Mapping[str, str] = field(default_factory=dict)
    environment: str | None = None
    dtype: str | None = None
    launch: str | None = None
    api_key_env: str | None = None
    concurrency: int = 8
    scoring_concurrency: int = 1
    timeout: float = 120.0
    retries: int = 3
    options: Mapping[str, Json] = field(default_factory=dict)

    def known_options(self, *known: str) -> None:
        """Raises `ConfigError` for an option that this kind of engine does not take."""
        for name in self.options:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                listed = f"one of {', '.join(known)}" if known else f"none for kind {self.kind}"
                raise ConfigError(
                    "unknown option",
                    where=f"{self.where}.options.{name}",
                    expected=f"{close[0]}? ({listed})" if close else listed,
                    got=name,
                )

    def required_url(self) -> str:
        """The server's address. Raises `UsageError` where none is configured or given."""
        if self.url is None:
            raise UsageError(
                "this engine is a server, and nothing says where",
                where=self.where,
                expected='url = "http://127.0.0.1:8000/v1", or --url URL',
                got="no url",
            )
        return checked_url(self.url, f"{self.where}: url")

    def api_key(self) -> str | None:
        """The key, from the environment.

        Raises:
            UsageError: the variable that should hold it is not set, or no header can hold it.
        """
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env, "")
        if not key.isascii() or not key.isprintable() or not key:
            raise UsageError(
                "the engine's API key is not set",
                where=f"{self.where}.api_key_env",
                expected=f"printable ASCII in the environment variable {self.api_key_env}",
                got="something else, which is not shown" if key else "nothing",
            )
        return key


def checked_url(url: str, where: str) -> str:
    """The address, without a final slash.

    Raises:
        ConfigError: it is none, or holds a password, which reports would repeat.
    """
    expected = "an address such as http://127.0.0.1:8000/v1"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ConfigError("wrong value", where=where, expected=expected, got=ascii(url)) from None
    if parts.username is not None or parts.password is not None or parts.query:
        raise ConfigError(
            "a password or a query in an address would stand in every report",
            where=where,
            expected="the key in an environment variable that api_key_env names",
            got="an address with credentials",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("wrong value", where=where, expected=expected, got=ascii(url))
    return url.rstrip("/")


def decode_engines(table: Mapping[str, Json], path: str) -> dict[str, EngineConfig]:
    """The engines of a goldens.toml that its schema has passed.

    Raises:
        ConfigError: a name that cannot be a subject's, or a wrong address.
    """
    engines = {}
    for name, entry in table.items():
        where = f"{path}: engines.{name}"
        if safe_name(name) != name or name == REFERENCE:
            other = f"{name}-engine" if name == REFERENCE else safe_name(name)
            raise ConfigError(
                "an engine's name is a folder's name beside the reference's",
                where=where,
                expected=other,
                got=name,
            )
        if "url" in entry:
            checked_url(entry["url"], f"{where}.url")
        engines[name] = EngineConfig(name=name, where=where, **entry)
    return engines


def chosen(engines: Mapping[str, EngineConfig], name: str, url: str | None) -> EngineConfig:
    """The engine that ``--engine`` and ``--url`` name; a kind and an address are enough.

    Raises:
        UsageError: there is none of this name.
    """
    if name in engines:
        return engines[name] if url is None else replace(engines[name], url=url)
    if url is not None:
        return EngineConfig(name=name, kind=name, url=url)
    listed = f"configured: {', '.join(engines)}" if engines else "none is configured"
    close = difflib.get_close_matches(name, engines, n=1)
    raise UsageError(
        "no such engine",
        where="--engine",
        expected=f"{close[0]}? ({listed})" if close else f"{listed}; or a kind and --url URL",
        got=name,
        hint="add [engines.NAME] to goldens.toml, see docs/verify.md",
    )
