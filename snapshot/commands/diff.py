"""``goldens diff``: what changed in the goldens between two git revisions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from snapshot.changes import Changes
from snapshot.config import load
from snapshot.repository import Repository
from snapshot.treediff import compare


@contextmanager
def diff(
    config: Path, base: str = "HEAD", head: str | None = None, *, merge_base: bool = False
) -> Iterator[Changes]:
    """The changes, as long as the context lasts: arrays are read when they are asked for.

    Args:
        config: the goldens.toml.
        base: a revision.
        head: a revision; None for the work tree, files that git does not know yet included.
        merge_base: start from the newest commit that both sides hold, as a pull request does.

    Raises:
        UsageError: git is missing, this is no repository, or it has no such revision.
        ConfigError: the goldens.toml of the work tree is wrong.
    """
    # Links to a folder that is being cleaned up cannot be planted: it is ours alone (0700).
    with (
        Repository(config) as repository,
        tempfile.TemporaryDirectory(prefix="goldens-diff-") as folder,
    ):
        if merge_base:
            base = repository.merge_base(base, head or "HEAD")
        before = repository.revision(base, Path(folder, "base"))
        if head is None:
            after = repository.work_tree(load(config))
        else:
            after = repository.revision(head, Path(folder, "head"))
        yield compare(before, after)
