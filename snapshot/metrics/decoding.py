"""How one sequence of tokens becomes two texts: what tokenizers are known to disagree on."""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd"

_SPECIAL = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|</?s>|<(?:pad|unk|bos|eos|end_of_turn)>|\[(?:PAD|UNK)\]"
)


def disagreement(golden: str, candidate: str) -> str | None:
    """Names what parts two decodings of the same tokens; None where it is none of these.

    That is: white space before the text, special tokens shown or dropped, and U+FFFD, which
    stands for the bytes of a character that the tokens split and which some decoders hold back.
    """
    steps = (
        ("white space before the text", str.lstrip),
        ("special tokens shown as text", _without_special),
        ("U+FFFD where the tokens split a character", _without_split),
    )
    named = []
    for name, without in steps:
        left = without(golden), without(candidate)
        if left != (golden, candidate):
            golden, candidate = left
            named.append(name)
        if golden == candidate:
            return " and ".join(named)
    return None


def _without_special(text: str) -> str:
    return _SPECIAL.sub("", text)


def _without_split(text: str) -> str:
    return text.replace(REPLACEMENT, "")
