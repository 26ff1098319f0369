"""Captions for open objects, with reference captions and objects of their images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from hallujudge.metrics.open_objects import OpenObjectsItem

from ..errors import ArchiveError
from .archive_keys import refuse_other_texts
from .chair_references import ID_KEYS, OBJECT_KEYS, coco_number
from .inputs import DeclaredInputs, ItemSource, Reader, ReaderInput, References, uses
from .joins import JoinCheck
from .json_files import named
from .record_fields import fields_of
from .record_values import (
    ID_FLAG,
    TEXT_FLAG,
    choose_key,
    id_under,
    listed_texts,
    not_a_text,
    response_text,
    structured,
)
from .records import Record, Records, first_record, read_records

_TEXT_KEYS = ("caption", "text", "response", "answer", "output", "prediction")
_CAPTION_KEYS = ("references", "reference_captions", "captions")


class _Known(NamedTuple):
    """What people say of an image."""

    captions: tuple[str, ...] | None
    objects: tuple[str, ...] | None


def read_open_objects(given: ReaderInput) -> ItemSource:
    """Return captions with reference captions, objects or both, in their records or apart.

    Raises:
        ArchiveError: A file can't be read, or ids are missing, duplicate or unknown.
    """
    return _Captions(given).checked()


READERS: Mapping[str, Reader] = {"open-objects": read_open_objects}
"""Metric -> its archive reader."""
INPUTS: Mapping[str, DeclaredInputs] = {
    "open-objects": uses("id_key", "allow_unknown", "allow_duplicates")
}
"""Metric -> what its reader takes."""
MAPPED_KEYS = frozenset((*OBJECT_KEYS, *_CAPTION_KEYS))
"""Keys that may be mapped, those of id and response apart."""


def _known(references: References) -> dict[str, _Known]:
    """Return image id -> what people say of it; several records of an image are added up."""
    known: dict[str, _Known] = {}
    if isinstance(references, Mapping):
        records: Iterable[Record] = (
            Record({"image_id": key, "references": value}, at, f"references, image {key!r:.60}")
            for at, (key, value) in enumerate(references.items())
        )
    else:
        records = read_records(references)
    for record in records:
        key = choose_key(record, None, ID_KEYS, "the image id")
        image = coco_number(id_under(record, key, "the image id"))
        known[image] = _joined(known.get(image), _of(record, ("caption",)))
    if not known:
        raise ArchiveError("the references have no images; give image ids with their captions")
    return known


def _joined(one: _Known | None, other: _Known) -> _Known:
    if one is None:
        return other
    captions, objects = ((a or ()) + (b or ()) for a, b in zip(one, other, strict=True))
    return _Known(captions or None, objects or None)


def _of(record: Record, more: tuple[str, ...] = (), *, may_lack: bool = False) -> _Known:
    """Return the captions and objects of a record.

    Args:
        record: The record.
        more: Further keys of captions, which only a record of references has.
        may_lack: Whether it may have neither.

    Raises:
        ArchiveError: It has neither.
    """
    captions = _texts(record, (*_CAPTION_KEYS, *more))
    objects = _texts(record, OBJECT_KEYS)
    if captions is None and objects is None and not may_lack:
        raise ArchiveError(
            f"{record.place}: no reference captions or objects: tried "
            f"{', '.join((*_CAPTION_KEYS, *OBJECT_KEYS))}; found "
            f"{named(sorted(record.values)) or 'none'}. Give captions or objects of each image"
        )
    return _Known(captions, objects)


def _texts(record: Record, keys: Iterable[str]) -> tuple[str, ...] | None:
    key = next((key for key in keys if record.values.get(key) is not None), None)
    if key is None:
        return None
    value = structured(record.values[key])
    return listed_texts([value] if isinstance(value, str) else value, key, record.place)


class _Captions:
    """An archive of captions, read once to check it and once to score it."""

    def __init__(self, given: ReaderInput) -> None:
        options = given.options
        self._known = None if given.references is None else _known(given.references)
        self._records = Records(lambda: read_records(given.responses))
        # References may hold all images of COCO.
        self._options = replace(options, allow_missing=True)
        self._group_by = given.group_by
        first = first_record(self._records, given.responses, "response")
        # Several captions of an image have ids of their own.
        keys = ("id", *ID_KEYS) if self._known is None else ID_KEYS
        self._id_key = choose_key(first, options.id_key, keys, "the id", ID_FLAG)
        self._image_key = next((key for key in ID_KEYS if key in first.values), self._id_key)
        self._text_key = choose_key(first, options.text_key, _TEXT_KEYS, "the caption", TEXT_FLAG)
        refuse_other_texts(self._records, self._text_key, _TEXT_KEYS, options)

    def checked(self) -> ItemSource:
        """Return the items after checking every id and every reference."""
        check = JoinCheck("images", self._options, self._known)
        return check.items(self._records, self._id, self._item)

    def _item(self, record: Record, identifier: str) -> OpenObjectsItem:
        if self._text_key not in record.values:
            raise not_a_text(record, self._text_key)
        known = self._reference(record)
        return OpenObjectsItem(
            id=identifier,
            group_id=coco_number(id_under(record, self._image_key, "the image id")),
            fields=fields_of(self._group_by, record.values),
            response=response_text(record, self._text_key),
            reference_captions=known.captions,
            reference_objects=known.objects,
        )

    def _id(self, record: Record) -> str:
        return coco_number(id_under(record, self._id_key, "the id"))

    def _reference(self, record: Record) -> _Known:
        if self._known is None:
            return _of(record, may_lack=self._options.allow_unknown)
        return self._known.get(self._id(record), _Known(None, None))
