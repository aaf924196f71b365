"""SGLang's native ``/generate``: token ids in, token ids and logprobs out.

Written from its documented requests and answers, and tested against those; not run on a server
here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from snapshot.engineconfig import EngineConfig
from snapshot.errors import RunError
from snapshot.model import Array, Generated, Json, Observation
from snapshot.plan import Plan
from snapshot.progress import Advance
from snapshot.runners.engines.client import Client
from snapshot.runners.engines.completion import fitting, top_arrays
from snapshot.runners.engines.engine import SCORING, About, Ask
from snapshot.runners.engines.listing import read_listing
from snapshot.runners.engines.pool import gather
from snapshot.runners.observe import Rows

_FORM = (KeyError, IndexError, TypeError, ValueError, AttributeError)


class SGLang:
    """See `Engine`. Its address is the server's root, without ``/v1``.

    Raises:
        UsageError: no address, or no key where one is configured.
        RunError: the server cannot be reached, or does not say which base model it serves.
    """

    def __init__(self, config: EngineConfig, plan: Plan, client: Client | None = None) -> None:
        config.known_options()
        self._config = config
        root = config.required_url().removesuffix("/v1")
        self._client = client or Client.of(config, root)
        self._listing = read_listing(self._client, config, path="v1/models")
        self._cannot: dict[str, str] = {}

    def close(self) -> None:
        self._client.close()

    def about(self) -> About:
        return About(self._listing.provenance(self._config), self._cannot)

    def run(self, asks: Sequence[Ask], advance: Advance) -> Rows:
        if not all(ask.prompt_ids for ask in asks):
            self._cannot[SCORING] = "no golden tells the prompt's tokens of every case"
        return gather(asks, self._generate, self._config.concurrency, advance)

    def score(
        self, asks: Sequence[Ask], tokens: Mapping[str, Sequence[int]], advance: Advance
    ) -> Rows:
        known = [ask for ask in asks if ask.prompt_ids and tokens.get(ask.key)]
        return gather(
            known,
            lambda ask: self._score(ask, tokens[ask.key]),
            self._config.scoring_concurrency,
            advance,
        )

    def _generate(self, ask: Ask) -> Observation:
        prompt: dict[str, Json] = {"text": ask.case.prompt}
        if ask.prompt_ids is not None:
            prompt = {"input_ids": list(ask.prompt_ids)}
        answer = self._ask(ask, prompt, ask.max_new_tokens, logprob_start_len=-1)
        try:
            meta = answer["meta_info"]
            tokens = _tokens(meta["output_token_logprobs"])
            top = [dict(_tokens(step)) for step in meta["output_top_logprobs"]]
            reason = meta["finish_reason"]["type"]
            text = answer["text"]
        except _FORM as error:
            raise _malformed(answer, error) from None
        if reason not in ("stop", "length") or not isinstance(text, str):
            raise RunError(f"the server ended the answer: {ascii(meta['finish_reason'])[:200]}")
        ids = tuple(token for token, _ in tokens)
        return fitting(
            Observation(
                ask.key,
                Generated(text, ids, reason, ask.case.prompt, ask.prompt_ids),
                {"logprobs": _floats(tokens)} | top_arrays(top, ask.top_logprobs),
            )
        )

    def _score(self, ask: Ask, given: Sequence[int]) -> Observation:
        assert ask.prompt_ids is not None
        whole = [*ask.prompt_ids, *given]
        # input_token_logprobs names the given tokens by id: token_ids_logprob would add nothing.
        answer = self._ask(ask, {"input_ids": whole}, 1, logprob_start_len=0)
        start = len(ask.prompt_ids)
        try:
            meta = answer["meta_info"]
            tokens = _tokens(meta["input_token_logprobs"][1:])  # the first token has no logprob
            top = [dict(_tokens(step)) for step in meta["input_top_logprobs"][start:]]
        except _FORM as error:
            raise _malformed(answer, error) from None
        if [token for token, _ in tokens] != whole[1:]:
            raise RunError(
                "the server scored other tokens than it was given",
                where=ask.key,
                expected=f"{len(whole) - 1} tokens",
                got=f"{len(tokens)} tokens",
            )
        values = _floats(tokens)
        arrays = {"prompt_logprobs": values[: start - 1], "logprobs": values[start - 1 :]}
        output = Generated("", tuple(given), None, ask.case.prompt, ask.prompt_ids)
        return fitting(Observation(ask.key, output, arrays | top_arrays(top, ask.top_logprobs)))

    def _ask(
        self, ask: Ask, prompt: Mapping[str, Json], tokens: int, *, logprob_start_len: int
    ) -> Json:
        adapter = ask.case.adapter
        body = {
            **prompt,
            "sampling_params": {"temperature": 0, "max_new_tokens": tokens},
            "return_logprob": True,
            "logprob_start_len": logprob_start_len,
            "top_logprobs_num": ask.top_logprobs,
        }
        if adapter is not None:
            body["lora_path"] = self._listing.model(adapter)
        return self._client.post("generate", body)


def _tokens(entries: Json) -> list[tuple[int, float]]:
    """``(logprob, id, text)`` entries as id and logprob."""
    return [(int(entry[1]), float(entry[0])) for entry in entries]


def _floats(tokens: Sequence[tuple[int, float]]) -> Array:
    return np.array([value for _, value in tokens], dtype=np.float32)


def _malformed(answer: Json, error: Exception) -> RunError:
    return RunError(
        "the server's answer has another form than SGLang's /generate",
        expected='{"text": ..., "meta_info": {"output_token_logprobs": [[logprob, id, text]]}}',
        got=f"{ascii(answer)[:200]} ({type(error).__name__}: {error})",
    )
