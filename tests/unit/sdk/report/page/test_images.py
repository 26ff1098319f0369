"""Pictures beside items."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import pytest
from support import report_samples as samples
from support.pages import Page

from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.report import HtmlPage
from hallujudge.sdk.report.page import Images


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
    assert images.policy == "data: https://example.org"


@pytest.mark.parametrize(
    ("given", "embed", "told"),
    [
        ("https://example.org/x.jpg", False, "names neither {id} nor {group}"),
        ("https://example.org/{id}.jpg", True, "can't be embedded"),
        ("https://{id}/x.jpg", False, "is not an address of pictures; write it like"),
        ("https://a;script-src *//{id}", False, "is not an address"),
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
    assert "img-src data: file: 'self'" in shown.policy
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
