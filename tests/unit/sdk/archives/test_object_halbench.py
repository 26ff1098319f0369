"""Archives of Object HalBench: released files, odd lists of objects, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallujudge.metrics.object_halbench import ObjectHalBenchItem
from hallujudge.sdk import inspect_archives
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.inputs import InputOptions
from hallujudge.sdk.errors import ArchiveError

LINE = {"image_id": 7, "question": "What?", "answer": "Assistant: A dog. ", "objs": ["dog"]}
OBJECTS = {"7": ["dog"], "8": ["cat"]}


def read(*lines: dict[str, Any], references: Any = None, **more: Any) -> list[ObjectHalBenchItem]:
    options = InputOptions(**more)
    return list(read_items("object-halbench", list(lines), references or OBJECTS, options=options))  # type: ignore[arg-type]  # items of this metric


def test_the_speaker_is_left_out_and_text_comes_before_answer() -> None:
    [first] = read(LINE)
    assert (first.id, first.question, first.response) == ("7", "What?", "A dog.")
    assert (first.predicted_objects, first.reference_objects) == (("dog",), ("dog",))
    [both] = read({**LINE, "text": "A cat.", "prompt": "And?"})
    assert (both.question, both.response) == ("And?", "A cat.")


@pytest.mark.parametrize(
    ("objs", "found"),
    [(None, None), ("-1\n<no_response>", None), ([], ()), ('["a", "b"]', ("a", "b"))],
)
def test_lists_that_are_absent_and_lists_that_are_empty(objs: Any, found: Any) -> None:
    [item] = read({**LINE, "objs": objs})
    assert item.predicted_objects == found


def test_an_archive_without_objects_is_read() -> None:
    [item] = read({key: value for key, value in LINE.items() if key != "objs"})
    assert item.predicted_objects is None


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({**LINE, "image_id": 8, "objs": "dog"}, "not a list of texts"),
        ({**LINE, "image_id": 8, "objs": [1]}, "not a list of texts"),
        ({"image_id": 8, "answer": "A dog."}, "tried objs; found answer, image_id"),
        ({**LINE, "image_id": 9}, "9"),
        (LINE, "7"),
        ({**LINE, "image_id": 8, "answer": 3}, "answer"),
    ],
)
def test_errors_name_the_value(line: dict[str, Any], told: str) -> None:
    with pytest.raises(ArchiveError, match=told):
        list(read(LINE, line))


def test_images_without_reference_and_repeated_ones_are_read_if_allowed() -> None:
    items = read(LINE, LINE, {**LINE, "image_id": 9}, allow_duplicates=True, allow_unknown=True)
    assert [(item.id, item.reference_objects) for item in items] == [
        ("7", ("dog",)),
        ("7#2", ("dog",)),
        ("9", None),
    ]


def test_the_scripts_own_output_is_scored_again(tmp_path: Path) -> None:
    sentence = {
        "image_id": 7,
        "caption": "A dog and a cat.",
        "mscoco_hallucinated_words": [["cat", ["cat", "cat"]]],
        "mscoco_gt_words": ["dog"],
        "words": ["dog", "cat"],
    }
    path = tmp_path / "hall_answers_-1.json"
    path.write_text(json.dumps({"sentences": [sentence], "overall_metrics": {"CHAIRs": 1}}))
    [item] = read_items("object-halbench", path, None)
    assert isinstance(item, ObjectHalBenchItem)
    assert (item.predicted_objects, item.reference_objects) == (("dog", "cat"), ("dog",))


def test_inspection_names_the_metric(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps(LINE) + "\n")
    [found] = inspect_archives([path])
    assert (found.role, found.metrics) == ("responses", ("object-halbench",))
    assert "hallujudge score object-halbench --responses" in found.command
