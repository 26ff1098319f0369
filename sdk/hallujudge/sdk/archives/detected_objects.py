"""Objects that a detector or a segmentation model found in images, for POPE's questions.

Section 5.3 of the POPE paper asks about objects that SEEM finds, so that images need no
annotations (Tables 5 and 11). Models write labels with scores in many forms; labels of one object
are joined by a synonym graph.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hallujudge.metrics.framework.claims import json_kind

from ..errors import ArchiveError
from .ids import canonical_id
from .json_files import named, shown
from .local_files import open_text
from .records import read_records

if TYPE_CHECKING:
    from hallujudge.synonym_graphs import SynonymGraph

_IMAGE = ("image", "image_id", "file_name", "image_path", "filename", "id")
_LISTS = (
    *("objects", "labels", "detections", "instances", "segments", "segments_info"),
    *("annotations", "masks", "boxes", "classes", "pred_classes", "class_names"),
)
_LABEL = ("label", "category_name", "class_name", "class", "category", "name")
_SCORE = ("score", "scores", "confidence", "confidences", "probability", "pred_scores")
_CATEGORY = "category_id"
# COCO's panoptic classes: door-stuff, wall-other-merged.
_PANOPTIC = re.compile(r"(-other|-merged|-stuff)+$")


class DetectedObjects(Struct, frozen=True, kw_only=True):
    """Objects of images."""

    objects: Mapping[str, list[str]]
    """Image -> its objects by name, without duplicates."""
    below: int
    """Number of detections with a lower score than required."""
    unscored: int
    """Number of detections without a score, which are kept."""
    unknown: Mapping[str, int]
    """Labels that the synonym graph does not know -> images that show them."""


def read_detections(
    path: Path, *, min_score: float = 0.0, graph: SynonymGraph | None = None
) -> DetectedObjects:
    """Read what a model found in images.

    The file is an object image -> detections, records with an image and a list of detections, or
    one record for each detection, as COCO's results are. A detection is a label, or an object with
    a label and a score; scores may also be a list of their own next to the labels.

    Args:
        path: The file: JSON, or JSON lines.
        min_score: Detections with a lower score are left out.
        graph: Joins labels of one object; None leaves them as they are.

    Raises:
        ArchiveError: The file has another form, or a label has none of the known keys.
    """
    found: dict[str, dict[str, None]] = {}
    below = unscored = 0
    unknown: Counter[str] = Counter()
    for image, label, score in _detections(path):
        names = found.setdefault(image, {})
        if not label:
            continue
        if score is None:
            unscored += 1
        elif score < min_score:
            below += 1
            continue
        name = _PANOPTIC.sub("", label.strip()).replace("_", " ").strip()
        root = graph.root_of(name) if graph is not None else name
        if root is None and name not in names:
            unknown[name] += 1
        names[root or name] = None
    if not found:
        raise ArchiveError(f"{path}: no records; give a record for each image")
    return DetectedObjects(
        objects={image: sorted(names) for image, names in found.items()},
        below=below,
        unscored=unscored,
        unknown=dict(unknown),
    )


def _detections(path: Path) -> Iterator[tuple[str, str, float | None]]:
    """Yield image, label and score of each detection; an empty label for an image without any."""
    content = _one_object(path)
    if content is None:
        for record in read_records(path):
            yield from _of_record(record.values, {}, record.place)
        return
    if isinstance(content.get("annotations"), list):
        names = {
            entry.get("id"): str(entry.get("name"))
            for entry in content.get("categories") or ()
            if isinstance(entry, Mapping)
        }
        for place, entry in enumerate(content["annotations"]):
            yield from _of_record(entry, names, f"{path}: annotation {place}")
        return
    for given, value in content.items():
        image = canonical_id(given, str(path))
        yield from _of_image(image, value, {}, f"{path}: image {image!r:.60}")


def _one_object(path: Path) -> dict[str, Any] | None:
    """Return the content of a file that is one object; None for a list, or JSON lines."""
    with open_text(path) as file:
        text = file.read()
    if not text.lstrip().startswith("{"):
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    # The only line of a file of records.
    return content if isinstance(content, dict) and not _key(content, _IMAGE) else None


def _of_record(
    record: object, names: Mapping[object, str], place: str
) -> Iterator[tuple[str, str, float | None]]:
    if not isinstance(record, Mapping):
        raise ArchiveError(f"{place}: found {json_kind(record)}; give an object with an image")
    key = _key(record, _IMAGE)
    if key is None:
        raise _no_key(place, "the image", _IMAGE, record)
    image = canonical_id(record[key], place)
    rest = {name: value for name, value in record.items() if name != key}
    yield from _of_image(image, rest, names, place)


def _of_image(
    image: str, value: object, names: Mapping[object, str], place: str
) -> Iterator[tuple[str, str, float | None]]:
    """Yield the detections of an image, in any of the forms."""
    if isinstance(value, list):
        yield image, "", None
        for entry in value:
            yield (image, *_detection(entry, names, place))
        return
    if not isinstance(value, Mapping):
        raise ArchiveError(f"{place}: the detections are {shown(value)}; give a list of labels")
    key = _key(value, _LISTS)
    if key is None or not isinstance(value[key], list):
        yield (image, *_detection(value, names, place))
        return
    yield image, "", None
    # Labels of boxes and masks are a list of their own.
    labels = next((value[k] for k in ("labels", *_LISTS) if _are_labels(value.get(k))), value[key])
    scores = _scores(value, len(labels), place)
    for entry, score in zip(labels, scores, strict=True):
        label, own = _detection(entry, names, place)
        yield image, label, own if score is None else score


def _are_labels(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], (str, Mapping))


def _scores(value: Mapping[str, Any], count: int, place: str) -> Sequence[float | None]:
    key = _key(value, _SCORE)
    if key is None or not isinstance(value[key], list):
        return [None] * count
    if len(value[key]) != count:
        raise ArchiveError(
            f"{place}: {count} labels have {len(value[key])} {key}; give one score for each label"
        )
    return [_number(score, place) for score in value[key]]


def _detection(entry: object, names: Mapping[object, str], place: str) -> tuple[str, float | None]:
    """Return the label and the score of a detection; None without a score."""
    if isinstance(entry, str):
        return entry, None
    if not isinstance(entry, Mapping):
        raise ArchiveError(f"{place}: the detection is {shown(entry)}; give its label")
    score = _key(entry, _SCORE)
    value = None if score is None else _number(entry[score], place)
    if name := names.get(entry.get(_CATEGORY)):
        return name, value
    label = _key(entry, _LABEL)
    if label is None or not isinstance(entry[label], str):
        hint = "; map numbers of categories to names first" if _CATEGORY in entry else ""
        raise _no_key(place, "the label", _LABEL, entry, hint)
    return entry[label], value


def _number(value: object, place: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise ArchiveError(f"{place}: the score is {shown(value)}; give a number")


def _key(record: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((key for key in keys if key in record), None)


def _no_key(
    place: str, what: str, tried: Sequence[str], record: Mapping[str, Any], hint: str = ""
) -> ArchiveError:
    found = named(sorted(record)) or "none"
    return ArchiveError(
        f"{place}: no key for {what}: tried {', '.join(tried)}; found {found}{hint}"
    )
