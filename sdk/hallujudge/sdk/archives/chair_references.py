"""Reference objects for CHAIR: files of objects, and COCO's instances and captions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from hallujudge.judge_service.errors import fault_of
from hallujudge.metrics.framework.json_values import well_formed
from hallujudge.synonym_graphs import compile_matcher, load_graph

from ..errors import ArchiveError
from .inputs import References, are_paths
from .joins import refuse
from .json_files import named, read_values, shown
from .local_files import as_path, open_text
from .record_values import canonical_id, choose_key, structured
from .records import read_records, unwrapped

ID_KEYS = ("image_id", "id", "question_id", "image")
"""Keys of the image id, the most likely first."""
OBJECT_KEYS = ("reference_objects", "objects", "gt_objects")
"""Keys of an image's objects."""
Objects: TypeAlias = tuple[str, ...]
"""The objects of an image."""
_Place: TypeAlias = "Callable[[], str]"
"""Returns a place for messages; few are ever shown."""
# The released CHAIR script finds the objects of reference captions with its own synonyms.
_TABLE = "coco-published"
# COCO's files have hundreds of megabytes, and their first key says what they are.
_HEAD_CHARS = 4096
_PIECE_CHARS = 1 << 20
_ANNOTATED = re.compile(r'"(caption|category_id)"\s*:')
_FIRST_KEYS = re.compile(r'\s*\{\s*"(info|images|annotations|licenses|categories|type)"\s*:')
# COCO_val2014_000000040468.jpg, as of 2014, and 000000040468.jpg, as of 2017.
_FILE_NAME = re.compile(
    r"(?:.*[/\\])?(?:COCO_[a-z]+\d{4}_0*(\d+)|(?=0\d{11}(?!\d))0*(\d+))(?:\.[a-z]+)?",
    re.ASCII | re.IGNORECASE,
)
SHORTEST_NAME = 12
"""Length of the shortest file name, 000000040468 without its suffix."""
# All other keys are dropped while a file is read: segmentations alone are 95 % of it.
_KEPT = frozenset(
    [
        *("annotations", "caption", "categories", "category_id", "file_name", "id", "image_id"),
        *("images", "name"),
    ]
)
_HAS_DIGIT = re.compile(r"\d")
_LISTS = (list, tuple, set, frozenset, Iterator)
# Size up to which a file of one line is decoded as a whole, which takes half the time.
_WHOLE_BYTES = 1 << 26


def read_objects(references: References) -> dict[str, Objects]:
    """Return image id -> objects, from ``{id: [objects]}`` or from records.

    Equal lists share one tuple: an archive has far fewer distinct lists than images.
    """
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
        objects = object_names(value, place())
        return shared.setdefault(objects, objects)
    key = tuple(value)
    try:
        if (known := shared.get(key)) is not None:
            return known
    except TypeError:
        # A list of lists or objects, which is not hashable.
        return object_names(value, place())
    objects = object_names(value, place())
    shared[key] = shared.setdefault(objects, objects)
    return shared[key]


def _reference_entries(references: References) -> Iterator[tuple[str, object, _Place]]:
    if paths := _coco_files(references):
        for image, objects in read_coco(paths).items():
            yield image, objects, partial(_place, str(paths[0]), image)
        return
    # Closed, since the reader of records opens the file again.
    with closing(_values(references)) as values:
        first = next(values, None)
        if _maps_ids(first):
            yield from _mapped_entries(references, chain([first], values))
            return
    keys: tuple[str, str] | None = None
    for record in read_records(references):
        if keys is None:
            keys = (
                choose_key(record, None, ID_KEYS, "the image id"),
                choose_key(record, None, OBJECT_KEYS, "the objects"),
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
            # Lists first: nearly all are, and to look for a mapping takes longer.
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
        return [as_path(references)] if is_coco(as_path(references)) else []
    if not are_paths(references):
        return []
    paths = [as_path(path) for path in references]
    if other := [path for path in paths if not is_coco(path)]:
        raise ArchiveError(
            f"{other[0]}: not one of COCO's annotation files. Only instances_*.json and "
            "captions_*.json can be given together; otherwise give one file of references"
        )
    return paths


def _values(references: References) -> Generator[object, None, None]:
    """Yield the values of a file; any other source is a single value."""
    if isinstance(references, (str, Path)):
        values = read_values(as_path(references), chunk_chars=_WHOLE_BYTES)
        for placed in values:
            held = unwrapped(placed.value) if isinstance(placed.value, Mapping) else ()
            # Objects by image may be under a key of the file; the record reader finds records.
            yield held if _maps_ids(held) else placed.value
    else:
        yield references


def _maps_ids(value: object) -> bool:
    """Return whether a value maps ids to lists, rather than being or holding records."""
    if not isinstance(value, Mapping) or {*ID_KEYS, *OBJECT_KEYS} & value.keys():
        return False
    if unwrapped(value) is not value:
        return False
    entries = value.values()
    if all(isinstance(entry, str) for entry in entries):
        # Texts in place of lists, or nothing: the keys of a record are not numbers.
        return all(str(key).isdigit() for key in value)
    lists = [isinstance(entry, _LISTS) for entry in entries]
    # Records of other layouts hold lists and objects too; only ids of images have digits.
    ids = all(map(_HAS_DIGIT.search, map(str, value)))
    return any(lists) and (ids or not any(isinstance(entry, Mapping) for entry in entries))


def object_names(given: object, place: str) -> Objects:
    """Return the names of a list of objects, without duplicates.

    Raises:
        ArchiveError: The value is not a list of texts.
    """
    value = structured(given)
    if isinstance(value, (set, frozenset)) and all(isinstance(name, str) for name in value):
        # The order of a set differs from process to process.
        value = sorted(value)
    if isinstance(value, Iterator):
        value = list(value)
    if isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value):
        return tuple(dict.fromkeys(well_formed(name.strip()) for name in value if name.strip()))
    raise ArchiveError(f"{place}: expected a list of object names, found {shown(value)}")


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
        # The reader of the file reports what is wrong with it.
        return False


def coco_notes(references: References | None) -> tuple[str, ...]:
    """Return a note if references are one kind of COCO's annotation files without the other."""
    paths = [] if references is None else _coco_files(references)
    kinds = set(map(_kind_of, paths)) - {""}
    if len(kinds) != 1:
        return ()
    [kind] = kinds
    other = "instances" if kind == "captions" else "captions"
    return (
        f"the references are COCO's {kind} alone. Published CHAIR joins the objects of instances "
        f"and captions, so its scores are others: give {other}_*.json too",
    )


def _kind_of(path: Path) -> str:
    """Return the kind of a file by its first annotation; parsing it would take long."""
    with open_text(path) as stream:
        before = ""
        while piece := stream.read(_PIECE_CHARS):
            if found := _ANNOTATED.search(before + piece):
                return "captions" if found[1] == "caption" else "instances"
            # The end of a piece may cut a key in two.
            before = piece[-_HEAD_CHARS:]
    return ""


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
    # The order of a set differs from process to process.
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
