"""What servers of the completions API answer, the odd ones too."""

from __future__ import annotations

from typing import Any

import pytest

from snapshot.errors import RunError
from snapshot.model import GenerationCase, Observation
from snapshot.runners.engines.completion import (
    Choice,
    observation,
    read_choice,
    scores_of_echo,
    scores_of_prompt,
)
from snapshot.runners.engines.engine import Ask

ASK = Ask(GenerationCase("base/x", None, "The capital"), (5, 6, 7), 2, 2)


def choice(**fields: Any) -> Choice:
    answer = {"model": "m", "choices": [{"text": " a b", "finish_reason": "length", **fields}]}
    return read_choice(answer, "m")


def told(**fields: Any) -> Observation:
    return observation(ASK, choice(**fields), exact_prompt=True)


def test_top_tokens_named_by_text_are_not_compared_since_two_can_share_one() -> None:
    row = told(
        token_ids=[8, 9],
        logprobs={
            "tokens": [" a", " b"],
            "token_logprobs": [-0.1, -0.2],
            "top_logprobs": [{" a": -0.1}, {" b": -0.2, "\ufffd": -2.0}],
        },
    )
    assert row.arrays["logprobs"].tolist() == pytest.approx([-0.1, -0.2])
    assert "topk_ids" not in row.arrays


def test_ids_are_read_from_the_names_of_the_tokens_where_nothing_else_tells_them() -> None:
    row = told(
        logprobs={
            "tokens": ["token_id:8", "token_id:9"],
            "token_logprobs": [-0.1, -0.2],
            "top_logprobs": [
                {"token_id:8": -0.1, "token_id:3": -0.1, "token_id:2": -4.0},
                {"token_id:9": -0.2, "token_id:1": -0.3},
            ],
        }
    )
    assert row.output.token_ids == (8, 9)
    assert row.arrays["topk_ids"].tolist() == [[3, 8], [9, 1]]  # a tie by the lower id


@pytest.mark.parametrize(
    "fields",
    [
        {"token_ids": [1], "logprobs": {"token_logprobs": [-0.1, -0.2]}},
        {"token_ids": [1, -2]},
        {"token_ids": "8 9"},
        {"finish_reason": "abort"},
        {"text": None},
        {"logprobs": {"token_logprobs": ["high"]}},
    ],
)
def test_an_answer_that_does_not_add_up_is_an_error(fields: dict[str, Any]) -> None:
    with pytest.raises(RunError):
        told(**fields)


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ([1, 5, 6, 7], "1 special token(s) put before it"),
        ([5, 6], "1 fewer: special tokens added or merged"),
        ([5, 6, 8], "the same number, other ids"),
    ],
)
def test_other_tokens_of_the_prompt_are_named(prompt: list[int], said: str) -> None:
    made = choice(prompt_token_ids=prompt)
    with pytest.raises(RunError, match="tokenizers disagree on the prompt") as error:
        observation(ASK, made, exact_prompt=False)
    assert said in error.value.what


def test_a_count_of_other_tokens_is_enough() -> None:
    answer = {"choices": [{"text": "x"}], "usage": {"prompt_tokens": 4}}
    with pytest.raises(RunError, match="1 more"):
        observation(ASK, read_choice(answer, "m"), exact_prompt=False)


def test_an_echoed_prompt_scores_the_given_tokens() -> None:
    names = [f"token_id:{i}" for i in (5, 6, 7, 8, 9, 1)]
    made = choice(
        logprobs={
            "tokens": names,
            "token_logprobs": [None, -1.0, -2.0, -3.0, -4.0, -5.0],
            "top_logprobs": [None, *({name: -0.5, "token_id:99": -1.0} for name in names[1:])],
        }
    )
    row = scores_of_echo(ASK, (8, 9), made)
    assert row is not None and row.output.token_ids == (8, 9)
    assert row.arrays["prompt_logprobs"].tolist() == [-1.0, -2.0]
    assert row.arrays["logprobs"].tolist() == [-3.0, -4.0]
    assert row.arrays["topk_ids"].tolist() == [[8, 99], [9, 99]]
    assert scores_of_echo(ASK, (8, 9), choice(logprobs={"token_logprobs": [-5.0]})) is None


def test_prompt_logprobs_that_do_not_fit_the_prompt_are_an_error() -> None:
    entry = {"logprob": -1.0}
    short = choice(prompt_logprobs=[None, {"6": entry}])
    with pytest.raises(RunError, match="do not fit"):
        scores_of_prompt(ASK, (8,), short)
    lacking = choice(prompt_logprobs=[None, {"6": entry}, {"7": entry}, {"3": entry}])
    with pytest.raises(RunError, match="lack its own token 8"):
        scores_of_prompt(ASK, (8,), lacking)


def test_an_answer_under_another_listed_name_is_an_error() -> None:
    answer = {"model": "base", "choices": [{"text": "x"}]}
    with pytest.raises(RunError, match='asked for "pirate", answered by "base"'):
        read_choice(answer, "pirate", ("base", "pirate"))
