"""HTTP to an engine's server: bounded in time and size, patient with a busy one."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx

from snapshot.engineconfig import EngineConfig
from snapshot.errors import RunError
from snapshot.model import Json
from snapshot.runners.engines.engine import Refused

MAX_BYTES = 64 << 20
"""The largest answer that is read."""

LONGEST_WAIT = 30.0
"""Seconds that a server's Retry-After is followed at most."""

_FIRST_WAIT = 0.5
_SHOWN = 300


class Failed(RunError):
    """The server answered 429 or 5xx, every time."""


class Client:
    """JSON in, JSON out.

    Args:
        url: what paths are relative to.
        key: sent as a bearer token; it appears in no message.
        timeout: seconds that one request may take, all of it.
        retries: attempts after the first, where the server says 429 or 5xx or hangs up.
        transport, sleep: replaced by tests.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 120.0,
        retries: int = 3,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url, self.transport = url, transport
        self._key, self._timeout, self._retries, self._sleep = key, timeout, retries, sleep
        self._http = httpx.Client(
            headers={} if key is None else {"Authorization": f"Bearer {key}"},
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            transport=transport,
            # A proxy of the machine is not on the way to itself.
            trust_env=not _is_local(url),
        )

    @classmethod
    def of(cls, config: EngineConfig, url: str) -> Client:
        """As goldens.toml configures an engine.

        Raises:
            UsageError: no key where one is configured.
        """
        return cls(url, key=config.api_key(), timeout=config.timeout, retries=config.retries)

    def close(self) -> None:
        self._http.close()

    def get(self, path: str) -> Json:
        """Raises as `post`."""
        return self._ask("GET", path, None)

    def post(self, path: str, body: Json) -> Json:
        """The server's answer.

        Raises:
            Refused: it answered 4xx; asking again would change nothing.
            Failed: after all attempts it was busy or failed; with its own message.
            RunError: it hung up, took too long or did not answer in JSON.
        """
        return self._ask("POST", path, body)

    def _ask(self, method: str, path: str, body: Json) -> Json:
        url = f"{self.url}/{path}" if path else self.url
        wait, before = _FIRST_WAIT, ""
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                status, retry_after, data = self._once(method, url, body)
            except (httpx.TimeoutException, TimeoutError):
                raise RunError(
                    f"no answer in {self._timeout:g} s", where=f"{method} {url}"
                ) from None
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                if last:
                    raise self._gone(method, url, error, before) from None
            else:
                if status < 400:
                    return self._json(method, url, data)
                if status != 429 and status < 500:
                    raise Refused(self._said(status, data), where=f"{method} {url}")
                before = self._said(status, data)
                if last:
                    raise Failed(before, where=f"{method} {url}")
                wait = max(wait, min(retry_after, LONGEST_WAIT))
            self._sleep(wait)
            wait *= 2
        raise AssertionError("the last attempt returns or raises")

    def _once(self, method: str, url: str, body: Json) -> tuple[int, float, bytes]:
        """Status, Retry-After in seconds, and the body."""
        deadline = time.monotonic() + self._timeout
        data = bytearray()
        with self._http.stream(method, url, json=body) as answer:
            for chunk in answer.iter_bytes():
                data += chunk
                if time.monotonic() > deadline:  # a server that dribbles never times out a read
                    raise TimeoutError
                if len(data) > MAX_BYTES:
                    raise RunError(
                        "the answer is too large",
                        where=f"{method} {url}",
                        expected=f"at most {MAX_BYTES} bytes",
                    )
            after = 0.0
            with contextlib.suppress(ValueError):
                after = float(answer.headers.get("Retry-After", "0"))
            return answer.status_code, after, bytes(data)

    def _gone(self, method: str, url: str, error: Exception, before: str) -> RunError:
        said = self._safe(str(error)) or type(error).__name__
        earlier = f"; before that it said {before}" if before else ""
        return RunError(
            f"the server cannot be reached: {said}{earlier}",
            where=f"{method} {url}",
            hint="is it running, and is the address right?",
        )

    def _json(self, method: str, url: str, data: bytes) -> Json:
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise RunError(
                "the server did not answer in JSON",
                where=f"{method} {url}",
                got=self._safe(data.decode("utf-8", "replace")),
            ) from None

    def _said(self, status: int, data: bytes) -> str:
        """The server's own message."""
        text = data.decode("utf-8", "replace")
        with contextlib.suppress(ValueError, RecursionError):
            text = _message(json.loads(data)) or text
        return f"HTTP {status}: {self._safe(text) or 'no message'}"

    def _safe(self, text: str) -> str:
        """On one line, cut, and without the key, which some servers repeat."""
        if self._key:
            text = text.replace(self._key, "***")
        line = " ".join(text.split())
        return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"


def _message(answer: Json) -> str | None:
    for key in ("error", "detail", "message"):
        found = answer.get(key) if isinstance(answer, dict) else None
        if isinstance(found, dict):
            found = found.get("message")
        if found:
            return found if isinstance(found, str) else json.dumps(found)
    return None


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False
