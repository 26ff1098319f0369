"""report.html in a real browser: search, filters, keys, links, labels, and nothing from outside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs
from support import report_samples as samples
from support.browser import AXE, Watched, browser, contains, holds, needs_browser, reads

from hallujudge.labels.human_labels import read_labels
from hallujudge.metrics import Item, ItemResult, MentionVerdict, Outcome
from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Triplet, Verdict
from hallujudge.metrics.tri_he import TriHeEvidence, TriHeItem
from hallujudge.sdk.comparison.page_comparisons import PageRun, render_comparison
from hallujudge.sdk.report import HtmlPage
from hallujudge.sdk.report.page import Images, page_part

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, needs_browser]

HOSTILE = "<script>document.title = 'ran'</script><img src=x onerror=\"document.title='ran'\">"
DOG = MentionVerdict("dog", "dog", 2, 5, True)
SOFA = MentionVerdict("sofa", "couch", 11, 15, False)


def captions() -> Iterator[tuple[Item, ItemResult]]:
    """300 captions: every third has a dog that isn't there; one is hostile, one unscored."""
    for number in range(298):
        wrong = number % 3 == 0
        text = (
            "A dog on a sofa." if wrong else f"A sofa number {number}{' and more' * (number % 7)}."
        )
        yield samples.caption(f"c{number}", text, (DOG, SOFA) if wrong else ())
    yield samples.caption(HOSTILE, HOSTILE, ())
    yield samples.unscored_caption("lost")


def scene() -> tuple[Item, ItemResult]:
    graph = (Triplet("man", "on", "bike"), Triplet("bike", "is", "red"))
    claim = ClaimVerdict(
        triplet=Triplet("man", "rides", "horse"),
        verdict=Verdict.NOT_SUPPORTED,
        part=Part.OBJECT,
        score=0.43,
        margin=-0.17,
        judge="matcher",
        references=(graph[0],),
        span=(2, 19),
    )
    item = TriHeItem(
        id="q", question="What?", response="A man rides a horse.", reference_triplets=graph
    )
    _, result = samples.caption("q")
    evidence = TriHeEvidence(claims=(claim,))
    values = {name: getattr(result, name) for name in ("outcome", "statistics", "scores")}
    return item, ItemResult(id="q", group_id="7", evidence=evidence, **values)


def write(path: Path, *pairs: tuple[Item, ItemResult], images: Images | None = None) -> Path:
    page = HtmlPage()
    for item, result in pairs:
        page.add(item, result)
    path.write_text(page.render(samples.report(), images=images), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("page") / "report.html", *captions())


@pytest.fixture
def watched(chromium: Browser) -> Iterator[Watched]:
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    yield Watched(page)
    page.close()


def test_page_opens_without_errors_and_without_requests(watched: Watched, report: Path) -> None:
    page = watched.open(report)
    contains(page, ".count", "All 300 items")
    assert watched.said == []
    assert watched.requests == [report.as_uri()]
    assert page.locator(".row").count() < 60, "only rows in view exist"


def test_hostile_text_stays_text(watched: Watched, report: Path) -> None:
    page = watched.open(report)
    page.fill("input[type=search]", "onerror")
    holds(page, "document.querySelector('.count').textContent.startsWith('1 of 300')")
    page.click(".row")
    contains(page, ".response", HOSTILE)
    assert page.title() == "chair (published) – Hallujudge"
    assert page.locator("#app img").count() == 0
    assert watched.said == []


def test_search_looks_into_responses(watched: Watched, report: Path) -> None:
    page = watched.open(report)
    page.keyboard.press("/")
    page.keyboard.type("number 100")
    holds(page, "document.querySelector('.count').textContent.startsWith('1 of 300')")
    reads(page, ".row-id", "c100")


def test_items_are_sorted_opened_and_explained(watched: Watched, report: Path) -> None:
    page = watched.open(report)
    reads(page, ".row-score", "1 of 2")
    page.click(".row")
    reads(page, "#detail-id", "c0")
    reads(page, "mark.wrong", "dog")
    page.locator("mark.wrong").focus()
    contains(page, ".why", "not among the image's reference objects")
    contains(page, ".detail", "Missed bed")


def test_a_click_on_a_bar_filters_and_a_link_opens_the_same_view(
    watched: Watched, report: Path
) -> None:
    page = watched.open(report)
    page.click(".bars button:has-text('dog')")
    contains(page, ".count", "100 of 300 items")
    page.click(".row >> nth=1")
    holds(page, "location.hash.includes('c3')")
    link = page.evaluate("location.hash")
    page = watched.open(report, link)
    contains(page, ".count", "100 of 300 items")
    reads(page, "#detail-id", "c3")
    page.click("text=Clear 1 filter")
    contains(page, ".count", "All 300 items")


def test_a_brush_over_a_histogram_filters(watched: Watched, report: Path) -> None:
    page = watched.open(report)
    chart = page.locator("figure:has-text('Words of the response') svg.histogram")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] - 3, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, middle)
    page.mouse.up()
    contains(page, ".count", "of 300 items")
    holds(page, "location.hash.includes('r.words=')")


def test_keys_move_through_items_and_label_them(watched: Watched, report: Path) -> None:
    page = watched.open(report)
    for key in ("j", "j", "k"):
        page.keyboard.press(key)
    reads(page, "#detail-id", "c0")
    page.keyboard.press("j")
    page.wait_for_selector("#detail-id:has-text('c3')")
    page.keyboard.press("c")
    page.keyboard.press("2")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    contains(page, ".label-panel summary", "Labels: 2 labels on 1 item")


def test_arrows_move_in_the_list(watched: Watched, report: Path) -> None:
    page = watched.open(report)
    page.locator(".list").focus()
    for key in ("ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    reads(page, "#detail-id", "c3")
    # The list keeps the focus.
    holds(page, "document.activeElement.id === 'items-list'")
    page.keyboard.press("End")
    page.wait_for_selector(".row.selected[aria-posinset='300']")


def test_the_reason_is_in_sight_beside_a_long_response(watched: Watched, tmp_path: Path) -> None:
    text = "A dog. " + "Nothing else can be seen. " * 400 + "A sofa."
    end = len(text) - 5
    mentions = (DOG, MentionVerdict("sofa", "couch", end, end + 4, False))
    page = watched.open(write(tmp_path / "long.html", samples.caption("c", text, mentions)))
    page.keyboard.press("j")
    page.wait_for_selector(".detail")
    for word in ("dog", "couch"):
        page.keyboard.press("c")
        contains(page, ".why", word)
        holds(
            page,
            """() => {
                const [box, why, mark] = [".pane", ".why", "mark.active"].map(
                    (name) => document.querySelector(name).getBoundingClientRect());
                return why.bottom <= box.bottom + 1
                    && mark.top >= box.top && mark.bottom <= box.bottom
                    && (mark.bottom <= why.top || mark.top >= why.bottom);
            }""",
        )


def test_the_frame_of_a_chosen_word_leaves_the_full_stop_free(
    watched: Watched, tmp_path: Path
) -> None:
    path = write(tmp_path / "stop.html", samples.caption("c", "A dog.", (DOG,)))
    page = watched.open(path, "#item=c")
    page.locator("mark.wrong").focus()
    page.wait_for_selector("mark.active")
    style = page.locator("mark.active").evaluate(
        "mark => (({outlineOffset, outlineWidth, paddingRight}) => "
        "[outlineOffset, outlineWidth, paddingRight].map(parseFloat))(getComputedStyle(mark))"
    )
    offset, width, padding = style
    assert offset + width <= 1
    assert padding > -offset, "and its own letters"


def test_without_charts_there_is_no_heading_for_them(watched: Watched, tmp_path: Path) -> None:
    page = watched.open(write(tmp_path / "none.html", samples.unscored_caption("lost")))
    assert page.locator(".charts").is_hidden()


def test_labels_are_exported_and_imported_again(
    watched: Watched, report: Path, tmp_path: Path
) -> None:
    page = watched.open(report, "#item=c3")
    page.keyboard.press("1")
    page.click(".label-panel summary")
    with page.expect_download() as download:
        page.click("text=Export labels")
    saved = tmp_path / "labels.jsonl"
    download.value.save_as(saved)
    [line] = map(json.loads, saved.read_text().splitlines())
    assert (line["item"], line["label"], line["verdict"]) == ("c3", "agree", "not_supported")
    [label] = read_labels(saved)
    assert label.item == "c3", "the file is what calibration reads"
    page.evaluate("localStorage.clear()")
    page = watched.open(report)
    contains(page, ".label-panel summary", "none labelled yet")
    page.click(".label-panel summary")
    page.set_input_files("input[type=file]", saved)
    page.wait_for_selector("text=1 label read from labels.jsonl")
    contains(page, ".label-panel summary", "Labels: 1 label on 1 item")


def test_a_random_sample_can_be_labelled(watched: Watched, report: Path) -> None:
    page = watched.open(report, "#sample=20..1")
    contains(page, ".count", "20 of 300 items")


def test_unscored_items_can_be_found_by_their_reason(watched: Watched, report: Path) -> None:
    page = watched.open(report)
    page.click(".bars button:has-text('RESPONSE_MISSING')")
    contains(page, ".count", "1 of 300 items")
    page.click(".row")
    contains(page, ".detail", "the caption is null")


def test_a_scene_graph_shows_what_a_claim_was_compared_with(
    watched: Watched, tmp_path: Path
) -> None:
    page = watched.open(write(tmp_path / "scene.html", scene()), "#item=q")
    page.locator("mark.wrong").focus()
    for part in ("man · on · bike", "0.4300", "-0.1700", "matcher", "object"):
        contains(page, ".why", part)
    page.wait_for_selector(".node.lit >> nth=1")
    assert page.locator(".node.lit").count() == 2
    reads(page, "tr.lit", "manonbike")
    assert watched.said == []


def test_pictures_are_shown_beside_items(watched: Watched, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "c1.gif").write_bytes(
        bytes.fromhex("47494638396101000100800000ff0000ffffff2c00000000010001000002024401003b")
    )
    images = Images.of(str(pictures), page=tmp_path)
    path = write(tmp_path / "report.html", samples.caption("c1"), images=images)
    page = watched.open(path, "#item=c1")
    assert page.get_attribute(".picture", "alt") == "Picture of item c1"
    holds(page, "document.querySelector('.picture').naturalWidth === 1")
    assert watched.said == []


def test_two_runs_are_shown_side_by_side(watched: Watched, tmp_path: Path) -> None:
    def run(title: str, wrong: set[str]) -> PageRun:
        pairs = [
            samples.caption(name, mentions=(DOG,) if name in wrong else (SOFA,)) for name in "123"
        ]
        return PageRun(title=title, report=samples.report(), parts=[page_part(pairs)])

    path = tmp_path / "two.html"
    path.write_text(
        render_comparison(run("first", {"2"}), run("second", {"1", "2"}), [samples.difference()])
    )
    page = watched.open(path)
    reads(page, ".row-score", "A right, B wrong")
    page.click(".bars button:has-text('A right, B wrong')")
    contains(page, ".count", "1 of 3 items")
    page.wait_for_selector("text=None in the items shown, in run A.")
    page.click(".row")
    reads(page, ".side >> nth=0 >> h4", "A: first")
    reads(page, ".side >> nth=1 >> h4", "B: second")
    assert page.locator("mark.wrong").count() == 1
    assert watched.said == []


@pytest.mark.parametrize("width", [390, 1280, 2560])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(
    chromium: Browser, report: Path, width: int, scheme: Any
) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    Watched(page).open(report, "#item=c3")
    page.wait_for_selector(".detail")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_charts_fill_their_rows(chromium: Browser, report: Path) -> None:
    for width in (1280, 2560):
        page = chromium.new_page(viewport={"width": width, "height": 900})
        Watched(page).open(report)
        grid = page.locator(".chart-grid").bounding_box()
        boxes = [chart.bounding_box() for chart in page.locator(".chart").all()]
        assert grid
        assert boxes
        rows: dict[float, float] = {}
        for box in boxes:
            assert box
            rows[box["y"]] = max(rows.get(box["y"], 0), box["x"] + box["width"])
        ends = [grid["x"] + grid["width"]] * len(rows)
        assert list(rows.values()) == pytest.approx(ends, abs=1)
        page.close()


def test_verdicts_on_captions_and_on_answers_have_words_of_their_own(
    watched: Watched, tmp_path: Path
) -> None:
    asked = (
        Item(id="q1"),
        ItemResult(id="q1", group_id="1", outcome=Outcome.SCORED, evidence=samples.WRONG_ANSWER),
    )
    path = write(tmp_path / "mixed.html", samples.caption("c1"), asked)
    page = watched.open(path, "#item=c1")
    contains(page, ".claims", "hallucinated")
    page.keyboard.press("j")
    reads(page, "#detail-id", "q1")
    reads(page, ".claims .verdict", "wrong")
    reads(page, ".row.selected .row-score", "wrong")


def test_on_a_phone_scores_have_the_whole_width(chromium: Browser, report: Path) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    Watched(page).open(report)
    name = page.locator(".scores tbody th").first.bounding_box()
    value = page.locator(".scores td").first
    figure = value.bounding_box()
    assert name
    assert figure
    assert name["width"] > 300
    assert figure["y"] >= name["y"] + name["height"]
    assert value.evaluate("cell => getComputedStyle(cell, '::before').content") == '"value"'
    page.close()


def test_an_item_is_printed_below_the_first_screen(chromium: Browser, report: Path) -> None:
    page = chromium.new_page()
    Watched(page).open(report, "#item=c3")
    page.wait_for_selector(".detail")
    page.emulate_media(media="print")
    style = "item => getComputedStyle(item).breakInside"
    assert page.locator(".detail").evaluate(style) == "auto", "it begins where there is room"
    page.close()


def test_print_has_the_settings_and_says_what_is_folded(chromium: Browser, tmp_path: Path) -> None:
    scores = {f"score_{n}": samples.score(f"score_{n}", 0.5) for n in range(8)}
    page_of = HtmlPage()
    page_of.add(*samples.caption("c1"))
    path = tmp_path / "report.html"
    groups = {"category": {"random": scores}}
    path.write_text(page_of.render(samples.report(groups=groups)), encoding="utf-8")
    page = chromium.new_page()
    Watched(page).open(path)
    page.emulate_media(media="print")
    told = page.locator(".groups summary").evaluate(
        "each => getComputedStyle(each, '::after').content"
    )
    assert "open it before printing" in told
    assert page.locator(".settings").is_visible()
    assert page.locator(".empty").is_hidden(), "a page of its own for 'Choose an item'"
    page.close()


def test_on_a_phone_a_tap_opens_the_item_and_shows_where_to_label(
    chromium: Browser, report: Path
) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 600})
    Watched(page).open(report)
    page.click(".row")
    page.wait_for_selector(".detail")
    # It is in sight.
    holds(page, "document.querySelector('.detail').getBoundingClientRect().top < 300")
    claim = page.locator(".claims tbody tr").first
    claim.get_by_text("label", exact=True).click()
    claim.get_by_text("disagree").click()
    contains(page, ".label-panel summary", "Labels: 1 label on 1 item")
    assert page.locator(".why").is_visible()
    page.close()


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: run make page")
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
def test_page_is_accessible(chromium: Browser, tmp_path: Path, scheme: Any, width: int) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    path = write(tmp_path / "report.html", scene(), *captions())
    Watched(page).open(path, "#item=q")
    page.locator("mark.wrong").focus()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    told = {each["id"]: [node["html"][:200] for node in each["nodes"][:3]] for each in found}
    assert told == {}
    page.close()


def test_a_tap_says_what_a_token_probability_is(chromium: Browser, tmp_path: Path) -> None:
    item, result = scene()
    assert isinstance(result.evidence, TriHeEvidence)
    claim = structs.replace(result.evidence.claims[0], score=0.3, judge="llm")
    told = structs.replace(result, evidence=structs.replace(result.evidence, claims=(claim,)))
    path = write(tmp_path / "phone.html", (item, told))
    page = chromium.new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    Watched(page).open(path)
    page.tap(".row")
    page.tap("mark.wrong")
    assert page.locator(".why .term p").is_hidden()
    page.tap(".why .term summary")
    page.wait_for_selector(".why .term p", state="visible")
    contains(page, ".why .term p", "log-probabilities")
    page.close()
