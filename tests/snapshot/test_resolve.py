"""C41: a run is held to its own environment's goldens or to a declared parent's, never to others.

Rows of the case: goldens of one CUDA machine must never stand in for a ROCm one, the result says
which baseline was used and why, there is no "nearest" and no default.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from snapshot.commands.status import status
from snapshot.config import Config, load
from snapshot.errors import StoreError, UsageError
from snapshot.model import Identity
from snapshot.report.status import as_json_text, print_status
from snapshot.resolve import Shape, against, environment_of, named_environment, resolve
from snapshot.store import Store
from tests.snapshot.builders import (
    CPU,
    CUDA,
    DAY,
    ROCM7,
    ROCM10,
    SUITE_TOML,
    fingerprint,
    project,
    recorded,
)

ROCM12 = dataclasses.replace(ROCM10, runtime="rocm12.1")
SM89 = dataclasses.replace(CUDA, arch="sm_89")
XPU = Identity("xpu", "pvc", "xpu2025.1", "2.11", "float16", batch_size=1)

ENVIRONMENTS = """
[environments.h100]
match = { backend = "cuda", arch = "sm_90" }

[environments.mi300-rocm7]
match = { rocm = ">=7,<8", arch = "gfx942" }

[environments.mi300-rocm10]
match = { rocm = ">=10,<11", arch = "gfx942" }
inherits = "mi300-rocm7"

[environments.mi300-rocm12]
match = { rocm = ">=12", arch = "gfx942" }
inherits = "mi300-rocm10"
"""


def config(folder: Path, environments: str = ENVIRONMENTS) -> Config:
    return load(project(folder, SUITE_TOML + environments))


def store(config: Config, *identities: Identity) -> Store:
    found = Store(config.store)
    for identity in identities:
        found.write_fingerprint(dataclasses.replace(recorded(identity), suite="s"))
    return found


def test_its_own_goldens_come_first(tmp_path: Path) -> None:
    c = config(tmp_path)
    found = resolve(c, store(c, ROCM7, ROCM10), "s", fingerprint(ROCM10))
    assert (found.identity, found.exact, found.how) == (
        ROCM10,
        True,
        "recorded in this environment",
    )


@pytest.mark.parametrize("here", [ROCM7, ROCM10, ROCM12, SM89, XPU])
def test_a_cuda_golden_is_never_held_against_another_machine(
    tmp_path: Path, here: Identity
) -> None:
    c = config(tmp_path)
    found = resolve(c, store(c, CUDA), "s", fingerprint(here))
    assert found.identity is None and found.slug is None
    assert found.how.startswith(f"looked for {here.slug}")
    assert found.full.endswith(f"; recorded for this suite: {CUDA.slug}")


def test_there_is_no_nearest_version(tmp_path: Path) -> None:
    c = config(tmp_path, environments="")
    near = dataclasses.replace(ROCM10, runtime="rocm10.1")
    assert resolve(c, store(c, ROCM10), "s", fingerprint(near)).identity is None


@pytest.mark.parametrize("change", [{"dtype": "float32"}, {"batch_size": 3}])
def test_another_dtype_or_batch_size_is_another_environment(
    tmp_path: Path, change: dict[str, object]
) -> None:
    c = config(tmp_path)
    here = dataclasses.replace(ROCM10, **change)  # type: ignore[arg-type]
    assert resolve(c, store(c, ROCM7), "s", fingerprint(here)).identity is None


def test_an_environment_inherits_only_where_it_says_so(tmp_path: Path) -> None:
    c = config(tmp_path)
    found = resolve(c, store(c, ROCM7, CUDA), "s", fingerprint(ROCM10))
    assert (found.identity, found.exact) == (ROCM7, False)
    assert found.how == "inherited: mi300-rocm10 -> mi300-rocm7, not this environment's own"


def test_inheritance_goes_on_until_something_was_recorded(tmp_path: Path) -> None:
    c = config(tmp_path)
    found = resolve(c, store(c, ROCM7), "s", fingerprint(ROCM12))
    assert found.identity == ROCM7
    assert "mi300-rocm12 -> mi300-rocm10 -> mi300-rocm7" in found.how
    assert resolve(c, store(c, ROCM10), "s", fingerprint(ROCM12)).identity == ROCM10


def test_two_parents_that_fit_are_an_error_and_not_a_choice(tmp_path: Path) -> None:
    c = config(tmp_path)
    both = store(c, ROCM7, dataclasses.replace(ROCM7, runtime="rocm7.1"))
    with pytest.raises(UsageError, match="fits several") as error:
        resolve(c, both, "s", fingerprint(ROCM10))
    assert ROCM7.slug in str(error.value.got)
    assert str(error.value.where).endswith("environments.mi300-rocm7.match")


def test_two_environments_that_match_are_an_error(tmp_path: Path) -> None:
    c = config(tmp_path, ENVIRONMENTS + '[environments.any]\nmatch = { backend = "rocm" }\n')
    with pytest.raises(UsageError, match="two declared environments match") as error:
        environment_of(c, fingerprint(ROCM10))
    assert error.value.got == "mi300-rocm10, any"
    assert environment_of(c, fingerprint(CUDA)) == c.environments["h100"]
    assert environment_of(c, fingerprint(XPU)) is None


def test_a_suite_s_goldens_are_its_own(tmp_path: Path) -> None:
    c = config(tmp_path)
    assert resolve(c, store(c, ROCM10), "other", fingerprint(ROCM10)).identity is None


def test_nothing_recorded_is_said(tmp_path: Path) -> None:
    c = config(tmp_path)
    found = resolve(c, Store(c.store), "s", fingerprint(ROCM10))
    assert found.full == f"looked for {ROCM10.slug}; recorded for this suite: nothing yet"


@pytest.mark.parametrize(
    "change, said",
    [
        ({"runtime": "rocm10.1"}, "its runtime: rocm10.0 there, rocm10.1 here"),
        ({"arch": "gfx950"}, "its arch: gfx942 there, gfx950 here"),
        ({"batch_size": 3}, "its batch size: 1 there, 3 here"),
    ],
)
def test_the_one_thing_that_differs_is_named(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    c = config(tmp_path, environments="")
    here = dataclasses.replace(ROCM10, **change)
    found = resolve(c, store(c, ROCM10, CUDA), "s", fingerprint(here))
    assert found.identity is None
    assert found.how == f"looked for {here.slug}; {ROCM10.slug} differs in one thing, {said}"


def test_threads_are_named_with_what_sets_them(tmp_path: Path) -> None:
    """And a machine is nearer than a batch size; a damaged neighbour is none."""
    c = config(tmp_path, environments="")
    there = dataclasses.replace(CPU, arch="avx512-avx512_core_amx-t2")
    here = dataclasses.replace(there, arch="avx512-avx512_core_amx-t1")
    recorded = store(c, there, here.at(8))
    found = resolve(c, recorded, "s", fingerprint(here))
    assert found.how.endswith(
        f"{there.slug} differs in one thing, its threads: 2 there, 1 here (OMP_NUM_THREADS=2)"
    )
    (c.store / "s" / there.slug / "fingerprint.json").write_text("{}")
    assert "its batch size: 8 there, 1 here" in resolve(c, recorded, "s", fingerprint(here)).how


# --------------------------------------------------------------- named by the user


def test_a_named_environment_s_own_goldens_are_its_own(tmp_path: Path) -> None:
    c = config(tmp_path)
    found = named_environment(c, store(c, ROCM7, ROCM10), "s", "mi300-rocm10", Shape(None, None))
    assert (found.identity, found.exact, found.how) == (ROCM10, True, "environment mi300-rocm10")


def test_a_named_environment_inherits_and_says_so(tmp_path: Path) -> None:
    c = config(tmp_path)
    found = named_environment(c, store(c, ROCM7), "s", "mi300-rocm10", Shape("float16", 1))
    assert (found.identity, found.exact) == (ROCM7, False)
    assert found.how.startswith("inherited: mi300-rocm10 -> mi300-rocm7")


def test_a_named_environment_without_goldens_has_none(tmp_path: Path) -> None:
    c = config(tmp_path)
    found = named_environment(c, store(c, ROCM7), "s", "h100", Shape(None, None))
    assert found.identity is None
    assert "looked for environment h100" in found.how


def test_a_named_environment_at_two_batch_sizes_needs_the_shape(tmp_path: Path) -> None:
    c = config(tmp_path)
    two = store(c, ROCM7, ROCM7.at(3))
    with pytest.raises(UsageError, match="fits several"):
        named_environment(c, two, "s", "mi300-rocm7", Shape("float16", None))
    assert named_environment(c, two, "s", "mi300-rocm7", Shape(None, 3)).identity == ROCM7.at(3)


def test_an_unknown_environment_is_an_error_that_lists_the_others(tmp_path: Path) -> None:
    c = config(tmp_path)
    with pytest.raises(UsageError, match="no such environment") as error:
        named_environment(c, Store(c.store), "s", "mi300", Shape(None, None))
    assert "mi300-rocm7" in str(error.value.expected)


def test_against_takes_exactly_what_was_recorded(tmp_path: Path) -> None:
    c = config(tmp_path)
    s = store(c, ROCM7)
    found = against(s, "s", ROCM7.slug)
    assert (found.identity, found.exact) == (ROCM7, False)
    assert found.how == "asked for with --against"
    with pytest.raises(UsageError, match="was not recorded") as error:
        against(s, "s", ROCM7.slug.replace("7.2", "7.3"))
    assert str(error.value.expected).startswith(f"{ROCM7.slug}?")
    with pytest.raises(UsageError, match="was not recorded"):
        against(Store(tmp_path / "empty"), "s", ROCM7.slug)


def test_a_damaged_parent_is_an_error_and_never_skipped(tmp_path: Path) -> None:
    c = config(tmp_path)
    s = store(c, ROCM7)
    path = c.store / "s" / ROCM7.slug / "fingerprint.json"
    path.write_text(path.read_text("utf-8").replace("gfx942", "gfx950", 1), encoding="utf-8")
    with pytest.raises(StoreError):
        resolve(c, s, "s", fingerprint(ROCM10))


# -------------------------------------------------------------------------- status


def test_a_change_of_inherits_shows_for_every_environment_that_resolves_to_it(
    tmp_path: Path,
) -> None:
    c = config(tmp_path)
    store(c, ROCM7, CUDA)
    (before,) = status(c, DAY)
    changed = ENVIRONMENTS.replace('inherits = "mi300-rocm7"', 'inherits = "h100"')
    (after,) = status(config(tmp_path, changed), DAY)
    moved = {n for n, said in before.environments.items() if after.environments[n] != said}
    assert moved == {"mi300-rocm10", "mi300-rocm12"}
    assert all(CUDA.slug in after.environments[name] for name in moved)
    assert "mi300-rocm12 -> mi300-rocm10 -> h100" in after.environments["mi300-rocm12"]


def test_status_shows_what_each_environment_is_held_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    c = config(tmp_path)
    store(c, ROCM7)
    found = status(c, DAY)
    assert found[0].environments["h100"] == "no golden"
    assert len(found[0].recorded[0].missing) == 3
    print_status(found, DAY)
    out = capsys.readouterr().out
    assert f"environment mi300-rocm10: {ROCM7.slug} (inherited" in out
    assert "0 of 3 recorded" in out
    assert '"h100": "no golden"' in as_json_text(found)


def test_status_says_which_fingerprints_an_environment_cannot_choose_between(
    tmp_path: Path,
) -> None:
    c = config(tmp_path)
    store(c, ROCM7, dataclasses.replace(ROCM7, runtime="rocm7.1"))
    said = status(c, DAY)[0].environments["mi300-rocm10"]
    assert "fits several" in said and "rocm7.1" in said
