"""``match`` and ``when``: which environments a condition covers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot.errors import ConfigError
from snapshot.model import Fingerprint, Identity, Json
from snapshot.predicate import FIELDS, Kind, Predicate, Term, facts


def environment(
    backend: str, arch: str, runtime: str | None, torch: str = "2.11", **provenance: Json
) -> Fingerprint:
    return Fingerprint(Identity(backend, arch, runtime, torch, "float16", 3), provenance)


ROCM = environment(
    "rocm",
    "gfx942",
    "rocm10.0",
    rocm="10.0.1",
    hip="7.15.26015-abc",
    torch="2.11.0",
    driver="6.12.12",
    device="AMD Instinct MI300X",
    multiprocessors=304,
    tf32_matmul=False,
    attention="sdpa",
    environment={"HIPBLASLT_TENSILE": "1"},
)
CUDA = environment("cuda", "sm_90", "cuda13.0", cuda="13.0", driver="580.159.04")
CPU = environment("cpu", "avx512-avx512_core_amx-t2", None, threads=2, peft="0.21.2")


@pytest.mark.parametrize(
    ("terms", "rocm", "cuda", "cpu"),
    [
        ({}, True, True, True),
        ({"rocm": ">=10,<11", "arch": "gfx942"}, True, False, False),
        ({"rocm": ">=10", "arch": "gfx90a"}, False, False, False),
        ({"rocm": "10"}, True, False, False),
        ({"rocm": "<10"}, False, False, False),
        ({"hip": ">=7.15"}, True, False, False),
        ({"cuda": ">=12"}, False, True, False),
        ({"cuda": "!=1"}, False, True, False),
        ({"driver": ">=580"}, False, True, False),
        ({"backend": "cpu"}, False, False, True),
        ({"backend": "*"}, True, True, True),
        ({"arch": "GFX94*"}, True, False, False),
        ({"arch": "avx512-*"}, False, False, True),
        ({"device": "*mi300x"}, True, False, False),
        ({"dtype": "float16", "batch_size": 3}, True, True, True),
        ({"batch_size": 1}, False, False, False),
        ({"multiprocessors": ">=100"}, True, False, False),
        ({"multiprocessors": 304}, True, False, False),
        ({"threads": 2}, False, False, True),
        ({"tf32_matmul": False}, True, False, False),
        ({"tf32_matmul": True}, False, False, False),
        ({"attention": "sdpa"}, True, False, False),
        ({"torch": "==2.11.*"}, True, True, True),
        ({"torch": ">=2.12"}, False, False, False),
        ({"environment.HIPBLASLT_TENSILE": "1"}, True, False, False),
        ({"environment.MKL_CBWR": "*"}, False, False, False),
    ],
)
def test_holds(terms: dict[str, Term], rocm: bool, cuda: bool, cpu: bool) -> None:
    """C41: every term must hold, and a field that is not there meets none."""
    predicate = Predicate(terms)
    predicate.validate("goldens.toml: environments.x.match")
    assert [predicate.holds(here) for here in (ROCM, CUDA, CPU)] == [rocm, cuda, cpu]


def test_rocm_is_never_taken_for_cuda() -> None:
    """C41: (rocm, 9.4) is not (cuda, 9): not by the numbers, nor by a stray version."""
    stray = environment("rocm", "gfx942", "rocm9.0", cuda="9.0", cudnn="9.10.2", torch="2.11.0")
    for terms in ({"cuda": "9"}, {"cuda": ">=9"}, {"cudnn": ">=9"}, {"arch": "sm_9*"}):
        assert not Predicate(terms).holds(stray)
    assert not Predicate({"rocm": "9"}).holds(environment("cuda", "sm_90", "cuda9.0", rocm="9.0"))
    assert not Predicate({"rocm": ">=7"}).holds(environment("cpu", "avx2-avx2-t4", None, rocm="7"))


@pytest.mark.parametrize("text", ["unknown", "", "latest", "rocm", None])
def test_unknown_versions_never_match(text: str | None) -> None:
    """C41, C35: an unknown suffix means no baseline; `!=` is no way around it."""
    here = environment("rocm", "gfx942", "rocm_unknown", torch="unknown_12ab34cd", rocm=text)
    for name in ("rocm", "torch"):
        for specifier in (">=0", "!=1", "<9999"):
            assert not Predicate({name: specifier}).holds(here)


def test_local_suffixes_do_not_select() -> None:
    """C35: where only torch's suffix names a ROCm, no condition on rocm holds."""
    here = environment("rocm", "gfx942", "hip7.15", torch="2.11.0+rocm10.0", hip="7.15.1")
    assert not Predicate({"rocm": ">=10"}).holds(here)
    assert Predicate({"hip": "7.15"}).holds(here)


def test_no_device_is_no_environment() -> None:
    """C37: a build without a GPU must not be given the GPU's baseline, nor the CPU's."""
    here = environment("rocm", "nodevice", "rocm10.0", rocm="10.0.1")
    for terms in ({"rocm": ">=10"}, {"backend": "rocm"}, {"arch": "*"}, {"backend": "cpu"}):
        assert not Predicate(terms).holds(here)
    assert Predicate({"rocm": ">=10", "arch": "nodevice"}).holds(here)


def test_identity_stands_in_where_provenance_is_silent() -> None:
    """A recorded or declared environment may hold the identity alone."""
    bare = environment("rocm", "gfx942", "rocm10.0")
    assert Predicate({"rocm": ">=10,<11", "torch": "2.11"}).holds(bare)
    assert facts(bare)["rocm"] == "10.0"


@pytest.mark.parametrize(
    ("terms", "parts"),
    [
        (
            {"rcom": ">=10"},
            ("'rcom' is not a field", "did you mean 'rocm'?", "one of adapter_dtype"),
        ),
        ({"colour": "red"}, ("'colour' is not a field", "environment.VARIABLE")),
        ({"rocm": 10}, ("rocm is a version", '">=10,<11"', "10")),
        ({"rocm": "latest"}, ("'latest' is not an operator", "a version specifier")),
        ({"rocm": True}, ("rocm is a version", "true")),
        ({"arch": ">=gfx90a"}, ("arch is a name", "a glob")),
        ({"arch": ""}, ("arch is a name",)),
        ({"arch": 9}, ("arch is a name",)),
        ({"backend": "rocn"}, ("no backend is called 'rocn'", "did you mean 'rocm'?")),
        ({"batch_size": True}, ("batch_size is a number", "a whole number")),
        ({"batch_size": "many"}, ("batch_size", "a whole number")),
        ({"tf32_matmul": "off"}, ("tf32_matmul is a switch", "true or false")),
        ({"environment.path": "x"}, ("'environment.path' is not a field",)),
    ],
)
def test_errors_name_key_expected_and_got(terms: dict[str, Term], parts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        Predicate({"dtype": "float16", **terms}).validate("goldens.toml: environments.x.match")
    text = str(caught.value)
    assert f"environments.x.match.{next(iter(terms))}" in text
    assert "expected:" in text and "got:" in text
    for part in parts:
        assert part in text


_TERMS = {
    Kind.VERSION: st.sampled_from([">=1", "!=1", "2", "<99"]),
    Kind.NAME: st.sampled_from(["*", "c*"]),  # of a backend too, whose names are known
    Kind.INTEGER: st.one_of(st.integers(0, 400), st.just(">=0")),
    Kind.SWITCH: st.booleans(),
}


@given(st.data(), st.sampled_from(sorted(FIELDS)))
@settings(max_examples=100, deadline=None)
def test_only_known_facts_can_match(data: st.DataObject, name: str) -> None:
    """C41: whatever the condition, it cannot hold on a field that is absent."""
    predicate = Predicate({name: data.draw(_TERMS[FIELDS[name]])})
    predicate.validate("goldens.toml: x")
    for here in (ROCM, CUDA, CPU):
        assert name in facts(here) or not predicate.holds(here)
