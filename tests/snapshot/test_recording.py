"""Goldens for review are what recording would have written, and accepting loses nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from snapshot.commands.review import decide
from snapshot.errors import DamagedGolden
from snapshot.pending import Inbox
from snapshot.recording import Recorded, Target, write_goldens
from snapshot.store import Change, Store
from tests.snapshot.builders import MASSIVE, MOVED, ROCM7, fingerprint, noise, observation

KEYS = ("base/x-1", "wizard/x-1")
QUIET, LOUD = noise(0.0, 0.1), noise(0.0, 0.5)


def write(
    to: Target,
    *keys: str,
    text: str = MASSIVE,
    floors: Any = QUIET,
    whole: bool = False,
    **new: Any,
) -> Recorded:
    rows = [observation(text, case=key) for key in keys]
    here = fingerprint(ROCM7, **new)
    by = {"torch": "1", "transformers": "2"}
    return write_goldens(to, "s", "reference", here, rows, floors, whole=whole, by=by)


def tree(store: Store) -> dict[str, bytes]:
    paths = (path for path in store.root.rglob("*") if path.is_file())
    return {str(path.relative_to(store.root)): path.read_bytes() for path in paths}


@pytest.fixture
def goldens(tmp_path: Path) -> Store:
    store = Store(tmp_path / "goldens")
    write(Target(store), *KEYS, whole=True, driver="1")
    return store


@pytest.mark.parametrize(("keys", "whole"), [(KEYS, True), (KEYS[:1], False)])
def test_accepting_pending_goldens_gives_the_store_that_recording_gives(
    tmp_path: Path, goldens: Store, keys: tuple[str, ...], whole: bool
) -> None:
    direct, pending = Store(tmp_path / "direct"), Store(tmp_path / "pending")
    write(Target(direct), *KEYS, whole=True, driver="1")
    asked: dict[str, Any] = {"text": MOVED, "floors": LOUD, "whole": whole, "driver": "2"}
    assert write(Target(direct), *keys, **asked).changes == dict.fromkeys(keys, Change.UPDATED)
    before = tree(goldens)
    done = write(Target(goldens, pending), *keys, **asked)
    assert done.changes == dict.fromkeys(keys, Change.UPDATED)  # what accepting it does
    assert tree(goldens) == before
    inbox = Inbox(pending.root, goldens)
    names = [item.name for item in inbox.look().items]
    assert len(names) == len(keys) + whole  # a selection says nothing of the environment
    assert not decide(inbox, ["*"], []).problems
    assert tree(goldens) == tree(direct)
    assert not pending.root.exists()


def test_a_new_environment_comes_with_all_that_was_measured(tmp_path: Path) -> None:
    goldens, pending = Store(tmp_path / "goldens"), Store(tmp_path / "pending")
    write(Target(goldens, pending), *KEYS, floors=LOUD, whole=True)
    inbox = Inbox(pending.root, goldens)
    decide(inbox, [KEYS[0]], [])
    assert goldens.read_fingerprint("s", ROCM7.slug).calibration == LOUD
    assert goldens.cases("s", ROCM7.slug, "reference") == [KEYS[0]]
    assert pending.cases("s", ROCM7.slug, "reference") == [KEYS[1]]


def test_noise_that_only_the_goldens_know_stays_known(tmp_path: Path, goldens: Store) -> None:
    """Two pending folders of one environment, each written without the other's measure."""
    slug, pending = ROCM7.slug, Store(tmp_path / "pending")
    before = goldens.read_fingerprint("s", slug)
    kinds = {**QUIET, "triton": {"repeats": {"moved": 0}}}
    goldens.write_fingerprint(dataclasses.replace(before, calibration=kinds))
    pending.write_fingerprint(dataclasses.replace(before, calibration={**noise(0.0, 0.2)}))
    inbox = Inbox(pending.root, goldens)
    (item,) = inbox.look().items
    inbox.accept(item)
    assert goldens.read_fingerprint("s", slug).calibration == {
        **noise(0.0, 0.2),
        "triton": {"repeats": {"moved": 0}},
    }


def test_a_damaged_golden_is_found_before_anything_is_pending(
    tmp_path: Path, goldens: Store
) -> None:
    path = goldens.path("s", ROCM7.slug, "reference", KEYS[0])
    path.write_bytes(path.read_bytes()[:-9])
    to = Target(goldens, Store(tmp_path / "pending"))
    with pytest.raises(DamagedGolden) as error:
        to.check("s")
    assert "git checkout" in str(error.value)
    with pytest.raises(DamagedGolden):
        write(to, KEYS[0], text=MOVED)


def test_damage_in_the_folder_for_review_is_not_in_git(tmp_path: Path, goldens: Store) -> None:
    to = Target(goldens, Store(tmp_path / "pending"))
    write(to, KEYS[0], text=MOVED)
    path = to.written.path("s", ROCM7.slug, "reference", KEYS[0])
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DamagedGolden) as error:
        to.check("s")
    assert "git checkout" not in str(error.value) and "unpack the artifact" in str(error.value)
