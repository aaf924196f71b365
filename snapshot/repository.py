"""States of the goldens in git: read through the plumbing commands, never checked out."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from snapshot.config import Config, load
from snapshot.errors import ConfigError, UsageError
from snapshot.git import git
from snapshot.names import is_safe_component
from snapshot.store import Store
from snapshot.store.blobs import FOLDER
from snapshot.tree import Tree, folder

WORK_TREE = "the work tree"

_CHUNK = 256  # files held in memory at once


class Repository:
    """The git repository around a goldens.toml.

    Args:
        config: path of the goldens.toml.

    Raises:
        UsageError: git is not installed, or the file lies in no repository.
    """

    def __init__(self, config: Path) -> None:
        self._config = config.resolve()
        folder = self._config.parent
        while not folder.is_dir():
            folder = folder.parent
        self._cwd = folder
        self._top = Path(self._text("rev-parse", "--show-toplevel"))
        self._inside = self._config.relative_to(self._top.resolve()).as_posix()
        self._algorithm = self._text("rev-parse", "--show-object-format")

    def commit(self, revision: str) -> str:
        """The full id of a revision.

        Raises:
            UsageError: there is no such revision.
        """
        # After --end-of-options nothing that a user writes is taken for an option.
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        try:
            return self._text(*asked)
        except UsageError:
            raise UsageError(
                "git knows no such revision",
                where=str(self._top),
                expected="a commit, branch or tag",
                got=ascii(revision),
                hint="git log --oneline; a shallow clone lacks history: git fetch --deepen=100",
            ) from None

    def merge_base(self, one: str, other: str) -> str:
        """The newest commit that both histories hold.

        Raises:
            UsageError: there is none, which a shallow clone looks like too.
        """
        return self._text("merge-base", self.commit(one), self.commit(other))

    def work_tree(self, config: Config) -> Tree:
        """The files on the disk, whether or not git knows them."""
        return folder(config.store, config, WORK_TREE, self._algorithm)

    def revision(self, revision: str, into: Path) -> Tree:
        """The state of a commit.

        Args:
            into: an empty folder that keeps what is fetched, for as long as it is read.

        Raises:
            UsageError: there is no such revision, or its store lies outside the repository.
        """
        commit = self.commit(revision)
        into = into.resolve()
        target = into / self._inside
        config, problem = None, None
        data = self._file(commit, self._inside)
        # A store without a readable goldens.toml is compared where the file's default puts it.
        root = target.parent / "goldens"
        if data is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            try:
                config = load(target)
                root = config.store
            except ConfigError as error:
                where = (error.where or "").replace(str(target), f"{revision}:{self._inside}")
                problem = ConfigError(
                    error.what, where=where, expected=error.expected, got=error.got
                )
        inside = os.path.relpath(os.path.abspath(root), into).replace(os.sep, "/")
        if inside.startswith(".."):
            raise UsageError(
                "the goldens of this revision lie outside the repository",
                where=f"{revision}:{self._inside}: store.path",
                expected=f"a folder below {self._top}",
                got=inside,
            )
        ids = self._files(commit, inside)

        def fetch(paths: Iterable[str]) -> None:
            wanted = [p for p in paths if p in ids and not (root / p).exists()]
            for start in range(0, len(wanted), _CHUNK):
                chunk = wanted[start : start + _CHUNK]
                contents = self._contents([ids[path] for path in chunk])
                for path, content in zip(chunk, contents, strict=True):
                    file = root / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content)

        named = {path: _name(path, content) for path, content in ids.items()}
        label = revision if commit.startswith(revision) else f"{revision} ({commit[:10]})"
        return Tree(label, config, Store(root), named, problem, fetch)

    # ------------------------------------------------------------------------- private

    def _files(self, commit: str, inside: str) -> dict[str, str]:
        """Path below the store to the object of every plain file there."""
        listing = git(self._cwd, "ls-tree", "-r", "-z", "--full-tree", commit, "--", f"{inside}/")
        found = {}
        for line in filter(None, listing.decode("utf-8", "surrogateescape").split("\0")):
            description, path = line.split("\t", 1)
            mode, kind, content = description.split()
            below = path[len(inside) + 1 :]
            # No link, no submodule, and no name that the store itself would not write.
            plain = kind == "blob" and mode != "120000"
            if plain and all(map(is_safe_component, below.split("/"))):
                found[below] = content
        return found

    def _file(self, commit: str, path: str) -> bytes | None:
        listed = git(self._cwd, "ls-tree", "-z", "--full-tree", commit, "--", path)
        if not listed:
            return None
        return self._contents([listed.split(b"\t")[0].split()[2].decode("ascii")])[0]

    def _contents(self, objects: list[str]) -> list[bytes]:
        if not objects:
            return []
        asked = "\n".join(objects).encode("ascii") + b"\n"
        answer = git(self._cwd, "cat-file", "--batch", stdin=asked)
        contents, position = [], 0
        for _ in objects:
            end = answer.index(b"\n", position)
            size = int(answer[position:end].split()[2])
            contents.append(answer[end + 1 : end + 1 + size])
            position = end + 1 + size + 1
        return contents

    def _text(self, *arguments: str) -> str:
        return git(self._cwd, *arguments).decode("utf-8", "replace").strip()


def _name(path: str, content: str) -> str:
    return path.rsplit("/", 1)[-1] if path.startswith(f"{FOLDER}/") else content
