"""COCO annotation files as references: objects of images, from instances and captions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hallujudge.judge_service.errors import fault_of
from hallujudge.synonym_graphs import compile_matcher, load_graph

from ..errors import ArchiveError
from .local_files import open_text

__all__ = ["SHORTEST_NAME", "coco_number", "is_coco", "read_coco"]

_TABLE = "coco-published"
_HEAD_CHARS = 4096
_FIRST_KEYS = re.compile(r'\s*\{\s*"(info|images|annotations|licenses|categories|type)"\s*:')
# COCO_val2014_000000040468.jpg, as of 2014, and 000000040468.jpg, as of 2017.
_FILE_NAME = re.compile(
    r"(?:.*[/\\])?(?:COCO_[a-z]+\d{4}_0*(\d+)|(?=0\d{11}(?!\d))0*(\d+))(?:\.[a-z]+)?",
    re.ASCII | re.IGNORECASE,
)
SHORTEST_NAME = 12
"""Length of the shortest file name."""

# All other keys are dropped while a file is read: segmentations alone are 95 % of it.
_KEPT = frozenset(
    [
        *("annotations", "caption", "categories", "category_id", "file_name", "id", "image_id"),
        *("images", "name"),
    ]
)


def coco_number(identifier: str) -> str:
    """Return the image id in a COCO file name.

    ``COCO_val2014_000000040468.jpg`` and ``000000040468.jpg`` are 40468. Other ids are returned as
    they are.
    """
    # Nearly no id is as long as a file name.
    if len(identifier) < SHORTEST_NAME or (match := _FILE_NAME.fullmatch(identifier)) is None:
        return identifier
    return match[1] or match[2]


def is_coco(path: Path) -> bool:
    """Return whether a file begins as COCO's annotation files do."""
    try:
        with open_text(path) as stream:
            return _FIRST_KEYS.match(stream.read(_HEAD_CHARS)) is not None
    except (OSError, UnicodeDecodeError, ArchiveError):
        return False


def read_coco(paths: Sequence[Path]) -> dict[str, list[str]]:
    """Return image id -> its objects, from ``instances_*.json`` and ``captions_*.json``.

    As in the published procedure, an image shows the objects of its instances and those that its
    human captions mention, each by the published word table.

    Args:
        paths: The files; of either kind, of any split, in any order.

    Raises:
        ArchiveError: A file is not one of COCO's annotation files, or its image ids are not the
            numbers of its file names.
    """
    graph = load_graph(_TABLE)
    find = compile_matcher(graph, variant="published").find
    found: dict[str, set[str]] = {}
    for path in paths:
        content = _read(path)
        for image in _list(content, "images"):
            found.setdefault(_id_of(image, path), set())
        names = {entry.get("id"): str(entry.get("name")) for entry in _list(content, "categories")}
        for annotation in _list(content, "annotations"):
            objects = found.setdefault(str(annotation.get("image_id")), set())
            if "caption" in annotation:
                objects.update(mention.object for mention in find(str(annotation["caption"])))
            else:
                name = names.get(annotation.get("category_id"), "")
                if not name:
                    raise ArchiveError(
                        f"{path}: an annotation of image {annotation.get('image_id')} has neither "
                        "a caption nor a known category_id; give instances_*.json or "
                        "captions_*.json"
                    )
                objects.add(graph.root_of(name) or name)
    return {image: sorted(objects) for image, objects in found.items()}


def _id_of(image: Mapping[str, Any], path: Path) -> str:
    """The id of an image. A caption may be of its id or of its file name, so both must agree."""
    identifier, name = str(image.get("id")), str(image.get("file_name") or "")
    if (number := coco_number(name)) not in (name, identifier):
        raise ArchiveError(
            f"{path}: image {identifier} has the file name {name!r:.60}, which is image {number} "
            "in COCO. Give COCO's own file, or objects by image id in one JSON object"
        )
    return identifier


def _list(content: Mapping[str, Any], key: str) -> Iterable[Mapping[str, Any]]:
    entries = content.get(key)
    return [entry for entry in entries if isinstance(entry, Mapping)] if entries else ()


def _read(path: Path) -> Mapping[str, Any]:
    try:
        with open_text(path) as stream:
            content = json.load(
                stream, object_pairs_hook=lambda pairs: {k: v for k, v in pairs if k in _KEPT}
            )
    except OSError as err:
        raise ArchiveError(f"{path}: {err.strerror or err}; check the path") from err
    except (ValueError, RecursionError) as err:
        raise ArchiveError(f"{path}: {fault_of(err)}; download it again") from err
    if not isinstance(content, Mapping) or not isinstance(content.get("annotations"), list):
        raise ArchiveError(
            f"{path}: not one of COCO's annotation files, which hold a list 'annotations'; give "
            "instances_*.json or captions_*.json"
        )
    return content
