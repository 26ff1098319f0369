"""Reference objects for CHAIR."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from ...errors import ArchiveError
from ..coco import SHORTEST_NAME, coco_number, is_coco, read_coco
from ..inputs import References
from ..joins import refuse
from ..json_files import read_values
from ..local_files import open_binary
from ..records import canonical_id, choose_key, named, read_records, shown, well_formed
from ..tables import structured

__all__ = ["ID_KEYS", "OBJECT_KEYS", "Objects", "read_objects", "shared_names"]

ID_KEYS = ("image_id", "id", "question_id", "image")
"""Keys of the image id, the most likely first."""
OBJECT_KEYS = ("reference_objects", "objects", "gt_objects")
"""Keys of an image's objects."""

_HAS_DIGIT = re.compile(r"\d")
_LISTS = (list, tuple, set, frozenset, Iterator)

_WHOLE_BYTES = 1 << 26
"""Size up to which a file of one line is decoded as a whole, which takes half the time."""

Objects: TypeAlias = tuple[str, ...]
"""The objects of an image."""
_Place: TypeAlias = "Callable[[], str]"
"""Returns a place for messages; few are ever shown."""


def read_objects(references: References) -> dict[str, Objects]:
    """Return image id -> objects, from ``{id: [objects]}`` or from records.

    Equal lists share one tuple: an archive has far fewer distinct lists than images.
    """
    if (numbered := _by_number(references)) is not None:
        return numbered
    shared: dict[tuple[object, ...], Objects] = {}
    known: dict[str, Objects] = {}
    duplicates: list[str] = []
    for given, value, place in _reference_entries(references):
        identifier = coco_number(given)
        if identifier in known:
            duplicates.append(identifier)
        known[identifier] = shared_names(value, place, shared)
    if duplicates:
        raise refuse(
            "duplicate image ids in the references", duplicates, "Merge the entries of each image"
        )
    if not known:
        raise ArchiveError(
            f"{_source(references)}: there are no images; give image ids with their objects"
        )
    return known


def _by_number(references: References) -> dict[str, Objects] | None:
    """Return the objects of a file ``{id: [objects]}`` whose ids are numbers.

    An archive has far fewer different lists than images. Each is decoded once, from its bytes, so
    that the file is read in a third of the time.

    Returns:
        None if it is another file, or damaged: the plain way reads it, or tells what is wrong.
    """
    if not isinstance(references, (str, Path)):
        return None
    # Imported here because clients of a server start without it.
    from msgspec import MsgspecError, Raw
    from msgspec.json import decode

    try:
        with open_binary(Path(references)) as file:
            text = file.read(_WHOLE_BYTES)
            if file.read(1):
                return None
        entries = decode(text, type=dict[str, Raw])
        lists = list(map(bytes, entries.values()))
        names = {given: _object_names(decode(given, type=list[str]), "") for given in set(lists)}
    except (OSError, UnicodeError, ArchiveError, MsgspecError, RecursionError):
        return None
    quotes = {given: given.count(b'"') for given in names}
    # A duplicate id, which the decoder drops without a word, has quotes, too.
    whole = text.count(b'"') == 2 * len(entries) + sum(map(quotes.__getitem__, lists))
    if not whole or not _are_numbers(entries):
        return None
    shared = {objects: objects for objects in names.values()}
    objects = {given: shared[found] for given, found in names.items()}
    return dict(zip(entries, map(objects.__getitem__, lists), strict=True))


def _are_numbers(ids: Collection[str]) -> bool:
    """Return whether all ids are digits, and too few for the name of a file."""
    digits = "".join(ids)
    if not digits.isascii() or not digits.isdigit() or "" in ids:
        return False
    return max(map(len, ids)) < SHORTEST_NAME


def shared_names(
    value: object, place: _Place, shared: dict[tuple[object, ...], Objects]
) -> Objects:
    """Return the names of a list of objects, without duplicates; equal lists share one tuple.

    Args:
        value: The list.
        place: Returns its place, for messages.
        shared: The lists so far, to which this one is added.

    Raises:
        ArchiveError: The value is not a list of texts.
    """
    if type(value) is not list:
        objects = _object_names(value, place())
        return shared.setdefault(objects, objects)
    key = tuple(value)
    try:
        if (known := shared.get(key)) is not None:
            return known
    except TypeError:
        # A list of lists or objects, which is no key.
        return _object_names(value, place())
    objects = _object_names(value, place())
    shared[key] = shared.setdefault(objects, objects)
    return shared[key]


def _reference_entries(references: References) -> Iterator[tuple[str, object, _Place]]:
    if paths := _coco_files(references):
        for image, objects in read_coco(paths).items():
            yield image, objects, partial(_place, str(paths[0]), image)
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
                choose_key(record, None, ID_KEYS, what="the image id", flag="one of these names"),
                choose_key(
                    record, None, OBJECT_KEYS, what="the objects", flag="one of these names"
                ),
            )
        identifier = canonical_id(record.values.get(keys[0]), record.place)
        yield identifier, record.values.get(keys[1]), partial(str, record.place)


def _mapped_entries(
    references: References, values: Iterable[object]
) -> Iterator[tuple[str, object, _Place]]:
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
            place = partial(_place, source, key)
            # Nearly all ids are the digits of a number.
            plain = type(key) is str and key.isascii() and key.isdigit()
            yield key if plain else canonical_id(key, place()), value, place


def _place(source: str, key: object) -> str:
    """Return the place of an entry, for messages."""
    return f"{source}, image {key!r:.60}"


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
        values = read_values(Path(references), chunk_chars=_WHOLE_BYTES)
        yield from (placed.value for placed in values)
    else:
        yield references


def _maps_ids(value: object) -> bool:
    """Return whether a value maps ids to lists, rather than being or holding records."""
    if not isinstance(value, Mapping) or {*ID_KEYS, *OBJECT_KEYS} & value.keys():
        return False
    entries = value.values()
    if all(isinstance(entry, str) for entry in entries):
        # Texts in place of lists, or nothing: the keys of a record are not numbers.
        return all(str(key).isdigit() for key in value)
    lists = [isinstance(entry, _LISTS) for entry in entries]
    # Records of other layouts hold lists and objects too; only ids of images have digits.
    ids = all(map(_HAS_DIGIT.search, map(str, value)))
    return any(lists) and (ids or not any(isinstance(entry, Mapping) for entry in entries))


def _object_names(given: object, place: str) -> Objects:
    """Return the names of a list of objects, without duplicates.

    Raises:
        ArchiveError: The value is not a list of texts.
    """
    value = structured(given)
    if isinstance(value, (set, frozenset)) and all(isinstance(name, str) for name in value):
        value = sorted(value)
    if isinstance(value, Iterator):
        value = list(value)
    if isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value):
        return tuple(dict.fromkeys(well_formed(name.strip()) for name in value if name.strip()))
    raise ArchiveError(f"{place}: expected a list of object names, found {shown(value)}")
