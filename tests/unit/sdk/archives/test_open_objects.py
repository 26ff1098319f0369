"""Archives of captions with reference captions and objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallujudge.metrics.open_objects import OpenObjectsItem
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.inputs import InputOptions
from hallujudge.sdk.errors import ArchiveError

CAPTIONS = [{"image_id": 7, "caption": "A dog."}]


def read(responses: Any, references: Any = None, **more: Any) -> list[OpenObjectsItem]:
    found = read_items("open-objects", responses, references, options=InputOptions(**more))
    return list(found)  # type: ignore[arg-type]  # items of this metric


@pytest.mark.parametrize(
    ("references", "captions", "objects"),
    [
        ({"7": ["A dog runs.", "Dogs."]}, ("A dog runs.", "Dogs."), None),
        ([{"image_id": 7, "captions": ["A dog runs."]}], ("A dog runs.",), None),
        ([{"image_id": 7, "objects": ["dog"]}], None, ("dog",)),
        (
            [{"image_id": 7, "references": ["A dog."], "objects": ["cat"]}],
            ("A dog.",),
            ("cat",),
        ),
        (
            [{"image_id": 7, "caption": "One."}, {"image_id": 7, "caption": "Two."}],
            ("One.", "Two."),
            None,
        ),
    ],
)
def test_layouts_of_references(references: Any, captions: Any, objects: Any) -> None:
    [item] = read(CAPTIONS, references)
    assert (item.reference_captions, item.reference_objects) == (captions, objects)
    assert (item.id, item.group_id, item.response) == ("7", "7", "A dog.")


def test_captions_of_one_image_have_ids_of_their_own() -> None:
    rows = [
        {"id": name, "image_id": 7, "caption": "A dog.", "references": ["Dogs."]} for name in "ab"
    ]
    assert [(item.id, item.group_id) for item in read(rows)] == [("a", "7"), ("b", "7")]


@pytest.mark.parametrize(
    ("responses", "references", "told"),
    [
        (CAPTIONS, None, "tried references, reference_captions"),
        (CAPTIONS, [{"image_id": 7, "words": 1}], "found image_id, words"),
        (CAPTIONS, [{"image_id": 7, "references": 5}], "not a list of texts"),
        (CAPTIONS, {"8": ["A dog."]}, "7"),
        (CAPTIONS * 2, {"7": ["A dog."]}, "more than once"),
        ([{"image_id": 7, "caption": 4}], {"7": ["A dog."]}, "caption"),
    ],
)
def test_errors_name_the_value(responses: Any, references: Any, told: str) -> None:
    with pytest.raises(ArchiveError, match=told):
        read(responses, references)


def test_images_without_reference_are_unscored_if_allowed(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in CAPTIONS * 2))
    items = read(path, {"8": ["A dog."]}, allow_unknown=True, allow_duplicates=True)
    assert [(item.id, item.reference_captions) for item in items] == [("7", None), ("7#2", None)]
