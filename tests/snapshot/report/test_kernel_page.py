"""The page of this repository's own kernel suite, run for real, in a real browser.

Plain torch is held to what it gave on a GPU, so some of its bits move; beside it run a kernel
that reads a stale page and one that gives a NaN.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.snapshot import browser as chromium
from tests.snapshot.project import ROOT
from tests.snapshot.report.test_page import current, opened, pixels, shot, shown
from tests.snapshot.workspace import Workspace

pytestmark = pytest.mark.skipif(chromium.CHROMIUM is None, reason=chromium.MISSING)

SLUG = "cuda13.0-sm_90-torch2.11-triton3.6-float16"
RAGGED = "B6-H8-2-D64-64-S130-float16-ragged"
WIDE = "B2-H128-1-D576-512-S5-float16"


CONSTANT = "B3-H8-2-D64-64-S130-float16-constant"
WRONG = ["grouped_decode.mutants:stale_page", "tests.snapshot.fake_kernels:one_nan"]


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `goldens verify --report html:...` writes."""
    workspace = Workspace(tmp_path_factory.mktemp("kernels"))
    (workspace.root / "goldens.toml").write_text(
        f"[store]\npath = {json.dumps(str(ROOT / 'goldens'))}\n"
        '[suites.grouped-decode]\nkind = "grouped-decode"\ndevice = "cpu"\n'
        f"candidates = {json.dumps(['torch', *WRONG])}\n",
        "utf-8",
    )
    done = workspace.run(
        "verify", WIDE, RAGGED, CONSTANT, "--against", SLUG, "--report", "html:report.html"
    )
    assert done.code == 1, done.out + done.err
    return (workspace.root / "report.html").read_text("utf-8")


@pytest.fixture
def kernels(page: chromium.Page, tmp_path: Path, html: str) -> chromium.Page:
    return opened(page, tmp_path, html)


def said(page: chromium.Page, selector: str) -> str:
    return str(page.value(f"document.querySelector({json.dumps(selector)}).textContent"))


def at(page: chromium.Page, case: str, subject: str) -> str:
    """Opens a cell. Returns its verdict."""
    column, key = json.dumps(f" · {subject}"), json.dumps(f"{case}\n").replace("\\n", "\\\\a ")
    page.value(f"document.querySelector('[title$={column}][title*={key}]').click()")
    assert current(page)[0] == case
    return current(page)[1]


def test_a_column_a_kernel_and_a_row_a_case(kernels: chromium.Page) -> None:
    assert shown(kernels) == 3
    heads = kernels.value("[...document.querySelectorAll('.group b')].map((b) => b.textContent)")
    assert heads == ["torch", "stale_page", "one_nan"]
    assert said(kernels, ".corner") == "3 cases, 1 environment, 3 subjects"
    key = "document.querySelector('.row .key')"
    assert kernels.value(f"{key}.scrollWidth <= {key}.clientWidth")  # whole, none cut
    assert kernels.console == []


def test_nan_opens_first_with_its_coordinates(kernels: chromium.Page) -> None:
    assert current(kernels) == (WIDE, "NONFINITE")
    assert said(kernels, ".headline").startswith("1 non-finite value in out, first at [1, 77, 300]")
    assert pixels(kernels)[128 + 77] == [200, 0, 200]
    assert "not finite: 1 row" in said(kernels, ".scale")
    shot(kernels, "kernel-nan")


def test_wrong_rows_are_hot_and_named_against_the_bound(kernels: chromium.Page) -> None:
    assert at(kernels, RAGGED, WRONG[0]) == "WRONG"
    assert said(kernels, ".headline").startswith("sequence 0, head 1: rel-L2 0.389, bound 0.001")
    assert "up to the bound, 1e-3" in said(kernels, ".scale")
    assert "over it, to 3.9e-1: 32 rows" in said(kernels, ".scale")
    assert said(kernels, ".said").startswith("worst finite row: sequence 0, head 1: 3.89e-1")
    hot = [i for i, (red, _, blue) in enumerate(pixels(kernels)) if red > blue]
    assert len(hot) == 32
    assert not set(hot) & set(range(8, 24))  # two sequences have no keys
    shot(kernels, "kernel-wrong")
    kernels.scheme("dark")
    kernels.press("t", "t")
    kernels.value("localStorage.clear()")
    shot(kernels, "kernel-wrong-dark")


def test_moved_bits_pass_and_say_how_many(kernels: chromium.Page) -> None:
    """On whichever CPU: it is not the GPU that recorded them."""
    assert at(kernels, RAGGED, "torch") == "WITHIN"
    assert re.match(r"bits moved .*; error not grown; rel-L2 ", said(kernels, ".headline"))
    cells = "[...document.querySelectorAll('#detail td:first-child')].map((td) => td.textContent)"
    assert kernels.value(cells) == ["here", "plain torch", "golden"]
    shot(kernels, "kernel-within")


def test_on_a_phone_keys_cells_and_figures_can_be_read(kernels: chromium.Page) -> None:
    kernels.size(390, 844, phone=True)
    path = Path(kernels.value("decodeURI(location.pathname)"))
    kernels.call("Page.navigate", url="about:blank")
    kernels.open(path)
    assert kernels.value("document.documentElement.scrollWidth") == 390
    for key in range(3):
        node = f"document.querySelectorAll('.row .key')[{key}]"
        assert kernels.value(f"{node}.scrollWidth <= {node}.clientWidth")
    shot(kernels, "kernel-phone")
    kernels.press("Enter")
    assert kernels.value("document.getElementById('detail').scrollWidth") <= 390
    assert kernels.value("document.querySelector('td.short').getClientRects().length") == 1
    shot(kernels, "kernel-phone-detail")
