"""The HTML page as text, and its pictures; tests/e2e/test_report_page.py opens it in a browser."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec import structs
from support import report_samples as samples
from support.messages import expected_message
from support.pages import Page
from support.running import here

from hallujudge.metrics import Item, ItemResult, MentionVerdict, Score
from hallujudge.metrics.framework.signature import CARD_NOTE
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.report import HtmlPage, PageAbout
from hallujudge.sdk.report.page import MOST_PAGE_ITEMS, Images, page_part, render_parts
from hallujudge.sdk.report.page.document import held_parts
from hallujudge.sdk.report.page.page_parts import MOST_PAGE_BYTES, score_scale
from hallujudge.sdk.runs.manifest import Manifest
from hallujudge.sdk.runs.saved_items import about_of

ABOUT = PageAbout(
    title="LLaVA-1.5",
    inputs=(("captions.json", "ab" * 32),),
    date="2026-01-02",
    baseline=("Table 2, LLaVA", {"chair_i": 0.188}),
)


def source_of(*pairs: tuple[Item, ItemResult], **options: object) -> str:
    page = HtmlPage()
    for item, result in pairs:
        page.add(item, result)
    return page.render(samples.report(**options))  # type: ignore[arg-type]  # the sample's own options


def page_of(*pairs: tuple[Item, ItemResult], **options: object) -> Page:
    return Page(source_of(*pairs, **options))


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_first_screen_has_scores_coverage_notes_signature_and_settings() -> None:
    text = page_of(unscored=2).text
    for part in (
        *("0.1877", "[0.1700, 0.2000]", "1,998 of 2,000 items scored", "graph version"),
        *("They could make chair_i 0.1000 to 0.3000.", "The graph is not the published table."),
    ):
        assert part in text
    assert samples.SIGNATURE in page_of().text


def test_first_screen_says_what_was_scored_and_what_it_is_compared_with() -> None:
    text = Page(HtmlPage().render(samples.report(), ABOUT)).text
    for part in ("LLaVA-1.5", "2026-01-02", "captions.json", "ab" * 32, "Table 2, LLaVA", "0.1880"):
        assert part in text


def test_labels_of_one_run_are_not_those_of_another_that_was_scored_alike() -> None:
    first = page_of(samples.caption("1", "A dog."))
    other = page_of(samples.caption("1", "A cat."))
    assert first.head["key"] != other.head["key"]
    assert first.head["key"] == page_of(samples.caption("1", "A dog.")).head["key"]


def test_labels_of_a_run_under_way_are_those_of_the_complete_run() -> None:
    def key(*pairs: tuple[Item, ItemResult], signature: str) -> str:
        page = HtmlPage()
        for item, result in pairs:
            page.add(item, result)
        head = Page(page.render(samples.report(signature=signature), ABOUT)).head
        return str(head["key"])

    early = samples.SIGNATURE.replace("n:2000", "n:1")
    complete = key(samples.caption("1"), samples.caption("2"), signature=samples.SIGNATURE)
    assert key(samples.caption("1"), signature=early) == complete


def test_scores_after_the_first_ones_are_folded_up() -> None:
    scores = {f"score_{n}": samples.score(f"score_{n}", n / 100) for n in range(20)}
    report = replace(samples.report(groups={"category": {"random": scores}}), scores=scores)
    page = Page(HtmlPage().render(report))
    assert "12 more scores" in page.text, "of the run"
    assert "14 more scores" in page.text, "of its groups"
    assert all(name in page.text for name in scores)


def test_scores_without_items_are_folded_up_unless_all_are() -> None:
    ran, other = samples.score("rr_blur", 0.5), samples.score("rr_noise", None)
    scores = {"rr_noise": replace(other, n=0), "rr_blur": ran}
    told = Page(HtmlPage().render(replace(samples.report(), scores=scores))).text
    assert told.index("rr_blur", told.index("Scores")) < told.index("1 score without items")
    alone = {"rr_noise": scores["rr_noise"]}
    assert (
        "without items" not in Page(HtmlPage().render(replace(samples.report(), scores=alone))).text
    )


def test_the_scale_names_its_ticks_alike_and_ends_rates_at_one() -> None:
    def ticks(score: Score) -> list[str]:
        return re.findall(r"<text [^>]*>([^<]*)</text>", score_scale(score))

    assert ticks(samples.score("chair_i", 0.1876, 0.1793, 0.1961)) == [
        *("0.17", "0.18", "0.19", "0.20", "0.21"),
    ]
    assert ticks(samples.score("chair_i", 0.66, 0.04, 0.99)) == ["0.0", "0.5", "1.0"]
    assert float(ticks(samples.score("mean_words", 0.99, 0.5, 1.2))[-1]) > 1
    rating = samples.score("average_score", 5.0, 4.1, 5.9)
    scale = score_scale(rating, highest=6.0)
    assert re.findall(r"<text [^>]*>([^<]*)</text>", scale)[-1].rstrip("0.") == "6"


def test_each_tick_of_the_scale_has_its_number_below_it() -> None:
    drawn = score_scale(samples.score("chair_i", 0.66, 0.04, 0.99))
    svg = ElementTree.fromstring(drawn)
    bottom = float(svg.attrib["viewBox"].split()[3])
    axis, *ticks = (line.attrib for line in svg.findall("line[@class='axis']"))
    ticks = [line for line in ticks if line["y1"] == axis["y1"]]
    numbers = [text.attrib for text in svg.findall("text")]
    assert [number["x"] for number in numbers] == [tick["x1"] for tick in ticks]
    for tick, number in zip(ticks, numbers, strict=True):
        assert (tick["x1"], number["text-anchor"]) == (tick["x2"], "middle")
        assert float(axis["y1"]) < float(tick["y2"]) < float(number["y"]) < bottom


def test_charts_of_one_field_and_of_a_group_have_different_titles(tmp_path: Path) -> None:
    rows = [
        {"question_type": name, "image_id": f"{n}", "question": "What?", "image_src": "u"}
        | {"question_topic": "t", "image_content": ["cup"], "gt_answer": "A cup."}
        | {"model_answer": "A cup."}
        for n, name in enumerate(("holistic", "attribute"))
    ]
    reviews = [{"choices": [{"message": {"content": "Rating: 6"}}]}] * 2
    for name, content in (("answers.json", rows), ("reviews.json", reviews)):
        (tmp_path / name).write_text(json.dumps(content))
    files = ("-r", tmp_path / "answers.json", "--reviews", tmp_path / "reviews.json")
    done = here("score", "mmhal", *files, "-o", tmp_path / "out", "--format", "html")
    assert done.returncode == 0, done.stderr
    page = Page((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    titles = [facet["label"] for facet in page.head["facets"]]
    assert len(titles) == len(set(titles))
    assert "Type (group of the report)" in titles


def test_long_names_break_at_underscores() -> None:
    groups = {"category": {"random": {"rr_motion_blur": samples.score("rr_motion_blur", 0.5)}}}
    about = structs.replace(ABOUT, title="llava_captions.json")
    source = HtmlPage().render(samples.report(groups=groups), about)
    assert "<h1>llava_<wbr>captions.json</h1>" in source
    assert ">rr_<wbr>motion_<wbr>blur</th>" in source


def test_groups_leave_out_scores_that_none_of_them_has() -> None:
    scores = {"chair_i": samples.score("chair_i", 0.5), "chair_s": samples.score("chair_s", None)}
    source = HtmlPage().render(samples.report(groups={"category": {"random": scores}}))
    [head] = re.findall(r"<thead>(?:(?!</thead>).)*category.*?</thead>", source)
    names = re.findall(r"<th [^>]*>(.*?)</th>", head.replace("<wbr>", ""))
    assert names == ["category", "chair_i"]


def test_figures_of_a_score_name_their_columns() -> None:
    source = HtmlPage().render(samples.report())
    cells = re.findall(r'<td data-label="([^"]*)">([^<]*)</td>', source)
    assert ("95% interval", "[0.1700, 0.2000]") in cells


def test_groups_are_shown_with_intervals() -> None:
    groups = {"category": {"random": {"chair_i": samples.score("chair_i", 0.5, 0.4, 0.6)}}}
    text = page_of(groups=groups).text
    assert "By category" in text
    assert "[0.4000, 0.6000]" in text


def test_page_allows_its_own_script_and_style_and_nothing_else() -> None:
    page = page_of(samples.caption("1"))
    [script], [style] = page.scripts, page.styles
    assert page.policy.split("; ") == [
        "default-src 'none'",
        f"script-src {digest(script)}",
        f"style-src {digest(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert "url(" not in style
    assert "@import" not in style
    assert not re.search(r"\b(fetch|XMLHttpRequest|eval|importScripts|sendBeacon)\s*\(", script)


def test_hostile_text_stays_text() -> None:
    hostile = f"{samples.HOSTILE}</script><!--"
    mention = MentionVerdict(hostile, hostile, 0, 30, True)
    groups = {hostile: {hostile: {hostile: samples.score(hostile, 0.5)}}}
    page = page_of(
        samples.caption(hostile, hostile, (mention,), group_id=hostile),
        samples.unscored_caption(hostile),
        unscored=1,
        groups=groups,
        metric=hostile,
        signature=hostile,
    )
    assert len(page.scripts) == 1
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]
    # The script's own text holds the control characters that it escapes.
    around = page.source.replace(page.scripts[0], "")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", around)
    assert page.items()[0][0]["passages"][0]["text"].startswith("<script>alert(1)</script>")
    assert page.source.encode()


def test_page_holds_every_item_in_order() -> None:
    page = page_of(*(samples.caption(f"i{number}") for number in range(150)))
    assert page.head["count"] == 150
    assert page.columns["ids"] == [f"i{number}" for number in range(150)]
    assert len(page.items()) == 150


def test_page_stays_small_whatever_comes() -> None:
    long = "a dog " * 200_000
    mentions = tuple(MentionVerdict("dog", "dog", at, at + 3, True) for at in range(2, 60_000, 6))
    page = page_of(samples.caption("x" * 10_000, long, mentions))
    assert len(page.source) < 200_000
    assert "1,180,000 more characters" in page.items()[0][0]["passages"][0]["text"]


def test_page_holds_parts_up_to_its_limits() -> None:
    part = page_part([samples.caption(str(n)) for n in range(64)])
    assert len(held_parts([part] * 1000)) * 64 == -(-MOST_PAGE_ITEMS // 64) * 64
    large = bytes(MOST_PAGE_BYTES // 2 + 1)
    assert len(held_parts([large] * 5)) == 2


def test_a_run_beyond_the_limit_says_so() -> None:
    page = render_parts(
        [page_part([samples.caption("1")])], samples.report(), PageAbout(), Images()
    )
    assert (
        expected_message("sdk.report.page.document:the-page-shows-the-first-of-items")
        in Page(page).text
    )


def test_page_is_the_same_for_the_same_run() -> None:
    pairs = [samples.caption("1"), samples.caption("2")]
    assert source_of(*pairs) == source_of(*pairs)
    parts = [page_part(pairs)]
    assert render_parts(parts, samples.report(), PageAbout(), Images()) == source_of(*pairs)


def test_empty_run_has_a_page() -> None:
    page = page_of()
    assert page.head["count"] == 0
    assert page.columns["ids"] == []


def test_the_judges_card_can_be_taken_from_the_first_screen() -> None:
    card = '{\n "judge": "tiny <b>"\n}\n'
    note = f"{CARD_NOTE} (81772367e3a8) of tiny: it agrees with labels."
    run = Manifest(
        release="1", metric="tri-he", variant="published", signature="", items=1, inputs={},
        settings={"option.card": card}, run={},
    )  # fmt: skip
    report = replace(samples.report(), notes=("Another note.", note))
    source = HtmlPage().render(report, about_of(run))
    [link] = re.findall(r'<a href="data:application/json;base64,([^"]+)" download="(.+?)"', source)
    assert base64.b64decode(link[0]).decode() == card
    assert link[1] == "judge-card.json"
    assert (
        expected_message("sdk.report.page.first_screen:all-figures-judge-card-json", note)
        in Page(source).text
    )
    assert "judge-card.json" not in HtmlPage().render(report, PageAbout())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pictures = tmp_path / "pictures" / "val2014"
    pictures.mkdir(parents=True)
    for name in ("COCO_val2014_000000000042.jpg", "cat photo.png", "notes.txt"):
        (pictures / name).write_bytes(b"x")
    return tmp_path / "pictures"


def test_files_are_found_by_name_stem_and_number(folder: Path, tmp_path: Path) -> None:
    images = Images.of(str(folder), page=tmp_path / "run")
    coco = "../pictures/val2014/COCO_val2014_000000000042.jpg"
    assert images.source("42", "42") == coco
    assert images.source("42: What is there?", "42") == coco
    assert images.source("q1", "COCO_val2014_000000000042.jpg") == coco
    assert images.source("q1", "cat photo.png") == "../pictures/val2014/cat%20photo.png"
    assert images.source("notes", "notes.txt") == ""


def test_a_videos_middle_frame_is_shown(tmp_path: Path) -> None:
    for video, count in (("action_0", 5), ("2", 3)):
        (tmp_path / "frames" / video).mkdir(parents=True)
        for number in range(count):
            (tmp_path / "frames" / video / f"{number:04}.jpg").write_bytes(b"x")
    (tmp_path / "frames" / "walk").mkdir()
    (tmp_path / "frames" / "walk" / "walk_0009.png").write_bytes(b"x")
    images = Images.of(str(tmp_path / "frames"), page=tmp_path)
    assert images.source("action_0", "action_0") == "frames/action_0/0002.jpg"
    assert images.source("q7", "2") == "frames/2/0001.jpg"
    assert images.source("walk", "walk") == "frames/walk/walk_0009.png"


def test_a_folder_of_many_images_is_not_a_video(tmp_path: Path) -> None:
    for shard, name in (("42", "COCO_000000000007.jpg"), ("43", "COCO_000000000042.jpg")):
        (tmp_path / "images" / shard).mkdir(parents=True)
        (tmp_path / "images" / shard / name).write_bytes(b"x")
    images = Images.of(str(tmp_path / "images"), page=tmp_path)
    assert images.source("42", "42") == "images/43/COCO_000000000042.jpg"


def test_addresses_are_filled_in_and_escaped(tmp_path: Path) -> None:
    images = Images.of("https://example.org/{group}/{id}.jpg", page=tmp_path)
    assert images.source("a/b {group}", "7") == "https://example.org/7/a%2Fb%20%7Bgroup%7D.jpg"
    assert images.policy == expected_message("sdk.report.page.document:data-https-example-org")


@pytest.mark.parametrize(
    ("given", "embed", "told"),
    [
        ("https://example.org/x.jpg", False, "names neither {id} nor {group}"),
        ("https://example.org/{id}.jpg", True, "can't be embedded"),
        ("https://{id}/x.jpg", False, "is not an address of pictures; write it like"),
        ("https://a;script-src *//{id}", False, "is not an address"),
        ("https://ana:pw@h/{id}.jpg", False, r"'https://\*\*\*@h/{id}.jpg' is not an address"),
        ("nowhere", False, "not a folder of pictures"),
    ],
)
def test_bad_sources_are_refused(given: str, embed: bool, told: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=told):
        Images.of(given, page=tmp_path, embed=embed)


def test_page_holds_sources_only_where_there_are_pictures(folder: Path, tmp_path: Path) -> None:
    page = HtmlPage()
    for name in ("42", "43"):
        page.add(*samples.caption(name))
    shown = Page(page.render(samples.report(), images=Images.of(str(folder), page=tmp_path)))
    assert shown.packed("page-images-0")[1] == ""
    assert shown.packed("page-images-0")[0].endswith("42.jpg")
    assert expected_message("sdk.report.page.document:img-src-data-file-self") in shown.policy
    assert not Page(page.render(samples.report())).has("page-images-0")


def test_thumbnails_are_embedded_and_damaged_files_left_out(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    image.new("RGB", (900, 600), "red").save(tmp_path / "1.png")
    (tmp_path / "2.png").write_bytes(b"not a picture")
    images = Images.of(str(tmp_path), page=tmp_path, embed=True)
    kind, _, data = images.source("1", "1").partition(",")
    assert kind == "data:image/jpeg;base64"
    assert image.open(io.BytesIO(base64.b64decode(data))).size == (320, 213)
    assert images.source("2", "2") == ""
    assert images.policy == "data:"


def test_thumbnails_are_upright_and_as_viewers_show_them(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    turned = image.Exif()
    turned[0x0112] = 6
    image.new("RGB", (90, 60), "red").save(tmp_path / "turned.jpg", exif=turned)
    image.new("RGBA", (8, 8), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    image.new("P", (8, 8), 0).save(tmp_path / "palette.png", transparency=0)
    image.new("I;16", (8, 8), 40_000).save(tmp_path / "grey.png")
    images = Images.of(str(tmp_path), page=tmp_path, embed=True)

    def opened(name: str) -> Any:
        data = images.source(name, name).partition(",")[2]
        return image.open(io.BytesIO(base64.b64decode(data)))

    assert opened("turned").size == (60, 90)
    assert opened("clear").getpixel((4, 4)) == opened("palette").getpixel((4, 4)) == (255, 255, 255)
    assert opened("grey").getpixel((4, 4)) == pytest.approx((156, 156, 156), abs=2)
