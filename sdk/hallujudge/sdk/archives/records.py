"""Records of archives from any source: files, lists and mappings."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, overload

from msgspec import Struct, structs

from hallujudge.metrics.framework.json_values import json_kind, newer_schema
from hallujudge.metrics.responses import sent_text

from ..errors import ArchiveError, VersionMismatchError
from .bad_records import Unreadable, note_unreadable
from .json_files import named, read_batches, shown
from .json_lines import WHOLE, FilePart
from .local_files import as_path

# "logs" is of lmms-eval until 0.2.3, "samples" of Inspect AI.
_CONTAINERS = ("imgToEval", "sentences", "annotations", "records", "data", "logs", "samples")
LISTED_TEXT = "listed_text"
"""Key of the text in records of a file that is a list of texts, for the benchmarks whose files are
such lists."""
# A record may have parts of these names: only lists of objects that have ids count.
_LISTS = ("results", "predictions", "responses", "outputs", "answers", "captions", "questions")
# Keys of all records of a file, next to what describes the run.
_WRAPPERS = ("results", "data", "items", "predictions", "responses", "outputs", "answers")
_OF_RUNS = ("config", "meta", "metadata")
# Keys that show that an object is a record, whose parts may have the name of a wrapper.
_OF_RECORDS = frozenset(
    [
        *("id", "image_id", "question_id", "request_id", "image", "video"),
        *("question", "response", "answer", "caption", "prompt_token_ids"),
    ]
)
_ID_KEYS = frozenset(["image_id", "question_id", "id"])
_OWNERS = _ID_KEYS | {"image", "video", "video_id", "file_name"}
_TEXT, _TEXT_OR_NULL = {str}, {str, type(None)}
_DIGIT = re.compile(r"\d")
Source: TypeAlias = "str | Path | Iterable[object] | Mapping[str, object]"
"""A file, records, or a mapping id -> text or record."""


class Record(Struct, frozen=True, gc=False):
    """One entry of an archive."""

    values: Mapping[str, object]
    """Keys and values of the record."""
    position: int
    """Position in the archive, counted from zero."""
    place: str
    """Place for messages: file and line, or index."""

    def _replace(self, **changes: Any) -> Record:
        """Return the record with other values, as a named tuple does: a documented name."""
        return structs.replace(self, **changes)


class Records:
    """Records of an archive, which each iteration reads again.

    Args:
        make: Returns a new iterator over the records.
        name: The archive's name in messages; empty for values in memory.
        parts: The files that it joins; empty for one.
    """

    def __init__(
        self,
        make: Callable[[], Iterator[Record]],
        name: str = "",
        parts: Sequence[Records] = (),
    ) -> None:
        self._make = make
        self.name = name
        self.parts = parts

    def __iter__(self) -> Iterator[Record]:
        return self._make()


def first_record(records: Iterable[Record], source: object, each: str) -> Record:
    """Return the first of an archive's records.

    Args:
        records: The records.
        source: The archive.
        each: What a record is, such as ``answer``.

    Raises:
        ArchiveError: There is none.
    """
    if (first := next(iter(records), None)) is None:
        raise no_records(source, each)
    return first


def no_records(source: object, each: str) -> ArchiveError:
    """Return the error of an archive without a record; see :func:`first_record`."""
    name = name_of(source) or f"the {each}s"
    return ArchiveError(f"{name}: no records; give a record for each {each}")


def name_of(source: object) -> str:
    """Return the name of an archive; empty for values in memory."""
    if isinstance(source, Records):
        return source.name
    return str(source) if isinstance(source, (str, Path)) else ""


def changed(
    source: Source,
    change: Callable[[Mapping[str, object]], Mapping[str, object]],
) -> Records:
    """Return records with other values; the files of several keep apart."""

    def records() -> Iterator[Record]:
        for record in read_records(source):
            yield record._replace(values=change(record.values))

    parts = source.parts if isinstance(source, Records) else ()
    return Records(records, name_of(source), [changed(part, change) for part in parts])


@overload
def read_records(source: Source) -> Iterator[Record]: ...


@overload
def read_records(source: Source, part: FilePart) -> Iterator[Any]: ...


def read_records(source: Source, part: FilePart = WHOLE) -> Iterator[Any]:
    """Yield the records of a file, of a list, or of a mapping id -> text or record.

    A bare mapping becomes records with the keys ``id`` and ``text``. A list may hold mappings, or
    records that were read from a table.

    Args:
        source: Where the records come from.
        part: What is read of a file. What ``decode`` makes of its blocks is yielded in place of
            their records.

    Raises:
        ArchiveError: The file can't be read, or an entry is not a record.
    """
    if isinstance(source, (str, Path)):
        return _of_file(as_path(source), part)
    if isinstance(source, Mapping):
        return _of_mapping(source)
    return _of_values((value, f"record {i}") for i, value in enumerate(source))


def _of_mapping(source: Mapping[str, object]) -> Iterator[Record]:
    if source and _is_by_columns(source):
        raise _by_columns("the mapping")
    for position, (key, value) in enumerate(source.items()):
        # Nearly all values are texts, and a test for a mapping takes longer than making the record.
        values = {"id": key, "text": value} if type(value) is str else _as_record(key, value)
        yield Record(values, position, f"entry {key!r}")


def _of_file(path: Path, part: FilePart) -> Iterator[Any]:
    before = f"{path} line "
    position, by_id = part.start.values, False
    for values, lines in read_batches(path, part):
        # Blocks that the decoder did not know come as plain values.
        if part.decode is not None and isinstance(values[0], Struct):
            yield from values
            position += len(values)
            continue
        first = f"{before}{lines[0]}"
        if position == 0 and (held := _held(values[0], first)) is not None:
            by_id = _is_record(values[0]) and _is_id_to_text(values[0])
            if part.marks is not None:
                # Reading can't begin in the middle of one object that holds all records.
                part.marks.nested = True
            for record in _of_values((entry, f"{first}, {key}") for key, entry in held):
                yield record
                position = record.position + 1
            values, lines = values[1:], lines[1:]
        if by_id:
            for record in _of_values(_entries_by_id(values, lines, before), position):
                yield record
                position = record.position + 1
            continue
        if values and set(map(type, values)) == _TEXT:
            # A script's list of answers, whose places are all that joins them with questions.
            values = [{LISTED_TEXT: value} for value in values]
        elif values and all(
            type(value) is dict and value.get("role") == "assistant" and "content" in value
            for value in values
        ):
            # The same list, of a tool that keeps the messages that a chat server sent.
            values = list(map(_listed_message, values))
        for value, line in zip(values, lines, strict=True):
            place = f"{before}{line}"
            if type(value) is dict:
                yield Record(value, position, place)
            else:
                note_unreadable(_no_record(value, place), position, place)
            position += 1


def _listed_message(message: Any) -> dict[str, object]:
    return {**message, LISTED_TEXT: sent_text(message)}


def _entries_by_id(
    values: Sequence[object], lines: Sequence[int], before: str
) -> Iterator[tuple[object, str]]:
    """Yield the records of lines that follow one of id -> text; most have one id each."""
    for value, line in zip(values, lines, strict=True):
        if _is_record(value) and _is_id_to_text(value):
            for key, text in value.items():
                yield _as_record(key, text), f"{before}{line}, {key!r}"
        else:
            yield value, f"{before}{line}"


def _of_values(entries: Iterable[tuple[object, str]], first: int = 0) -> Iterator[Record]:
    for position, (value, place) in enumerate(entries, first):
        if isinstance(value, Record):
            if type(value.values) is Unreadable:
                note_unreadable(_no_record(value.values, value.place), position, value.place)
                continue
            yield value
        elif _is_record(value):
            yield Record(value, position, place)
        else:
            note_unreadable(_no_record(value, place), position, place)


def _no_record(value: object, place: str) -> ArchiveError:
    if isinstance(value, Unreadable):
        return ArchiveError(value.problem)
    problem = f"{place}: expected a JSON object, found {json_kind(value)} ({shown(value)})"
    return ArchiveError(f"{problem}; write one object for each record")


def _held(value: object, place: str) -> Iterator[tuple[str, object]] | None:
    """Return the records that a top-level object holds; None if it is a record itself.

    Raises:
        ArchiveError: The object is a table by columns.
        VersionMismatchError: A newer release of Hallujudge wrote the object.
    """
    if not _is_record(value):
        return None
    if problem := newer_schema(value.get("schema")):
        raise VersionMismatchError(f"{place}: {problem}")
    # A record has an id, and its other keys may have the name of a container.
    for name in () if value.keys() & _ID_KEYS else _CONTAINERS:
        if (entries := _entries_under(name, value.get(name))) is not None:
            return entries
    lists = [
        name
        for name in (() if value.keys() & _OWNERS else _LISTS)
        if has_records(inner := value.get(name)) or (_is_record(inner) and _is_by_id(name, inner))
    ]
    if len(lists) > 1:
        raise ArchiveError(f"{place}: {named(lists)} have records each; give a file of one of them")
    if lists:
        return _entries_under(lists[0], value[lists[0]])
    if not value.keys() & _OWNERS and (held := unwrapped(value)) is not value:
        return _entries_under(next(key for key in value if value[key] is held), held)
    if value and _is_by_columns(value):
        raise _by_columns(place)
    if _all_objects(value.values()) or _is_id_to_text(value):
        return ((repr(key), _as_record(key, entry)) for key, entry in value.items())
    return None


def _entries_under(name: str, inner: object) -> Iterator[tuple[str, object]] | None:
    """Return the records under a key; None if it holds something else."""
    if isinstance(inner, list) and _all_objects(inner):
        return ((f"{name}[{index}]", entry) for index, entry in enumerate(inner))
    if _is_record(inner) and inner and (_all_objects(inner.values()) or _is_id_to_text(inner)):
        return ((f"{name}[{key!r}]", _as_record(key, entry)) for key, entry in inner.items())
    return None


def unwrapped(content: Mapping[str, object]) -> Mapping[str, object] | list[object]:
    """Return what an object holds under ``results`` or such, if all else describes the run."""
    # Nearly all records have none of these keys.
    if content.keys().isdisjoint(_WRAPPERS):
        return content
    names = [name for name in _WRAPPERS if _is_wrapped(name, content.get(name))]
    if len(names) != 1:
        return content
    others = [value for key, value in content.items() if key not in (*names, *_OF_RUNS)]
    if any(isinstance(value, (list, dict)) for value in others):
        return content
    held = content[names[0]]
    assert isinstance(held, (Mapping, list)), "only these are wrapped"
    return content if names[0] != "results" and content.keys() & _OF_RECORDS else held


def _is_wrapped(name: str, value: object) -> bool:
    if name == "results" or not value:
        return name == "results" and isinstance(value, (Mapping, list))
    return isinstance(value, Mapping) or (
        isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)
    )


def _is_by_columns(value: Mapping[str, object]) -> bool:
    """Return whether an object maps columns to their cells, as pandas writes it.

    The cells are a list, or are mapped by row number. Ids of images have digits; names of columns
    have none.
    """
    lists = {key for key, cells in value.items() if isinstance(cells, list)}
    if lists >= {"columns", "data"} or (lists & _ID_KEYS and lists == value.keys()):
        return True
    rows = next(iter(value.values()))
    if not isinstance(rows, dict) or list(map(str, rows)) != list(map(str, range(len(rows)))):
        return False
    return bool(rows) and all(
        isinstance(cells, dict)
        and cells.keys() == rows.keys()
        and isinstance(key, str)
        and key.replace("_", "").isalpha()
        for key, cells in value.items()
    )


def _by_columns(place: str) -> ArchiveError:
    return ArchiveError(
        f"{place}: a table by columns, as pandas writes it; write it by rows: "
        "to_json(PATH, orient='records')"
    )


def _all_objects(entries: Collection[object]) -> bool:
    return bool(entries) and all(isinstance(entry, dict) for entry in entries)


def has_records(value: object) -> TypeGuard[list[Mapping[str, object]]]:
    """Return whether a value is a list of objects that all have an id."""
    return (
        isinstance(value, list)
        and _all_objects(value)
        and all(entry.keys() & _ID_KEYS for entry in value)
    )


def _is_by_id(name: str, value: Mapping[str, object]) -> bool:
    """Return whether an object maps ids, which have digits elsewhere than in ``results``."""
    by_id = name == "results" or all(any(map(str.isdigit, key)) for key in value)
    return _is_id_to_text(value) or (by_id and _all_objects(value.values()))


def _is_id_to_text(value: Mapping[str, object]) -> bool:
    """Return whether an object maps ids to texts, rather than being a record.

    Ids of images are numbers or file names; names of keys are neither.
    """
    entries = value.values()
    texts = set(map(type, entries)) <= _TEXT_OR_NULL
    texts = texts or all(entry is None or isinstance(entry, str) for entry in entries)
    return bool(value) and texts and have_digits(value)


def have_digits(texts: Iterable[str]) -> bool:
    """Return whether all texts have a digit, such as ids."""
    # The pattern takes a tenth of the time of a loop, and knows fewer digits, such as no "²".
    return all(_DIGIT.search(text) or any(map(str.isdigit, text)) for text in texts)


def _as_record(key: object, value: object) -> Mapping[str, object]:
    value = sent_text(value)
    return {"id": key, **value} if _is_record(value) else {"id": key, "text": value}


def _is_record(value: object) -> TypeGuard[Mapping[str, object]]:
    if not isinstance(value, (dict, Mapping)):
        return False
    # A set of types takes half the time of a loop, and this runs for every record.
    return set(map(type, value)) == _TEXT or all(isinstance(key, str) for key in value)
