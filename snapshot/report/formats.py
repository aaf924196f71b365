"""The formats of ``goldens verify --report``; a new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from snapshot.report.annotations import to_annotations
from snapshot.report.html import to_html
from snapshot.report.jsonreport import to_json
from snapshot.report.junit import to_junit
from snapshot.report.markdown import to_markdown
from snapshot.verification import Verification

FORMATS: Mapping[str, Callable[[Verification], str]] = {
    "github": to_annotations,
    "html": to_html,
    "json": to_json,
    "junit": to_junit,
    "markdown": to_markdown,
}
