"""Version numbers as accelerator stacks write them, and their order.

`packaging` is right about public versions and specifiers, and is used for both. It is
wrong, or refuses, where vendors leave the standard: local builds compare as text there
(``+rocm7.15`` above ``+rocm10.1``), and ``6.4.43482-0f2d60242`` is not a version at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion
from packaging.version import Version as PublicVersion

_LONGEST = 200  # nothing longer is a version; bounds regular expressions and int()

# "HIP version: 7.1.25421-32f9fa6ca5", "6.4.43482-0f2d60242"
_VENDOR = re.compile(
    r"(?:[a-z]+ version:\s*)?v?(\d+(?:\.\d+)*)(?:[-_~+](.*))?", re.ASCII | re.DOTALL | re.I
)
# ROCm's own "6.4.1-83": a build number, where packaging would see a post-release
_BUILD_NUMBER = re.compile(r"\d+(?:\.\d+)*-\d", re.ASCII)
_NAMED = re.compile(r"(git|[a-z]*)(.*)", re.ASCII | re.DOTALL)
_LEADING_NUMBERS = re.compile(r"\d+(?:\.\d+)*(?=[-._])", re.ASCII)
_CLAUSE = re.compile(r"(==|!=|~=|>=|<=|>|<)?\s*(\d\S*)", re.ASCII)
_OPERATORS = "==, !=, ~=, >=, <=, > or <"

_Local: TypeAlias = tuple[bool, str, PublicVersion, str]
_ZERO = PublicVersion("0")
_NO_LOCAL: _Local = (False, "", _ZERO, "")


@dataclass(frozen=True, order=True)
class Version:
    """A version with a total, numeric order; a local build sorts above the same without one.

    Attributes:
        public: what comes before the local part, as `packaging` understands it.
        local: the local part taken apart: is there one, its name, its number, the rest.
        raw: the text as it was given; it takes no part in comparisons.
    """

    public: PublicVersion
    local: _Local = _NO_LOCAL
    raw: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.raw


def parse(text: object) -> Version | None:
    """Read a version; None, never an exception, for what is not one."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return None
    return _parse(text)


@lru_cache(maxsize=512)
def _parse(text: str) -> Version | None:
    stripped = text.strip()
    if not _BUILD_NUMBER.match(stripped):
        number, _, local = stripped.partition("+")
        try:
            return Version(PublicVersion(number), _local(local), text)
        except InvalidVersion:
            pass  # perhaps a vendor's own form
    vendor = _VENDOR.fullmatch(stripped)
    if vendor is None:
        return None
    return Version(PublicVersion(vendor[1]), _local(vendor[2] or ""), text)


def _local(text: str) -> _Local:
    """``rocm10.1.0a20260821`` -> rocm, 10.1.0a20260821; ``gitabc1234`` -> git, abc1234."""
    if not text:
        return _NO_LOCAL
    named = _NAMED.fullmatch(text.lower())
    assert named is not None  # every text has a name, perhaps an empty one, and a rest
    name, rest = named[1], named[2]
    if name == "git":
        return (True, name, _ZERO, rest)
    try:
        return (True, name, PublicVersion(rest), "")
    except InvalidVersion:
        numbers = _LEADING_NUMBERS.match(rest)
    if numbers is None:
        return (True, name, _ZERO, rest)
    return (True, name, PublicVersion(numbers[0]), rest[numbers.end() :])


def major_minor(text: object) -> str | None:
    """``7.2`` of 7.2.26015; None for what is not a version."""
    version = parse(text)
    return None if version is None else f"{version.public.major}.{version.public.minor}"


def local_runtime(text: object) -> tuple[str, str | None] | None:
    """The runtime that a build names in its local part, with its major.minor.

    ``2.11.0+rocm10.0`` -> rocm, 10.0; ``+cu130`` -> cuda, 13.0; ``+cpu`` -> cpu, None.
    None where there is no local part, or one that is not understood: then nothing may
    be concluded from it.
    """
    version = parse(text)
    if version is None or not version.local[0]:
        return None
    _, name, number, _ = version.local
    if name in ("cpu", "xpu"):
        return (name, None)
    digits = str(number.major) if len(number.release) == 1 else None
    if name == "cu" and digits is not None and len(digits) == 3:
        return ("cuda", f"{digits[:2]}.{digits[2]}")
    if name == "rocm" and digits is not None and len(digits) == 3:
        return ("rocm", f"{digits[0]}.{digits[1]}")  # rocm624 is 6.2.4
    if name == "rocm" and digits is None:
        return ("rocm", f"{number.major}.{number.minor}")
    return None


def matches(version_text: object, specifier: str) -> bool:
    """Whether a version satisfies every clause of a specifier.

    Pre-releases count as versions. The local part is ignored unless an ``==`` or ``!=``
    clause names one. A clause without an operator is a prefix: ``10`` is ``==10.*``.
    What cannot be parsed matches nothing, ``!=`` included.

    Raises:
        ValueError: the specifier is not one (see `check_specifier`).
    """
    clauses = _clauses(specifier)
    version = parse(version_text)
    return version is not None and all(clause.holds(version) for clause in clauses)


def check_specifier(text: str) -> None:
    """Raise ValueError, saying what is wrong, unless `text` is a specifier."""
    _clauses(text)


@dataclass(frozen=True)
class _Clause:
    public: SpecifierSet
    local: _Local
    negated: bool

    def holds(self, version: Version) -> bool:
        if not self.local[0]:
            return self.public.contains(version.public, prereleases=True)
        equal = self.public.contains(version.public, prereleases=True)
        return (equal and version.local == self.local) != self.negated


@lru_cache(maxsize=256)
def _clauses(text: str) -> tuple[_Clause, ...]:
    return tuple(_clause(part.strip(), text) for part in text.split(","))


def _clause(part: str, whole: str) -> _Clause:
    if not part:
        raise ValueError(f"{whole!r} has an empty clause" if whole.strip() else "it is empty")
    found = _CLAUSE.fullmatch(part)
    if found is None:
        raise ValueError(f"{part!r} is not an operator ({_OPERATORS}) and one version")
    operator, operand = found[1], found[2]
    number, plus, local = operand.partition("+")
    if plus and operator not in ("==", "!="):
        raise ValueError(f"{part!r}: a local build can only be compared with == or !=")
    if operator is None:
        operator, number = "==", number.removesuffix(".*") + ".*"
    negated = operator == "!=" and bool(plus)
    try:
        public = SpecifierSet(f"{'==' if negated else operator}{number}")
    except InvalidSpecifier:
        raise ValueError(f"{part!r} is not an operator ({_OPERATORS}) and a version") from None
    if plus and (number.endswith("*") or not local):
        raise ValueError(f"{part!r}: a local build belongs to one whole version")
    return _Clause(public, _local(local), negated)
