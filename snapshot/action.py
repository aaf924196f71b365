"""What action.yml runs: verify, a step summary, and one comment on the pull request.

    python -m snapshot.action verify [SELECTOR...]
    python -m snapshot.action comment

Reads what GitHub gives every step: the event file, GITHUB_STEP_SUMMARY, GITHUB_OUTPUT, the API's
address and a token. Everything it reads there was written by somebody else.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from snapshot.changes import Changes
from snapshot.commands.diff import diff
from snapshot.commands.offer import offer
from snapshot.commands.review import DEFAULT
from snapshot.commands.verify import Request, verify
from snapshot.config import find, load
from snapshot.errors import GoldensError, UsageError
from snapshot.model import Json
from snapshot.report.annotations import to_annotations
from snapshot.report.changes.markdown import COMMENT, to_markdown
from snapshot.report.fence import fence
from snapshot.report.formats import FORMATS
from snapshot.report.markdown import SUMMARY
from snapshot.report.plain import visible
from snapshot.report.recorded import print_offered
from snapshot.repository import Repository

MARK = "<!-- goldens diff -->"
"""First line of our comment: by it the next run finds and updates it."""

_PAGES = 20  # of 100 comments that are looked through
_TIMEOUT = 30  # seconds for one request
_LARGEST = 32 * 1024 * 1024  # bytes of one answer

Environ = Mapping[str, str]


@dataclass(frozen=True)
class PullRequest:
    """What the event file says of a pull request.

    Attributes:
        repository: ``owner/name`` that the comment goes to.
        number: of the pull request.
        base: commit that it starts from.
        read_only: why nothing may be written to it; None where it may.
    """

    repository: str
    number: int
    base: str
    read_only: str | None


def pull_request(environ: Environ) -> PullRequest | None:
    """The pull request of this run; None where it is for none.

    Raises:
        UsageError: the event file is not what GitHub writes.
    """
    path = environ.get("GITHUB_EVENT_PATH", "")
    if not path:
        return None
    try:
        event: Json = json.loads(Path(path).read_bytes())
        pull: Json = event.get("pull_request")
        if pull is None:
            return None
        head = pull["head"]["repo"]  # null where the fork was deleted
        base = pull["base"]
        repository, number = base["repo"]["full_name"], pull["number"]
        if type(number) is not int or type(repository) is not str or repository.count("/") != 1:
            raise TypeError("its number or repository")
        return PullRequest(
            repository,
            number,
            str(base["sha"]),
            _read_only(environ, None if head is None else head["full_name"], repository),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            "the event file cannot be read",
            where=path,
            expected="what GitHub writes for a pull_request event",
            got=ascii(str(error))[:200],
        ) from None


def _read_only(environ: Environ, head: str | None, base: str) -> str | None:
    if head != base:
        return "the pull request comes from a fork"
    if environ.get("GITHUB_EVENT_NAME") == "pull_request_target":
        return "pull_request_target runs a pull request's code with a write token"
    if not environ.get("GITHUB_TOKEN"):
        return "there is no GITHUB_TOKEN"
    return None


# -------------------------------------------------------------------------- the steps


def verify_step(environ: Environ, selectors: Sequence[str]) -> int:
    """Verifies, writes the reports and, where a new golden answers a failure, pending ones.

    Returns:
        The exit code of ``goldens verify --pending``.
    """
    config = load(find(Path.cwd()))
    report = Path(environ.get("GOLDENS_REPORT") or "goldens-report")
    report.mkdir(parents=True, exist_ok=True)
    pending = Path(environ.get("GOLDENS_PENDING") or DEFAULT)
    request = Request(selectors=selectors, pending=pending)
    found = verify(config, request)
    for name, suffix in (("html", "html"), ("json", "json"), ("junit", "xml")):
        text = FORMATS[name](found)
        Path(report, f"goldens.{suffix}").write_text(text, "utf-8", "backslashreplace")
    _summary(environ, FORMATS["markdown"](found))
    sys.stdout.write(to_annotations(found))
    _output(environ, "report", str(report))
    offered = offer(config, found, pending, request)
    print_offered(offered, Console(highlight=False, stderr=True))
    if offered.count:
        _output(environ, "pending", str(pending))
    code = 1 if offered.failed else found.exit_code
    _output(environ, "exit-code", str(code))
    return code


def comment_step(environ: Environ) -> int:
    """Writes the golden diff of the pull request into the summary and into one comment.

    A pull request that changes no golden gets no comment; one that no longer does, has its
    comment updated.
    """
    pull = pull_request(environ)
    if pull is None:
        print("goldens: no pull request, no comment")
        return 0
    config = find(Path.cwd())
    repository = Repository(config)
    with diff(config, repository.merge_base(pull.base, "HEAD"), "HEAD") as changes:
        text = body(changes)
        _summary(environ, text)
        code = changes.exit_code()
        if pull.read_only is not None:
            print(f"goldens: {pull.read_only}: the diff stands in the step summary only")
        else:
            what = GitHub(environ).comment(pull, text, wanted=not changes.empty)
            print(f"goldens: comment {what}")
    return code


def body(changes: Changes) -> str:
    """The comment."""
    return f"{MARK}\n{to_markdown(changes, COMMENT)}"


def _summary(environ: Environ, text: str) -> None:
    path = environ.get("GITHUB_STEP_SUMMARY")
    if path:
        used = Path(path).stat().st_size if Path(path).exists() else 0
        if used + len(text.encode("utf-8", "replace")) <= SUMMARY:
            with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{text}\n")


def _output(environ: Environ, name: str, value: str) -> None:
    path = environ.get("GITHUB_OUTPUT")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{name}={visible(value)}\n")


# ----------------------------------------------------------------------------- GitHub


class GitHub:
    """The few calls of its API that a comment takes."""

    def __init__(self, environ: Environ) -> None:
        self._api = environ.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
        self._token = environ.get("GITHUB_TOKEN", "")

    def comment(self, pull: PullRequest, text: str, *, wanted: bool) -> str:
        """Updates our comment, or makes it. Returns what was done.

        Args:
            wanted: whether one is made where there is none.

        Raises:
            UsageError: GitHub refuses.
        """
        issues = f"/repos/{pull.repository}/issues"
        for existing in self._ours(f"{issues}/{pull.number}/comments"):
            try:
                self._call("PATCH", f"{issues}/comments/{existing}", {"body": text})
            except _Refused:  # somebody else's that only begins like ours
                continue
            return "updated"
        if not wanted:
            return "not needed"
        try:
            self._call("POST", f"{issues}/{pull.number}/comments", {"body": text})
        except _Refused as error:
            raise UsageError(
                "GitHub refuses the comment",
                where=f"{self._api}{issues}/{pull.number}/comments",
                expected="permissions: pull-requests: write",
                got=str(error),
            ) from None
        return "made"

    def _ours(self, path: str) -> list[int]:
        found = []
        for page in range(1, _PAGES + 1):
            try:
                comments = self._call("GET", f"{path}?per_page=100&page={page}")
            except _Refused as error:
                raise UsageError(
                    "GitHub does not list the comments", where=path, got=str(error)
                ) from None
            found += [c["id"] for c in comments if str(c.get("body", "")).startswith(MARK)]
            if len(comments) < 100:
                break
        return found

    def _call(self, method: str, path: str, data: Json = None) -> Any:
        request = urllib.request.Request(
            self._api + path,
            method=method,
            data=None if data is None else json.dumps(data).encode(),
            headers={
                "Authorization": f"Bearer {self._token}",
                "Accept": "application/vnd.github+json",
                "Content-Type": "application/json",
                "X-GitHub-Api-Version": "2022-11-28",
                "User-Agent": "goldens",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
                return json.loads(answer.read(_LARGEST) or b"null")
        except urllib.error.HTTPError as error:
            raise _Refused(f"HTTP {error.code}") from None
        except (OSError, ValueError) as error:
            raise _Refused(str(error)) from None


class _Refused(Exception):
    """GitHub answered no, or not at all."""


def main(arguments: Sequence[str], environ: Environ) -> int:
    """Runs a step. Returns its exit code."""
    step, *selectors = arguments or [""]
    try:
        if step == "verify":
            return verify_step(environ, selectors)
        if step == "comment":
            return comment_step(environ)
        raise UsageError("no such step", expected="verify or comment", got=step)
    except GoldensError as error:
        lines = [visible(line) for line in str(error).split("\n")]
        print("goldens: " + "\n".join(lines), file=sys.stderr)
        _summary(environ, "## Goldens could not run\n\n" + fence(lines))
        _output(environ, "exit-code", str(error.exit_code))
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
