"""A server of the completions API on this machine that answers as vLLM does, or less well."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]
"""Status, and a JSON value or bytes."""


@dataclass
class Fake:
    """What it says to each prompt, by model and prompt ids.

    Attributes:
        words: model to prompt ids to the generated ids.
        listed: the names in /v1/models, each with its parent.
        knows: request fields beyond the plain ones that it takes; others are HTTP 400.
        tells: parts of the answer beyond the text.
        shift: added to every logprob.
        before: called with each completion request; an answer replaces the usual one.
        asked: every completion request, in order of arrival.
    """

    words: Mapping[str, Mapping[tuple[int, ...], tuple[int, ...]]]
    listed: Mapping[str, str | None]
    knows: frozenset[str] = frozenset(
        {
            "return_token_ids",
            "return_tokens_as_token_ids",
            "repetition_penalty",
            "logprobs",
            "prompt_logprobs",
            "ids",
        }
    )
    tells: frozenset[str] = frozenset({"token_ids", "logprobs"})
    shift: float = 0.0
    before: Callable[[Mapping[str, Any]], Answer | None] = lambda body: None
    asked: list[Mapping[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)

    def answer(self, path: str, body: Mapping[str, Any]) -> Answer:
        if path == "/v1/models":
            data = [{"id": n, "parent": p, "owned_by": "vllm"} for n, p in self.listed.items()]
            return 200, {"object": "list", "data": data}
        if path == "/version":
            return 200, {"version": "0.0.1"}
        if path != "/v1/completions":
            return 404, {"detail": "Not Found"}
        self.asked.append(body)
        return self.before(body) or self._completion(body)

    def _completion(self, body: Mapping[str, Any]) -> Answer:
        plain = {"model", "prompt", "max_tokens", "temperature"}
        unknown = sorted(set(body) - plain - self.knows)
        if unknown or (isinstance(body["prompt"], list) and "ids" not in self.knows):
            return 400, {"error": {"message": f"Unexpected: {unknown or 'token ids'}"}}
        if body["model"] not in self.words:
            return 404, {"error": {"message": f"The model `{body['model']}` does not exist."}}
        prompt = tuple(body["prompt"]) if isinstance(body["prompt"], list) else ()
        said = self.words[body["model"]].get(prompt, (77, 78))[: body["max_tokens"]]
        choice: dict[str, Any] = {
            "index": 0,
            "text": "".join(f" w{i}" for i in said),
            "finish_reason": "length",
        }
        if "token_ids" in self.tells and body.get("return_token_ids"):
            choice |= {"token_ids": list(said), "prompt_token_ids": list(prompt)}
        if "logprobs" in self.tells and "logprobs" in body:
            names = [
                f"token_id:{i}" if body.get("return_tokens_as_token_ids") else " w" for i in said
            ]
            choice["logprobs"] = {
                "tokens": names,
                "token_logprobs": [-0.5 + self.shift] * len(said),
                "top_logprobs": [
                    {name: -0.5 + self.shift, f"token_id:{i + 1}": -1.5 + self.shift}
                    for name, i in zip(names, said, strict=True)
                ],
            }
        if "prompt_logprobs" in body:
            generated = len(prompt) - 2
            choice["prompt_logprobs"] = [None] + [
                self._scored(token, prompt_part=at < 2) for at, token in enumerate(prompt[1:])
            ]
            assert generated is not None
        return 200, {"model": body["model"], "choices": [choice]}

    def _scored(self, token: int, *, prompt_part: bool) -> dict[str, Any]:
        value = (-2.0 if prompt_part else -0.5) + self.shift
        return {
            str(token): {"logprob": value, "rank": 1, "decoded_token": "x"},
            str(token + 1): {"logprob": -1.5 + self.shift, "rank": 2, "decoded_token": "y"},
        }


@contextlib.contextmanager
def serving(fake: Any) -> Iterator[str]:
    """Runs it; gives its address, ``/v1`` included."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(None)

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            self._reply(json.loads(self.rfile.read(length)))

        def _reply(self, body: Any) -> None:
            fake.headers.append(dict(self.headers))
            status, value = fake.answer(self.path, body)
            if status == 0:  # hang up without a word
                self.connection.close()
                return
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *arguments: Any) -> None:
            pass  # a client that hung up

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
