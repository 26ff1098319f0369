"""Answers for Object HalBench, with the objects that they name, and the objects of their images."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from hallujudge.metrics.framework.json_values import well_formed
from hallujudge.metrics.object_halbench import ObjectHalBenchItem

from ..errors import ArchiveError
from .archive_keys import refuse_other_texts
from .chair_references import ID_KEYS, OBJECT_KEYS, Objects, coco_number, read_objects, shared_names
from .inputs import DeclaredInputs, ItemSource, Reader, ReaderInput, uses
from .joins import JoinCheck
from .json_files import named, shown
from .record_fields import fields_of
from .record_values import (
    ID_FLAG,
    TEXT_FLAG,
    choose_key,
    id_under,
    optional_text,
    response_text,
    structured,
)
from .records import Record, Records, first_record, read_records

# In the order in which the released script looks for them.
_TEXT_KEYS = ("text", "answer", "response", "caption", "output", "prediction")
_QUESTION_KEYS = ("prompt", "question")
_OBJECTS = "objs"
# What the released script writes in place of objects if the language model does not answer.
_NO_REPLY = "-1"
_SPEAKER = "Assistant:"


def read_object_halbench(given: ReaderInput) -> ItemSource:
    """Return answers with the words of objects that they name, joined with the images' objects.

    Raises:
        ArchiveError: A file can't be read, or ids are missing, duplicate or unknown.
    """
    return _Answers(given).checked()


READERS: Mapping[str, Reader] = {"object-halbench": read_object_halbench}
"""Metric -> its archive reader."""
INPUTS: Mapping[str, DeclaredInputs] = {
    "object-halbench": uses("id_key", "allow_unknown", "allow_duplicates")
}
"""Metric -> what its reader takes."""
MAPPED_KEYS = frozenset((*OBJECT_KEYS, _OBJECTS, "question"))
"""Keys that may be mapped, those of id and response apart."""


class _Answers:
    """An archive of answers, read once to check it and once to score it."""

    def __init__(self, given: ReaderInput) -> None:
        options = given.options
        self._known = None if given.references is None else read_objects(given.references)
        self._records = Records(lambda: read_records(given.responses))
        # References may hold all images of COCO.
        self._options = replace(options, allow_missing=True)
        self._group_by = given.group_by
        self._shared: dict[tuple[object, ...], Objects] = {}
        first = first_record(self._records, given.responses, "response")
        self._id_key = choose_key(first, options.id_key, ID_KEYS, "the image id", ID_FLAG)
        self._text_key = choose_key(first, options.text_key, _TEXT_KEYS, "the answer", TEXT_FLAG)
        # As released, the text comes before the answer where records have both.
        others = [key for key in _TEXT_KEYS if (self._text_key, key) != _TEXT_KEYS[:2]]
        refuse_other_texts(self._records, self._text_key, others, options)
        self._names_objects = _OBJECTS in first.values
        self._own_key = ""
        if self._known is None:
            hint = "one of these names, or give a file with references=…"
            self._own_key = choose_key(first, None, OBJECT_KEYS, "the image's objects", hint)

    def checked(self) -> ItemSource:
        """Return the items after checking every id and every list of objects."""
        check = JoinCheck("images", self._options, self._known)
        source = check.items(self._records, self._image, self._item)
        # Equal lists share one tuple, so that these are all that records have.
        lists = (self._shared if self._known is None else self._known).values()
        names = frozenset(chain.from_iterable(lists))
        return replace(source, reference_names=lambda: names)

    def _item(self, record: Record, identifier: str) -> ObjectHalBenchItem:
        image = self._image(record)
        return ObjectHalBenchItem(
            id=identifier,
            group_id=image,
            fields=fields_of(self._group_by, record.values),
            response=self._answer(record),
            reference_objects=self._reference(record, image),
            question=optional_text(record, _QUESTION_KEYS),
            predicted_objects=self._objects(record),
        )

    def _image(self, record: Record) -> str:
        return coco_number(id_under(record, self._id_key, "the image id"))

    def _answer(self, record: Record) -> str | None:
        """Return the answer without the speaker's name, as the released script reads it."""
        text = response_text(record, self._text_key)
        return text and text.replace(_SPEAKER, "").strip()

    def _reference(self, record: Record, image: str) -> Objects | None:
        if self._known is not None:
            return self._known.get(image)
        given = record.values.get(self._own_key)
        if given is None and self._options.allow_unknown:
            return None
        if given is None and self._own_key not in record.values:
            raise _unlike_the_first(record, self._own_key)
        return shared_names(given, lambda: record.place, self._shared)

    def _objects(self, record: Record) -> tuple[str, ...] | None:
        """Return the words of objects that the answer names; None if they are not given."""
        if (_OBJECTS in record.values) is not self._names_objects:
            raise _unlike_the_first(record, _OBJECTS)
        value = structured(record.values.get(_OBJECTS))
        if value is None or (isinstance(value, str) and value.startswith(_NO_REPLY)):
            return None
        if isinstance(value, (list, tuple)):
            with suppress(TypeError):
                # It refuses what is no text, in a fifth of the time of looking at the types.
                joined = "".join(value)
                return tuple(value) if joined.isascii() else tuple(map(well_formed, value))
        raise ArchiveError(f"{record.place}: {_OBJECTS!r} is {shown(value)}, not a list of texts")


def _unlike_the_first(record: Record, key: str) -> ArchiveError:
    return ArchiveError(
        f"{record.place}: some records have {key}, others do not: tried {key}; found "
        f"{named(sorted(record.values)) or 'none'}. Give every record {key}, or none"
    )
