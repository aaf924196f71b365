"""What changed between two states of the goldens, as a reviewer asks it.

Pure: both states were read elsewhere. Grouped by what a reviewer has to think about:

- *loosen*: strictness went down (see `snapshot.loosening`). First and loudest.
- *fix*: what was recorded before is something else now.
- *create*: a golden that did not exist.
- *environment-only*: recorded again with other versions, or the same with other provenance;
  no output changed.
- *trim*: a golden that is gone.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from snapshot.difference import Divergence
from snapshot.errors import ConfigError, StoreError
from snapshot.fingerprint import differences
from snapshot.kernel_model import Computed
from snapshot.loosening import calibration_changes
from snapshot.metrics.movement import Movement, movement
from snapshot.metrics.tokens import divergence
from snapshot.model import Array, Generated, Golden, Identity, RecordedFingerprint
from snapshot.policy_change import PolicyChange
from snapshot.store.blobs import LazyArrays
from snapshot.tree import Place


class Group(enum.Enum):
    """What a reviewer has to think about; see the module."""

    LOOSEN = "loosen"
    FIX = "fix"
    CREATE = "create"
    ENVIRONMENT = "environment-only"
    TRIM = "trim"


@dataclass(frozen=True)
class ArrayChange:
    """One array of a golden that has other bits, or another dtype or shape.

    Attributes:
        name: the array's.
        movement: how far it moved; None where the two do not compare.
        why: why they do not: one side has none, another dtype or shape, or damage.
    """

    name: str
    movement: Movement | None
    why: str | None = None


@dataclass(frozen=True)
class GoldenChange:
    """One golden that was created, changed or removed.

    Attributes:
        place: where it lies.
        group: see `Group`.
        before: what it is compared with; None where there is nothing.
        after: what it is now; None where it is gone.
        beside: slug of the environment that `before` is of, for a golden that is new and is
            compared with another environment's.
        notes: what else changed: the workload, the batch, how it ended, who recorded it.
    """

    place: Place
    group: Group
    before: Golden | None
    after: Golden | None
    beside: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str | None, str | None]:
        """Both texts; None where there is none."""
        before, after = (
            golden.observation.output.text
            if golden and isinstance(golden.observation.output, Generated)
            else None
            for golden in (self.before, self.after)
        )
        return before, after

    @property
    def reworded(self) -> bool:
        """Whether both sides have a text and the two differ."""
        before, after = self.texts
        return None not in (before, after) and before != after

    def divergence(self) -> Divergence | None:
        """Where the tokens part, with the margins there; None where they do not."""
        if self.before is None or self.after is None or not self._generations:
            return None
        return divergence(self.before.observation, self.after.observation)

    def arrays(self) -> list[ArrayChange]:
        """The arrays that changed. Reads their blobs, so it is asked for only what is shown."""
        if self.before is None or self.after is None:
            return []
        old, new = self.before.observation.arrays, self.after.observation.arrays
        found = []
        for name in sorted(old.keys() | new.keys()):
            if name not in new or name not in old:
                found.append(ArrayChange(name, None, "is new" if name in new else "is gone"))
            elif digests(self.before).get(name) != digests(self.after).get(name):
                try:
                    found.append(
                        ArrayChange(name, movement(_glance(old, name), _glance(new, name)))
                    )
                except (ValueError, StoreError) as error:
                    found.append(ArrayChange(name, None, str(error).split("\n", 1)[0]))
        return found

    @property
    def _generations(self) -> bool:
        return all(
            golden is not None and isinstance(golden.observation.output, Generated)
            for golden in (self.before, self.after)
        )


@dataclass(frozen=True)
class EnvironmentChange:
    """One recorded environment that is new, different or gone.

    Attributes:
        group: `Group.LOOSEN` where a noise floor rose.
        differences: what changed in it, in words.
    """

    suite: str
    slug: str
    group: Group
    differences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reach:
    """How much of one environment's goldens of one subject a change touches.

    Attributes:
        identity: of the environment; None where its fingerprint cannot be read.
        goldens: how many there are afterwards.
        counts: changed ones by group.
    """

    suite: str
    slug: str
    subject: str
    identity: Identity | None
    goldens: int
    counts: Mapping[Group, int] = field(default_factory=dict)

    @property
    def touched(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True)
class Changes:
    """Everything between two states.

    Attributes:
        base, head: what the two are called.
        policy: changes of goldens.toml, what loosens first.
        environments, goldens: changed ones, by place.
        reach: the blast radius: every environment and subject, touched or not.
        problems: files of either side that cannot be trusted.
    """

    base: str
    head: str
    policy: tuple[PolicyChange, ...] = ()
    environments: tuple[EnvironmentChange, ...] = ()
    goldens: tuple[GoldenChange, ...] = ()
    reach: tuple[Reach, ...] = ()
    problems: tuple[StoreError | ConfigError, ...] = ()

    @property
    def counts(self) -> dict[Group, int]:
        """How many changes each group has; goldens.toml counts by what it loosens."""
        counted = Counter(change.group for change in self.goldens)
        counted.update(change.group for change in self.environments)
        counted[Group.LOOSEN] += sum(change.loosened for change in self.policy)
        return {group: counted[group] for group in Group}

    @property
    def empty(self) -> bool:
        return not (self.policy or self.environments or self.goldens or self.problems)

    def of(self, group: Group) -> list[GoldenChange]:
        """The goldens of a group; those that say other words first."""
        chosen = [change for change in self.goldens if change.group is group]
        return sorted(chosen, key=lambda change: not change.reworded)

    def exit_code(self, fail_on: Sequence[str] = ()) -> int:
        """1 a file cannot be trusted or a group that was to fail has changes, else 0."""
        counts = self.counts
        asked = any(counts[Group(name)] for name in fail_on)
        return 1 if self.problems or asked else 0


def golden_change(
    place: Place, before: Golden | None, after: Golden | None, beside: str | None = None
) -> GoldenChange | None:
    """What changed of one golden; None where nothing did.

    Args:
        beside: see `GoldenChange`; then the golden is new, and `before` another environment's.
    """
    if before is None or after is None or beside is not None:
        group = Group.TRIM if after is None else Group.CREATE
        notes = _notes(before, after) if beside is not None and before and after else ()
        return GoldenChange(place, group, before, after, beside, notes)
    notes = _notes(before, after)
    if _same_output(before, after):
        return GoldenChange(place, Group.ENVIRONMENT, before, after, None, notes) if notes else None
    return GoldenChange(place, Group.FIX, before, after, None, notes)


def environment_change(
    before: RecordedFingerprint | None, after: RecordedFingerprint | None
) -> EnvironmentChange | None:
    """What changed of one recorded environment; None where nothing did."""
    either = after or before
    assert either is not None
    suite, slug = either.suite, either.fingerprint.slug
    if before is None or after is None:
        group = Group.TRIM if after is None else Group.CREATE
        return EnvironmentChange(suite, slug, group)
    if before == after:
        return None
    changed = [str(d) for d in differences(before.fingerprint, after.fingerprint)]
    rose = calibration_changes(before, after)
    changed += [f"noise floor raised: {words}" for words in rose]
    if before.calibration != after.calibration and not rose:
        changed.append("noise was measured again, no floor rose")
    return EnvironmentChange(
        suite, slug, Group.LOOSEN if rose else Group.ENVIRONMENT, tuple(changed)
    )


def digests(golden: Golden) -> Mapping[str, str]:
    """Name to blob digest of a stored golden's arrays."""
    arrays = golden.observation.arrays
    return arrays.digests if isinstance(arrays, LazyArrays) else {}


def _glance(arrays: Mapping[str, Array], name: str) -> Array:
    return arrays.glance(name) if isinstance(arrays, LazyArrays) else arrays[name]


def _same_output(before: Golden, after: Golden) -> bool:
    a, b = before.observation, after.observation
    return (a.output, a.workload, a.composition) == (b.output, b.workload, b.composition) and (
        digests(before) == digests(after)
    )


def _kernel_notes(before: Computed, after: Computed) -> list[str]:
    """How far each side is from the float64 oracle, and what kind of array it gave."""
    notes = []
    if before.errors != after.errors:
        was, now = before.errors, after.errors
        notes.append(
            f"against the oracle: rel-L2 {was.rel_l2:.3g} → {now.rel_l2:.3g} in row "
            f"{list(now.row)}, max {was.max_abs:.3g} → {now.max_abs:.3g}, ULP p50 "
            f"{was.ulp_p50:.3g} → {now.ulp_p50:.3g}, max {was.ulp_max:,} → {now.ulp_max:,}"
        )
    for found in after.misplaced:
        first = f"{found.value} at {list(found.first)}"
        notes.append(f"non-finite in {found.array}: {found.count:,}, first {first}")
    old, new = before.out, after.out
    if (old.dtype, old.shape) != (new.dtype, new.shape):
        notes.append(f"out was {old.dtype} {list(old.shape)}, is {new.dtype} {list(new.shape)}")
    return notes


def _notes(before: Golden, after: Golden) -> tuple[str, ...]:
    a, b = before.observation, after.observation
    notes = []
    if a.workload != b.workload:
        old, new = a.workload or {}, b.workload or {}
        names = sorted(n for n in old.keys() | new.keys() if old.get(n) != new.get(n))
        notes.append(f"another workload: {', '.join(names)}")
    if a.composition != b.composition:
        notes.append("another batch: the rows it ran with are others")
    if isinstance(a.output, Generated) and isinstance(b.output, Generated):
        if a.output.finish_reason != b.output.finish_reason:
            notes.append(f"ended by {b.output.finish_reason}, before by {a.output.finish_reason}")
        if a.output.text == b.output.text and a.output.token_ids != b.output.token_ids:
            notes.append("the same text from other tokens")
    if isinstance(a.output, Computed) and isinstance(b.output, Computed):
        notes += _kernel_notes(a.output, b.output)
    old, new = before.recorded_by, after.recorded_by
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            notes.append(f"recorded with {name} {new.get(name)}, before {old.get(name)}")
    return tuple(notes)
