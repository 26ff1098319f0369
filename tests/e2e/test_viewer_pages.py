"""The viewer's pages in a real browser: a run under way, the overview, and their accessibility."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from support import report_samples as samples
from support.browser import AXE, Watched, browser, contains, needs_browser, reads

from hallujudge.judge_service.engine.spec import RunHeader, metric_of
from hallujudge.metrics import IntervalSettings, Tally
from hallujudge.sdk.backends import BatchResult
from hallujudge.sdk.cli.viewer import Viewer
from hallujudge.sdk.runs import Manifest, RunFolder
from hallujudge.sdk.runs.parts import Part, PartMaker
from hallujudge.sdk.runs.score_run import SaveOptions

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, needs_browser]

METRIC = metric_of("chair", "published", {})
HEADER = RunHeader(
    metric=METRIC, signature=str(METRIC.signature), settings={}, notes=(), release="0.1.0"
)


def part(*names: str) -> Part:
    pairs = [samples.caption(name, f"A dog on sofa {name}.") for name in names]
    items, results = zip(*pairs, strict=True)
    maker = PartMaker(HEADER.metric, (), SaveOptions(html=True))
    return maker.make(BatchResult(items=list(items), results=list(results)), 0)


def begun(path: Path, items: int, *, header: RunHeader = HEADER) -> RunFolder:
    folder = RunFolder(path)
    folder.start(
        Manifest(
            release="0.1.0",
            metric="chair",
            variant="published",
            signature=header.signature,
            items=items,
            inputs={"responses": {"path": "captions.json", "sha256": "ab" * 32}},
            settings={"interval": "jackknife-wilson-0.95", "setting.count": "mentions"},
        )
    )
    return folder


def finish(folder: RunFolder, header: RunHeader = HEADER) -> None:
    tally = Tally(METRIC)
    for name in ("a", "b", "c", "d"):
        tally.merge_bytes(part(name).tally)
    folder.finish(header.report(tally, IntervalSettings()))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    viewer = Viewer(tmp_path)
    thread = threading.Thread(target=viewer.serve)
    thread.start()
    yield viewer.address
    viewer.close()
    thread.join()


def test_a_run_under_way_grows_and_keeps_what_is_open(
    chromium: Browser, served: str, tmp_path: Path
) -> None:
    page = chromium.new_page()
    watched = Watched(page)
    with begun(tmp_path / "run", 4) as folder:
        folder.add(part("a", "b"))
        page.goto(f"{served}run?name=run#item=b")
        contains(page, ".count", "All 2 items")
        page.click("summary:has-text('Settings and inputs')")
        page.keyboard.press("1")
        page.fill("input[type=search]", "sofa")
        folder.add(part("c", "d"))
        contains(page, ".count", "All 4 items")
        contains(page, "#live-state", "4 of 4 items scored")
        reads(page, "#detail-id", "b")
        assert page.input_value("input[type=search]") == "sofa"
        assert page.evaluate("document.activeElement.type") == "search"
        assert page.locator("details[open]:has-text('Settings and inputs')").count() == 1
        contains(page, ".label-panel summary", "1 label on 1 item")
        finish(folder)
    page.wait_for_selector("#live-state", state="detached")
    contains(page, ".label-panel summary", "1 label on 1 item")
    page.reload()
    contains(page, ".count", "All 4 items")
    contains(page, ".label-panel summary", "1 label on 1 item")
    assert watched.said == []
    page.close()


def test_the_overview_fits_a_narrow_screen(chromium: Browser, served: str, tmp_path: Path) -> None:
    for model in ("llava-1.5-7b", "qwen2.5-vl-7b-instruct"):
        with begun(tmp_path / model / "chair", 4) as folder:
            folder.add(part("a", "b", "c", "d"))
            finish(folder)
    # Where runs differ stands in a cell of its own, which may be long.
    other = replace(HEADER, signature=f"{HEADER.signature}|graph:{'coco-' * 20}|judge:{'m' * 90}")
    with begun(tmp_path / "other-model" / "chair", 4, header=other) as folder:
        folder.add(part("a", "b", "c", "d"))
        finish(folder, other)
    page = chromium.new_page(viewport={"width": 400, "height": 900})
    page.goto(served)
    reads(page, "tbody th a", "llava-1.5-7b")
    for place in ("html", ".scroll"):
        wide = page.locator(place).first.evaluate("each => each.scrollWidth > each.clientWidth")
        assert not wide, place
    page.close()


def test_the_overview_grows_and_keeps_what_is_chosen(
    chromium: Browser, served: str, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        with begun(tmp_path / name, 4) as folder:
            folder.add(part("a", "b", "c", "d"))
            finish(folder)
    page = chromium.new_page()
    watched = Watched(page)
    with begun(tmp_path / "three", 4) as folder:
        folder.add(part("a", "b"))
        page.goto(served)
        contains(page, "li", "2 of 4 items")
        page.check("input[name=a][value=two]")
        folder.add(part("c", "d"))
        finish(folder)
    page.wait_for_selector("text=3 complete runs")
    assert page.is_checked("input[name=a][value=two]")
    heads = page.locator("thead th").all_text_contents()
    assert heads[:6] == ["model", "A", "B", "items", "unscored", "chair_i"]
    assert watched.said == []
    page.close()


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: run make page")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(chromium: Browser, served: str, tmp_path: Path, scheme: Any) -> None:
    for name in ("one", "two"):
        with begun(tmp_path / name, 4) as folder:
            folder.add(part("a", "b", "c", "d"))
            finish(folder)
    with begun(tmp_path / "three", 4) as folder:
        folder.add(part("a", "b"))
    page = chromium.new_page(color_scheme=scheme)
    for path in ("", "run?name=three#item=a", "compare?a=one&b=two#item=a", "nowhere"):
        page.goto("about:blank")
        page.goto(f"{served}{path}")
        if "item=" in path:
            page.wait_for_selector(".detail")
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("axe.run()")["violations"]
        told = {each["id"]: [node["html"][:200] for node in each["nodes"][:3]] for each in found}
        assert told == {}, path
    page.close()
