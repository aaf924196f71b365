"""Versions of accelerator stacks: numeric order where `packaging` is wrong."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from packaging.version import Version as PackagingVersion

from snapshot.versions import check_specifier, local_runtime, major_minor, matches, parse

_PIECES = ["2.9.0", "2.11.0", "10", "7.15.0", "v3", "1!2", "6.4.43482", "a0", "rc1", ".dev3"]
_PIECES += ["+rocm10.0", "+rocm7.2", "+rocm7.2.0.lw.git7e1940d4", "+cu128", "+cpu", "+gitabc12"]
_PIECES += ["-0f2d60242", "-83", ".post1", "HIP version: ", "unknown", ""]
texts = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4).map("".join)
versions = texts.map(parse).filter(lambda version: version is not None)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2.12.0+rocm7.15.0a20260728", "2.12.0+rocm10.1.0a20260821"),
        ("2.11.0+rocm7.2", "2.11.0+rocm10.0"),
        ("2.9.0a0+gitabc1234", "2.9.0"),
        ("2.12.0+rocm10.1.0a20260821", "2.12.0+rocm10.1.0"),
        ("2.11.0", "2.11.0+rocm10.0"),
        ("2.11.0+cu128", "2.11.0+cu130"),
        ("6.4.43482-0f2d60242", "7.2.26015"),
        ("HIP version: 7.1.25421-32f9fa6ca5", "7.15.0"),
        ("570.86.15", "580.159.04"),
        ("3.9.0", "3.10.0"),
    ],
)
def test_numeric_order(older: str, newer: str) -> None:
    """C35: rocm10 is newer than rocm7, and a pre-release older than its release."""
    first, second = parse(older), parse(newer)
    assert first is not None and second is not None
    assert first < second and not second < first and first != second


def test_packaging_gets_local_builds_wrong() -> None:
    """C35: the reason for an order of our own; delete `versions` if this ever fails."""
    assert PackagingVersion("2.12.0+rocm7.15.0") > PackagingVersion("2.12.0+rocm10.1.0")
    assert not PackagingVersion("2.11.0+rocm10.0") > PackagingVersion("2.11.0+rocm7.2")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2.12.0+rocm10.1.0a20260821", "2.12"),
        ("2.9.0a0+gitabc1234", "2.9"),
        ("6.4.43482-0f2d60242", "6.4"),
        ("7.2.26015", "7.2"),
        ("HIP version: 7.1.25421-32f9fa6ca5", "7.1"),
        ("580.159.04", "580.159"),
        ("13.0", "13.0"),
        ("13", "13.0"),
        (" 3.9.0\n", "3.9"),
        ("v1.2.3", "1.2"),
        ("6.4.1-83", "6.4"),
    ],
)
def test_odd_strings_are_read(text: str, number: str) -> None:
    """C35: each of the forms that stacks really print."""
    assert major_minor(text) == number
    version = parse(text)
    assert version is not None and version.raw == text == str(version)


@pytest.mark.parametrize(
    "text", ["", " ", None, "unknown", "N/A", "rocm", "+", "+rocm7", "1" * 5000, 13.0, "٣.٤", "1 2"]
)
def test_what_is_no_version_is_none(text: object) -> None:
    """C35: never an exception, and never equal to anything."""
    assert parse(text) is None
    assert major_minor(text) is None
    assert local_runtime(text) is None
    assert not matches(text, ">=0") and not matches(text, "!=1")


@pytest.mark.parametrize(
    ("text", "runtime"),
    [
        ("2.11.0+rocm10.0", ("rocm", "10.0")),
        ("2.12.0+rocm10.1.0a20260821", ("rocm", "10.1")),
        ("2.9.1+rocm7.2.0.lw.git7e1940d4", ("rocm", "7.2")),
        ("0.6.3+rocm624", ("rocm", "6.2")),
        ("2.13.0+cu130", ("cuda", "13.0")),
        ("2.11.0+cu128", ("cuda", "12.8")),
        ("2.13.0+cpu", ("cpu", None)),
        ("2.13.0+cpu.cxx11.abi", ("cpu", None)),
        ("2.13.0+xpu", ("xpu", None)),
        ("2.13.0", None),
        ("2.9.0a0+gitabc1234", None),
        ("2.9.0+cu12", None),
        ("2.9.0+rocm", None),
        ("2.9.0+rocm70000", None),
        ("2.9.0+vendor7.2", None),
    ],
)
def test_local_runtime(text: str, runtime: tuple[str, str | None] | None) -> None:
    """C35: an unknown suffix says nothing, rather than something near."""
    assert local_runtime(text) == runtime


@pytest.mark.parametrize(
    ("text", "specifier", "expected"),
    [
        ("10.0", ">=10", True),
        ("10.1.0a20260821", ">=10", True),
        ("10.0.0", ">=10,<11", True),
        ("7.15.0", ">=10", False),
        ("11.0.0a1", "<11", False),
        ("11.0", ">= 10 , < 11", False),
        ("2.11.0+rocm10.0", "==2.11", True),
        ("2.11.1", "==2.11", False),
        ("2.11.1+rocm10.0", "==2.11.*", True),
        ("2.11.1", "2.11", True),
        ("2.110.0", "2.11", False),
        ("10.3", "10", True),
        ("2.12.0", "~=2.11", True),
        ("3.0", "~=2.11", False),
        ("2.11.0", "!=2.11", False),
        ("2.11.0+rocm10.0", "==2.11.0+rocm10.0", True),
        ("2.11.0+rocm7.2", "==2.11.0+rocm10.0", False),
        ("2.11.0+rocm7.2", "!=2.11.0+rocm10.0", True),
        ("2.11.0+rocm10.0", "!=2.11.0+rocm10.0", False),
        ("6.4.43482-0f2d60242", ">6.4,<6.5", True),
        ("6.4.1-83", "==6.4.1", True),
        ("HIP version: 7.1.25421-32f9fa6ca5", "7.1", True),
        ("580.159.04", ">=580.65", True),
        ("2.9.0a0+gitabc1234", ">=2.9", False),
    ],
)
def test_matches(text: str, specifier: str, expected: bool) -> None:
    """C35: specifiers compare releases; a local build only where it is asked for."""
    assert matches(text, specifier) is expected


@pytest.mark.parametrize(
    ("specifier", "reason"),
    [
        ("", "empty"),
        (">=10,", "empty clause"),
        ("=>10", "operator"),
        ("=10", "operator"),
        ("===3", "operator"),
        (">=", "operator"),
        ("latest", "operator"),
        (">=10 11", "operator"),
        (">=10.*", "operator"),
        ("~=2", "operator"),
        (">=10+rocm1", "local build"),
        ("==2.11.*+rocm1", "local build"),
        ("2.11+cpu", "local build"),
    ],
)
def test_bad_specifiers_say_why(specifier: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_specifier(specifier)
    with pytest.raises(ValueError, match=reason):
        matches("1.0", specifier)


@given(st.one_of(st.text(max_size=60), texts))
@example("1.0" + "\x00")
@settings(max_examples=200, deadline=None)
def test_parsing_never_raises(text: str) -> None:
    """C35: any text is a version or None, and answers every question."""
    version = parse(text)
    assert (version is None) == (major_minor(text) is None)
    assert version is None or version == parse(text)
    local_runtime(text)
    matches(text, ">=1,<20")


@given(st.text(max_size=30))
@settings(max_examples=150, deadline=None)
def test_specifiers_fail_only_with_value_error(text: str) -> None:
    try:
        check_specifier(text)
    except ValueError:
        return
    matches("1.0", text)


@given(st.lists(versions, min_size=3, max_size=3))
@settings(max_examples=200, deadline=None)
def test_order_is_total_and_transitive(trio: list[object]) -> None:
    """C35: sorting never depends on where it started."""
    for a, b in itertools.combinations(trio, 2):
        assert (a < b) + (a == b) + (a > b) == 1  # type: ignore[operator]
        assert a != b or hash(a) == hash(b)
    low, middle, high = sorted(trio)  # type: ignore[type-var]
    assert low <= middle <= high and low <= high
