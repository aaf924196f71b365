"""The faults that ``goldens audit`` injects into the reference: real ones, in the real runner.

Each is a way in which an engine has been wrong. It is put into a loaded `Reference` and taken
out again; digests and fingerprint stay those of the sound one, as they would in an engine
that does not know of its fault.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snapshot.errors import RunError

if TYPE_CHECKING:
    import torch

    from snapshot.runners.reference import Reference


@dataclass(frozen=True)
class Fault:
    """One kind of fault.

    Attributes:
        name, what: for people.
        inject: puts it into a loaded reference for as long as the context lasts.
        adapters: how many adapters a suite needs for it to exist.
    """

    name: str
    what: str
    inject: Callable[[Reference], AbstractContextManager[None]]
    adapters: int = 0


@contextlib.contextmanager
def injected(reference: Reference, name: str | None) -> Iterator[None]:
    """The reference with a fault in it; with none where `name` is None."""
    if name is None:
        yield
        return
    with FAULTS[name].inject(reference):
        yield


# ----------------------------------------------------------------------- adapters


@contextlib.contextmanager
def _routed(reference: Reference, change: Callable[[list[str]], list[str]]) -> Iterator[None]:
    """Other rows' adapters than those that were asked for."""
    sound = reference.routes
    names = [name for name in sound if name is not None]
    routes: dict[str | None, str] = {None: sound[None]}
    routes |= dict(zip(names, change([sound[name] for name in names]), strict=True))
    reference.routes = routes
    try:
        yield
    finally:
        reference.routes = sound


def _dropped(reference: Reference) -> AbstractContextManager[None]:
    return _routed(reference, lambda names: [reference.routes[None]] * len(names))


def _swapped(reference: Reference) -> AbstractContextManager[None]:
    return _routed(reference, lambda names: [*names[1:], names[0]])


@contextlib.contextmanager
def _scaled(reference: Reference, factor: float, start: float = 0.0) -> Iterator[None]:
    """Every adapter at `factor` of its strength, from the layer at `start` of them on."""
    layers = _lora_layers(reference)
    layers = layers[int(len(layers) * start) :]
    sound = [dict(layer.scaling) for layer in layers]
    for layer in layers:
        for name in layer.scaling:
            layer.scaling[name] *= factor
    try:
        yield
    finally:
        for layer, scaling in zip(layers, sound, strict=True):
            layer.scaling.update(scaling)


@contextlib.contextmanager
def _truncated(reference: Reference) -> Iterator[None]:
    """Only the first half of each adapter's rank (rounded down) is read."""
    weights = [part.weight for layer in _lora_layers(reference) for part in layer.lora_A.values()]
    with _restored(weights):
        for weight in weights:
            weight.data[weight.shape[0] // 2 :] = 0
        yield


def _lora_layers(reference: Reference) -> list[Any]:
    return [module for module in reference.model.modules() if hasattr(module, "lora_A")]


# -------------------------------------------------------------------------- model


@contextlib.contextmanager
def _rope(reference: Reference, factor: float) -> Iterator[None]:
    """Every rotary frequency times `factor`."""
    found = [module for module in reference.model.modules() if hasattr(module, "inv_freq")]
    if not found:
        raise RunError("the fault cannot be injected: the model has no rotary embedding")
    sound = [module.inv_freq for module in found]
    for module in found:
        module.inv_freq = module.inv_freq * factor
    try:
        yield
    finally:
        for module, frequencies in zip(found, sound, strict=True):
            module.inv_freq = frequencies


@contextlib.contextmanager
def _quantized(reference: Reference, bits: int) -> Iterator[None]:
    """Linear weights rounded to symmetric integers, one scale an output channel.

    The head and the adapters stay as they are, as is usual where weights are quantised.
    """
    from torch import nn

    head = reference.model.get_output_embeddings()
    weights = [
        module.weight
        for name, module in reference.model.named_modules()
        if isinstance(module, nn.Linear) and "lora_" not in name and module is not head
    ]
    levels = 2 ** (bits - 1) - 1
    with _restored(weights):
        for weight in weights:
            scale = weight.data.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / levels
            weight.data = (weight.data / scale).round() * scale
        yield


@contextlib.contextmanager
def _restored(weights: list[torch.nn.Parameter]) -> Iterator[None]:
    """Gives the parameters their values back; copies are kept where the weights are."""
    sound = [weight.data.clone() for weight in weights]
    try:
        yield
    finally:
        for weight, data in zip(weights, sound, strict=True):
            weight.data = data


@contextlib.contextmanager
def _stale_cache(reference: Reference) -> Iterator[None]:
    """Each decode step reads the cache up to one entry short of the newest."""

    def hide(module: Any, args: Any, inputs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        ids = inputs["input_ids"]
        if ids.shape[1] == 1:
            mask = inputs.get("attention_mask")
            if mask is None:  # left out where no row is padded
                cache = inputs["cache" if "cache" in inputs else "past_key_values"]
                mask = ids.new_ones((len(ids), cache.get_seq_length() + 1))
            mask = mask.clone()
            mask[:, -2] = 0  # -1 is the token itself
            inputs = {**inputs, "attention_mask": mask}
        return args, inputs

    model = getattr(reference.model, "get_base_model", lambda: reference.model)()
    handle = model.register_forward_pre_hook(hide, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


_partial = functools.partial

FAULTS = {
    fault.name: fault
    for fault in (
        Fault("adapter-dropped", "no adapter is applied", _dropped, adapters=1),
        Fault("adapters-swapped", "each row runs with the next adapter", _swapped, adapters=2),
        Fault("alpha-1.05", "adapters 5 % too strong", _partial(_scaled, factor=1.05), adapters=1),
        Fault("alpha-2", "adapters twice as strong", _partial(_scaled, factor=2.0), adapters=1),
        Fault("rank-truncated", "half of each adapter's rank is lost", _truncated, adapters=1),
        Fault(
            "base-leak",
            "the base answers for the adapter in the second half of the layers",
            _partial(_scaled, factor=0.0, start=0.5),
            adapters=1,
        ),
        Fault("rope-1pct", "rotary frequencies 1 % too high", _partial(_rope, factor=1.01)),
        Fault("int8-weights", "weights rounded to 8 bits", _partial(_quantized, bits=8)),
        Fault("int4-weights", "weights rounded to 4 bits", _partial(_quantized, bits=4)),
        Fault("kv-off-by-one", "the newest cache entry is not read", _stale_cache),
    )
}
"""By name."""
