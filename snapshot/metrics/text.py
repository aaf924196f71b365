"""Similarity of two texts that are already known to differ.

Equal text passes before any score, and an empty text is never scored. A score is reported
with its metric's name; it gates only where a tolerance asks for it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from snapshot.metrics.words import word_diff

METRICS = ("rouge-score", "unicode-lcs", "sglang-char-lcs")

_CELLS = 40_000_000_000
"""Largest table of one score, in tokens of both sides: two seconds, 200,000 tokens a side."""


class NotScorable(ValueError):
    """The metric is blind to (a part of) these texts, so its score must not decide."""


def rouge_l(metric: str, golden: str, candidate: str) -> float:
    """ROUGE-L F1 in [0, 1] of two non-empty texts (Lin 2004: F = 2PR / (P + R) over the
    longest common subsequence).

    Args:
        metric: whose tokens are counted.
            ``rouge-score``: the package's, lower-case a-z0-9 words, without stemming;
            ``unicode-lcs``: words of any script, single ideographs and Thai, Lao, Khmer or
            Burmese characters, and every punctuation mark, case kept;
            ``sglang-char-lcs``: characters of the stripped text, as SGLang's tests do.

    Raises:
        NotScorable: a text has no token, the metric cannot see a difference between them, or
            they are too long.
        KeyError: unknown metric.
    """
    tokenize = _TOKENIZERS[metric]
    if metric == "rouge-score":
        _require_visible(golden, candidate)
    a, b = tokenize(golden), tokenize(candidate)
    if not a or not b:
        raise NotScorable(
            f"{metric} finds no token in {'the golden' if not a else 'the candidate'}"
        )
    if a == b and golden.strip() != candidate.strip():
        raise NotScorable(f"{metric} cannot see the difference")
    if len(a) * len(b) > _CELLS:
        raise NotScorable(f"too long to score: {len(a)} and {len(b)} tokens")
    return _f1(a, b)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    # rapidfuzz: bit-parallel, about a thousand times faster than the table that
    # rouge-score fills, and the same length.
    from rapidfuzz.distance import LCSseq

    return int(LCSseq.similarity(a, b))


def _f1(a: Sequence[str], b: Sequence[str]) -> float:
    common = _common(a, b)
    if common == 0:
        return 0.0
    precision, recall = common / len(b), common / len(a)
    return 2 * precision * recall / (precision + recall)


def _rouge_tokens(text: str) -> list[str]:
    from rouge_score.tokenize import tokenize

    return list(tokenize(text, None))


# Scripts that are written without spaces: one token a character.
_SINGLE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana, ideographs
    "\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]+|[^\s]")


def _unicode_tokens(text: str) -> list[str]:
    return _TOKEN.findall(unicodedata.normalize("NFC", text))


def _characters(text: str) -> list[str]:
    return list(text.strip())


_TOKENIZERS: dict[str, Callable[[str], list[str]]] = {
    "rouge-score": _rouge_tokens,
    "unicode-lcs": _unicode_tokens,
    "sglang-char-lcs": _characters,
}


def _require_visible(golden: str, candidate: str) -> None:
    """Raises NotScorable where rouge-score's tokenizer would eat what may matter."""
    advice = 'it keeps only a-z0-9; use metric = "unicode-lcs"'
    for text in (golden, candidate):
        eaten = next((c for c in text if c.isalnum() and not c.isascii()), None)
        if eaten is not None:
            raise NotScorable(f"rouge-score drops {eaten!r}: {advice}")
    for run in word_diff(golden, candidate):
        if not run.equal and _hides(run.golden, run.candidate):
            pair = f"{run.golden[:40]!r} from {run.candidate[:40]!r}"
            raise NotScorable(f"rouge-score cannot tell all of {pair}: {advice}")


def _hides(golden: str, candidate: str) -> bool:
    """Whether rouge-score sees less than there is between two stretches that differ."""
    a, b = _rouge_tokens(golden), _rouge_tokens(candidate)
    if a == b or _EATEN.findall(golden) != _EATEN.findall(candidate):
        return True
    cased = _WORD.findall(golden), _WORD.findall(candidate)
    return cased != (a, b) and _common(*cased) != _common(a, b)


_WORD = re.compile(r"[A-Za-z0-9]+")
_EATEN = re.compile(r"[^A-Za-z0-9\s]")
