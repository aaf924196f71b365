"""A finding in words."""

from __future__ import annotations

import dataclasses

from snapshot.difference import Finding
from snapshot.report.plain import visible

_MESSAGE, _PARTICULAR = 600, 160  # characters of the parts of a line


def sentence(finding: Finding) -> str:
    """A finding with its particulars. Not escaped: engines and kernels wrote parts of it."""
    particulars = {
        "at": finding.where,
        "expected": finding.expected,
        "got": finding.got,
        "allowed": finding.allowed,
    }
    said = "; ".join(f"{name} {value}" for name, value in particulars.items() if value)
    return f"{finding.check}: {finding.message}" + (f" ({said})" if said else "")


def finding_line(finding: Finding) -> str:
    """The same on one line of a terminal, each part cut to size."""

    def cut(part: str | None) -> str | None:
        return None if part is None else visible(part, _PARTICULAR)

    return sentence(
        dataclasses.replace(
            finding,
            message=visible(finding.message, _MESSAGE),
            where=cut(finding.where),
            expected=cut(finding.expected),
            got=cut(finding.got),
            allowed=cut(finding.allowed),
        )
    )
