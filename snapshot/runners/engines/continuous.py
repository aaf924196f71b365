"""The reference's model under transformers' continuous batching (`generate_batch`).

Without adapters only: peft's `generate_batch` takes their names and ignores them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from snapshot.errors import RunError
from snapshot.model import GenerationCase, Observation
from snapshot.runners.reference import Reference
from snapshot.suite import Group


class Continuous(Reference):
    """Tells token ids, text and stop; no logprobs."""

    def run(
        self, group: Group, forced: Mapping[str, Sequence[int]] | None = None
    ) -> tuple[Observation, ...]:
        """As `Reference.run`, of rows without adapters, none of them forced.

        Raises:
            RunError: a row failed, or a prompt has no token.
        """
        prompts = [self._tokens(case) for case in group.rows]
        config = self.model.generation_config
        outputs = self.model.generate_batch(inputs=prompts, generation_config=config)
        told = {tuple(output.prompt_ids): output for output in outputs.values()}
        return tuple(
            self._told(case, prompt, told.get(tuple(prompt)))
            for case, prompt in zip(group.rows, prompts, strict=True)
        )

    def _told(self, case: GenerationCase, prompt: list[int], output: Any) -> Observation:
        if output is None or output.error is not None or not output.generated_tokens:
            said = "no output" if output is None else output.error or "no token"
            raise RunError(f"continuous batching failed: {said}", where=case.key)
        ids = self._until_stop(list(output.generated_tokens))
        return Observation(
            case=case.key,
            output=self._generated(case, prompt, ids),
            workload=self._workload(case, prompt),
        )
