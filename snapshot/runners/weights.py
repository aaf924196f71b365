"""Models and adapters on disk: where they are, and digests of what they hold."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from snapshot.errors import ConfigError, RunError, StoreError
from snapshot.model import Json
from snapshot.store.files import write_atomic

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")
# Pickled weights count where there are no others; training_args.bin is none.
_WEIGHTS = ("*.safetensors", "*model*.bin")
# Keys that say where a file came from or who wrote it, not what it computes.
_VOLATILE = frozenset(
    {
        "_name_or_path",
        "architectures",
        "auto_mapping",
        "base_model_name_or_path",
        "dtype",
        "inference_mode",
        "peft_version",
        "revision",
        "torch_dtype",
        "transformers_version",
    }
)


@dataclass(frozen=True)
class Source:
    """A model or an adapter on this machine.

    Attributes:
        folder: where its files are.
        gguf: the GGUF file in it that is the model; None for safetensors.
        origin: what goldens.toml says, with the resolved commit for a hub id.
    """

    folder: Path
    gguf: str | None
    origin: str

    def weights_digest(self) -> str:
        """sha256 over names and contents of the weight files."""
        if self.gguf is not None:
            return file_digest(self.folder / self.gguf)
        for pattern in _WEIGHTS:
            files = sorted(self.folder.glob(pattern))
            if files:
                return text_digest(json.dumps([[f.name, file_digest(f)] for f in files]))
        raise RunError(
            "no weights in the folder",
            where=str(self.folder),
            expected=" or ".join(_WEIGHTS),
            got=", ".join(sorted(p.name for p in self.folder.iterdir())[:8]) or "an empty folder",
        )

    def config_digest(self, name: str) -> str:
        """sha256 over what the configuration file `name` computes, paths and versions left out."""
        if self.gguf is not None:
            return self.weights_digest()
        try:
            config = json.loads((self.folder / name).read_bytes())
        except (OSError, ValueError) as error:
            raise RunError(f"{name} cannot be read: {error}", where=str(self.folder)) from None
        return text_digest(json.dumps(_stable(config), sort_keys=True))


def locate(text: str, root: Path) -> Source:
    """Finds what goldens.toml calls a model or an adapter.

    Args:
        text: a folder or a GGUF file, relative to `root`, or a hub id ``owner/name`` with an
            optional ``@revision``; an existing path wins.
        root: folder of goldens.toml.

    Raises:
        ConfigError: neither a path nor a hub id.
        RunError: the hub does not have it, or cannot be reached and the cache does not have it.
    """
    path = root / Path(text).expanduser()
    if path.is_dir():
        return Source(path, None, text)
    if path.is_file() and path.suffix == ".gguf":
        return Source(path.parent, path.name, text)
    if not _HUB_ID.fullmatch(text) or text.endswith(".gguf"):
        raise ConfigError(
            "no such model or adapter",
            where=str(path),
            expected="a folder, a .gguf file or a hub id such as owner/name@revision",
            got=text,
            hint="correct model or adapters in goldens.toml, or put the files there",
        )
    return _from_hub(text)


def _from_hub(text: str) -> Source:
    from huggingface_hub import snapshot_download

    name, _, revision = text.partition("@")
    patterns = ["*.safetensors", "*.json", "*.model", "*.jinja", "*.txt"]

    def download(*more: str) -> Path:
        wanted = [*patterns, *more]
        return Path(snapshot_download(name, revision=revision or None, allow_patterns=wanted))

    try:
        folder = download()
        if not any(folder.glob(_WEIGHTS[0])):
            folder = download(_WEIGHTS[1])
    except Exception as error:  # the hub client raises a dozen kinds, offline ones included
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(
            f"cannot be had from the hub: {reason}",
            where=text,
            hint="check the name and revision, or put a folder's path in goldens.toml",
        ) from None
    return Source(folder, None, f"{name}@{folder.name}")


def text_digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def ids_digest(ids: Iterable[int]) -> str:
    """sha256 over token ids."""
    return text_digest(json.dumps(list(ids), separators=(",", ":")))


def file_digest(path: Path) -> str:
    """sha256 of a file, remembered by its path, inode, size and times: weights are large."""
    stat = path.stat()
    # The change time too: a copy that keeps the modification time is another file.
    facts = (path.resolve(), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    memory = _cache_folder() / hashlib.sha256(repr(facts).encode()).hexdigest()
    with contextlib.suppress(OSError, ValueError):
        remembered = memory.read_text(encoding="ascii")
        if _DIGEST.fullmatch(remembered):
            return remembered
    with path.open("rb") as file:
        digest = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
    with contextlib.suppress(OSError, StoreError):  # a read-only home: slower next time
        memory.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(memory, digest.encode())
    return digest


def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "goldens" / "digests"


def _stable(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _stable(entry) for key, entry in value.items() if key not in _VOLATILE}
    if isinstance(value, list):
        return [_stable(entry) for entry in value]
    return value
