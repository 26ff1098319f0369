"""Places of objects in pictures, in COCO's form: ``[left, top, width, height]`` in pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from hallujudge.metrics.framework.claims import well_formed

from ..errors import ArchiveError
from ..media.closer_looks import Box
from .chair_references import is_coco
from .ids import canonical_id
from .json_files import named, read_json, shown
from .records import Record
from .table_files import structured

BOXES = "boxes"
"""The key of a record's boxes."""
_NAME_KEYS = ("category", "name", "label", "category_name")
_COCO = ("images", "annotations", "categories")


def boxes_of(record: Record) -> tuple[Box, ...]:
    """Return the boxes of a record: objects with a name and ``bbox``, or name -> its boxes.

    Raises:
        ArchiveError: They have another form.
    """
    value, place = structured(record.values.get(BOXES)), f"{record.place}, {BOXES}"
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return tuple(
            _box(str(name), each, f"{place}[{name!r:.40}]")
            for name, given in value.items()
            for each in (given if _is_list_of_lists(given) else [given])
        )
    if not isinstance(value, list | tuple):
        raise ArchiveError(f"{place}: expected a list of objects, found {shown(value)}")
    return tuple(_named_box(each, f"{place}[{at}]") for at, each in enumerate(value))


def _is_list_of_lists(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, list | tuple) for each in value)


def _named_box(value: object, place: str) -> Box:
    if not isinstance(value, Mapping):
        raise ArchiveError(f"{place}: expected a name and bbox, found {shown(value)}")
    key = next((name for name in _NAME_KEYS if isinstance(value.get(name), str)), None)
    if key is None:
        raise ArchiveError(
            f"{place}: no name of the object: tried {', '.join(_NAME_KEYS)}; found "
            f"{named(sorted(map(str, value))) or 'none'}"
        )
    return _box(value[key], value.get("bbox"), place)


def _box(name: str, value: object, place: str) -> Box:
    numbers = value if isinstance(value, list | tuple) else ()
    if len(numbers) != 4 or not all(_is_number(each) for each in numbers):
        raise ArchiveError(
            f"{place}: the box of {name!r:.40} is {shown(value)}; give [left, top, width, height] "
            "in pixels"
        )
    x, y, width, height = map(float, numbers)
    if not (x >= 0 and y >= 0 and width > 0 and height > 0):
        raise ArchiveError(
            f"{place}: the box of {name!r:.40} is {shown(value)}; left and top are at least 0, "
            "width and height above 0"
        )
    return Box(name=well_formed(name.strip()), x=x, y=y, width=width, height=height)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9


def coco_boxes(references: object) -> dict[str, tuple[Box, ...]] | None:
    """Return the boxes of COCO's file of instances by image id, and by file name.

    Args:
        references: A path, or the content of a file.

    Returns:
        None if it is not such a file.

    Raises:
        ArchiveError: An entry lacks an id, a name or a box.
    """
    content, place = references, "references"
    if isinstance(references, str | Path) and is_coco(Path(references)):
        content, place = read_json(Path(references)), str(references)
    if not isinstance(content, Mapping) or not all(isinstance(content.get(k), list) for k in _COCO):
        return None
    with ArchiveError.of_content(
        f"{place}: not COCO's file of instances", "give instances_*.json as it is released"
    ):
        return dict(_coco(content, place))


def _coco(content: Mapping[str, Any], place: str) -> Iterator[tuple[str, tuple[Box, ...]]]:
    images, annotations, categories = (content[key] for key in _COCO)
    names = {each["id"]: str(each["name"]) for each in categories}
    found: dict[object, list[Box]] = {each["id"]: [] for each in images}
    for at, each in enumerate(annotations):
        # A box around a crowd shows many objects.
        if each["image_id"] in found and not each.get("iscrowd"):
            where = f"{place}, annotations[{at}]"
            found[each["image_id"]].append(_box(names[each["category_id"]], each["bbox"], where))
    for each in images:
        boxes = tuple(found[each["id"]])
        yield canonical_id(each["id"], place), boxes
        yield PurePosixPath(str(each.get("file_name", each["id"]))).name, boxes
