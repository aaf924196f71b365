"""Makes `generate` say given tokens, so that what it would rather have said can be scored.

The logits of a forced run are those of the free run, bit for bit, as long as the tokens are
the same: prompt, cache, batch and kernels are. A single pass over prompt and answer would be
another shape, which in half precision is another rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import LogitsProcessor


class Forcing(LogitsProcessor):  # type: ignore[misc]
    """Leaves one token possible at each step.

    Args:
        tokens: by batch row; a row with none, or past its last one, is left free.
        prompt: length of the padded prompts.
    """

    def __init__(self, tokens: Sequence[Sequence[int]], prompt: int) -> None:
        self._tokens, self._prompt = tokens, prompt

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        step = input_ids.shape[1] - self._prompt
        scores = scores.clone()  # the raw logits are kept by whoever asked for them
        for row, tokens in enumerate(self._tokens):
            if step < len(tokens):
                scores[row] = -torch.inf
                scores[row, tokens[step]] = 0.0
        return scores
