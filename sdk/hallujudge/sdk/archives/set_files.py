"""The sets or splits that files and records of a benchmark belong to, by their names or keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeGuard

from hallujudge.metrics.answers.closed_questions import ClosedQuestions, SetFiles
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.responses import sent_text

from ..errors import ArchiveError
from .inputs import Responses
from .joins import read_mapping
from .json_files import read_values, shown
from .local_files import as_path
from .record_values import canonical_id
from .records import Record, name_of, read_records, unwrapped

# Files that may hold answers, unlike notes and output.
_OTHER_FORMATS = (".csv", ".tsv", ".xlsx", ".parquet", ".gz", ".zst", ".zip")
# Keys whose value has the split's name as a word, as other tools write them.
_SPLIT_KEYS = ("split", "sampling", "type", "pope_type")


class Part(NamedTuple):
    """Records of one set."""

    name: str
    """The set; empty if each record names its own."""
    records: Iterator[Record]


def folder_files(declared: ClosedQuestions, folder: Path) -> tuple[Path, ...]:
    """Return the files of a folder that are named after a set of a benchmark."""
    if (sets := declared.set_files) is None:
        return ()
    return tuple(file for file in _json_files(folder) if set_in(sets, file.stem))


def _json_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix in (".json", ".jsonl"))


def parts_of(declared: ClosedQuestions, responses: Responses) -> Iterator[Part]:
    """Yield the sets of an archive; one without a name if its records name their sets.

    Raises:
        ArchiveError: A set is unknown, or appears in two files.
    """
    sets = declared.set_files
    if sets is None:
        names = (*declared.keys.id, *declared.keys.response)
        by_id = declared.alone
        yield Part("", _answers_of(responses, names) if by_id else read_records(responses))
    elif isinstance(responses, Mapping) and _are_sets(declared, responses):
        yield from _sets_of(sets, responses, "the archive")
    elif not isinstance(responses, (str, Path)):
        yield from _changed(declared, sets, responses)
    elif Path(responses).is_dir():
        yield from _folder(sets, Path(responses))
    else:
        yield from _file(declared, sets, as_path(responses))


def _folder(sets: SetFiles, folder: Path) -> Iterator[Part]:
    first: dict[str, Path] = {}
    _refuse_other_formats(sets, folder)
    for file in _json_files(folder):
        name = set_in(sets, file.stem)
        if not name:
            raise ArchiveError(
                f"{file}: the name must begin with one of the sets {known_sets(sets)}; rename it"
            )
        if name in first:
            raise ArchiveError(
                f"{first[name]} and {file} both have the {sets.field} {name}; give the files of "
                "one model"
            )
        first[name] = file
        records = _records_in(file)
        if (found := next(records, None)) is None:
            raise ArchiveError(f"{file}: no records; give the answers, or remove the file")
        yield Part(name, chain([found], records))


def _refuse_other_formats(sets: SetFiles, folder: Path) -> None:
    """Refuse a set that would be left out, since its file is packed or a table."""
    for file in sorted(folder.iterdir()):
        name = set_in(sets, file.name.partition(".")[0])
        if name and file.suffix.lower() in _OTHER_FORMATS:
            raise ArchiveError(
                f"{file}: the {sets.field} {name} would be left out, since a folder of sets holds "
                ".json or .jsonl files; write it as one, or move it to another folder"
            )


def _file(declared: ClosedQuestions, sets: SetFiles, path: Path) -> Iterator[Part]:
    of_records = {sets.field, *_keys_of_fields(declared), *declared.keys.id}
    part = set_in(sets, path.stem)
    for placed in read_values(path):
        held = unwrapped(placed.value) if isinstance(placed.value, Mapping) else {}
        if not held or (isinstance(held, Mapping) and of_records.intersection(held)):
            yield Part(part, _records_in(path))
            return
        if isinstance(held, Mapping) and _are_sets(declared, held):
            yield from _sets_of(sets, held, str(path))
            continue
        by_id = isinstance(held, Mapping) and all(isinstance(v, Mapping) for v in held.values())
        # Flat records; those of one object are under their ids.
        yield Part(part, read_records(path if held is placed.value and not by_id else held))
        if not by_id:
            return


def _changed(declared: ClosedQuestions, sets: SetFiles, responses: Responses) -> Iterator[Part]:
    """Yield the sets of a file whose records were changed, such as by their thoughts' keys."""
    name, records = name_of(responses), read_records(responses)
    first = next(records, None)
    if first is None or not _is_of_sets(declared, sets, first.values):
        found = records if first is None else chain([first], records)
        yield Part(set_in(sets, Path(name).stem), found)
        return
    for record in chain([first], records):
        yield from _sets_of(sets, _under_its_set(record.values), f"{name} {record.place}".strip())


def _is_of_sets(declared: ClosedQuestions, sets: SetFiles, values: Mapping[str, object]) -> bool:
    held = _under_its_set(values)
    of_records = {sets.field, *_keys_of_fields(declared), *declared.keys.id}
    known = any(set_in(sets, key) for key in held)
    return known and of_records.isdisjoint(held) and _are_sets(declared, held)


def _under_its_set(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return set -> records: what is read of an object of objects has its name as the id."""
    rest = {key: value for key, value in values.items() if key != "id"}
    if (name := values.get("id")) is None or not all(isinstance(v, Mapping) for v in rest.values()):
        return values
    return {str(name): rest}


def _are_sets(declared: ClosedQuestions, content: Mapping[str, object]) -> bool:
    """Return whether an object holds the records of sets, whose names may be wrong."""
    held, of_fields = content.values(), _keys_of_fields(declared)
    # An object id -> record, in place of a set's list, is not a record itself.
    return any(isinstance(value, list) for value in held) or not any(
        not isinstance(value, Mapping)
        or not of_fields.isdisjoint(value)
        or not all(isinstance(record, Mapping) for record in value.values())
        for value in held
    )


def _keys_of_fields(declared: ClosedQuestions) -> set[str]:
    return {key for keys in declared.keys.fields.values() for key in keys}


def _records_in(path: Path) -> Iterator[Record]:
    """Yield records; the general record reader would parse them as id -> record."""
    for position, placed in enumerate(read_values(path)):
        place = f"{path} line {placed.line}"
        if not isinstance(placed.value, Mapping):
            raise ArchiveError(
                f"{place}: expected a record, an object; found {shown(placed.value)}"
            )
        yield Record(values=placed.value, position=position, place=place)


def _sets_of(sets: SetFiles, content: Mapping[str, object], place: str) -> Iterator[Part]:
    for key, held in content.items():
        # Keys of Python's mappings may be anything.
        name = set_in(sets, key) if isinstance(key, str) else ""
        # A list of records, or an object id -> record.
        if not name or not isinstance(held, (Mapping, list, tuple)):
            raise ArchiveError(
                f"{place}: {key!r:.60} is not a {sets.field} with a list of records; "
                + choose_from(key, dict.fromkeys(sets.names.values()))
            )
        yield Part(name, read_records(held))


def known_sets(sets: SetFiles) -> str:
    """Return the names of all sets, or splits, for messages."""
    return ", ".join(dict.fromkeys(sets.names.values()))


def set_in(sets: SetFiles, text: str) -> str:
    """Return the set that a name begins with; empty if there is none.

    Files are named after their set, or the set and the model: ``fact_detect``, ``obj_rel_LLaVA``.
    """
    name = text.casefold().replace("-", "_")
    found = [alias for alias in sets.names if name == alias or name.startswith(f"{alias}_")]
    # The longest: a set's name may begin with that of another.
    return sets.names[max(found, key=len)] if found else ""


def split_in(splits: SetFiles, text: str) -> str:
    """Return the split that a text names as a word of its own; empty without one, or with several.

    ``coco_pope_random.json`` is of the split ``random``, ``randomized.json`` of none.
    """
    words = "|".join(map(re.escape, splits.names))
    found = re.findall(rf"(?<![a-z])(?:{words})(?![a-z])", text.casefold())
    return splits.names[found[0]] if len({splits.names[word] for word in found}) == 1 else ""


def split_of_file(splits: SetFiles, path: Path) -> str:
    """Return the split that the name of a file has, or else that of its folder."""
    return split_in(splits, path.name) or split_in(splits, path.parent.name)


def split_of(splits: SetFiles, values: Mapping[str, object]) -> str:
    """Return the split that a record names; empty without one.

    VLMEvalKit's rows name several, and have unique ids.
    """
    own = values.get(splits.field)
    if isinstance(own, str) and own and "," not in own:
        return splits.names.get(own) or split_in(splits, own) or own
    texts = (text for key in _SPLIT_KEYS if isinstance(text := values.get(key), str))
    return next(filter(None, (split_in(splits, text) for text in texts)), "")


# Answers by id ------------------------------------------------------------------------------------


def _answers_of(responses: Responses, names: Sequence[str]) -> Iterator[Record]:
    """Yield records of answers, also from id -> answer, whose answers may be lists.

    A file may have one object of all ids, or a line for each.

    Args:
        responses: The archive.
        names: Keys of a record of this protocol, which has at least one of them.
    """
    values = [responses] if isinstance(responses, Mapping) else _first_values(responses)
    count = 1 if isinstance(responses, Mapping) else _count_by_id(values, names)
    if count == 1:
        assert isinstance(responses, (str, Path, Mapping)), "_count_by_id looked at a file"
        place = "" if isinstance(responses, Mapping) else f"{responses} "
        # A file of one value was read, and checked for duplicates, to find that out.
        only = values[0] if len(values) == 1 and isinstance(values[0], Mapping) else responses
        read = read_mapping(only, "answers")
        held = unwrapped(read)
        if isinstance(held, list):
            yield from read_records(held)
            return
        for position, (key, value) in enumerate(held.items()):
            # Keys of the file itself are canonical already.
            identifier = key if held is read else canonical_id(key, place)
            yield _answer(identifier, value, position, f"{place}entry {key!r}")
    elif count:
        assert isinstance(responses, (str, Path)), "_count_by_id looked at a file"
        for position, (key, value, place) in enumerate(_lines_by_id(as_path(responses))):
            yield _answer(key, value, position, place)
    else:
        yield from read_records(responses)


def _answer(key: str, value: object, position: int, place: str) -> Record:
    # Nearly all answers are texts, and looking for a mapping takes longer than the rest.
    if type(value) is not str and isinstance(value, Mapping):
        # The message of a model is an answer too.
        sent = sent_text(value)
        held = value if sent is value else {"response": sent}
        return Record({"id": key, **held}, position, place)
    return Record({"id": key, "response": value}, position, place)


def _first_values(responses: Responses) -> list[object]:
    """Return up to two values that a file begins with; none of anything else."""
    if not isinstance(responses, (str, Path)):
        return []
    return [found.value for found in islice(read_values(as_path(responses)), 2)]


def _count_by_id(values: Sequence[object], names: Sequence[str]) -> int:
    """Return how many values of id -> answer a file begins with: 0, 1, or 2 for more than one."""
    if not values or not _is_by_id(values[0], names):
        return 0
    lines = all(_is_by_id(value, names) and len(value) == 1 for value in values)
    return len(values) if lines else 1


def _is_by_id(value: object, names: Sequence[str]) -> TypeGuard[Mapping[str, object]]:
    if not isinstance(value, dict) or not value or any(name in value for name in names):
        return False
    texts = all(entry is None or isinstance(entry, (str, list, dict)) for entry in value.values())
    # Numbers are not answers; they are accepted here so that the error names the first.
    return texts or all(isinstance(entry, (int, float)) for entry in value.values())


def _lines_by_id(path: Path) -> Iterator[tuple[str, object, str]]:
    """Yield the ids, answers and places of lines that have one id each."""
    for value, line in read_values(path):
        place = f"{path} line {line}"
        if not isinstance(value, dict) or len(value) != 1:
            raise ArchiveError(
                f"{place}: expected one id with its answer, as on the line before, found "
                f"{shown(value)}"
            )
        [(key, answer)] = value.items()
        yield canonical_id(key, place), answer, f"{place}, {key!r}"
