"""An engine of one's own: llama.cpp's HTTP server, whose API is neither OpenAI's nor SGLang's.

In a package's pyproject.toml, so that `kind = "llama-cpp"` works in goldens.toml:

    [project.entry-points."goldens.engines"]
    llama-cpp = "llama_cpp:LlamaCpp"
"""

from __future__ import annotations

import numpy as np

from snapshot.model import Generated, Observation
from snapshot.runners.engines.client import Client
from snapshot.runners.engines.engine import SCORING, TOPK, About, Refused
from snapshot.runners.engines.pool import gather


class LlamaCpp:
    def __init__(self, config, plan):
        config.known_options()
        self._config = config
        self._client = Client(config.required_url(), timeout=config.timeout, retries=config.retries)
        self._build = self._client.get("props").get("build_info", "unknown")

    def close(self):
        self._client.close()

    def about(self):
        why = "this engine does not ask for it"
        return About({"engine": "llama.cpp", "version": self._build}, {SCORING: why, TOPK: why})

    def run(self, asks, advance):
        return gather(asks, self._one, self._config.concurrency, advance)

    def score(self, asks, tokens, advance):
        return {}

    def _one(self, ask):
        if ask.case.adapter is not None:
            raise Refused(f"adapter {ask.case.adapter}: this server was started without any")
        prompt = list(ask.prompt_ids) if ask.prompt_ids else ask.case.prompt
        body = {"prompt": prompt, "n_predict": ask.max_new_tokens, "temperature": 0}
        answer = self._client.post("completion", body | {"return_tokens": True, "n_probs": 1})
        said = Generated(
            text=answer["content"],
            token_ids=tuple(answer["tokens"]),
            finish_reason={"eos": "stop", "limit": "length"}.get(answer["stop_type"]),
            prompt=ask.case.prompt,
            prompt_ids=ask.prompt_ids,
        )
        logprobs = [step["logprob"] for step in answer["completion_probabilities"]]
        return Observation(ask.key, said, {"logprobs": np.array(logprobs, np.float32)})
