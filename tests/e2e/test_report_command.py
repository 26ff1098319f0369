"""``hallujudge report`` makes pages of one run and of two."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message
from support.pages import Page

from hallujudge.sdk import Client
from hallujudge.sdk.cli import main

CAPTIONS = {
    "good": {"1": "A dog on a sofa.", "2": "A cat.", "3": "A bus."},
    "poor": {"1": "A dog on a sofa.", "2": "A cat and a car.", "3": "A bus and a dog."},
}
OBJECTS = {"1": ["dog", "couch"], "2": ["cat"], "3": ["bus"]}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "objects.json").write_text(json.dumps(OBJECTS))
    for name, captions in CAPTIONS.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(captions))
        arguments = ["score", "chair", "-r", f"{name}.json", "-R", "objects.json", "-o", name]
        assert main([*arguments, "--quiet"]) == 0
    return {name: tmp_path / name for name in CAPTIONS}


def report(*arguments: Any) -> int:
    return main(["report", *map(str, arguments)])


def test_a_page_names_the_responses_and_inputs(runs: dict[str, Path]) -> None:
    assert report(runs["good"], "--format", "html") == 0
    page = Page((runs["good"] / "report.html").read_text())
    assert page.text.strip().startswith("good.json (published)")
    assert "references: objects.json" in page.text
    assert str(runs["good"].parent) not in page.source
    assert page.head["count"] == 3


def test_a_page_compares_with_a_baseline(runs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "pages" / "poor.html"
    given = ("--baseline", runs["good"], "--title", "Poor model", "--out", out)
    assert report(runs["poor"], "--format", "html", *given) == 0
    text = Page(out.read_text()).text
    assert text.strip().startswith("Poor model (published)")
    assert "baseline (dashed): good, 0.0000" in text


def test_a_page_compares_with_a_published_row(runs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    given = ("--format", "html", "--out", out)
    assert report(runs["poor"], *given, "--baseline", "published:llava-short") == 0
    page = Page(out.read_text())
    assert expected_message("metrics.pope:dashed-llava-li-et-al-arxiv-table") in (page.text)
    assert 'class="base"' in page.source


def test_an_unknown_published_row_is_named_with_those_that_exist(
    runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(runs["poor"], "--format", "html", "--baseline", "published:gpt-9") == 2
    told = capsys.readouterr().err
    assert (
        expected_message("sdk.comparison.page_comparisons:no-published-row-of-chair-has-the")
        in told
    )


def test_two_runs_make_one_page(runs: dict[str, Path], tmp_path: Path) -> None:
    assert report(runs["good"], runs["poor"]) == 0
    page = Page((tmp_path / "comparison.html").read_text())
    assert [side["wrong"] for side in page.columns["sides"]] == [[0, 0, 0], [0, 1, 1]]
    assert "paired" in page.text
    assert [run["title"] for run in page.head["runs"]] == ["good", "poor"]


def test_pictures_are_linked_from_the_page(runs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "COCO_val2014_000000000002.jpg").write_bytes(b"x")
    assert report(runs["good"], "--format", "html", "--images", "pictures") == 0
    page = Page((runs["good"] / "report.html").read_text())
    source = "../pictures/COCO_val2014_000000000002.jpg"
    assert page.packed("page-images-0") == ["", source, ""]


def test_embedded_pictures_without_pillow_say_what_to_install(
    runs: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "pictures").mkdir()
    monkeypatch.setitem(sys.modules, "PIL", None)
    given = ("--format", "html", "--images", "pictures", "--embed-images")
    assert report(runs["good"], *given) == 1
    told = capsys.readouterr().err
    assert (
        expected_message("sdk.report.page.document:page-with-embedded-pictures-needs-the-extra")
        in told
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("good", "poor", "good"), "3 runs: a page shows one or two"),
        (("good", "poor", "--format", "csv"), "hallujudge compare prints their differences"),
        (("good", "--format", "html", "--embed-images"), "--embed-images needs the folder"),
        (("good", "--format", "html", "--images", "nowhere"), "nowhere: not a folder of pictures"),
        (("good", "--format", "pdf"), "'pdf': choose from"),
        (("good", "--baseline", "poor"), "--baseline is for the page only; add --format html"),
        (("good", "--format", "csv", "--images", "nowhere"), "--images is for the page only"),
        (("good", "poor", "--title", "x"), "--title is for the page of one run"),
        (("good", "--out", "x.html"), "--out is for the page only; add --format html"),
        (("nowhere",), "nowhere"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(
    runs: dict[str, Path], arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runs
    capsys.readouterr()
    assert report(*arguments) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1


def test_a_baseline_of_another_metric_is_refused(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Client.embedded() as client:
        rows = [{"question_id": 1, "response": "Yes", "label": "yes"}]
        client.score("pope", responses=rows).save(tmp_path / "pope")
    given = ("--format", "html", "--baseline", tmp_path / "pope")
    assert report(runs["good"], *given) == 2
    assert (
        expected_message("studies.analysis.mementos:run-of-pope-not-of-chair-give")
        in capsys.readouterr().err
    )
