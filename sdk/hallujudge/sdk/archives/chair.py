"""Captions and reference objects for CHAIR."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from hallujudge.metrics import ChairItem
from hallujudge.metrics.framework.slots import maker_of
from hallujudge.metrics.framework.texts import json_kind

from ..errors import ArchiveError
from .coco import coco_number, is_coco, read_coco
from .inputs import InputOptions, ItemSource, Reader, References, Responses
from .joins import IdCheck, IdMap, numbered, refuse
from .json_files import read_values
from .qa import fields_of, kept
from .records import (
    Record,
    canonical_id,
    choose_key,
    named,
    no_records,
    read_records,
    response_value,
    shown,
    well_formed,
)
from .tables import structured

__all__ = ["READERS", "read_chair"]

_ID_KEYS = ("image_id", "id", "question_id", "image")
_TEXT_KEYS = ("caption", "text", "response", "answer", "output", "prediction")
_OBJECT_KEYS = ("reference_objects", "objects", "gt_objects")

_LISTS = (list, tuple, set, frozenset, Iterator)

_Objects = tuple[str, ...]
_item = maker_of(ChairItem, ("id", "group_id", "fields", "response", "reference_objects"))


def read_chair(
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> ItemSource:
    """Return captions joined with the objects of their images.

    Raises:
        ArchiveError: See :func:`read_items`.
    """
    known = None if references is None else _read_objects(references)
    captions = _Captions(responses, known, options, group_by)
    return captions.checked()


class _Caption(NamedTuple):
    image_id: str
    text: str | None
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """Keys that an archive uses."""

    id: str | None
    text: str
    objects: str | None


class _Captions:
    """An archive of captions, read once to check it and once to score it."""

    def __init__(
        self,
        responses: Responses,
        known: Mapping[str, _Objects] | None,
        options: InputOptions,
        group_by: tuple[str, ...],
    ) -> None:
        self._responses = kept(responses)
        self._known = known
        self._options = options
        self._group_by = group_by
        self._id_map = IdMap(options.id_map) if options.id_map is not None else None
        self._keys = self._find_keys()

    def checked(self) -> ItemSource:
        """Return the items after checking every id."""
        ids = IdCheck()
        unknown: dict[str, None] = {}
        met: set[str] = set()
        for caption in self._captions():
            ids.add(caption.image_id)
            if self._known is not None:
                if caption.image_id in self._known:
                    met.add(caption.image_id)
                else:
                    unknown[caption.image_id] = None
        self._refuse_duplicates(ids)
        self._refuse_unknown(list(unknown), len(met))
        return ItemSource(count=len(ids), make=self._items, notes=self._notes(met))

    def _refuse_duplicates(self, ids: IdCheck) -> None:
        if self._options.allow_duplicates:
            return
        if duplicates := ids.duplicates(lambda: (caption.image_id for caption in self._captions())):
            raise refuse(
                "duplicate image ids",
                duplicates,
                "Remove the duplicates, name the right key with InputOptions(id_key=…), or score "
                "each one "
                "with InputOptions(allow_duplicates=True)",
            )

    def _refuse_unknown(self, unknown: list[str], met: int) -> None:
        if not unknown or self._options.allow_unknown:
            return
        assert self._known is not None, "without references no id can be unknown"
        hint = (
            "Give the references of these images, or pass InputOptions(allow_unknown=True) "
            "to leave them unscored"
        )
        if not met:
            some = named(list(islice(self._known, 3)))
            hint = (
                f"None of the ids is in the references, whose ids look like {some}. Give the "
                "references of these images, or name the key of the id with InputOptions(id_key=…) "
                "or a map with InputOptions(id_map=…)"
            )
        raise refuse("image ids without a reference", unknown, hint)

    def _notes(self, met: set[str]) -> tuple[str, ...]:
        missing = [image for image in self._known or () if image not in met]
        if not missing:
            return ()
        return (
            f"{len(missing)} of {len(self._known or ())} reference images have no caption: "
            f"{named(missing)}",
        )

    def _items(self) -> Iterator[ChairItem]:
        captions = self._captions()
        if not self._options.allow_duplicates:
            yield from (self._item(caption, caption.image_id) for caption in captions)
            return
        ids = numbered(caption.image_id for caption in self._captions())
        for caption, identifier in zip(captions, ids, strict=True):
            yield self._item(caption, identifier)

    def _item(self, caption: _Caption, identifier: str) -> ChairItem:
        fields = fields_of(self._group_by, caption.record.values) if self._group_by else {}
        image, text, _ = caption
        return _item((identifier, image, fields, text, self._objects(caption)))

    def _objects(self, caption: _Caption) -> _Objects | None:
        if self._known is not None:
            return self._known.get(caption.image_id)
        assert self._keys.objects is not None, "_find_keys made sure of it"
        record = caption.record
        return _object_names(record.values.get(self._keys.objects), record.place)

    def _captions(self) -> Iterator[_Caption]:
        for record in read_records(self._responses):
            yield _Caption(self._image_id(record), self._text(record), record)

    def _image_id(self, record: Record) -> str:
        if self._id_map is not None:
            return coco_number(self._id_map.image_id(record, self._keys.id))
        assert self._keys.id is not None, "_find_keys made sure of it"
        if self._keys.id not in record.values:
            raise ArchiveError(
                f"{record.place}: the image id is missing (no key {self._keys.id!r}); "
                f"found {named(sorted(record.values))}"
            )
        return coco_number(canonical_id(record.values[self._keys.id], record.place))

    def _text(self, record: Record) -> str | None:
        text = response_value(record, self._keys.text)
        if text is None:
            return None
        if isinstance(text, str):
            return well_formed(text)
        raise ArchiveError(f"{record.place}: {self._keys.text!r} is {json_kind(text)}, not a text")

    def _find_keys(self) -> _Keys:
        first = next(read_records(self._responses), None)
        if first is None:
            raise no_records(self._responses, "responses", "response")
        text = choose_key(
            first,
            self._options.text_key,
            _TEXT_KEYS,
            what="the caption",
            flag="InputOptions(text_key=…)",
        )
        return _Keys(id=self._id_key(first), text=text, objects=self._objects_key(first))

    def _id_key(self, first: Record) -> str | None:
        wanted = self._options.id_key
        if self._id_map is not None and wanted is None:
            return "question_id" if "question_id" in first.values else None
        hint = "InputOptions(id_key=…) (or give InputOptions(id_map=…) where ids are positions)"
        return choose_key(first, wanted, _ID_KEYS, what="the image id", flag=hint)

    def _objects_key(self, first: Record) -> str | None:
        if self._known is not None:
            return None
        return choose_key(
            first,
            None,
            _OBJECT_KEYS,
            what="the image's objects",
            flag="one of these names, or give a file with references=…",
        )


def _read_objects(references: References) -> dict[str, _Objects]:
    """Image id -> objects, from ``{id: [objects]}`` or from records.

    Equal lists share one tuple: an archive has far fewer distinct lists than images.
    """
    shared: dict[tuple[object, ...], _Objects] = {}
    known: dict[str, _Objects] = {}
    duplicates: list[str] = []
    for given, value, place in _reference_entries(references):
        identifier = coco_number(given)
        if identifier in known:
            duplicates.append(identifier)
        known[identifier] = _shared_names(value, place, shared)
    if duplicates:
        raise refuse(
            "duplicate image ids in the references", duplicates, "Merge the entries of each image"
        )
    if not known:
        raise ArchiveError(
            f"{_source(references)}: there are no images; give image ids with their objects"
        )
    return known


def _shared_names(
    value: object, place: str, shared: dict[tuple[object, ...], _Objects]
) -> _Objects:
    """Return the names of a list, each distinct list as one tuple."""
    if type(value) is not list or set(map(type, value)) != {str}:
        objects = _object_names(value, place)
        return shared.setdefault(objects, objects)
    key = tuple(value)
    if key not in shared:
        objects = _object_names(value, place)
        shared[key] = shared.setdefault(objects, objects)
    return shared[key]


def _reference_entries(references: References) -> Iterator[tuple[str, object, str]]:
    if paths := _coco_files(references):
        for image, objects in read_coco(paths).items():
            yield image, objects, f"{paths[0]}, image {image}"
        return
    with closing(_values(references)) as values:
        first = next(values, None)
        if _maps_ids(first):
            yield from _mapped_entries(references, chain([first], values))
            return
    keys: tuple[str, str] | None = None
    for record in read_records(references):
        if keys is None:
            keys = (
                choose_key(record, None, _ID_KEYS, what="the image id", flag="one of these names"),
                choose_key(
                    record, None, _OBJECT_KEYS, what="the objects", flag="one of these names"
                ),
            )
        identifier = canonical_id(record.values.get(keys[0]), record.place)
        yield identifier, record.values.get(keys[1]), record.place


def _mapped_entries(
    references: References, values: Iterable[object]
) -> Iterator[tuple[str, object, str]]:
    """Yield the entries of image id -> list of objects.

    Args:
        references: Where the values come from, for messages.
        values: The mappings.
    """
    for mapping in values:
        if not isinstance(mapping, Mapping):
            raise ArchiveError(
                f"{_source(references)}: expected an object image id -> list of object names; "
                f"found {shown(mapping)}"
            )
        lists = (list, tuple)
        if odd := [
            key
            for key, value in mapping.items()
            if not isinstance(value, lists) and isinstance(value, Mapping)
        ]:
            raise ArchiveError(
                f"{_source(references)}: the image ids {named([str(key) for key in odd])} hold an "
                "object where a list is expected. Write a list of object names under every image id"
            )
        source = _source(references)
        for key, value in mapping.items():
            place = f"{source}, image {key!r:.60}"
            yield canonical_id(key, place), value, place


def _source(references: References) -> str:
    """Return the name of the references, for messages."""
    return str(references) if isinstance(references, (str, Path)) else "references"


def _coco_files(references: References) -> list[Path]:
    """Return the paths of COCO annotation files; none if the references have another layout.

    Raises:
        ArchiveError: Several files are given, and not all of them are COCO's.
    """
    if isinstance(references, (str, Path)):
        return [Path(references)] if is_coco(Path(references)) else []
    if not isinstance(references, list) or not all(isinstance(p, (str, Path)) for p in references):
        return []
    paths = [Path(path) for path in references]
    if other := [path for path in paths if not is_coco(path)]:
        raise ArchiveError(
            f"{other[0]}: not one of COCO's annotation files. Only instances_*.json and "
            "captions_*.json can be given together; otherwise give one file of references"
        )
    return paths


def _values(references: References) -> Generator[object, None, None]:
    """Yield the values of a file; any other source is a single value."""
    if isinstance(references, (str, Path)):
        yield from (placed.value for placed in read_values(Path(references)))
    else:
        yield references


def _maps_ids(value: object) -> bool:
    """Return whether a value maps ids to lists, rather than being or holding records."""
    if not isinstance(value, Mapping) or {*_ID_KEYS, *_OBJECT_KEYS} & value.keys():
        return False
    entries = value.values()
    if all(isinstance(entry, str) for entry in entries):
        # Texts in place of lists, or nothing: the keys of a record are not numbers.
        return all(str(key).isdigit() for key in value)
    lists = [isinstance(entry, _LISTS) for entry in entries]
    # Records of other layouts hold lists and objects too; only ids of images have digits.
    ids = all(any(c.isdigit() for c in str(key)) for key in value)
    return any(lists) and (ids or not any(isinstance(entry, Mapping) for entry in entries))


def _object_names(given: object, place: str) -> _Objects:
    value = structured(given)
    if isinstance(value, (set, frozenset)) and all(isinstance(name, str) for name in value):
        value = sorted(value)
    if isinstance(value, Iterator):
        value = list(value)
    if isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value):
        return tuple(dict.fromkeys(well_formed(name.strip()) for name in value if name.strip()))
    raise ArchiveError(f"{place}: expected a list of object names, found {shown(value)}")


READERS: Mapping[str, Reader] = {"chair": read_chair}
"""Metric -> its archive reader."""
