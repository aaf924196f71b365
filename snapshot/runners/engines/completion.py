"""Reading what a server of the completions API answered. It is checked as a stranger's is."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from snapshot.errors import RunError
from snapshot.metrics.shape import Misshapen, require_shape
from snapshot.model import Array, Generated, Json, Observation
from snapshot.runners.engines.engine import Ask

Top = Sequence[Mapping[int, float]]
"""At each step the most likely tokens, by id."""

_PREFIX = "token_id:"


@dataclass(frozen=True)
class Choice:
    """One answer, in the words of this program.

    Attributes:
        text: as the server decoded it.
        finish_reason: ``stop`` or ``length``; None where unknown.
        token_ids, logprobs, top: of the generated tokens; each None where it is not told.
        prompt_ids: the prompt's tokens, as the server says.
        prompt_tokens: how many there are, as the server says.
        prompt_logprobs: vLLM's, by id at each token of the prompt; None at the first.
    """

    text: str
    finish_reason: str | None
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    top: Top | None = None
    prompt_ids: tuple[int, ...] | None = None
    prompt_tokens: int | None = None
    prompt_logprobs: Sequence[Mapping[int, float] | None] | None = None


def read_choice(answer: Json, model: str, others: Collection[str] = ()) -> Choice:
    """The only choice of an answer.

    Args:
        model: what was asked for.
        others: names that the answer must not go by.

    Raises:
        RunError: it has another form, is another model's, or was ended by the server.
    """
    try:
        return _choice(answer, model, others)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise RunError(
            "the server's answer has another form than the completions API's",
            expected='{"choices": [{"text": ..., "logprobs": ...}]}',
            got=f"{ascii(answer)[:200]} ({type(error).__name__}: {error})",
        ) from None


def _choice(answer: Json, model: str, others: Collection[str]) -> Choice:
    served = answer.get("model")
    (choice,) = answer["choices"]
    text = choice["text"]
    if not isinstance(text, str):
        raise TypeError("the text is no string")
    reason = choice.get("finish_reason")
    if reason not in ("stop", "length", None):
        raise RunError(f"the server ended the answer: finish reason {ascii(reason)[:40]}")
    if served != model and served in others:
        raise RunError(f'asked for "{model}", answered by "{served}"', expected=model, got=served)
    detail = choice.get("logprobs") or {}
    named = [_named(token) for token in detail.get("tokens") or []]
    ids = choice.get("token_ids")
    if ids is None and named and None not in named:
        ids = named
    logprobs = detail.get("token_logprobs")
    usage = answer.get("usage") or {}
    prompt_ids = choice.get("prompt_token_ids", answer.get("prompt_token_ids"))
    scored = choice.get("prompt_logprobs", answer.get("prompt_logprobs"))
    return Choice(
        text=text,
        finish_reason=reason,
        token_ids=None if ids is None else _ids(ids),
        logprobs=None if not logprobs else tuple(_number(value) for value in logprobs),
        top=_top(detail.get("top_logprobs")),
        prompt_ids=None if prompt_ids is None else _ids(prompt_ids),
        prompt_tokens=usage.get("prompt_tokens"),
        prompt_logprobs=None if scored is None else [_scored(step) for step in scored],
    )


def observation(ask: Ask, choice: Choice, *, exact_prompt: bool) -> Observation:
    """What a choice tells of a row.

    Args:
        exact_prompt: whether the prompt was given as token ids.

    Raises:
        RunError: the numbers do not fit the tokens, or the server made other tokens of the
            prompt.
    """
    asked = ask.prompt_ids
    if not exact_prompt and asked is not None:
        _same_prompt(asked, choice)
    given = choice.prompt_ids or (asked if exact_prompt else None)
    output = Generated(choice.text, choice.token_ids, choice.finish_reason, ask.case.prompt, given)
    arrays: dict[str, Array] = {}
    if choice.logprobs is not None:
        arrays["logprobs"] = np.array(choice.logprobs, dtype=np.float32)
    if choice.top is not None:
        arrays |= top_arrays(choice.top, ask.top_logprobs)
    return fitting(Observation(ask.key, output, arrays))


def scores_of_prompt(ask: Ask, tokens: Sequence[int], choice: Choice) -> Observation | None:
    """The given tokens' scores out of vLLM's ``prompt_logprobs``; None where there are none."""
    steps = choice.prompt_logprobs
    assert ask.prompt_ids is not None
    whole = (*ask.prompt_ids, *tokens)
    if steps is None:
        return None
    if len(steps) != len(whole):
        raise RunError(
            "the prompt's logprobs do not fit the prompt",
            expected=f"{len(whole)} entries",
            got=str(len(steps)),
        )
    try:
        values = [step[token] for step, token in zip(steps[1:], whole[1:], strict=True) if step]
    except KeyError as error:
        raise RunError(f"the prompt's logprobs lack its own token {error}") from None
    top = [step or {} for step in steps[len(ask.prompt_ids) :]]
    return _scores(ask, tokens, values, top)


def scores_of_echo(ask: Ask, tokens: Sequence[int], choice: Choice) -> Observation | None:
    """The given tokens' scores out of an echoed prompt; None where it was not echoed."""
    assert ask.prompt_ids is not None
    whole = len(ask.prompt_ids) + len(tokens)
    if choice.logprobs is None or len(choice.logprobs) <= whole - 1:
        return None
    top = None if choice.top is None else choice.top[len(ask.prompt_ids) : whole]
    return _scores(ask, tokens, choice.logprobs[1:whole], top)


def _scores(
    ask: Ask, tokens: Sequence[int], values: Sequence[float], top: Top | None
) -> Observation:
    assert ask.prompt_ids is not None
    split = len(ask.prompt_ids) - 1
    arrays = {
        "prompt_logprobs": np.array(values[:split], dtype=np.float32),
        "logprobs": np.array(values[split:], dtype=np.float32),
    }
    if top is not None:
        arrays |= top_arrays(top, ask.top_logprobs)
    output = Generated("", tuple(tokens), None, ask.case.prompt, ask.prompt_ids)
    return fitting(Observation(ask.key, output, arrays))


def top_arrays(top: Top, most: int) -> dict[str, Array]:
    """``topk_ids`` and ``topk_logprobs``, best first, ties by lower id; as many at each step as
    the step with the fewest has."""
    k = min([most, *(len(step) for step in top)])
    ranked = [sorted(step.items(), key=lambda pair: (-pair[1], pair[0]))[:k] for step in top]
    shape = (len(ranked), k)
    ids = np.array([[i for i, _ in step] for step in ranked], dtype=np.int32)
    values = np.array([[value for _, value in step] for step in ranked], dtype=np.float32)
    return {"topk_ids": ids.reshape(shape), "topk_logprobs": values.reshape(shape)}


def fitting(made: Observation) -> Observation:
    """The observation, if its numbers fit its tokens. Raises `RunError` if they do not."""
    try:
        require_shape(made, "the server's")
    except Misshapen as error:
        raise RunError(str(error)) from None
    return made


def _same_prompt(asked: Sequence[int], choice: Choice) -> None:
    """Raises `RunError` where the server is known to have made other tokens of the prompt."""
    count = choice.prompt_tokens if choice.prompt_ids is None else len(choice.prompt_ids)
    if choice.prompt_ids == tuple(asked) or (choice.prompt_ids is None and count == len(asked)):
        return
    if count is None:
        return
    more = count - len(asked)
    if choice.prompt_ids is not None and choice.prompt_ids[-len(asked) :] == tuple(asked):
        why = f"{more} special token(s) put before it"
    elif more == 0:
        why = "the same number, other ids"
    else:
        why = f"{abs(more)} {'more' if more > 0 else 'fewer'}: special tokens added or merged"
    raise RunError(
        f"the tokenizers disagree on the prompt: {why}",
        expected=f"{len(asked)} tokens",
        got=f"{count} tokens",
        hint="give the server the recorded tokenizer, or one that takes token ids",
    )


def _named(token: Json) -> int | None:
    """The id in ``token_id:123``; None for a token's text."""
    if isinstance(token, str) and token.startswith(_PREFIX):
        digits = token.removeprefix(_PREFIX)
        return int(digits) if digits.isdecimal() else None
    return None


def _ids(values: Json) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(type(v) is int and 0 <= v < 2**31 for v in values):
        raise TypeError("token ids are no list of whole numbers")
    return tuple(values)


def _number(value: Json) -> float:
    return math.nan if value is None else float(value)


def _top(steps: Json) -> Top | None:
    """None where any step names its tokens by text: two tokens can have one text."""
    if not steps:
        return None
    found = []
    for step in steps:
        named = {_named(token): float(value) for token, value in (step or {}).items()}
        if None in named:
            return None
        found.append({token: value for token, value in named.items() if token is not None})
    return found


def _scored(step: Json) -> Mapping[int, float] | None:
    return None if step is None else {int(i): float(entry["logprob"]) for i, entry in step.items()}
