"""Records without ids, whose order the caller states: each gets its position as its id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import ArchiveError, InvalidInputError
from .plain_values import plain_source, rows_of
from .records import Record

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
