from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot.errors import ConfigError
from snapshot.names import case_key, check_distinct, fold, is_safe_component, prompt_slug, safe_name

# Every code point, lone surrogates too.
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=400)


@pytest.mark.parametrize("name", ["wizard", "norwegian", "r8", "a.b_c-d", "0", "x" * 64])
def test_a_safe_name_is_kept(name: str) -> None:
    assert safe_name(name) == name


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Qwen/Qwen3-4B", "qwen-qwen3-4b-"),
        ("con", "con-"),
        ("com1.txt", "com1-txt-"),
        ("aux.", "aux-"),
        ("日本", "name-"),
        ("", "name-"),
        ("..", "name-"),
        ("x" * 300, "x" * 40 + "-"),
        ("straße", "strae-"),
    ],
)
def test_an_unsafe_name_becomes_a_slug_and_a_digest(name: str, slug: str) -> None:
    """C28"""
    assert safe_name(name).startswith(slug)
    assert len(safe_name(name)) == len(slug) + 8


@pytest.mark.parametrize(
    "names",
    [
        ("Qwen/Qwen3-4B", "qwen/qwen3-4b"),
        ("a*b", "a/b"),
        ("straße", "STRASSE"),
        (unicodedata.normalize("NFC", "blåbær"), unicodedata.normalize("NFD", "blåbær")),
        ("con", "CON"),
        ("aux.", "aux"),
        ("x" * 300, "x" * 301),
    ],
)
def test_names_that_some_file_systems_confuse_get_files_of_their_own(
    names: tuple[str, str],
) -> None:
    """C28"""
    assert fold(safe_name(names[0])) != fold(safe_name(names[1]))
    check_distinct(names, safe_name)


@given(ANY_TEXT)
def test_every_name_becomes_safe_and_stays_so(name: str) -> None:
    safe = safe_name(name)
    assert is_safe_component(safe)
    assert safe == safe.lower() and safe.isascii() and len(safe) <= 64
    assert safe_name(safe) == safe


@given(ANY_TEXT, ANY_TEXT)
def test_two_names_share_no_file(one: str, other: str) -> None:
    if one != other:
        assert fold(safe_name(one)) != fold(safe_name(other))


def test_a_literal_name_that_equals_anothers_derived_name_is_refused() -> None:
    """C28"""
    literal = safe_name("A*B")
    with pytest.raises(ConfigError) as error:
        check_distinct(["A*B", literal], safe_name)
    assert "'A*B'" in str(error.value) and repr(literal) in str(error.value)


@pytest.mark.parametrize(
    "keys",
    [
        ("Qwen/Qwen3-4B", "qwen/qwen3-4b"),
        ("straße", "STRASSE"),
        (unicodedata.normalize("NFC", "å"), unicodedata.normalize("NFD", "å")),
        ("base/why-1a2b3c4d", "base/why-1a2b3c4d"),
        ("B2-H16", "b2-H16"),
    ],
)
def test_keys_that_fold_to_one_path_are_refused_naming_both(keys: tuple[str, str]) -> None:
    """C28: on Linux too."""
    with pytest.raises(ConfigError) as error:
        check_distinct(["other", *keys])
    assert repr(keys[0]) in str(error.value) and repr(keys[1]) in str(error.value)


@pytest.mark.parametrize(
    ("prompt", "slug"),
    [
        ("Tell me about alpacas", "tell-me-about-alpacas"),
        ("  Why?!  ", "why"),
        ("蓝莓是什么", "prompt"),
        ("", "prompt"),
        ("def f(x):\n    return x", "def-f-x-return-x"),
        ("Fortell om blåbær på fjellet", "fortell-om-blabr-pa-fjellet"),
        ("a" * 100, "a" * 40),
        (
            "one two three four five six seven eight nine ten",
            "one-two-three-four-five-six-seven-eight",
        ),
    ],
)
def test_a_prompt_slug_is_its_first_words(prompt: str, slug: str) -> None:
    assert prompt_slug(prompt) == slug


@given(ANY_TEXT)
def test_every_prompt_has_a_safe_key(prompt: str) -> None:
    folder, name = case_key("wizard", prompt).split("/")
    assert folder == "wizard"
    assert is_safe_component(name) and len(name) <= 49


def test_a_case_key_names_adapter_and_prompt() -> None:
    assert case_key(None, "Why?").startswith("base/why-")
    assert case_key("wizard", "Why?") != case_key("wizard", "why?")
    assert case_key("Org/Wizard", "Why?").startswith("org-wizard-")


def test_an_adapter_cannot_take_the_name_of_the_base_rows() -> None:
    with pytest.raises(ConfigError, match="base"):
        case_key("base", "Why?")
