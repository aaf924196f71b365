"""Names that are safe and distinct on every file system, made from content alone.

Windows and macOS fold case, macOS normalises Unicode, Windows reserves device names and
drops trailing dots. A name that would suffer is replaced by a readable slug and eight hex
digits of the original's sha256, so two different names never share a file. That they truly
do not is checked by `check_distinct` on every platform, Linux included.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

from snapshot.errors import ConfigError
from snapshot.model import BASE

_SLUG_LENGTH = 40
_KEPT = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_COMPONENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def safe_name(name: str) -> str:
    """A lower-case ASCII file name for `name`, the same one on every platform.

    A name that is safe already is kept. Any other becomes ``<slug>-<8 hex>``, the digits
    those of its sha256, so that distinct names stay distinct. Applying it twice changes
    nothing.
    """
    if _KEPT.fullmatch(name) and is_safe_component(name):
        return name
    # A dot would let a device name through: Windows takes "con.txt-1a2b3c4d" for CON.
    slug = re.sub(r"[^a-z0-9_]+", "-", _ascii(name)).strip("-_")[:_SLUG_LENGTH].rstrip("-_")
    return f"{slug or 'name'}-{_short_digest(name)}"


@lru_cache(maxsize=4096)
def is_safe_component(name: str) -> bool:
    """Whether `name` can be one folder or file name of a key on every file system.

    Upper case is allowed, since kernel keys use it; keys that differ only in case are for
    `check_distinct` to refuse.
    """
    return (
        _COMPONENT.fullmatch(name) is not None
        and not name.endswith(".")
        and _DEVICE.fullmatch(name) is None
    )


def prompt_slug(text: str) -> str:
    """The first words of a prompt as a slug of at most 40 characters, cut at a word."""
    slug = ""
    for word in re.findall(r"[a-z0-9]+", _ascii(text)):
        longer = f"{slug}-{word}" if slug else word
        if len(longer) > _SLUG_LENGTH:
            break
        slug = longer
    else:
        return slug or "prompt"
    return slug or word[:_SLUG_LENGTH]


def case_key(adapter: str | None, prompt: str) -> str:
    """The key of a generation case: ``<adapter or base>/<prompt slug>-<8 hex>``.

    Raises:
        ConfigError: an adapter has the name that rows without one go by.
    """
    if adapter is not None and safe_name(adapter) == BASE:
        raise ConfigError(
            f"an adapter cannot be called {BASE!r}: rows without an adapter go by that name",
            where=f"adapter {adapter!r}",
            hint="give the adapter another name in goldens.toml",
        )
    folder = BASE if adapter is None else safe_name(adapter)
    return f"{folder}/{prompt_slug(prompt)}-{_short_digest(prompt)}"


def check_distinct(keys: Iterable[str], path_of: Callable[[str], str] | None = None) -> None:
    """Refuse keys of which two would share one file on some file system.

    Args:
        keys: case keys, or any names that `path_of` turns into paths; a key given twice
            is a collision too.
        path_of: how a name becomes a path (`safe_name`); None where keys are paths already.

    Raises:
        ConfigError: naming both keys and the path that they share.
    """
    seen: dict[str, str] = {}
    for key in keys:
        path = key if path_of is None else path_of(key)
        folded = fold(path)
        other = seen.get(folded)
        if other is not None:
            raise ConfigError(
                "two names would share one file on some file systems",
                where=f"{other!r} and {key!r}",
                expected="names that differ in more than case or Unicode normalisation",
                got=f"the path {path!r} for both",
                hint="rename one of them",
            )
        seen[folded] = key


def fold(path: str) -> str:
    """The form in which a case-insensitive, normalising file system compares paths."""
    folded = unicodedata.normalize("NFD", path).casefold()
    return unicodedata.normalize("NFC", folded)


def _ascii(text: str) -> str:
    # NFD, not NFKD: which characters have compatibility forms grows with Unicode, and a key
    # must not depend on the version of Python that made it.
    return unicodedata.normalize("NFD", text).encode("ascii", "ignore").decode("ascii").lower()


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
