"""Captions for CHAIR, joined with the objects of their images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import structs

from hallujudge.metrics import ChairItem
from hallujudge.metrics.framework.metric import InputOption

from ..errors import ArchiveError, HallujudgeError
from .archive_keys import LOOKED_AT, refuse_other_texts
from .bad_records import note_bad
from .chair_references import (
    ID_KEYS,
    OBJECT_KEYS,
    Objects,
    coco_notes,
    coco_number,
    read_objects,
    shared_names,
)
from .inputs import (
    CheckedArchive,
    CheckedSlice,
    CheckHelp,
    DeclaredInputs,
    HelpedReader,
    InputOptions,
    ItemSlices,
    ItemSource,
    Reader,
    ReaderInput,
    References,
    Spread,
    spans_of,
    uses,
)
from .joins import IdCheck, numbering, refuse
from .json_files import named, read_json, read_text
from .json_lines import WHOLE, FilePart, Mark, Marks
from .local_files import as_path
from .record_fields import Row, RowDecoder, SharedFields
from .record_values import TEXT_FLAG, canonical_id, choose_key, id_under, response_text
from .records import Record, first_record, read_records

_TEXT_KEYS = ("caption", "text", "response", "answer", "output", "prediction")
# Different lists of objects that are kept, as one tuple each. COCO's 40,000 validation images have
# fewer; an archive with more starts again, so that memory stays bounded.
_SHARED_LISTS = 1 << 16
_Apart: TypeAlias = "Callable[[], Mapping[str, Objects] | None]"


def read_chair(given: ReaderInput, check: CheckHelp | None = None) -> ItemSource:
    """Return captions joined with the objects of their images.

    Raises:
        ArchiveError: A file can't be read, or ids are missing, duplicate or unknown.
    """
    if isinstance(check, CheckedArchive):
        return _checked_before(_SliceReader(given), check)
    options, objects_apart = given.options, _objects_apart(given.references)
    # References are read first, so that their errors come before those of the captions.
    known = objects_apart()
    archive = _Archive(given, objects_apart)
    reader = None
    # The number of a duplicate id depends on the captions before it: slices cannot be read alone.
    if not options.allow_duplicates and _is_readable_again(given.references):
        reader = _SliceReader(given, archive)
    found = (reader and check and _found_by_slices(reader, known, check)) or archive.found()
    found.check(options, archive.images)
    names = _names((known or {}).values()) | found.names
    return ItemSource(
        count=len(found.ids),
        make=archive.items,
        notes=(*found.notes(), *coco_notes(given.references)),
        slices=ItemSlices(reader=reader, marks=found.marks)
        if reader is not None and found.marks.usable
        else None,
        reference_names=lambda: names,
    )


def _checked_before(reader: _SliceReader, checked: CheckedArchive) -> ItemSource:
    """Return the captions of an archive that was checked before."""
    return ItemSource(
        count=checked.count,
        make=lambda: reader.items(checked.marks.before(0)),
        slices=ItemSlices(reader=reader, marks=checked.marks),
        reference_names=lambda: reader.names(checked.marks.before(0)),
    )


READERS: Mapping[str, Reader] = {"chair": read_chair}
"""Metric -> its archive reader."""
INPUTS: Mapping[str, DeclaredInputs] = {
    "chair": uses(
        "id_key",
        "allow_unknown",
        "allow_duplicates",
        own=(
            InputOption(
                name="id_map",
                meaning="Image ids, JSON or lines, by position or question_id.",
            ),
        ),
    )
}
"""Metric -> what its reader takes."""
MAPPED_KEYS = frozenset(OBJECT_KEYS)
"""Keys that may be mapped, those of id and response apart."""


def reference_ids(references: References) -> list[str]:
    """Return the image ids of references, before any caption is known."""
    return list(read_objects(references))


HELPED_READERS: Mapping[str, HelpedReader] = {"chair": read_chair}
"""Metric -> a reader that an earlier check or other processes can help."""


def _is_readable_again(references: References | None) -> bool:
    """Return whether another process can read the references: they are files, or there are none."""
    paths = references if isinstance(references, list) else [references]
    return all(isinstance(path, (str, Path, type(None))) for path in paths)


def _found_by_slices(
    reader: _SliceReader, known: Mapping[str, Objects] | None, spread: Spread
) -> _Found | None:
    """Return what several processes find in an archive; None if it must be checked as a whole.

    Args:
        reader: Reads the archive.
        known: The references, if they were given apart from the captions.
        spread: Has the slices checked.
    """
    path = reader.given.responses
    # An id map may find an entry by its position in the whole archive.
    if not isinstance(path, (str, Path)) or "id_map" in reader.given.options.own:
        return None
    found = _Found(known=known)
    for piece in spread.check(reader, spans_of(as_path(path))):
        if piece is None:
            return None
        for image in piece.ids:
            found.add(image)
        found.names.update(piece.names)
        found.marks.extend(piece.marks, piece.start)
    return found if found.marks.usable else None


def _names(objects: Iterable[Objects | None]) -> frozenset[str]:
    return frozenset(chain.from_iterable(filter(None, objects)))


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

    def add(self, image: str) -> None:
        """Add the image id of a caption."""
        self.ids.add(image)
        if self.known is None:
            return
        if image in self.known:
            self.met.add(image)
        else:
            self.unknown[image] = None

    def check(self, options: InputOptions, images: Callable[[], Iterator[str]]) -> None:
        """Refuse duplicate and unknown ids, unless the options allow them.

        Args:
            options: The options.
            images: Returns an iterator over the image ids.

        Raises:
            ArchiveError: There are such ids.
        """
        right_key = "name the right key with InputOptions(id_key=…), "
        self.ids.refuse_duplicates("duplicate image ids", options, images, right_key)
        if not self.unknown or options.allow_unknown:
            return
        hint = (
            "Give the references of these images, or pass InputOptions(allow_unknown=True) "
            "to leave them unscored"
        )
        if not self.met:
            some = named(list(islice(self.known or (), 3)))
            hint = (
                f"None of the ids is in the references, whose ids look like {some}. Give the "
                "references of these images, or name the key of the id with InputOptions(id_key=…) "
                "or a map with InputOptions(own=dict(id_map=…))"
            )
        raise refuse("image ids without a reference", list(self.unknown), hint)

    def notes(self) -> tuple[str, ...]:
        """Return notes on references that no caption needs, or that are all empty."""
        known = self.known or {}
        notes = []
        if known and not any(known.values()):
            notes.append(
                "no reference image has an object, so every object of a caption counts as "
                "hallucinated; check the file of references"
            )
        if missing := [image for image in known if image not in self.met]:
            notes.append(
                f"{len(missing)} of {len(known)} reference images have no caption: {named(missing)}"
            )
        return tuple(notes)


def _objects_apart(references: References | None) -> _Apart:
    """Return what reads references apart from the captions when they are needed; once."""
    return cache(lambda: None if references is None else read_objects(references))


class _Archive:
    """An archive of captions, read once to check it and once to score it."""

    def __init__(self, given: ReaderInput, objects_apart: _Apart) -> None:
        options, responses = given.options, given.responses
        self._responses = responses
        self._objects_apart = objects_apart
        self._groups = SharedFields(given.group_by)
        self._options = options
        self._id_map = _IdMap(options.own["id_map"]) if "id_map" in options.own else None
        self._shared: dict[tuple[object, ...], Objects] = {}
        looked_at: list[Record] = []
        # A record that can't be read ends them; what is wrong with it comes after their own faults.
        with suppress(HallujudgeError):
            looked_at.extend(islice(read_records(responses), LOOKED_AT))
        if not looked_at:
            looked_at = [first_record(read_records(responses), responses, "response")]
        apart = given.references is not None
        with_objects = None if apart else self._first_with_objects(looked_at[0])
        keys = _keys_of(looked_at[0], options, with_objects)
        self._id_key, self._text_key, self._objects_key = keys
        # Most archives have one usual key of captions.
        others = {*_TEXT_KEYS} - {self._text_key}
        if any(map(others.intersection, [record.values for record in looked_at])):
            refuse_other_texts(looked_at, self._text_key, _TEXT_KEYS, options)
        named_keys = zip(("id", "response", "objects"), keys, strict=True)
        usual = {name: (key,) for name, key in named_keys if key is not None}
        self._decoder = RowDecoder(looked_at[0].values, usual, self._groups)

    def _first_with_objects(self, first: Record) -> Record:
        """Return the record that has the key of objects: the first, unless it may lack them."""
        if not self._options.allow_unknown or not first.values.keys().isdisjoint(OBJECT_KEYS):
            return first
        others = islice(read_records(self._responses), LOOKED_AT)
        return next((r for r in others if not r.values.keys().isdisjoint(OBJECT_KEYS)), first)

    def found(self) -> _Found:
        """Return what the whole archive holds."""
        found = _Found(known=self._objects_apart())
        for image, row in self._captions(FilePart(marks=found.marks)):
            found.add(image)
            if self._objects_key is not None:
                found.names.update(self._own_names(row))
        return found

    def slice(self, start: Mark, size: int) -> CheckedSlice | None:
        """Return what a slice of the archive holds; see :class:`SliceReader`."""
        names: set[str] = set()
        ids: list[str] = []
        marks = Marks()
        try:
            for image, row in self._captions(FilePart(start, size, marks)):
                ids.append(image)
                if self._objects_key is not None:
                    names.update(self._own_names(row))
        except ArchiveError:
            # The archive is then checked as a whole, which finds the first fault in its order.
            return None
        if not marks.usable:
            return None
        return CheckedSlice(start=start, ids=ids, names=frozenset(names), marks=marks)

    def images(self) -> Iterator[str]:
        """Yield the image ids."""
        return (image for image, _ in self._captions())

    def items(self, start: Mark | None = None, size: int = 0) -> Iterator[ChairItem]:
        """Yield the items of the whole archive, or of a slice; see :class:`SliceReader`."""
        unique = numbering(self._options)
        known = self._objects_apart()
        for image, row in self._captions(FilePart(start or Mark(), size)):
            yield ChairItem(
                id=unique(image),
                group_id=image,
                fields=self._groups.of(row.groups) if self._groups.keys else {},
                response=row.response,
                reference_objects=self._own_objects(row) if known is None else known.get(image),
            )

    def names_from(self, start: Mark) -> frozenset[str]:
        """Return the names of the objects in the references, or in the captions from a mark on."""
        if (known := self._objects_apart()) is not None:
            return _names(known.values())
        return _names(item.reference_objects for item in self.items(start))

    def _own_names(self, row: Row) -> Iterable[str]:
        """Return the names of the objects that a caption carries as references."""
        # What can be read only once is left for the scoring. Of files there are lists alone.
        if type(row.objects) is not list and isinstance(row.objects, Iterator):
            return ()
        return self._own_objects(row) or ()

    def _own_objects(self, row: Row) -> Objects | None:
        """Return the reference objects that a caption carries; None where they may be absent."""
        if row.objects is None and self._options.allow_unknown:
            return None
        if len(self._shared) >= _SHARED_LISTS:
            self._shared.clear()
        record = row.record
        place = "" if record is None else record.place
        try:
            return shared_names(row.objects, lambda: place, self._shared)
        except ArchiveError as err:
            if record is not None and note_bad(err, record.position, place):
                return None
            raise

    def _captions(self, part: FilePart = WHOLE) -> Iterator[tuple[str, Row]]:
        """Yield captions with the ids of their images, without bad ones where these are noted."""
        # An id map finds an entry by its position too.
        decode = None if self._id_map is not None else self._decoder
        id_key, text_key, objects_key = self._id_key, self._text_key, self._objects_key
        found: Any
        for found in read_records(self._responses, structs.replace(part, decode=decode)):
            # Lines that the decoder does not know come as records.
            if type(found) is not Record:
                yield coco_number(canonical_id(found.id, "a caption")), found
                continue
            values, place = found.values, found.place
            own, text = values.get(id_key or ""), values.get(text_key)
            try:
                if own is None or self._id_map is not None:
                    image = self._image_id(found)
                else:
                    image = coco_number(canonical_id(own, place))
                # An ASCII text has no half of a surrogate pair, and needs no further look.
                if type(text) is not str or not text.isascii():
                    text = response_text(found, text_key)
            except ArchiveError as err:
                if note_bad(err, found.position, place):
                    continue
                raise
            objects = None if objects_key is None else values.get(objects_key)
            yield image, Row("", image, text, objects=objects, groups=values, record=found)

    def _image_id(self, record: Record) -> str:
        if self._id_map is not None:
            return coco_number(self._id_map.image_id(record, self._id_key))
        assert self._id_key is not None, "_keys_of made sure of it"
        return coco_number(id_under(record, self._id_key, "the image id"))


def _keys_of(
    first: Record, options: InputOptions, with_objects: Record | None
) -> tuple[str | None, str, str | None]:
    """Return the keys of an archive, which its first record decides.

    Args:
        first: The first record.
        options: Options that name keys.
        with_objects: The first record that carries its references; None if none does.
    """
    text = choose_key(first, options.text_key, _TEXT_KEYS, "the caption", TEXT_FLAG)
    if "id_map" in options.own and options.id_key is None:
        key = "question_id" if "question_id" in first.values else None
    else:
        hint = (
            "InputOptions(id_key=…) (or give InputOptions(own=dict(id_map=…)) where ids are "
            "positions)"
        )
        key = choose_key(first, options.id_key, ID_KEYS, "the image id", hint)
    objects = None
    if with_objects is not None:
        hint = "one of these names, or give a file with references=…"
        objects = choose_key(with_objects, None, OBJECT_KEYS, "the image's objects", hint)
    return key, text, objects


@dataclass
class _SliceReader:
    """Reads captions from the middle of an archive; see :class:`SliceReader`.

    Another process reads the references by itself, when it needs them.
    """

    given: ReaderInput
    archive: _Archive | None = field(default=None, compare=False)

    def __getstate__(self) -> dict[str, object]:
        # An open archive can't be sent: each process opens its own.
        return {**vars(self), "archive": None}

    def items(self, start: Mark, size: int = 0) -> Iterator[ChairItem]:
        return self._opened().items(start, size)

    def check(self, start: Mark, size: int) -> CheckedSlice | None:
        return self._opened().slice(start, size)

    def names(self, start: Mark) -> frozenset[str]:
        """Return the names of the objects in the references, or in the responses without them."""
        return self._opened().names_from(start)

    def _opened(self) -> _Archive:
        """Return the archive, which is opened once in each process."""
        if self.archive is None:
            self.archive = _Archive(self.given, _objects_apart(self.given.references))
        return self.archive


_LONGEST_PLACE = 20
"""More digits than any list position has, and fewer than Python's limit for integers."""


class _IdMap:
    """A list: position or question_id -> image id.

    Args:
        path: Path of the file: a JSON list, or a text with an id in each line.

    Raises:
        ArchiveError: The file is not such a list.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        text = read_text(self._path)
        is_json = text.lstrip()[:1] in ("[", "{", "")
        content = read_json(self._path) if is_json else text.split("\n")
        if not isinstance(content, list):
            raise ArchiveError(
                f"{path}: an id map must be a list of image ids, as JSON or with an id in each line"
            )
        # Editors end the last line too.
        while content and isinstance(content[-1], str) and not content[-1].strip():
            content.pop()
        self._ids = [
            canonical_id(value, f"{path} entry {index}") for index, value in enumerate(content)
        ]

    def image_id(self, record: Record, key: str | None) -> str:
        """Return the image id of a record, by the value of `key` or else by position.

        Raises:
            ArchiveError: The map has no such entry.
        """
        index: object = record.position if key is None else record.values.get(key)
        if isinstance(index, str) and index.strip().isdecimal() and len(index) <= _LONGEST_PLACE:
            index = int(index)
        valid = isinstance(index, int) and not isinstance(index, bool)
        if not valid or not 0 <= index < len(self._ids):  # type: ignore[operator]  # an int by now
            raise ArchiveError(
                f"{record.place}: {key or 'position'} {index!r:.60} is not an entry of the id map "
                f"{self._path}, which has entries 0 to {len(self._ids) - 1}"
            )
        return self._ids[index]  # type: ignore[call-overload,no-any-return]  # an int by now
