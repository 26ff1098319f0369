"""Shared parts of archive readers of answers: mappings, joins, fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeGuard

from hallujudge.judge_service.errors import fault_of

from ..errors import ArchiveError, InvalidInputError
from .inputs import InputOptions, Responses
from .joins import IdCheck, refuse
from .json_files import read_text, read_values
from .records import (
    Record,
    Records,
    canonical_id,
    named,
    not_a_text,
    read_records,
    response_value,
    shown,
    well_formed,
)

__all__ = [
    "JoinCheck",
    "answers_of",
    "fields_of",
    "kept",
    "optional_text",
    "read_mapping",
    "text_of",
]


def kept(responses: Responses) -> Responses:
    """Return the responses in a form that can be read twice: a generator becomes a list."""
    if isinstance(responses, (str, Path, Mapping, Records)):
        return responses
    return list(responses)


def read_mapping(source: str | Path | Mapping[str, object], what: str) -> Mapping[str, object]:
    """Return one JSON object, id -> value, without duplicate ids.

    Raises:
        ArchiveError: The file can't be read, is not an object, or has duplicate ids.
    """
    if isinstance(source, Mapping):
        return {canonical_id(key, what): value for key, value in source.items()}
    path = Path(source)
    text = read_text(path)
    duplicates: list[str] = []
    try:
        content = json.loads(
            text, object_pairs_hook=lambda pairs: _without_duplicates(pairs, duplicates)
        )
    except RecursionError as err:
        raise ArchiveError(f"{path}: nested too deeply; write one flat object") from err
    except ValueError as err:
        raise ArchiveError(
            f"{path}: not one JSON object: {fault_of(err)}; {what} are an object with an entry for "
            "each id"
        ) from err
    if not isinstance(content, dict) or not content:
        raise ArchiveError(
            f"{path}: not one JSON object; {what} are an object with an entry for each id"
        )
    if duplicates:
        raise refuse(
            f"duplicate keys in one object of {path}", duplicates, "Keep one entry of each"
        )
    return {canonical_id(key, f"{path}"): value for key, value in content.items()}


def _without_duplicates(pairs: list[tuple[str, Any]], duplicates: list[str]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        duplicates.extend(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # add() is called for its effect
    return made


def answers_of(responses: Responses, names: Sequence[str]) -> Iterator[Record]:
    """Yield records of answers, also from id -> answer, whose answers may be lists.

    A file may have one object of all ids, or a line for each.

    Args:
        responses: The archive.
        names: Keys of which a record of this protocol has at least one.
    """
    if isinstance(responses, Mapping) or (count := _count_by_id(responses, names)) == 1:
        assert isinstance(responses, (str, Path, Mapping)), "_count_by_id looked at a file"
        place = "" if isinstance(responses, Mapping) else f"{responses} "
        for position, (key, value) in enumerate(read_mapping(responses, "answers").items()):
            yield _answer(key, value, position, f"{place}entry {key!r}")
    elif count:
        assert isinstance(responses, (str, Path)), "_count_by_id looked at a file"
        for position, (key, value, place) in enumerate(_lines_by_id(Path(responses))):
            yield _answer(key, value, position, place)
    else:
        yield from read_records(responses)


def _answer(key: str, value: object, position: int, place: str) -> Record:
    values = {"id": key, **value} if isinstance(value, Mapping) else {"id": key, "response": value}
    return Record(values=values, position=position, place=place)


def _count_by_id(responses: Responses, names: Sequence[str]) -> int:
    """Return how many values of id -> answer a file begins with: 0, 1, or 2 for more than one."""
    if not isinstance(responses, (str, Path)):
        return 0
    values = [found.value for found in islice(read_values(Path(responses)), 2)]
    if not values or not _is_by_id(values[0], names):
        return 0
    lines = all(_is_by_id(value, names) and len(value) == 1 for value in values)
    return len(values) if lines else 1


def _is_by_id(value: object, names: Sequence[str]) -> TypeGuard[Mapping[str, object]]:
    if not isinstance(value, dict) or not value or any(name in value for name in names):
        return False
    texts = all(entry is None or isinstance(entry, (str, list, dict)) for entry in value.values())
    # Numbers are no answers, but the layout is this one, and so the reader names the first.
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


def text_of(record: Record, key: str) -> str | None:
    """Return the answer as text.

    The parts of a list are joined by commas, or by line ends if a part contains commas or
    spaces.

    Raises:
        ArchiveError: The answer is neither a text nor a list of texts.
    """
    value = response_value(record, key)
    if value is None:
        return None
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
        plain = all(part.strip() == part and "," not in part and " " not in part for part in value)
        return well_formed((", " if plain else "\n").join(value))
    raise not_a_text(record, key, "a text or a list of texts")


def optional_text(record: Record, keys: Sequence[str]) -> str:
    """Return the first text or number under some keys; empty if there is none."""
    for key in keys:
        value = record.values.get(key)
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return well_formed(str(value))
    return ""


def fields_of(keys: Iterable[str], *records: Mapping[str, object]) -> dict[str, str]:
    """Return values to group by, each from the first record that has it; empty if none has.

    A list names several groups, which are joined by commas.

    Args:
        keys: Names of keys, or paths such as ``doc.category`` into objects.
        records: The records, in the order of precedence.

    Raises:
        InvalidInputError: A key has an object as its value.
    """
    out = {}
    for key in keys:
        found = (_at(record, key) for record in records)
        value = next((value for value in found if value is not None), None)
        parts = value if isinstance(value, list) else [value]
        if any(isinstance(part, (Mapping, list)) for part in parts):
            inner = next(iter(parts[0]), "") if isinstance(parts[0], Mapping) else ""
            example = f"{key}.{inner}" if inner else "doc.category"
            raise InvalidInputError(
                f"the key {key!r} to report groups by holds {shown(value)}; name a key of the "
                f"object, such as {example!r:.80}, or another key"
            )
        out[key] = "" if value is None else well_formed(",".join(map(str, parts)))
    return out


def _at(record: Mapping[str, object], key: str) -> object:
    """Return the value of a key, or at the end of a path; None if there is none."""
    value: object = record.get(key)
    if value is None and "." in key:
        value = record
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


class JoinCheck:
    """Compares the ids of answers with those of their references.

    Args:
        what: Plural noun for the ids, such as ``questions``.
        options: Options that allow duplicate, unknown or missing ids.
        known: The references' ids; None if answers carry everything.
    """

    def __init__(self, what: str, options: InputOptions, known: Mapping[str, object] | None):
        self._what = what
        self._options = options
        self._known = known
        self._ids = IdCheck()
        self._unknown: dict[str, None] = {}
        self._met: set[str] = set()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, identifier: str) -> None:
        """Add an answer's id."""
        self._ids.add(identifier)
        if self._known is not None:
            if identifier in self._known:
                self._met.add(identifier)
            else:
                self._unknown[identifier] = None

    def missing(self) -> list[str]:
        """Return the ids of references without an answer."""
        return [known for known in self._known or () if known not in self._met]

    def refuse(self, again: Callable[[], Iterable[str]]) -> None:
        """Stop the run if ids are duplicate, unknown or missing.

        Args:
            again: Returns an iterator over the ids.

        Raises:
            ArchiveError: Such ids exist and the options do not allow them.
        """
        if not self._options.allow_duplicates and (duplicates := self._ids.duplicates(again)):
            raise refuse(
                f"{self._what} are answered more than once",
                duplicates,
                "Remove the duplicates, or score each one with InputOptions(allow_duplicates=True)",
            )
        if self._unknown and not self._options.allow_unknown:
            some = named(list(islice(self._known or (), 3)))
            known = f"; the references have {some}" if some else ""
            hint = "" if self._met else f" No answer could be joined{known}."
            raise refuse(
                f"answers belong to {self._what} that the references lack",
                list(self._unknown),
                "Give their references, or pass InputOptions(allow_unknown=True) to leave "
                f"them unscored.{hint}",
            )
        if not self._options.allow_missing and (missing := self.missing()):
            raise refuse(
                f"{self._what} have no answer",
                missing,
                "Give their answers, or pass InputOptions(allow_missing=True) to leave them "
                "unscored",
            )
