"""Files of DASH-B and ELV-Halluc: answers yes and no with their labels, and lists of images."""

from __future__ import annotations

from collections.abc import Mapping

from .archive_reader import ArchiveReader


def _lists_dash_b(values: Mapping[str, object]) -> bool:
    """Return whether an object maps datasets to objects with lists of image files."""
    held = [value for key, value in values.items() if key != "id"]
    return bool(held) and all(isinstance(each, Mapping) and _maps_to_files(each) for each in held)


def _maps_to_files(objects: Mapping[str, object]) -> bool:
    return bool(objects) and all(
        isinstance(files, list)
        and bool(files)
        and all(isinstance(file, str) and "." in file for file in files)
        for files in objects.values()
    )


READERS = (
    ArchiveReader(
        name="DASH-B's answers",
        keys=("img_id", "object_name", "gt", "response"),
        metrics=("dash-b",),
        fields={"id": "", "response": "response", "label": "gt"},
    ),
    ArchiveReader(
        name="DASH-B's list of images",
        keys=(),
        metrics=("dash-b",),
        fields={"id": ""},
        role="references",
        matches=_lists_dash_b,
        shape="lists of image files by dataset and object",
    ),
    ArchiveReader(
        name="ELV-Halluc's answers",
        keys=("caption_type", "aspect", "ref_answer", "model_response"),
        metrics=("elv-halluc",),
        fields={"id": "", "response": "model_response", "label": "ref_answer"},
    ),
)
