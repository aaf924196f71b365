"""Whether the arrays of an observation are what `Observation` says, before anyone indexes them."""

from __future__ import annotations

from dataclasses import dataclass

from snapshot.model import Observation


class Misshapen(ValueError):
    """An array does not have one entry a token, or not the type of such entries."""


@dataclass(frozen=True)
class _Expected:
    prompt: bool  # one entry a prompt token but the first; else one a generated token
    kinds: str  # numpy's letters for the kinds of dtype; V holds bfloat16
    axes: int


_EXPECTED = {
    "prompt_logprobs": _Expected(prompt=True, kinds="fV", axes=1),
    "logprobs": _Expected(prompt=False, kinds="fV", axes=1),
    "topk_ids": _Expected(prompt=False, kinds="iu", axes=2),
    "topk_logprobs": _Expected(prompt=False, kinds="fV", axes=2),
    "top_logits": _Expected(prompt=False, kinds="fV", axes=2),
}


def require_shape(observation: Observation, side: str) -> None:
    """Checks every array whose name `Observation` describes.

    Args:
        side: whose observation it is, for the message.

    Raises:
        Misshapen: naming the array, what was expected and what was got.
    """
    if not observation.arrays:
        return
    lengths = {True: observation.output.prompt_ids, False: observation.output.token_ids}
    for name, expected in _EXPECTED.items():
        array = observation.arrays.get(name)
        if array is None:
            continue
        if array.dtype.kind not in expected.kinds:
            raise Misshapen(f"{side} {name}: expected numbers of another type, got {array.dtype}")
        if array.ndim != expected.axes:
            got = list(array.shape)
            raise Misshapen(f"{side} {name}: expected {expected.axes} dimension(s), got {got}")
        tokens = lengths[expected.prompt]
        wanted = None if tokens is None else max(len(tokens) - expected.prompt, 0)
        if wanted is not None and len(array) != wanted:
            raise Misshapen(f"{side} {name}: expected {wanted} entries, got {len(array)}")
    ids, logprobs = (observation.arrays.get(name) for name in ("topk_ids", "topk_logprobs"))
    if ids is not None and logprobs is not None and ids.shape != logprobs.shape:
        raise Misshapen(
            f"{side} top-k: expected a logprob for each id, "
            f"got {list(ids.shape)} ids and {list(logprobs.shape)} logprobs"
        )
