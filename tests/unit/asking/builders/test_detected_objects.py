"""Detections in the forms that detectors and segmentation models write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallujudge.asking.builders.pope import DetectedObjects, read_detections
from hallujudge.sdk.errors import ArchiveError
from hallujudge.synonym_graphs import load_graph

EXPECTED = {"a.jpg": ["cat", "sofa"], "b.jpg": ["dog"], "c.jpg": []}
BOXES = [[0, 0, 1, 1], [0, 0, 2, 2], [1, 1, 2, 2]]
FORMS: dict[str, Any] = {
    "labels by image": {"a.jpg": ["sofa", "cat", "cat"], "b.jpg": ["dog"], "c.jpg": []},
    "objects by image": {
        "a.jpg": [{"label": "sofa", "score": 0.9}, {"label": "cat", "score": 0.8}],
        "b.jpg": [{"class_name": "dog", "confidence": 0.5}, {"class_name": "cow", "score": 0.1}],
        "c.jpg": [],
    },
    "lists by image": {
        "a.jpg": {"labels": ["sofa", "cat", "hat"], "scores": [0.9, 0.8, 0.2], "boxes": BOXES},
        "b.jpg": {"labels": ["dog"], "scores": [0.9]},
        "c.jpg": {"labels": [], "scores": []},
    },
    "records of the released script": [
        {"image": "a.jpg", "objects": ["sofa", "cat"]},
        {"image": "b.jpg", "objects": ["dog"]},
        {"image": "c.jpg", "objects": []},
    ],
    "records with segments": [
        {
            "file_name": "a.jpg",
            "segments_info": [{"category": "sofa", "score": 1}, {"category": "cat", "score": 1}],
        },
        {"file_name": "b.jpg", "segments_info": [{"category": "dog", "score": 0.3}]},
        {"file_name": "c.jpg", "segments_info": []},
    ],
    "a record for each detection": [
        {"image_id": "a.jpg", "category_name": "cat", "score": 0.9, "bbox": [0, 0, 1, 1]},
        {"image_id": "b.jpg", "category_name": "dog", "score": 0.9, "bbox": [0, 0, 1, 1]},
        {"image_id": "a.jpg", "category_name": "sofa", "score": 0.9, "bbox": [0, 0, 1, 1]},
        {"image_id": "c.jpg", "category_name": "sofa", "score": 0.1, "bbox": [0, 0, 1, 1]},
    ],
    "one object with categories": {
        "categories": [
            {"id": 1, "name": "cat"},
            {"id": 2, "name": "dog"},
            {"id": 3, "name": "sofa"},
        ],
        "annotations": [
            {"image_id": "a.jpg", "category_id": 1, "score": 0.9},
            {"image_id": "a.jpg", "category_id": 3, "score": 0.9},
            {"image_id": "b.jpg", "category_id": 2, "score": 0.9},
            {"image_id": "c.jpg", "category_id": 2, "score": 0.01},
        ],
    },
}


def read(folder: Path, content: Any, **settings: Any) -> DetectedObjects:
    path = folder / "detections.json"
    path.write_text(json.dumps(content))
    return read_detections(path, **settings)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read(tmp_path: Path, form: str) -> None:
    found = read(tmp_path, FORMS[form], min_score=0.25)
    assert dict(found.objects) == EXPECTED


def test_json_lines_are_read_too(tmp_path: Path) -> None:
    for rows in (FORMS["records with segments"], FORMS["records with segments"][:1]):
        path = tmp_path / "detections.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\r\n" for row in rows))
        expected = {row["file_name"]: EXPECTED[row["file_name"]] for row in rows}
        assert dict(read_detections(path).objects) == expected


def test_scores_decide_and_are_counted(tmp_path: Path) -> None:
    given = {"a": [{"label": "cat", "score": 0.5}, {"label": "dog", "score": 0.49}, "hat"]}
    found = read(tmp_path, given, min_score=0.5)
    assert dict(found.objects) == {"a": ["cat", "hat"]}
    assert (found.below, found.unscored) == (1, 1)
    assert read(tmp_path, given).objects["a"] == ["cat", "dog", "hat"]


def test_a_graph_joins_labels_and_names_what_it_does_not_know(tmp_path: Path) -> None:
    given = {
        "a": ["couch", "sofa", "puppy", "wall-brick"],
        "b": ["Dogs", "wall-brick", "dining_table", "ceiling-merged"],
    }
    found = read(tmp_path, given, graph=load_graph("coco"))
    assert found.objects["a"] == ["couch", "dog", "wall-brick"]
    assert found.objects["b"] == ["ceiling", "dining table", "dog", "wall-brick"]
    assert found.unknown == {"wall-brick": 2, "ceiling": 1}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([{"labels": ["cat"]}], r"no key for the image: tried image, .*; found labels"),
        ({"a": [{"category_id": 3, "score": 1}]}, "map numbers of categories to names"),
        ({"a": [{"bbox": []}]}, "no key for the label: tried label"),
        ({"a": {"labels": ["cat", "dog"], "scores": [1]}}, "2 labels have 1 scores"),
        ({"a": [{"label": "cat", "score": "high"}]}, 'the score is "high"; give a number'),
        ({"a": [{"label": "cat", "score": float("nan")}]}, "give a number"),
        ({"a": 3}, "the detections are 3"),
        ({"a": [3]}, "the detection is 3"),
        ([], "no records"),
        ({}, "no records"),
    ],
)
def test_other_forms_have_a_sentence_each(tmp_path: Path, content: Any, said: str) -> None:
    with pytest.raises(ArchiveError, match=said):
        read(tmp_path, content)
