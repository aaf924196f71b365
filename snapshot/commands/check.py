"""``goldens check``: reads every file of the store and trusts none."""

from __future__ import annotations

from dataclasses import dataclass

from snapshot.config import Config
from snapshot.errors import StoreError
from snapshot.plan import plans
from snapshot.store import Store


@dataclass(frozen=True)
class Checked:
    """What ``goldens check`` found.

    Attributes:
        goldens: case files that are there.
        damage: files that cannot be trusted.
        unreferenced: blobs that no golden uses; harmless.
    """

    goldens: int
    damage: tuple[StoreError, ...]
    unreferenced: tuple[str, ...]


def check(config: Config) -> Checked:
    """Checks goldens.toml with its prompts and rules, and every file below the store.

    Raises:
        ConfigError: the configuration is wrong.
    """
    plans(config, ())
    store = Store(config.store)
    damage = store.check()
    unreferenced = () if damage else tuple(map(str, store.unreferenced_blobs()))
    goldens = sum(1 for _ in config.store.glob("*/*/*/**/*.json"))
    return Checked(goldens, tuple(damage), unreferenced)
