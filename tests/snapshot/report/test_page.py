"""The HTML page in a real browser: keys, search, filter, hostile text, and thousands of cases."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from snapshot.difference import RowErrors
from snapshot.report.changes.html import to_html as changes_to_html
from snapshot.report.html import to_html
from snapshot.report.page import columns
from snapshot.resolve import Baseline
from snapshot.result import Result, Verdict
from snapshot.verification import Held, Verification
from tests.snapshot import browser as chromium
from tests.snapshot.builders import ROCM7, ROCM10
from tests.snapshot.own_suites import verification as own_verification
from tests.snapshot.project import Project, reworded
from tests.snapshot.report.test_formats import HOSTILE, everything, result

pytestmark = pytest.mark.skipif(chromium.CHROMIUM is None, reason=chromium.MISSING)

SHOTS = os.environ.get("GOLDENS_SCREENSHOTS")  # a folder: look at what the tests saw


@pytest.fixture(scope="module")
def html() -> str:
    return to_html(own_verification(variants=False))


@pytest.fixture
def own(page: chromium.Page, tmp_path: Path, html: str) -> chromium.Page:
    """This repository's own generation suite, open."""
    return opened(page, tmp_path, html)


def opened(page: chromium.Page, folder: Path, html: str) -> chromium.Page:
    path = folder / "report.html"
    path.write_text(html, "utf-8")
    page.console.clear()
    page.size(1360, 900)
    page.scheme("light")
    page.open(path)
    return page


def shot(page: chromium.Page, name: str) -> None:
    if SHOTS:
        page.screenshot(Path(SHOTS, f"{name}.png"))


def shown(page: chromium.Page) -> int:
    return int(page.value("document.body.dataset.shown"))


def current(page: chromium.Page) -> tuple[str, str]:
    """The case and the verdict that the detail shows."""
    case = page.value("document.querySelector('#detail h2').textContent")
    return case, page.value("document.querySelector('#detail .badge').textContent")


def pixels(page: chromium.Page) -> list[list[int]]:
    """Red, green and blue of every cell of the heat map that is shown."""
    flat = page.value(
        "(() => { const c = document.querySelector('canvas');"
        "return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]; })()"
    )
    return [flat[i : i + 3] for i in range(0, len(flat), 4)]


def test_it_opens_at_the_worst_and_keys_move(own: chromium.Page) -> None:
    case, verdict = current(own)
    assert verdict == "DRIFT" and case.startswith("base/")
    own.press("j")
    assert current(own)[0] != case
    own.press("k", "ArrowLeft")
    assert current(own) == (case, "MATCH")
    seen = set()
    for _ in range(16):
        seen.add((*current(own), own.value("location.hash")))
        own.press("n")
        assert current(own)[1] == "DRIFT"
    assert len({key for *_, key in seen}) == 16
    assert own.console == []


def test_search_looks_at_keys_and_texts(own: chromium.Page) -> None:
    assert shown(own) == 24
    own.press("/")
    own.type("haiku capital")
    assert shown(own) == 1
    own.press("Enter")
    assert current(own)[0].startswith("haiku/the-capital")
    own.press("Escape")
    assert shown(own) == 24
    own.press("/")
    own.type("boiling point of water")
    assert 1 <= shown(own) < 24
    own.type(" nowhere at all")
    assert shown(own) == 0
    assert "Nothing matches" in own.value("document.getElementById('space').textContent")


def test_chips_filter(own: chromium.Page) -> None:
    own.value("document.querySelector('.chip').click()")
    assert 0 < shown(own) < 24
    assert own.value("document.querySelector('.chip').getAttribute('aria-pressed')") == "true"
    own.press("f")  # the same, by key
    assert shown(own) == 24


def test_a_link_to_a_cell_opens_it(own: chromium.Page) -> None:
    own.press("n", "n")
    there, fragment = current(own), own.value("location.hash")
    path = Path(own.value("decodeURI(location.pathname)"))
    own.call("Page.navigate", url="about:blank")
    own.open(path, fragment)
    assert current(own) == there


def test_light_and_dark(own: chromium.Page) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light = own.value(background)
    own.scheme("dark")
    dark = own.value(background)
    assert light != dark
    own.press("t")
    assert own.value(background) == light
    own.press("t")
    assert own.value(background) == dark
    shot(own, "dark")
    own.value("localStorage.clear()")


def test_readable_on_a_phone(own: chromium.Page) -> None:
    own.size(390, 844, phone=True)
    path = Path(own.value("decodeURI(location.pathname)"))
    own.call("Page.navigate", url="about:blank")
    own.open(path)  # as a phone opens it
    assert own.value("document.documentElement.scrollWidth") == 390
    shot(own, "phone")
    visible = "getComputedStyle(document.getElementById('detail')).display"
    assert own.value(visible) == "none"
    own.press("n", "Enter")
    assert own.value(visible) == "block"
    assert own.value("document.getElementById('detail').scrollWidth") <= 390
    shot(own, "phone-detail")
    own.value("document.getElementById('close').click()")
    assert own.value(visible) == "none"


def test_words_plot_and_wordings_are_drawn(own: chromium.Page) -> None:
    own.press("n", "n", "n", "n")
    shot(own, "light")
    assert own.value("document.querySelectorAll('#detail del, #detail ins').length") >= 2
    assert own.value("document.querySelectorAll('#detail svg circle').length") > 4
    assert own.value("document.querySelectorAll('#detail .wordings b').length") == 16


def test_every_block_of_every_verdict_draws(page: chromium.Page, tmp_path: Path) -> None:
    opened(page, tmp_path, to_html(everything()))
    for _ in range(20):
        page.press("j")
    assert page.console == []


def test_a_heat_map_over_sequences_and_heads(page: chromium.Page, tmp_path: Path) -> None:
    values = tuple(tuple((1 + s) * (1 + h) * 1e-5 for h in range(128)) for s in range(32))
    values = ((None, *values[0][1:]), *values[1:])
    wrong = result(Verdict.NONFINITE, rows=RowErrors("rel-L2 of out", values, 1e-2))
    opened(page, tmp_path, to_html(_verification(wrong)))
    assert page.value("document.querySelector('canvas').width") == 128
    found = pixels(page)
    assert found[0] == [200, 0, 200]  # not finite
    assert found[1][2] > found[1][0]  # far below the bound: cool
    assert found[-1][0] > found[-1][2]  # over it: hot
    legend = page.value("document.querySelector('.scale').textContent")
    assert legend == "up to the bound, 1e-2over it, to 4.1e-2: 1,745 rowsnot finite: 1 row"
    worst = "worst finite row: sequence 31, head 127: 4.10e-2, 4.1 times the bound"
    assert page.value("document.querySelector('.said').textContent") == worst
    shot(page, "heat")
    assert page.console == []


def _verification(*results: Result) -> Verification:
    return Verification((Held("s", "reference", ROCM10.slug, Baseline(ROCM7, "how"), results),))


def test_hostile_text_does_no_harm(page: chromium.Page, tmp_path: Path) -> None:
    """A script, an override of the direction, ten thousand lines; in every place text can be."""
    script = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"
    lines = "\n".join(f"line {i} {HOSTILE}" for i in range(10_000))
    hostile = result(
        golden_text=script + lines,
        candidate_text=lines + script,
        headline=script + "\u202e" + HOSTILE,
        notes=(script,),
        case="base/a-1",
    )
    opened(
        page, tmp_path, to_html(_verification(hostile, dataclasses.replace(hostile, case="b/2")))
    )
    assert page.value("document.title") != "owned"
    assert page.value("document.scripts.length") == 2
    assert page.value("document.images.length") == 0
    body = page.value("document.body.textContent + document.title")
    assert "\u202e" not in page.value("document.getElementById('detail').textContent")
    assert "<script>document.title" in body
    assert page.value("document.documentElement.scrollWidth") <= 1360
    assert (tmp_path / "report.html").stat().st_size < 500_000
    page.press("j", "k")
    assert page.console == []


def test_five_thousand_cases_open_in_two_seconds(page: chromium.Page, tmp_path: Path) -> None:
    verdicts = [Verdict.MATCH] * 18 + [Verdict.REGRESSION, Verdict.DRIFT]
    held = [
        Held(
            "s",
            "reference",
            identity.slug,
            Baseline(ROCM7, "how"),
            tuple(
                result(
                    verdicts[i % 20],
                    f"{'base' if i % 2 else 'wizard'}/a-prompt-number-{i}-0123abcd",
                    slug=identity.slug,
                    golden_text=f"they are trained on a massive amount of data, row {i} " * 3,
                    candidate_text=f"they are trained on massive amounts of data, row {i} " * 3,
                )
                for i in range(5000)
            ),
        )
        for identity in (ROCM7, ROCM10)
    ]  # fmt: skip
    opened(page, tmp_path, to_html(Verification(tuple(held))))
    milliseconds = int(page.value("document.body.dataset.ready"))
    print(f"5,000 cases, 2 environments: drawn {milliseconds} ms after the navigation began")
    assert milliseconds < 2000
    assert page.value("document.querySelectorAll('.row').length") < 200
    page.press("/")
    page.type("number-4999")
    assert shown(page) == 1


def test_columns_are_named_by_what_tells_them_apart() -> None:
    def labels(*names: tuple[str, str]) -> list[tuple[str, str]]:
        return [(column.group, column.label) for column in columns(names)]

    cpu, gpu = "cpu-avx512-t2-torch2.13", "cuda13.0-sm_90-torch2.11"
    assert labels(
        *((f"{where}-{dtype}-bs{size}", "reference")
          for where in (cpu, gpu) for dtype in ("bfloat16", "float32") for size in (1, 8))
    ) == [
        (f"{where} {dtype}", size)
        for where in ("cpu", "cuda13.0") for dtype in ("bfloat16", "float32")
        for size in ("bs1", "bs8")
    ]  # fmt: skip
    assert labels((f"{gpu}-float16-bs1", "reference")) == [("reference", "")]
    assert labels((f"{gpu}-float16-bs1", "a"), (f"{cpu}-float32-bs3", "a")) == [
        ("cuda13.0", "bs1"), ("cpu", "bs3"),
    ]  # fmt: skip
    assert labels((gpu, "one:kernel"), (gpu, "two:other")) == [("kernel", ""), ("other", "")]
    assert labels((gpu, "one:kernel"), (gpu, "two:kernel")) == [
        ("one:kernel", ""), ("two:kernel", ""),
    ]  # fmt: skip


def test_a_diff_is_a_matrix_of_what_changed(page: chromium.Page, tmp_path: Path) -> None:
    from snapshot.commands.diff import diff

    project = Project.create(tmp_path / "p")
    for golden in project.goldens("bfloat16-bs8", "pirate/"):
        project.store.write(reworded(golden))
    project.append("\n[suites.multi-lora.tolerance]\nlogprob = { max = 0.1 }\n")
    with diff(project.root / "goldens.toml") as changes:
        opened(page, tmp_path, changes_to_html(changes))
    alert = page.value("document.getElementById('alerts').textContent")
    assert alert.startswith("Strictness went down") and "calibrated → max ≤ 0.1" in alert
    assert shown(page) == 8
    assert current(page)[1] == "fix"
    assert page.value("document.querySelectorAll('.cell.still').length") == 8
    shot(page, "diff")
    assert page.console == []
