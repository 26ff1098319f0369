"""Files of ALOHa and RefChecker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallujudge.metrics import ChairItem
from hallujudge.sdk.archives import inspect_archives, read_items

CAPTIONS = [
    {
        "caption": "A dog.",
        "references": ["A dog."],
        "image_path": "val/COCO_val2014_000000000007.jpg",
    }
]


@pytest.mark.parametrize("content", [CAPTIONS, {"samples": CAPTIONS}])
def test_captions_of_aloha_are_joined_by_the_name_of_their_image(
    tmp_path: Path, content: object
) -> None:
    path = tmp_path / "captions.json"
    path.write_text(json.dumps(content))
    [item] = read_items("chair", path, {"7": ["dog"]})
    assert isinstance(item, ChairItem)
    assert (item.id, item.response, item.reference_objects) == ("7", "A dog.", ("dog",))


def test_a_file_of_refchecker_is_named(tmp_path: Path) -> None:
    path = tmp_path / "checked.json"
    row = {"question": "What?", "response": "A dog.", "reference": "A cat.", "Y": "Contradiction"}
    path.write_text(json.dumps([row]))
    (found,) = inspect_archives([path])
    assert found.layout == "a RefChecker file"
