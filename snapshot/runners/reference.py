"""The reference: transformers + peft, greedy, base and adapters mixed in one batch.

One path is used for every row of a suite with adapters: peft's ``adapter_names``, with
``__base__`` for rows without one. In half precision it differs in bits from
``set_adapter``, so a suite must not use both.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from snapshot.config import Suite
from snapshot.errors import RunError
from snapshot.fingerprint import Readings, build
from snapshot.model import Array, Fingerprint, Generated, GenerationCase, Json, Observation
from snapshot.runners import weights
from snapshot.runners.forcing import Forcing
from snapshot.runners.probe import probe
from snapshot.suite import Group

_NO_ADAPTER = "__base__"


class Reference:
    """A loaded model with its adapters, ready to run groups.

    Args:
        suite: what to load.
        dtype: ``float32``, ``bfloat16`` or ``float16``.

    Attributes:
        fingerprint: the environment it runs in, without a batch size.
        model: the loaded model, with its adapters.
        routes: what peft calls each adapter of the suite, and no adapter (None).

    Raises:
        ConfigError, RunError: the model or an adapter cannot be found or loaded.
    """

    def __init__(self, suite: Suite, dtype: str) -> None:
        self._suite = suite
        readings = probe(device=None if suite.device == "auto" else suite.device)
        self._device = _device(readings)
        model_source = weights.locate(suite.model, suite.root)
        adapter_sources = {
            name: weights.locate(text, suite.root) for name, text in suite.adapters.items()
        }
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self._tokenizer = _load_tokenizer(model_source)
        self.model = _load_model(model_source, dtype, suite.attention)
        self._stop_ids = _stop_ids(self.model)
        # generate() fills what a configuration leaves open from the model's own file: a
        # repetition penalty there would be applied, and not in the engine that is compared.
        self.model.generation_config = self._greedy()
        for name, source in adapter_sources.items():
            self.model = _add_adapter(self.model, name, source)
        self.model = self.model.to(self._device).eval()
        self.routes: Mapping[str | None, str] = {
            None: _NO_ADAPTER,
            **{n: n for n in suite.adapters},
        }
        # The first pass of a process is thrown away: kernels are chosen, compiled and threads
        # started in it, and on a CPU about one first pass in ten gave a row other bits.
        self._warm = False
        self._settings: dict[str, Json] = {
            "decoding": "greedy",
            "max_new_tokens": suite.max_new_tokens,
            "stop_ids": self._stop_ids,
        }
        self._digests = {
            "model": model_source.weights_digest(),
            "config": model_source.config_digest("config.json"),
            "tokenizer": _tokenizer_digest(self._tokenizer),
            "settings": weights.text_digest(repr(sorted(self._settings.items()))),
        }
        self._adapters = {
            name: weights.text_digest(
                source.weights_digest() + source.config_digest("adapter_config.json")
            )
            for name, source in adapter_sources.items()
        }
        self.fingerprint: Fingerprint = build(
            readings,
            dtype=dtype,
            extra={
                "attention": self.model.config._attn_implementation,
                "adapter_path": "peft adapter_names" if adapter_sources else None,
                "adapter_dtype": _adapter_dtype(self.model) if adapter_sources else None,
                "model": model_source.origin,
                "adapters": {name: source.origin for name, source in adapter_sources.items()},
            },
        )

    def run(
        self, group: Group, forced: Mapping[str, Sequence[int]] | None = None
    ) -> tuple[Observation, ...]:
        """Generates one batch.

        Args:
            forced: by case key: tokens that the row is made to say, whatever it would have
                said; the arrays then score them. A row that is not named generates freely.

        Returns:
            One observation a row of `group.rows`, in order; see `Observation` for the arrays.

        Raises:
            RunError: a prompt with no token.
        """
        prompts = [self._tokens(case) for case in group.filled]
        ids, mask = self._pad(prompts)
        adapter = self._adapter_names(group)
        with torch.inference_mode():
            if not self._warm:
                self._prefill(ids, mask, adapter)
                self._warm = True
            prefill = self._prefill(ids, mask, adapter)
            scored = [
                _prompt_logprobs(prefill[row], prompts[row]) for row in range(len(group.rows))
            ]
            del prefill
            out = self.model.generate(
                input_ids=ids, attention_mask=mask, **self._forcing(group, forced, ids), **adapter
            )
            new = out.sequences[:, -len(out.logits) :].tolist()
            return tuple(
                self._observe(
                    group,
                    row,
                    prompts[row],
                    scored[row],
                    new[row],
                    torch.stack([step[row] for step in out.logits]),
                )
                for row in range(len(group.rows))
            )

    def _forcing(
        self, group: Group, forced: Mapping[str, Sequence[int]] | None, ids: torch.Tensor
    ) -> dict[str, list[Forcing]]:
        if not forced:
            return {}
        tokens = [forced.get(case.key, ()) for case in group.filled]
        return {"logits_processor": [Forcing(tokens, ids.shape[1])]}

    def _prefill(
        self, ids: torch.Tensor, mask: torch.Tensor, adapter: dict[str, list[str]]
    ) -> torch.Tensor:
        """Raw logits of the prompts, [B, longest, V]."""
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        logits: torch.Tensor = self.model(
            input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False, **adapter
        ).logits
        return logits

    def _observe(
        self,
        group: Group,
        row: int,
        prompt_ids: list[int],
        prompt_logprobs: Array,
        new_ids: list[int],
        logits: torch.Tensor,
    ) -> Observation:
        case = group.rows[row]
        ids = self._until_stop(new_ids)
        logits = logits[: len(ids)].float()
        return Observation(
            case=case.key,
            output=self._generated(case, prompt_ids, ids),
            arrays={
                "prompt_logprobs": prompt_logprobs,
                **_step_arrays(logits, ids, self._suite.top_logprobs),
            },
            workload=self._workload(case, prompt_ids),
            composition=group.composition(row),
        )

    def _until_stop(self, ids: list[int]) -> list[int]:
        """The tokens up to the first one that stops, which is kept."""
        for step, token in enumerate(ids):
            if token in self._stop_ids:
                return ids[: step + 1]
        return ids

    def _generated(self, case: GenerationCase, prompt: list[int], ids: list[int]) -> Generated:
        """The readable part of a row that said `ids`, which end where it stopped."""
        return Generated(
            text=self._tokenizer.decode(ids, skip_special_tokens=True),
            token_ids=tuple(ids),
            finish_reason="stop" if ids[-1] in self._stop_ids else "length",
            prompt=case.prompt,
            prompt_ids=tuple(prompt),
        )

    def _workload(self, case: GenerationCase, prompt_ids: list[int]) -> Mapping[str, str]:
        workload = {**self._digests, "prompt": weights.ids_digest(prompt_ids)}
        if case.adapter is not None:
            workload["adapter"] = self._adapters[case.adapter]
        return workload

    def _adapter_names(self, group: Group) -> dict[str, list[str]]:
        if not self._suite.adapters:
            return {}
        return {"adapter_names": [self.routes[case.adapter] for case in group.filled]}

    def _tokens(self, case: GenerationCase) -> list[int]:
        ids = self._tokenizer(case.prompt)["input_ids"]
        if not ids:
            raise RunError("the tokenizer gives no token for the prompt", where=case.key)
        return list(ids)

    def _pad(self, prompts: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Left-padded ids and attention mask, int64 [B, longest]."""
        longest = max(map(len, prompts))
        ids = [[self._pad_id] * (longest - len(p)) + p for p in prompts]
        mask = [[0] * (longest - len(p)) + [1] * len(p) for p in prompts]
        return torch.tensor(ids, device=self._device), torch.tensor(mask, device=self._device)

    @property
    def _pad_id(self) -> int:
        pad = self._tokenizer.pad_token_id
        return int(pad) if pad is not None else (self._stop_ids or [0])[0]

    def _greedy(self) -> GenerationConfig:
        return GenerationConfig(
            do_sample=False,
            max_new_tokens=self._suite.max_new_tokens,
            eos_token_id=self._stop_ids or None,
            pad_token_id=self._pad_id,
            output_logits=True,
            return_dict_in_generate=True,
        )


# ---------------------------------------------------------------------- loading


def _device(readings: Readings) -> str:
    """torch's name of where to run. A GPU build that sees no GPU runs nothing unasked."""
    if readings.backend in ("cuda", "rocm", "xpu") and readings.device is None:
        raise RunError(
            "not run: this torch is built for a GPU and sees none",
            where=f"torch {readings.torch}, {readings.backend}",
            hint='make the GPU visible, or set device = "cpu" in the suite',
        )
    return "cuda" if readings.backend == "rocm" else readings.backend  # AMD's are cuda to torch


def _load_tokenizer(source: weights.Source) -> Any:
    return _loading(source, lambda: AutoTokenizer.from_pretrained(source.folder, **_gguf(source)))


def _load_model(source: weights.Source, dtype: str, attention: str | None) -> Any:
    options: dict[str, Any] = {"dtype": getattr(torch, dtype), **_gguf(source)}
    if attention is not None:
        options["attn_implementation"] = attention
    if source.gguf is not None:
        # Packed weights compute in float32 kernels of their own and take no adapter.
        options["quantization_config"] = transformers.GgufConfig(dequantize=True)
    return _loading(source, lambda: AutoModelForCausalLM.from_pretrained(source.folder, **options))


def _add_adapter(model: Any, name: str, source: weights.Source) -> Any:
    from peft import PeftModel

    def add() -> Any:
        if isinstance(model, PeftModel):
            model.load_adapter(str(source.folder), adapter_name=name)
            return model
        return PeftModel.from_pretrained(model, str(source.folder), adapter_name=name)

    return _loading(source, add)


def _loading(source: weights.Source, load: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load()
    except Exception as error:  # transformers and peft raise every kind for a bad folder
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"cannot be loaded: {reason}", where=source.origin) from error


def _gguf(source: weights.Source) -> dict[str, str]:
    return {} if source.gguf is None else {"gguf_file": source.gguf}


def _stop_ids(model: Any) -> list[int]:
    stop = model.generation_config.eos_token_id
    if stop is None:
        stop = model.config.eos_token_id
    return [] if stop is None else [stop] if isinstance(stop, int) else list(stop)


def _adapter_dtype(model: Any) -> str:
    """peft loads adapters in float32 under a half-precision base."""
    names = {str(p.dtype) for n, p in model.named_parameters() if "lora_" in n}
    return ", ".join(sorted(name.removeprefix("torch.") for name in names))


def _tokenizer_digest(tokenizer: Any) -> str:
    """Over the vocabulary: its files change with every library that writes them."""
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return weights.text_digest(repr((vocabulary, sorted(tokenizer.all_special_ids))))


# ---------------------------------------------------------------------- numbers


def _prompt_logprobs(logits: torch.Tensor, prompt: list[int]) -> Array:
    """float32 [P-1]: logprob of each prompt token but the first, from left-padded logits [L, V]."""
    logits = logits[-len(prompt) : -1].float()
    targets = torch.tensor(prompt[1:], device=logits.device)
    return _numpy(_chosen(logits, targets) - logits.logsumexp(-1))


def _step_arrays(logits: torch.Tensor, ids: list[int], k: int) -> dict[str, Array]:
    """Arrays of a generation from its raw logits, float32 [T, V]."""
    total = logits.logsumexp(-1)
    order = _descending(logits, k)
    top = logits.gather(-1, order)
    targets = torch.tensor(ids, device=logits.device)
    return {
        "logprobs": _numpy(_chosen(logits, targets) - total),
        "topk_ids": order.to(torch.int32).cpu().numpy(),
        "topk_logprobs": _numpy(top - total[:, None]),
        "top_logits": _numpy(top[:, :2]),
    }


def _descending(logits: torch.Tensor, k: int) -> torch.Tensor:
    """Indices of the k largest logits, int64 [T, k], ties by lower id.

    `torch.topk` leaves the order of ties open, and half-precision logits tie often: so rank
    by one integer that holds the float's order above the id's.
    """
    bits = (logits + 0.0).view(torch.int32).to(torch.int64)  # + 0.0: -0.0 ranks as 0.0
    ordered = torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    size = logits.shape[-1]
    keys = ordered * size + torch.arange(size - 1, -1, -1, device=logits.device)
    return keys.topk(min(k, size), dim=-1).indices


def _chosen(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return logits.gather(-1, targets[:, None])[:, 0]


def _numpy(tensor: torch.Tensor) -> Array:
    return np.ascontiguousarray(tensor.float().cpu().numpy())
