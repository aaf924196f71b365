"""The browser that the page tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.snapshot import browser as chromium


@pytest.fixture(scope="session")
def page() -> Iterator[chromium.Page]:
    with chromium.browser() as opened:
        yield opened
