"""Records known by their position: lists of ids, and orders that the caller states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import ArchiveError, InvalidInputError
from .ids import canonical_id
from .json_files import read_json, read_text
from .plain_values import plain_source, rows_of
from .records import Record

_LONGEST_PLACE = 20
"""More digits than any list position has, and fewer than Python's limit for integers."""


class IdMap:
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


BY_POSITION = "position"
"""The value of ``ids`` that states the order."""


def with_positions(ids: str, responses: Any, references: Any) -> tuple[Any, Any]:
    """Return responses and references with ids: their positions, from 1.

    Args:
        ids: ``position``.
        responses: Records, texts, or a table.
        references: The same; None where responses carry them.

    Raises:
        InvalidInputError: ``ids`` has another value.
        ArchiveError: A source has ids of its own, or they differ in length.
    """
    if ids != BY_POSITION:
        raise InvalidInputError(f"ids is {ids!r:.80}; give {BY_POSITION!r}, or leave it out")
    given = _numbered(responses, "responses")
    if references is None:
        return given, None
    known = _numbered(references, "references")
    if len(given) != len(known):
        raise ArchiveError(
            f"{len(given)} responses and {len(known)} references: with ids='position', the first "
            "belongs to the first, and so on; give as many of each"
        )
    return given, known


def _numbered(source: Any, role: str) -> Any:
    """Return a source as a mapping from position to text, or as records with ids."""
    if isinstance(source, (str, Path, Mapping)):
        is_mapping = isinstance(source, Mapping)
        raise ArchiveError(
            f"{role}: ids='position' is for lists and tables, and this is "
            f"{'a mapping from id' if is_mapping else 'a file'}; give all as lists in one order, "
            "or leave ids out"
        )
    values = list(_values(source, role))
    if not values or not all(isinstance(value, Mapping) for value in values):
        return {str(number): value for number, value in enumerate(values, 1)}
    if named := next((number for number, value in enumerate(values, 1) if "id" in value), 0):
        raise ArchiveError(
            f"{role}: record {named} has an id, {values[named - 1]['id']!r:.60}; leave "
            "ids='position' out"
        )
    return [{**value, "id": str(number)} for number, value in enumerate(values, 1)]


def _values(source: Any, role: str) -> Iterable[Any]:
    """Return the entries of a source as plain values."""
    # A column of a table is a list here; elsewhere its texts would lack their ids.
    if isinstance(source, Iterable) and rows_of(source) is None:
        source = list(source)
    entries = plain_source(source, role)
    return [entry.values if isinstance(entry, Record) else entry for entry in entries]
