"""From a configured suite to its cases, and from cases to the batches they run in."""

from __future__ import annotations

import fnmatch
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from snapshot.errors import ConfigError
from snapshot.model import Composition, GenerationCase
from snapshot.names import case_key, check_distinct


@dataclass(frozen=True)
class Group:
    """The rows that run together in one batch.

    Attributes:
        rows: the cases, in order; at most `size`.
        size: rows of the batch; missing ones are filled with copies of the last row, whose
            outputs are dropped.
    """

    rows: tuple[GenerationCase, ...]
    size: int

    @property
    def filled(self) -> tuple[GenerationCase, ...]:
        """The rows as they run: exactly `size` of them."""
        return self.rows + (self.rows[-1],) * (self.size - len(self.rows))

    def composition(self, row: int) -> Composition:
        """The batch as row `row` saw it."""
        keys = tuple(case.key for case in self.filled)
        text = json.dumps(keys, ensure_ascii=False, separators=(",", ":"))
        return Composition(keys, row, "sha256:" + hashlib.sha256(text.encode()).hexdigest())

    def reversed(self) -> Group:
        """The same batch in the opposite row order."""
        return Group(tuple(reversed(self.filled)), self.size)


def read_prompts(path: Path) -> list[str]:
    """The prompts of a JSON Lines file, in file order: one ``{"prompt": "..."}`` a line.

    Raises:
        ConfigError: unreadable file, a line that is not such an object, an empty or a
            repeated prompt, or no prompt at all.
    """
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the prompts cannot be read: {error}", where=str(path), expected="JSON Lines in UTF-8"
        ) from None
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            prompt = _prompt(line, f"{path}:{number}")
            if prompt in seen:
                raise ConfigError(
                    "the same prompt stands twice",
                    where=f"{path}:{number}",
                    expected="each prompt once: its text is the case's key",
                    got=f"also on line {seen[prompt]}: {prompt[:60]!r}",
                )
            seen[prompt] = number
    if not seen:
        raise ConfigError("no prompt in the file", where=str(path), expected='{"prompt": "..."}')
    return list(seen)


def _prompt(line: str, where: str) -> str:
    expected = 'an object with one key: {"prompt": "..."}'
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise ConfigError(
            f"not JSON: {what}", where=where, expected=expected, got=ascii(line)[:80]
        ) from None
    if not isinstance(entry, dict) or set(entry) != {"prompt"}:
        raise ConfigError("not a prompt", where=where, expected=expected, got=ascii(line)[:80])
    prompt = entry["prompt"]
    if not isinstance(prompt, str) or not prompt:
        raise ConfigError(
            "empty prompt", where=where, expected="a non-empty string", got=ascii(line)[:80]
        )
    try:
        prompt.encode()
    except UnicodeEncodeError:
        raise ConfigError(
            "the prompt is not Unicode", where=where, expected="pairs of surrogates", got=line[:80]
        ) from None
    return prompt


def generation_cases(prompts: Iterable[str], adapters: Sequence[str]) -> list[GenerationCase]:
    """Every prompt with the base model and with each adapter, prompt by prompt.

    The rows of one prompt are neighbours, so a prompt added at the end of the file leaves
    every full batch before it as it was.

    Raises:
        ConfigError: two keys would share a file on some file system.
    """
    cases = [
        GenerationCase(case_key(adapter, prompt), adapter, prompt)
        for prompt in prompts
        for adapter in (None, *adapters)
    ]
    check_distinct([case.key for case in cases])
    return cases


def groups(cases: Sequence[GenerationCase], batch_size: int) -> list[Group]:
    """The cases cut into batches of `batch_size` rows, in order."""
    return [
        Group(tuple(cases[start : start + batch_size]), batch_size)
        for start in range(0, len(cases), batch_size)
    ]


def select(keys: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The keys that match any of the glob patterns; all of them when there is no pattern."""
    if not patterns:
        return list(keys)
    return [key for key in keys if any(fnmatch.fnmatchcase(key, p) for p in patterns)]
