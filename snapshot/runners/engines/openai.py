"""Any server of the OpenAI completions API: vLLM, SGLang, `transformers serve`...

What such a server can tell differs, and so does what it refuses to be asked: the first row is
asked with everything, then with less, until the server takes it. Adapters are models of their
own there, and a server that is asked for one it does not have may answer with the base model
without a word: so what it does not list is not asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from snapshot.engineconfig import EngineConfig
from snapshot.errors import GoldensError, RunError
from snapshot.model import Json, Observation
from snapshot.plan import Plan
from snapshot.progress import Advance
from snapshot.runners.engines.client import Client
from snapshot.runners.engines.completion import (
    Choice,
    observation,
    read_choice,
    scores_of_echo,
    scores_of_prompt,
)
from snapshot.runners.engines.engine import (
    LOGPROBS,
    SCORING,
    TOKEN_IDS,
    TOPK,
    About,
    Ask,
    Refused,
)
from snapshot.runners.engines.listing import Listing, read_listing
from snapshot.runners.engines.pool import gather
from snapshot.runners.observe import Rows

_IDS = {"return_token_ids": True, "return_tokens_as_token_ids": True}
_GREEDY = {"repetition_penalty": 1.0}  # a model's own file may say otherwise, and vLLM applies it


@dataclass(frozen=True)
class Form:
    """What a server lets itself be asked.

    Attributes:
        ids: the prompt as token ids.
        logprobs: logprobs of what it generates.
        extras: fields that only some servers know.
        scoring: how it scores given tokens: ``prompt_logprobs``, ``echo``, or not (None).
    """

    ids: bool
    logprobs: bool
    extras: Mapping[str, Json]
    scoring: str | None = None

    def body(self, model: str, ask: Ask) -> dict[str, Json]:
        body = {
            "model": model,
            "prompt": list(ask.prompt_ids) if self.ids and ask.prompt_ids else ask.case.prompt,
            "max_tokens": ask.max_new_tokens,
            "temperature": 0,
            **self.extras,
        }
        return body | ({"logprobs": ask.top_logprobs} if self.logprobs else {})


_FORMS = (
    Form(ids=True, logprobs=True, extras=_IDS | _GREEDY),
    Form(ids=True, logprobs=True, extras={}),
    Form(ids=True, logprobs=False, extras={}),
    Form(ids=False, logprobs=True, extras=_IDS | _GREEDY),
    Form(ids=False, logprobs=True, extras={}),
    Form(ids=False, logprobs=False, extras={}),
)


class OpenAI:
    """See `Engine`.

    Raises:
        UsageError: no address, or no key where one is configured.
        RunError: the server cannot be reached, or does not say which base model it serves.
    """

    def __init__(self, config: EngineConfig, plan: Plan, client: Client | None = None) -> None:
        config.known_options()
        self._config = config
        self._client = client or Client.of(config, config.required_url())
        self._listing: Listing = read_listing(self._client, config)
        self._form: Form | None = None
        self._cannot: dict[str, str] = {}

    def close(self) -> None:
        self._client.close()

    def about(self) -> About:
        return About(self._listing.provenance(self._config), self._cannot)

    def run(self, asks: Sequence[Ask], advance: Advance) -> Rows:
        if not asks:
            return {}
        if self._form is None:
            try:
                self._form = self._probe(asks[0])
            except GoldensError as error:
                return {ask.key: error for ask in asks}
        return gather(asks, self._generate, self._config.concurrency, advance)

    def score(
        self, asks: Sequence[Ask], tokens: Mapping[str, Sequence[int]], advance: Advance
    ) -> Rows:
        form = self._form
        if form is None or form.scoring is None:
            return {}
        known = [ask for ask in asks if ask.prompt_ids and tokens.get(ask.key)]
        return gather(
            known,
            lambda ask: self._score(form, ask, tokens[ask.key]),
            self._config.scoring_concurrency,
            advance,
        )

    # ---------------------------------------------------------------------- one row

    def _generate(self, ask: Ask) -> Observation:
        assert self._form is not None
        body = self._form.body(self._listing.model(ask.case.adapter), ask)
        choice = self._choice(body)
        return observation(ask, choice, exact_prompt=self._form.ids)

    def _score(self, form: Form, ask: Ask, tokens: Sequence[int]) -> Observation | None:
        assert ask.prompt_ids is not None
        model = self._listing.model(ask.case.adapter)
        longer = replace(ask, prompt_ids=(*ask.prompt_ids, *tokens), max_new_tokens=1)
        if form.scoring == "echo":
            echoed = self._choice(form.body(model, longer) | {"echo": True})
            return scores_of_echo(ask, tokens, echoed)
        body = replace(form, logprobs=False).body(model, longer)
        scored = self._choice(body | {"prompt_logprobs": ask.top_logprobs})
        return scores_of_prompt(ask, tokens, scored)

    def _choice(self, body: Mapping[str, Json]) -> Choice:
        answer = self._client.post("completions", body)
        return read_choice(answer, body["model"], self._listing.listed or ())

    # ----------------------------------------------------------------------- probing

    def _probe(self, ask: Ask) -> Form:
        """The most that the server lets itself be asked, and what it then tells.

        Raises:
            GoldensError: it takes no form of the request; with what it said to the plainest.
        """
        ask = replace(ask, case=replace(ask.case, adapter=None), max_new_tokens=1)
        model = self._listing.model(None)
        forms = [form for form in _FORMS if ask.prompt_ids or not form.ids]
        for form in forms:
            try:
                choice = self._choice(form.body(model, ask))
            except Refused:
                if form is forms[-1]:
                    raise
                continue
            return self._examined(form, ask, choice)
        raise AssertionError("there is always a form")

    def _examined(self, form: Form, ask: Ask, choice: Choice) -> Form:
        if choice.token_ids is None:
            self._cannot[TOKEN_IDS] = "the server does not tell the ids of what it generates"
        if choice.logprobs is None:
            self._cannot[LOGPROBS] = "the server gives no logprobs"
        elif choice.top is None:
            self._cannot[TOPK] = "the server names top tokens by their text, which can collide"
        scoring, why = self._scoring(form, ask)
        if scoring is None:
            self._cannot[SCORING] = why
        return replace(form, scoring=scoring)

    def _scoring(self, form: Form, ask: Ask) -> tuple[str | None, str]:
        """How the server scores given tokens, or why it does not."""
        if not form.ids or ask.prompt_ids is None:
            return None, "the server takes no token ids"
        tokens = ask.prompt_ids[-1:]
        said = "the server gives no logprobs of a prompt"
        for way in ("prompt_logprobs", "echo"):
            try:
                if self._score(replace(form, scoring=way), ask, tokens) is not None:
                    return way, ""
            except Refused as error:
                said = error.what
            except RunError as error:
                return None, f"it failed: {error.what}"
        return None, said
