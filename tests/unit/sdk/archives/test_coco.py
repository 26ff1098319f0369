"""COCO's own annotation files as references for CHAIR."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.running import assert_refused, here

from hallujudge.sdk import read_items
from hallujudge.sdk.archives.chair_references import coco_number, read_coco
from hallujudge.sdk.errors import ArchiveError

IMAGES = [{"id": 40468, "file_name": "COCO_val2014_000000040468.jpg"}, {"id": 7}, {"id": 8}]
INSTANCES: dict[str, Any] = {
    "info": {"year": 2014},
    "images": IMAGES,
    "annotations": [
        {"image_id": 40468, "category_id": 1, "segmentation": [[1.0, 2.0]], "id": 1},
        {"image_id": 40468, "category_id": 2, "id": 2},
        {"image_id": 7, "category_id": 2, "id": 3},
    ],
    "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "tv"}],
}
CAPTIONS: dict[str, Any] = {
    "images": IMAGES,
    "annotations": [
        {"image_id": 40468, "caption": "A man and two puppies on a sofa."},
        {"image_id": 7, "caption": "A television."},
    ],
}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "instances_val2014.json", tmp_path / "captions_val2014.json"]
    for path, content in zip(paths, (INSTANCES, CAPTIONS), strict=True):
        path.write_text(json.dumps(content))
    return paths


def test_both_together_are_the_union(files: list[Path]) -> None:
    assert read_coco(files[:1]) == {"40468": ["person", "tv"], "7": ["tv"], "8": []}
    assert read_coco(files[1:]) == {"40468": ["couch", "dog", "person"], "7": ["tv"], "8": []}
    union = {"40468": ["couch", "dog", "person", "tv"], "7": ["tv"], "8": []}
    assert read_coco(files) == read_coco(files[::-1]) == union


@pytest.mark.parametrize("count", [1, 2])
def test_they_are_references_and_file_names_join_numbers(files: list[Path], count: int) -> None:
    responses = [
        {"image": "COCO_val2014_000000040468.jpg", "caption": "A dog."},
        {"image": 7, "caption": "A tv."},
    ]
    references = files[0] if count == 1 else files
    items = list(read_items("chair", responses, references))
    expected = {key: tuple(value) for key, value in read_coco(files[:count]).items()}
    assert {i.id: i.reference_objects for i in items} == {  # type: ignore[attr-defined]
        key: expected[key] for key in ("40468", "7")
    }


@pytest.mark.parametrize(
    ("identifier", "number"),
    [
        ("COCO_val2014_000000040468.jpg", "40468"),
        ("val2014/COCO_val2014_000000040468", "40468"),
        ("40468", "40468"),
        ("000000040468.jpg", "40468"),
        ("val2017/000000040468.JPG", "40468"),
        ("val2017\\000000040468.png", "40468"),
        ("http://images.cocodataset.org/val2017/000000040468.jpg", "40468"),
        ("000000040468", "40468"),
        ("000000000000.jpg", "0"),
        ("123456789012.jpg", "123456789012.jpg"),
        ("00000040468.jpg", "00000040468.jpg"),
        ("0000000040468.jpg", "0000000040468.jpg"),
        ("000000040468_blurred.jpg", "000000040468_blurred.jpg"),
        ("000000040468.jpg.1", "000000040468.jpg.1"),
        ("x000000040468.jpg", "x000000040468.jpg"),
        ("\u0660" * 11 + "\u0664.jpg", "\u0660" * 11 + "\u0664.jpg"),
        ("my_COCO_image", "my_COCO_image"),
    ],
)
def test_numbers_of_file_names(identifier: str, number: str) -> None:
    assert coco_number(identifier) == number


@pytest.mark.parametrize("name", ["000000040468.jpg", "COCO_val2014_000000040468.jpg"])
def test_names_of_either_year_join_numbers_and_each_other(files: list[Path], name: str) -> None:
    [item] = read_items("chair", {name: "A dog."}, files)
    assert item.id == "40468"
    other = {"40468": ["dog"], "val2017/000000000007.jpg": ["tv"]}
    items = list(read_items("chair", {name: "A dog.", "7": "A tv."}, other))
    assert [item.id for item in items] == ["40468", "7"]


def test_two_names_of_one_image_are_refused(files: list[Path]) -> None:
    names = ["000000040468.jpg", "COCO_val2014_000000040468.jpg"]
    with pytest.raises(ArchiveError, match="duplicate image ids: 40468"):
        list(read_items("chair", dict.fromkeys(names, "A dog."), files))
    with pytest.raises(ArchiveError, match="duplicate image ids in the references: 40468"):
        list(read_items("chair", {"40468": "A dog."}, {name: ["dog"] for name in names}))


def test_a_file_of_other_ids_than_its_file_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "instances_mine.json"
    images = [{"id": 1, "file_name": "000000040468.jpg"}, {"id": 2, "file_name": "cat.jpg"}]
    path.write_text(json.dumps({"images": images[1:], "annotations": []}))
    assert read_coco([path]) == {"2": []}
    path.write_text(json.dumps({"images": images, "annotations": []}))
    with pytest.raises(ArchiveError, match=r"image 1 has the file name '000000040468\.jpg', which"):
        read_coco([path])


def test_files_that_do_not_belong_together_are_refused(files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "objects.json").write_text('{"7": ["tv"]}')
    with pytest.raises(ArchiveError, match=r"objects\.json: not one of COCO's annotation files"):
        read_items("chair", {"7": "A tv."}, [files[0], tmp_path / "objects.json"])
    (tmp_path / "panoptic.json").write_text('{"images": [], "annotations": [{"image_id": 7}]}')
    with pytest.raises(ArchiveError, match="image 7 has neither a caption nor a known category_id"):
        read_coco([tmp_path / "panoptic.json"])


def test_lists_and_objects_under_image_ids_get_a_sentence_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "mixed.json"
    path.write_text('{"1": ["dog"], "2": {"objects": ["cat"]}, "3": {"objects": []}}')
    with pytest.raises(ArchiveError) as caught:
        read_items("chair", {"1": "A dog."}, path)
    assert str(caught.value) == (
        f"{path}: the image ids 2, 3 hold an object where a list is expected. Write a list of "
        "object names under every image id"
    )


def test_a_text_in_place_of_a_list_is_named_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mixed.json"
    path.write_text('{"1": ["dog"], "2": "cat"}')
    with pytest.raises(ArchiveError, match="image '2': expected a list of object names"):
        read_items("chair", {"1": "A dog."}, path)


def test_the_command_writes_references_that_are_read_again(
    files: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "objects.json"
    given = ("build", "references", "--instances", files[0], "--captions", files[1])
    assert here(*given, "-o", out).stdout == f"objects of 3 images written to {out}\n"
    assert json.loads(out.read_text()) == read_coco(files)
    assert_refused(here(*given, "-o", files[0]), "is one of the inputs; name another file")
