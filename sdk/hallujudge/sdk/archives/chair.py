"""Captions for CHAIR, joined with the objects of their images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, cast

from hallujudge.metrics import ChairItem
from hallujudge.metrics.framework.claims import well_formed
from hallujudge.metrics.framework.fast_values import makers_of

from ..errors import ArchiveError
from .chair_references import ID_KEYS, OBJECT_KEYS, Objects, coco_number, read_objects, shared_names
from .inputs import (
    CheckedArchive,
    CheckedReader,
    CheckedSlice,
    InputOptions,
    ItemSlices,
    ItemSource,
    Reader,
    References,
    Responses,
    spans_of,
    spread,
)
from .joins import IdCheck, IdMap, kept, numbered, refuse
from .json_files import Mark, Marks, named
from .records import (
    Record,
    RecordBatch,
    canonical_id,
    choose_key,
    fields_of,
    no_records,
    not_a_text,
    read_record_batches,
    read_records,
    response_value,
)

_TEXT_KEYS = ("caption", "text", "response", "answer", "output", "prediction")
_items = makers_of(ChairItem, ("id", "group_id", "fields", "response", "reference_objects"))
_NUMBER, _TEXT = {int}, {str}
_SHARED_LISTS = 1 << 16
"""Different lists of objects that are kept, as one tuple each."""


def read_chair(
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
) -> ItemSource:
    """Return captions joined with the objects of their images.

    Raises:
        ArchiveError: A file can't be read, or ids are missing, duplicate or unknown.
    """
    given = _Given(references)
    # References are read first, so that their errors come before those of the captions.
    known = given.objects
    captions = _Archive(responses, given, options, group_by)
    # Ids of duplicates depend on those before.
    if options.allow_duplicates or not _is_readable_again(references):
        return captions.source(captions.found())
    reader = _CaptionReader(responses, references, options, group_by, captions)
    found = _found_by_slices(reader, known) or captions.found()
    source = captions.source(found)
    if not found.marks.usable:
        return source
    return replace(source, slices=ItemSlices(reader=reader, marks=found.marks))


def read_checked(
    responses: Responses,
    references: References | None,
    options: InputOptions,
    group_by: tuple[str, ...],
    checked: CheckedArchive,
) -> ItemSource:
    """Return the captions of an archive that was checked before."""
    reader = _CaptionReader(responses, references, options, group_by)
    return ItemSource(
        count=checked.count,
        make=lambda: reader.items(checked.marks.before(0)),
        slices=ItemSlices(reader=reader, marks=checked.marks),
        reference_names=lambda: reader.names(checked.marks.before(0)),
    )


def _found_by_slices(reader: _CaptionReader, known: Mapping[str, Objects] | None) -> _Found | None:
    """Return what several processes find in an archive; None if it must be checked as a whole.

    Args:
        reader: Reads the archive.
        known: The references, if they were given apart from the captions.
    """
    checking, path = spread(), reader.responses
    # An entry of an id map may be found by its position in the whole archive.
    if checking is None or not isinstance(path, (str, Path)) or reader.options.id_map is not None:
        return None
    found = _Found(known=known)
    for piece in checking.check(reader, spans_of(Path(path))):
        if piece is None:
            return None
        found.add(piece.ids)
        found.names.update(piece.names)
        found.marks.extend(piece.marks, piece.start)
    return found if found.marks.usable else None


def _names(objects: Iterable[Objects | None]) -> frozenset[str]:
    return frozenset(chain.from_iterable(filter(None, objects)))


def _is_readable_again(references: References | None) -> bool:
    paths = references if isinstance(references, list) else [references]
    return all(isinstance(path, (str, Path, type(None))) for path in paths)


class _Captions(NamedTuple):
    """Captions that follow each other, by columns."""

    images: Sequence[str]
    """The image id of each."""
    texts: Sequence[str | None]
    """The text of each; None: missing."""
    batch: RecordBatch
    """Their records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """Keys that an archive uses."""

    id: str | None
    text: str
    objects: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What an archive of captions holds."""

    known: Mapping[str, Objects] | None
    """The references, if they were given apart from the captions."""
    ids: IdCheck = field(default_factory=IdCheck)
    """The image ids."""
    met: set[str] = field(default_factory=set)
    """Image ids that have a reference."""
    unknown: dict[str, None] = field(default_factory=dict)
    """Image ids that have none, in their order."""
    names: set[str] = field(default_factory=set)
    """Names of the objects that captions carry."""
    marks: Marks = field(default_factory=Marks)
    """Places of the archive."""

    def add(self, identifiers: Sequence[str]) -> None:
        """Add the image ids of captions."""
        self.ids.extend(identifiers)
        if self.known is not None:
            met = self.known.keys() & identifiers
            self.met.update(met)
            if len(met) < len(identifiers):
                self.unknown.update((image, None) for image in identifiers if image not in met)


class _Given:
    """References that were given apart from the captions, read when they are needed."""

    def __init__(self, references: References | None) -> None:
        self._references = references
        self.any = references is not None

    @cached_property
    def objects(self) -> Mapping[str, Objects] | None:
        """Image id -> objects; None: captions carry their references."""
        return None if self._references is None else read_objects(self._references)


class _Archive:
    """An archive of captions, read once to check it and once to score it."""

    def __init__(
        self,
        responses: Responses,
        references: _Given,
        options: InputOptions,
        group_by: tuple[str, ...],
    ) -> None:
        self._responses = kept(responses)
        self._references = references
        self._options = options
        self._group_by = group_by
        self._id_map = IdMap(options.id_map) if options.id_map is not None else None
        self._shared: dict[tuple[object, ...], Objects] = {}
        self._keys = self._find_keys()

    def found(self) -> _Found:
        """Return what the whole archive holds."""
        found = _Found(known=self._references.objects)
        for captions in self._captions(marks=found.marks):
            found.add(captions.images)
            found.names.update(self._names(captions))
        return found

    def slice(self, start: Mark, size: int) -> CheckedSlice | None:
        """Return what a slice of the archive holds; see :class:`SliceReader`."""
        names: set[str] = set()
        ids: list[str] = []
        marks = Marks()
        try:
            for captions in self._captions(start, size, marks):
                ids += captions.images
                names.update(self._names(captions))
        except ArchiveError:
            return None
        if not marks.usable:
            return None
        return CheckedSlice(start=start, ids=ids, names=frozenset(names), marks=marks)

    def source(self, found: _Found) -> ItemSource:
        """Return the items after checking what was found."""
        self._refuse_duplicates(found.ids)
        self._refuse_unknown(list(found.unknown), len(found.met))
        names = _names((self._references.objects or {}).values()) | found.names
        return ItemSource(
            count=len(found.ids),
            make=self._items,
            notes=self._notes(found.met),
            reference_names=lambda: names,
        )

    def _names(self, captions: _Captions) -> Iterable[str]:
        """Return the names of the objects that captions carry as references."""
        key = self._keys.objects
        # What can be read only once is left for the scoring.
        if key is None or any(
            isinstance(values.get(key), Iterator) for values in captions.batch.values
        ):
            return ()
        return _names(self._objects(captions))

    def _refuse_duplicates(self, ids: IdCheck) -> None:
        if self._options.allow_duplicates:
            return
        if duplicates := ids.duplicates(self._images):
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
        known = self._references.objects
        assert known is not None, "without references no id can be unknown"
        hint = (
            "Give the references of these images, or pass InputOptions(allow_unknown=True) "
            "to leave them unscored"
        )
        if not met:
            some = named(list(islice(known, 3)))
            hint = (
                f"None of the ids is in the references, whose ids look like {some}. Give the "
                "references of these images, or name the key of the id with InputOptions(id_key=…) "
                "or a map with InputOptions(id_map=…)"
            )
        raise refuse("image ids without a reference", unknown, hint)

    def _notes(self, met: set[str]) -> tuple[str, ...]:
        known = self._references.objects or {}
        notes = []
        if known and not any(known.values()):
            notes.append(
                "no reference image has an object, so every object of a caption counts as "
                "hallucinated; check the file of references"
            )
        if missing := [image for image in known if image not in met]:
            notes.append(
                f"{len(missing)} of {len(known)} reference images have no caption: {named(missing)}"
            )
        return tuple(notes)

    def _images(self) -> Iterator[str]:
        return (image for captions in self._captions() for image in captions.images)

    def _items(self) -> Iterator[ChairItem]:
        ids = numbered(self._images()) if self._options.allow_duplicates else None
        for captions in self._captions():
            images = captions.images
            yield from self._items_of(
                captions, images if ids is None else list(islice(ids, len(images)))
            )

    def _items_of(self, captions: _Captions, ids: Sequence[str]) -> list[ChairItem]:
        images, texts, batch = captions
        fields = [
            fields_of(self._group_by, values) if self._group_by else {} for values in batch.values
        ]
        return _items((ids, images, fields, texts, self._objects(captions)))

    def _objects(self, captions: _Captions) -> list[Objects | None]:
        """Return the reference objects of captions."""
        known = self._references.objects
        if known is not None:
            return list(map(known.get, captions.images))
        return [self._own_objects(captions.batch, at) for at in range(len(captions.images))]

    def _own_objects(self, batch: RecordBatch, index: int) -> Objects:
        """Return the reference objects that a caption carries."""
        assert self._keys.objects is not None, "_find_keys made sure of it"
        if len(self._shared) >= _SHARED_LISTS:
            self._shared.clear()
        objects = batch.values[index].get(self._keys.objects)
        return shared_names(objects, lambda: batch.place(index), self._shared)

    def from_mark(self, start: Mark, size: int) -> Iterator[ChairItem]:
        """Yield the items from a mark on; see :class:`SliceReader`."""
        for captions in self._captions(start, size):
            yield from self._items_of(captions, captions.images)

    def names_from(self, start: Mark) -> frozenset[str]:
        """Return the names of the objects in the references, or in the captions from a mark on."""
        if (known := self._references.objects) is not None:
            return _names(known.values())
        return _names(item.reference_objects for item in self.from_mark(start, 0))

    def _captions(
        self, start: Mark | None = None, size: int = 0, marks: Marks | None = None
    ) -> Iterator[_Captions]:
        for batch in read_record_batches(self._responses, start=start, size=size, marks=marks):
            yield self._plain(batch) or self._captions_of(batch)

    def _plain(self, batch: RecordBatch) -> _Captions | None:
        """Return captions that have numbers as ids, and texts; nearly all have.

        The loops are short or those of C: each caption passes here twice.
        """
        key, text_key = self._keys.id, self._keys.text
        if self._id_map is not None or key is None:
            return None
        numbers = [values.get(key) for values in batch.values]
        texts = [values.get(text_key) for values in batch.values]
        if {*map(type, numbers)} != _NUMBER or {*map(type, texts)} != _TEXT:
            return None
        found = [text if text.isascii() else well_formed(text) for text in cast("list[str]", texts)]
        return _Captions(list(map(str, numbers)), found, batch)

    def _captions_of(self, batch: RecordBatch) -> _Captions:
        records = batch.records()
        found = [(self._image_id(record), self._text(record)) for record in records]
        return _Captions([image for image, _ in found], [text for _, text in found], batch)

    def _image_id(self, record: Record) -> str:
        if self._id_map is not None:
            return coco_number(self._id_map.image_id(record, self._keys.id))
        key = self._keys.id
        assert key is not None, "_find_keys made sure of it"
        value = record.values.get(key)
        if value is None and key not in record.values:
            raise ArchiveError(
                f"{record.place}: the image id is missing (no key {key!r}); "
                f"found {named(sorted(record.values))}"
            )
        return coco_number(canonical_id(value, record.place))

    def _text(self, record: Record) -> str | None:
        text = response_value(record, self._keys.text)
        if isinstance(text, str):
            return text if text.isascii() else well_formed(text)
        if text is None:
            return None
        raise not_a_text(record, self._keys.text)

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
        return choose_key(first, wanted, ID_KEYS, what="the image id", flag=hint)

    def _objects_key(self, first: Record) -> str | None:
        if self._references.any:
            return None
        return choose_key(
            first,
            None,
            OBJECT_KEYS,
            what="the image's objects",
            flag="one of these names, or give a file with references=…",
        )


@dataclass
class _CaptionReader:
    """Reads captions from the middle of an archive; see :class:`SliceReader`.

    Another process reads the references by itself, when it needs them.
    """

    responses: Responses
    references: References | None
    options: InputOptions
    group_by: tuple[str, ...]
    captions: _Archive | None = field(default=None, compare=False)

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "captions": None}

    def items(self, start: Mark, size: int = 0) -> Iterator[ChairItem]:
        return self._opened().from_mark(start, size)

    def check(self, start: Mark, size: int) -> CheckedSlice | None:
        return self._opened().slice(start, size)

    def names(self, start: Mark) -> frozenset[str]:
        """Return the names of the objects in the references, or in the responses without them."""
        return self._opened().names_from(start)

    def _opened(self) -> _Archive:
        """Return the captions; what they read is read once."""
        if self.captions is None:
            given = _Given(self.references)
            self.captions = _Archive(self.responses, given, self.options, self.group_by)
        return self.captions


READERS: Mapping[str, Reader] = {"chair": read_chair}
"""Metric -> its archive reader."""
CHECKED_READERS: Mapping[str, CheckedReader] = {"chair": read_checked}
"""Metric -> the reader of archives that were checked before."""
