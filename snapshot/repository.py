"""States of the goldens in git: read through the plumbing commands, never checked out."""

from __future__ import annotations

import os
from pathlib import Path

from snapshot.config import Config, load
from snapshot.errors import ConfigError, UsageError
from snapshot.git import Objects, git
from snapshot.names import is_safe_component
from snapshot.store import Store
from snapshot.store.blobs import FOLDER
from snapshot.tree import Tree, environment_of_path, folder

WORK_TREE = "the work tree"


class Repository:
    """The git repository around a goldens.toml; a context that ends with its revisions.

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
        self._objects = Objects(folder)

    def __enter__(self) -> Repository:
        return self

    def __exit__(self, *exception: object) -> None:
        self._objects.close()

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
        """The state of a commit, whose goldens and blobs git gives as they are read.

        Args:
            into: an empty folder for what is found by listing: the goldens.toml and the
                environments.

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
        ids, above = self._files(commit, inside), os.path.join(root, "")

        def take(path: Path, limit: int) -> bytes:
            content = ids.get(str(path)[len(above) :].replace(os.sep, "/"))
            if content is None:
                raise FileNotFoundError(path)
            return self._objects.read(content, limit, path)

        for below in filter(environment_of_path, ids):
            file = root / below
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        named = {path: _name(path, content) for path, content in ids.items()}
        label = revision if commit.startswith(revision) else f"{revision} ({commit[:10]})"
        return Tree(label, config, Store(root, take), named, problem)

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
        return git(self._cwd, "cat-file", "blob", listed.split()[2].decode("ascii"))

    def _text(self, *arguments: str) -> str:
        return git(self._cwd, *arguments).decode("utf-8", "replace").strip()


def _name(path: str, content: str) -> str:
    return path.rsplit("/", 1)[-1] if path.startswith(f"{FOLDER}/") else content
