"""The action's script, over a prepared event file and a local server that plays GitHub."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from snapshot import __version__
from snapshot.action import MARK, main
from tests.snapshot.project import Project, reworded

SNAPSHOT = Path(__file__).parent / "data" / "comment.md"


class GitHub(ThreadingHTTPServer):
    """Comments of one pull request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.comments: list[dict[str, Any]] = []
        self.refused: set[int] = set()
        self.calls: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: GitHub

    def log_message(self, *arguments: Any) -> None:
        pass

    def _answer(self, code: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self) -> None:
        self.server.calls.append(f"GET {self.path}")
        page = int(re.search(r"page=(\d+)$", self.path)[1])  # type: ignore[index]
        self._answer(200, self.server.comments[(page - 1) * 100 : page * 100])

    def do_POST(self) -> None:
        assert self.headers["Authorization"] == "Bearer secret"
        self.server.calls.append(f"POST {self.path}")
        self.server.comments.append({"id": len(self.server.comments) + 1, **self._body()})
        self._answer(201, {})

    def do_PATCH(self) -> None:
        self.server.calls.append(f"PATCH {self.path}")
        number = int(self.path.rsplit("/", 1)[1])
        body = self._body()
        if number in self.server.refused:
            self._answer(403, {})
            return
        next(c for c in self.server.comments if c["id"] == number).update(body)
        self._answer(200, {})


@pytest.fixture
def github() -> Iterator[GitHub]:
    server = GitHub()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A pull request that changes one row and relaxes a tolerance."""
    project = Project.create(tmp_path / "p", ("bfloat16-bs3", "bfloat16-bs8"))
    project.git("checkout", "-q", "-b", "work")
    hostile = "` ```\n::error::x <script>alert(1)</script> @everyone \u202e]]> #1"
    project.store.write(reworded(project.golden("bfloat16-bs8", "pirate/"), hostile))
    project.append("\n[suites.multi-lora.tolerance]\nlogprob = { max = 0.1 }\n")
    project.commit("change")
    monkeypatch.chdir(project.root)
    return project


def environ(project: Project, github: GitHub, **changes: Any) -> dict[str, str]:
    head = changes.pop("head", "owner/name")
    base = project.git("rev-parse", "main").strip()
    event = {
        "pull_request": {
            "number": 7,
            "base": {"sha": base, "repo": {"full_name": "owner/name"}},
            "head": {"repo": None if head is None else {"full_name": head}},
        }
    }  # fmt: skip
    path = project.root.parent / "event.json"
    path.write_text(json.dumps(event), "utf-8")
    return {
        "GITHUB_EVENT_PATH": str(path),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_API_URL": github.url,
        "GITHUB_TOKEN": "secret",
        "GITHUB_STEP_SUMMARY": str(project.root.parent / "summary.md"),
        "GITHUB_OUTPUT": str(project.root.parent / "output"),
        **changes,
    }


def test_one_comment_made_and_then_updated(project: Project, github: GitHub) -> None:
    github.comments = [{"id": i, "body": "hello"} for i in range(1, 131)]  # two pages
    variables = environ(project, github)
    assert main(["comment"], variables) == 0
    assert len(github.comments) == 131 and github.comments[-1]["body"].startswith(MARK)
    first = github.comments[-1]["body"]
    assert "Strictness went down" in first and "1 loosen, 1 fix" in first
    project.store.write(reworded(project.golden("bfloat16-bs3", "haiku/")))
    project.commit("more")
    assert main(["comment"], variables) == 0
    assert len(github.comments) == 131 and "1 loosen, 2 fix" in github.comments[-1]["body"]
    assert "Strictness went down" in Path(variables["GITHUB_STEP_SUMMARY"]).read_text("utf-8")


def test_the_comment_is_what_it_was(project: Project, github: GitHub) -> None:
    """A snapshot: delete the file to make it anew, and review it as any golden."""
    assert main(["comment"], environ(project, github)) == 0
    (comment,) = github.comments
    body = re.sub(r"\b[0-9a-f]{40}\b( \([0-9a-f]{10}\))?", "<commit>", comment["body"])
    body = re.sub(r"HEAD \([0-9a-f]{10}\)", "HEAD (<commit>)", body)
    if not SNAPSHOT.exists():
        SNAPSHOT.parent.mkdir(exist_ok=True)
        SNAPSHOT.write_text(body, "utf-8", newline="\n")
        pytest.fail(f"{SNAPSHOT.name} was made: look at it and commit it")
    assert body == SNAPSHOT.read_text("utf-8")


def test_model_text_cannot_leave_its_fence(project: Project, github: GitHub) -> None:
    assert main(["comment"], environ(project, github)) == 0
    (comment,) = github.comments
    outside = re.sub(r"(?ms)^(`{3,})diff\n.*?^\1$", "", comment["body"])
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
    for word in ("<script", "@everyone", "::error", "alert"):
        assert word not in outside
    assert "\u202e" not in comment["body"]
    assert not re.search(r"(?m)^::", comment["body"])


@pytest.mark.parametrize(
    "changes",
    [
        {"head": "somebody/fork"},
        {"head": None},
        {"GITHUB_TOKEN": ""},
        {"GITHUB_EVENT_NAME": "pull_request_target"},
    ],
)
def test_where_nothing_may_be_written_the_diff_is_in_the_summary_only(
    project: Project, github: GitHub, changes: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    variables = environ(project, github, **changes)
    assert main(["comment"], variables) == 0
    assert github.calls == []
    assert "1 loosen, 1 fix" in Path(variables["GITHUB_STEP_SUMMARY"]).read_text("utf-8")
    assert "summary only" in capsys.readouterr().out


def test_somebody_else_s_comment_that_looks_like_ours_is_left(
    project: Project, github: GitHub
) -> None:
    github.comments = [{"id": 1, "body": f"{MARK} fooled?"}]
    github.refused = {1}
    assert main(["comment"], environ(project, github)) == 0
    assert github.comments[0]["body"] == f"{MARK} fooled?"
    assert github.comments[1]["body"].startswith(MARK)


def test_a_pull_request_that_changes_no_golden_gets_no_comment(
    project: Project, github: GitHub
) -> None:
    project.git("reset", "-q", "--hard", "main")
    assert main(["comment"], environ(project, github)) == 0
    assert github.comments == []


@pytest.mark.parametrize("event", ["{", "[]", '{"pull_request": {"number": "7; rm"}}'])
def test_an_event_file_that_is_none_is_an_error_without_a_traceback(
    project: Project, github: GitHub, event: str, capsys: pytest.CaptureFixture[str]
) -> None:
    variables = environ(project, github)
    Path(variables["GITHUB_EVENT_PATH"]).write_text(event, "utf-8")
    assert main(["comment"], variables) == 2
    assert "the event file cannot be read" in capsys.readouterr().err
    assert "exit-code=2" in Path(variables["GITHUB_OUTPUT"]).read_text("utf-8")


def test_a_push_is_no_pull_request(project: Project, github: GitHub) -> None:
    variables = environ(project, github)
    Path(variables["GITHUB_EVENT_PATH"]).write_text('{"ref": "refs/heads/main"}', "utf-8")
    assert main(["comment"], variables) == 0 and github.calls == []


def test_an_unreachable_github_is_said(
    project: Project, github: GitHub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["comment"], environ(project, github, GITHUB_API_URL="http://127.0.0.1:9")) == 2
    assert "GitHub does not list the comments" in capsys.readouterr().err


def test_the_version_is_the_package_s() -> None:
    assert __version__  # the action installs the folder that it lies in
