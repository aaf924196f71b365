"""The formats of ``goldens diff --report``; a new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from snapshot.changes import Changes
from snapshot.report.changes.html import to_html
from snapshot.report.changes.jsontext import to_json
from snapshot.report.changes.markdown import to_markdown

FORMATS: Mapping[str, Callable[[Changes], str]] = {
    "html": to_html,
    "json": to_json,
    "markdown": to_markdown,
}
