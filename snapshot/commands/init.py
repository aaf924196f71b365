"""``goldens init``: a commented goldens.toml to start from."""

from __future__ import annotations

from pathlib import Path

from snapshot.config import FILE_NAME
from snapshot.errors import UsageError

PROMPTS = '{"prompt": "The capital of France is"}\n{"prompt": "Write a haiku about the sea."}\n'

TEMPLATE = """\
# What is recorded and verified. Paths are relative to this file.

[store]
path = "goldens"                  # recorded goldens: commit them, review them in pull requests

[suites.generation]
kind = "lora-generation"
model = "HuggingFaceTB/SmolLM2-135M-Instruct"   # hub id, owner/name@revision, folder or GGUF file
prompts = "prompts.jsonl"         # one {"prompt": "..."} a line
dtype = "float32"                 # or "bfloat16", "float16", or a list of them
batch_sizes = [1, 3]              # each is recorded: half precision changes words between them
max_new_tokens = 32
# attention = "eager"             # default: what transformers chooses
# device = "cpu"                  # default: the accelerator that torch was built for

# [suites.generation.adapters]    # each prompt runs with the base model and with every adapter
# wizard = "path/or/hub-id"

# Strict is the default, spelled out:
[suites.generation.tolerance]
text = "equal"                    # or { rouge_l = 0.9, metric = "unicode-lcs" }
logprob = "calibrated"            # the noise measured at recording; or { max = 0.1, rms = 0.02 }

# Loosen in the open: which cases, where, what, why, who, until when.
# [[suites.generation.relax]]
# case = "base/*"
# when = { rocm = ">=10" }
# text = { rouge_l = 0.9, metric = "unicode-lcs" }
# reason = "the reference drifts by one word at batch 1"
# issue = "https://..."
# owner = "@team"
# expires = 2027-03-01

# Decode attention kernels, held to a float64 oracle and to their own bits (extra: kernels):
# [suites.decode]
# kind = "grouped-decode"
# candidates = ["triton", "sdpa"]

# A machine whose fingerprint has no goldens is MISSING, unless it inherits.
# [environments.mi300-rocm10]
# match = { rocm = ">=10,<11", arch = "gfx942" }
# inherits = "mi300-rocm7"
"""


ATTRIBUTES = """\
# Goldens are compared byte by byte, and read by people as `goldens diff` shows them.
*.json text eol=lf linguist-generated
# A blob is named by its content: two branches never change the same one.
*.zst -text -merge diff=goldens linguist-generated
"""


def init(folder: Path) -> list[Path]:
    """Writes goldens.toml, .gitattributes for the goldens and, where there is none, prompts.jsonl.

    Returns:
        The files that were written.

    Raises:
        UsageError: there is a goldens.toml already, or the folder cannot be written.
    """
    try:
        return _write(folder)
    except OSError as error:
        raise UsageError(
            f"cannot be written: {error.strerror}",
            where=str(error.filename or folder),
            hint="goldens init FOLDER, with a folder that you may write",
        ) from None


def _write(folder: Path) -> list[Path]:
    target = folder / FILE_NAME
    if target.exists():
        raise UsageError(
            f"there is a {FILE_NAME} already", where=str(target), hint="goldens status"
        )
    folder.mkdir(parents=True, exist_ok=True)
    target.write_text(TEMPLATE, encoding="utf-8")
    written = [target]
    prompts = folder / "prompts.jsonl"
    if not prompts.exists():
        prompts.write_text(PROMPTS, encoding="utf-8")
        written.append(prompts)
    attributes = folder / "goldens" / ".gitattributes"
    if not attributes.exists():
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text(ATTRIBUTES, encoding="utf-8")
        written.append(attributes)
    return written
