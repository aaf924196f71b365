"""Which recorded environment a run is held to, and why.

The fingerprint's own goldens, or those of an environment it declares to inherit from; never
the nearest one, never a default.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from snapshot.config import Config, Environment
from snapshot.errors import StoreError, UsageError
from snapshot.model import Fingerprint, Identity
from snapshot.store import Store

_FIELDS = ("arch", "runtime", "torch", "triton", "dtype", "batch_size", "backend")
_THREADS = re.compile(r"(.+)-t([0-9]+)")  # the end of a CPU's arch


@dataclass(frozen=True)
class Baseline:
    """Where the goldens of a run lie.

    Attributes:
        identity: the recorded fingerprint's; None where there is none.
        how: one phrase: why this one, or what was looked for, and what differs in one thing.
        exact: whether it is this environment's own, neither inherited nor asked for by slug.
        recorded: slugs of what is recorded for the suite instead, where there is none.
    """

    identity: Identity | None
    how: str
    exact: bool = False
    recorded: tuple[str, ...] = ()

    @property
    def slug(self) -> str | None:
        return None if self.identity is None else self.identity.slug

    @property
    def full(self) -> str:
        """How, and what is recorded instead; for a place that says it once."""
        return self.how if self.identity is not None else f"{self.how}; {self.instead}"

    @property
    def instead(self) -> str:
        """What is recorded for the suite."""
        return f"recorded for this suite: {', '.join(self.recorded) or 'nothing yet'}"


@dataclass(frozen=True)
class Shape:
    """What must be equal even where an environment is inherited; None: not known."""

    dtype: str | None
    batch_size: int | None

    def fits(self, identity: Identity) -> bool:
        """Whether a recorded fingerprint has all that is known."""
        same_dtype = self.dtype in (None, identity.dtype)
        return same_dtype and self.batch_size in (None, identity.batch_size)

    def __str__(self) -> str:
        known = {"dtype": self.dtype, "batch size": self.batch_size}
        return ", ".join(f"{name} {value}" for name, value in known.items() if value is not None)


def environment_of(config: Config, here: Fingerprint) -> Environment | None:
    """The declared environment that a fingerprint belongs to, if any.

    Raises:
        UsageError: more than one matches.
    """
    matching = [e for e in config.environments.values() if e.match.holds(here)]
    if len(matching) > 1:
        raise UsageError(
            "two declared environments match",
            where=f"{config.path}: environments",
            expected="one at most: narrow their match",
            got=", ".join(e.name for e in matching),
        )
    return matching[0] if matching else None


def resolve(config: Config, store: Store, suite: str, here: Fingerprint) -> Baseline:
    """The goldens for a run of `suite` in the environment `here`.

    Raises:
        UsageError: an inherited environment fits more than one recorded fingerprint.
        StoreError: a recorded fingerprint cannot be read.
    """
    if here.slug in store.fingerprints(suite):
        return Baseline(here.identity, "recorded in this environment", exact=True)
    environment = environment_of(config, here)
    if environment is not None and environment.inherits is not None:
        parent = config.environments[environment.inherits]
        shape = Shape(here.identity.dtype, here.identity.batch_size)
        found = _search(config, store, suite, parent, shape, [environment.name])
        if found is not None:
            return found
    return _nothing(store, suite, here.slug, _neighbour(store, suite, here.identity))


def named_environment(
    config: Config, store: Store, suite: str, name: str, shape: Shape
) -> Baseline:
    """The goldens of a declared environment, or of one that it inherits from.

    Raises:
        UsageError: no such environment, or it fits more than one recorded fingerprint.
        StoreError: a recorded fingerprint cannot be read.
    """
    if name not in config.environments:
        known = ", ".join(config.environments) or "none is declared"
        raise UsageError(
            "no such environment", where=f"{config.path}: environments", expected=known, got=name
        )
    found = _search(config, store, suite, config.environments[name], shape, [])
    return found or _nothing(store, suite, f"environment {name}")


def against(store: Store, suite: str, slug: str, shape: Shape | None = None) -> Baseline:
    """The goldens of the recorded fingerprint that the user names.

    Args:
        shape: what the user says of it beside; None where that is about the run.

    Raises:
        UsageError: it was not recorded for this suite, or has another shape.
        StoreError: it cannot be read.
    """
    recorded = store.fingerprints(suite)
    if slug not in recorded:
        close = difflib.get_close_matches(slug, recorded, n=1)
        listed = f"recorded: {', '.join(recorded)}" if recorded else "nothing is recorded"
        raise UsageError(
            "this fingerprint was not recorded",
            where=str(store.root / suite),
            expected=f"{close[0]}? ({listed})" if close else listed,
            got=slug,
        )
    identity = store.read_fingerprint(suite, slug).fingerprint.identity
    if shape is not None and not shape.fits(identity):
        raise UsageError(
            "--dtype or --batch-size contradicts --against",
            where="the command line",
            expected=f"dtype {identity.dtype}, batch size {identity.batch_size}, as in {slug}",
            got=str(shape),
            hint="give --against alone",
        )
    return Baseline(identity, "asked for with --against")


def _search(
    config: Config,
    store: Store,
    suite: str,
    environment: Environment,
    shape: Shape,
    path: list[str],
) -> Baseline | None:
    """The first environment of an inheritance chain that has goldens of the right shape."""
    path = [*path, environment.name]
    identities = [
        recorded.fingerprint.identity
        for recorded in (store.read_fingerprint(suite, slug) for slug in store.fingerprints(suite))
        if environment.match.holds(recorded.fingerprint)
    ]
    fits = [identity for identity in identities if shape.fits(identity)]
    if len(fits) > 1:
        slugs = [identity.slug for identity in fits]
        raise UsageError(
            f"the environment {environment.name} fits several recorded fingerprints",
            where=f"{config.path}: environments.{environment.name}.match",
            expected="one: narrow its match, or give --dtype and --batch-size",
            got=", ".join(slugs),
            hint=f"goldens verify --against {slugs[0]}",
        )
    if fits:
        if len(path) == 1:
            return Baseline(fits[0], f"environment {environment.name}", exact=True)
        how = f"inherited: {' -> '.join(path)}, not this environment's own"
        return Baseline(fits[0], how)
    if environment.inherits is None:
        return None
    parent = config.environments[environment.inherits]
    return _search(config, store, suite, parent, shape, path)


def _nothing(store: Store, suite: str, wanted: str, neighbour: str | None = None) -> Baseline:
    how = f"looked for {wanted}" + (f"; {neighbour}" if neighbour else "")
    return Baseline(None, how, recorded=tuple(store.fingerprints(suite)))


def _neighbour(store: Store, suite: str, here: Identity) -> str | None:
    """The recorded environment that differs in one thing only, and in what. Nothing is ever
    held to it: it says what to change, here or in the recording."""
    found: list[tuple[int, str]] = []
    for slug in store.fingerprints(suite):
        try:
            other = store.read_fingerprint(suite, slug).fingerprint.identity
        except StoreError:  # `check` reports it
            continue
        differing = [name for name in _FIELDS if getattr(here, name) != getattr(other, name)]
        if len(differing) == 1:
            (name,) = differing
            there, now = getattr(other, name), getattr(here, name)
            said = f"{slug} differs in one thing, {_change(name, there, now)}"
            found.append((_FIELDS.index(name), said))
    return min(found)[1] if found else None


def _change(name: str, there: str | int | None, here: str | int | None) -> str:
    if name == "arch":
        sides = [_THREADS.fullmatch(str(side)) for side in (there, here)]
        if sides[0] and sides[1] and sides[0][1] == sides[1][1]:
            there, here = sides[0][2], sides[1][2]
            return f"its threads: {there} there, {here} here (OMP_NUM_THREADS={there})"
    return f"its {name.replace('_', ' ')}: {there} there, {here} here"
