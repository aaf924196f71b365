"""The goldens of one suite at one recorded fingerprint, as judging a case needs them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from snapshot.errors import MissingGolden, StoreError
from snapshot.model import BASE, REFERENCE, GenerationCase, Golden, RecordedFingerprint
from snapshot.store import Store


class Shelf:
    """Reads on demand, each file once.

    Args:
        slug: the recorded fingerprint; None for an environment without goldens.
        subject: whose goldens.

    Attributes:
        recorded: its environment; None where it has none or the file is damaged, which
            `Store.check` reports.
    """

    def __init__(
        self,
        store: Store,
        suite: str,
        slug: str | None,
        cases: Sequence[GenerationCase],
        subject: str = REFERENCE,
    ) -> None:
        self._store, self._suite, self._slug, self._subject = store, suite, slug, subject
        self._rows: dict[str, dict[str, str]] = {}
        for case in cases:
            self._rows.setdefault(case.prompt, {})[case.adapter or BASE] = case.key
        self.recorded = environment(store, suite, slug)
        self._read = functools.cache(self._read_golden)

    def golden(self, key: str) -> Golden | StoreError | None:
        """The golden of a case; None where nothing was recorded, an error where it is damaged."""
        return None if self._slug is None else self._read(self._slug, key)

    def prompt_ids(self, key: str) -> tuple[int, ...] | None:
        """The tokens of a case's prompt, as any golden of it has them; None without one."""
        slugs = () if self._slug is None else (self._slug,)
        for slug in (*slugs, *self._store.fingerprints(self._suite)):
            golden = self._read(slug, key)
            if isinstance(golden, Golden) and golden.observation.output.prompt_ids:
                return golden.observation.output.prompt_ids
        return None

    def siblings(self, case: GenerationCase) -> dict[str, Golden]:
        """The readable goldens of the same prompt's other rows, by adapter or ``base``."""
        own = case.adapter or BASE
        return {
            name: golden
            for name, key in self._rows[case.prompt].items()
            if name != own and isinstance(golden := self.golden(key), Golden)
        }

    def variants(self, key: str) -> list[tuple[Golden, RecordedFingerprint]]:
        """The reference's goldens of the same case at this environment's other batch sizes; an
        engine's own batches are not known."""
        if self._subject != REFERENCE:
            return []
        return [
            (golden, recorded)
            for recorded in self._neighbours
            if isinstance(golden := self._read(recorded.fingerprint.slug, key), Golden)
        ]

    @functools.cached_property
    def _neighbours(self) -> list[RecordedFingerprint]:
        if self.recorded is None:
            return []
        identity = self.recorded.fingerprint.identity
        slugs = (s for s in self._store.fingerprints(self._suite) if s != self._slug)
        others = (environment(self._store, self._suite, slug) for slug in slugs)
        return [
            other
            for other in others
            if other is not None and other.fingerprint.identity.at(identity.batch_size) == identity
        ]

    def _read_golden(self, slug: str, key: str) -> Golden | StoreError | None:
        return golden(self._store, self._suite, slug, self._subject, key)


def golden(
    store: Store, suite: str, slug: str | None, subject: str, key: str
) -> Golden[Any] | StoreError | None:
    """The golden of a case; None where nothing was recorded, an error where it is damaged."""
    if slug is None:
        return None
    try:
        found: Golden[Any] = store.read(suite, slug, subject, key)
    except MissingGolden:
        return None
    except StoreError as error:
        return error
    return found


def environment(store: Store, suite: str, slug: str | None) -> RecordedFingerprint | None:
    """The goldens' environment; None where there is none or its file is damaged, which
    `Store.check` reports."""
    try:
        return None if slug is None else store.read_fingerprint(suite, slug)
    except StoreError:
        return None
