"""Compares two trees of goldens: reads what differs, and what a new golden is shown beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from snapshot.changes import (
    Changes,
    EnvironmentChange,
    GoldenChange,
    Group,
    Reach,
    environment_change,
    golden_change,
)
from snapshot.errors import ConfigError, DamagedGolden, StoreError, UsageError
from snapshot.fingerprint import differences
from snapshot.loosening import policy_changes
from snapshot.model import Golden, Identity, RecordedFingerprint
from snapshot.policy_change import Ground
from snapshot.resolve import resolve
from snapshot.store import fingerprintfile
from snapshot.store.check import SUFFIX as GOLDEN_SUFFIX
from snapshot.tree import Place, Tree, environment_of_path, place_of


def compare(base: Tree, head: Tree) -> Changes:
    """The changes from `base` to `head`."""
    return _Comparison(base, head).changes()


class _Comparison:
    """One comparison of two trees: reads what differs, and what it is held beside."""

    def __init__(self, base: Tree, head: Tree) -> None:
        self._base, self._head = base, head
        self._problems: list[StoreError | ConfigError] = []
        self._environments = tuple(self._read_environments(tree) for tree in (base, head))

    def changes(self) -> Changes:
        environments = self._environment_changes()
        goldens = self._golden_changes()
        self._problems += self._orphans()
        for tree in (self._base, self._head):
            if isinstance(tree.problem, ConfigError):
                self._problems.append(tree.problem)
        ground = Ground(_places(self._head), self._environments[1])
        policy = policy_changes(self._base.config, self._head.config, ground)
        return Changes(
            base=self._base.label,
            head=self._head.label,
            policy=tuple(policy),
            environments=tuple(environments),
            goldens=tuple(goldens),
            reach=tuple(self._reach(goldens)),
            problems=tuple(self._problems),
        )

    # ----------------------------------------------------------------- environments

    def _read_environments(self, tree: Tree) -> dict[tuple[str, str], RecordedFingerprint]:
        paths = {path: found for path in tree.files if (found := environment_of_path(path))}
        read = {}
        for suite, slug in paths.values():
            try:
                read[suite, slug] = tree.store.read_fingerprint(suite, slug)
            except StoreError as error:
                self._problems.append(error)
        return read

    def _environment_changes(self) -> list[EnvironmentChange]:
        before, after = self._environments
        found = []
        for key in sorted(before.keys() | after.keys()):
            path = f"{key[0]}/{key[1]}/{fingerprintfile.NAME}"
            damaged = any(
                path in tree.files and key not in read
                for tree, read in zip((self._base, self._head), self._environments, strict=True)
            )
            change = None if damaged else environment_change(before.get(key), after.get(key))
            if change is not None and change.group is Group.CREATE:
                change = self._beside_another(change, after[key])
            if change is not None:
                found.append(change)
        return found

    def _orphans(self) -> Iterator[StoreError]:
        """Goldens whose environment is not a file there: nobody can be held to them."""
        tree = self._head
        known = {found for path in tree.files if (found := environment_of_path(path))}
        for suite, slug in sorted({place[:2] for place in _places(tree)} - known):
            yield DamagedGolden(
                f"goldens lie here without their {fingerprintfile.NAME}",
                where=f"{tree.label}: {suite}/{slug}",
                hint="restore it from git, or remove the folder; goldens check",
            )

    # ---------------------------------------------------------------------- goldens

    def _golden_changes(self) -> list[GoldenChange]:
        old, new = self._base.files, self._head.files
        changed = {p: place for p in old.keys() | new.keys() if (place := place_of(p))}
        changed = {p: place for p, place in changed.items() if old.get(p) != new.get(p)}
        beside = {place: self._beside(place) for p, place in changed.items() if p not in old}
        found = []
        for path, place in sorted(changed.items()):
            slug = beside.get(place)
            origin = place._replace(slug=slug) if slug else place
            before = self._read(self._base, origin) if slug or path in old else None
            after = self._read(self._head, place) if path in new else None
            if isinstance(before, StoreError) or isinstance(after, StoreError):
                self._problems += [e for e in (before, after) if isinstance(e, StoreError)]
                continue
            change = golden_change(place, before, after, slug if before else None)
            if change is not None:
                found.append(change)
        return found

    def _read(self, tree: Tree, place: Place) -> Golden | StoreError:
        try:
            return tree.store.read(*place)
        except StoreError as error:
            return error

    def _beside_another(
        self, change: EnvironmentChange, recorded: RecordedFingerprint
    ) -> EnvironmentChange:
        """A new environment with what differs in it from the one that it is shown beside."""
        known = {slug for suite, slug in self._environments[0] if suite == change.suite}
        slug = self._nearest(change.suite, recorded, known)
        if slug is None:
            return change
        other = self._environments[0][change.suite, slug].fingerprint
        said = [str(difference) for difference in differences(other, recorded.fingerprint)]
        return replace(change, differences=(f"beside {slug}:", *said))

    def _beside(self, place: Place) -> str | None:
        """The environment whose golden a new one is shown beside."""
        recorded = self._environments[1].get((place.suite, place.slug))
        if recorded is None or (place.suite, place.slug) in self._environments[0]:
            return None
        having = {
            slug
            for suite, slug in self._environments[0]
            if suite == place.suite and _path(place._replace(slug=slug)) in self._base.files
        }
        return self._nearest(place.suite, recorded, having)

    def _nearest(self, suite: str, recorded: RecordedFingerprint, slugs: set[str]) -> str | None:
        """Of these environments the declared parent, or the one that is most alike. Showing
        compares; it does not judge."""
        parent = self._parent(suite, recorded)
        if parent in slugs:
            return parent
        identity = recorded.fingerprint.identity
        others = [self._environments[0][suite, slug].fingerprint.identity for slug in slugs]
        alike = [other for other in others if _shape(other) == _shape(identity)]
        ranked = sorted(alike, key=lambda o: (_likeness(o, identity), o.slug), reverse=True)
        return ranked[0].slug if ranked else None

    def _parent(self, suite: str, recorded: RecordedFingerprint) -> str | None:
        if self._head.config is None:
            return None
        try:
            return resolve(self._head.config, self._base.store, suite, recorded.fingerprint).slug
        except (UsageError, StoreError):
            return None

    # ------------------------------------------------------------------------ reach

    def _reach(self, goldens: Sequence[GoldenChange]) -> list[Reach]:
        totals = Counter(place[:3] for place in _places(self._head))
        counts: dict[tuple[str, str, str], Counter[Group]] = {}
        for change in goldens:
            counts.setdefault(change.place[:3], Counter())[change.group] += 1
        found = []
        for key in sorted(totals.keys() | counts.keys()):
            suite, slug, subject = key
            recorded = self._environments[1].get((suite, slug)) or self._environments[0].get(
                (suite, slug)
            )
            identity = recorded.fingerprint.identity if recorded else None
            found.append(
                Reach(suite, slug, subject, identity, totals[key], dict(counts.get(key, {})))
            )
        return found


def _places(tree: Tree) -> list[Place]:
    return [place for path in sorted(tree.files) if (place := place_of(path))]


def _path(place: Place) -> str:
    return f"{place}{GOLDEN_SUFFIX}"


def _likeness(one: Identity, other: Identity) -> int:
    names = ("arch", "runtime", "torch", "triton")
    return sum(getattr(one, name) == getattr(other, name) for name in names)


def _shape(identity: Identity) -> tuple[str, str, int | None]:
    return identity.backend, identity.dtype, identity.batch_size
