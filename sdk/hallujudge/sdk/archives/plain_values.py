"""Values of numpy, pandas, polars, pyarrow and torch as the plain ones that files hold.

None of these libraries is imported: their values are recognised by what they offer. Whatever takes
values of a caller's makes them plain first, so that what follows knows one type of each kind.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

from hallujudge.metrics.framework.json_values import well_formed

from ..errors import ArchiveError, InvalidInputError
from .records import Record, Records

_SCALARS = {str, int, float, bool, type(None)}
_TEXT = {str}
_IS_TEXT = str.__instancecheck__
# pandas' missing values, which compare with nothing: `value is pandas.NA` would import pandas.
_MISSING = {"NAType", "NaTType"}
# What arrays, series, tensors and their scalars are converted with. Those of pyarrow come first,
# as its `tolist` leaves scalars of its own in nested lists.
_CONVERTERS = ("as_py", "to_pylist", "tolist", "to_list")
# The method of a table that returns its rows, what else only tables have, and its arguments.
_TABLES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("to_dicts", "columns", ()),  # polars
    ("to_dict", "columns", ("records",)),  # pandas
    ("to_pylist", "schema", ()),  # pyarrow
)
_TIMES = (date, time, timedelta)
_BYTES = (bytes, bytearray, memoryview)


def plain(value: Any) -> Any:
    """Return a value as texts, numbers, truth values, lists and dictionaries.

    Arrays, tuples, sets and iterators become lists, tables lists of rows, and missing values of
    pandas None. Lone surrogates, which UTF-8 can't hold, are replaced. A value of another kind,
    such as bytes or a date, is returned as it is.
    """
    kind = type(value)
    # Sets of types take a tenth of the time of a loop, and nearly all values are plain.
    if kind in _SCALARS:
        return well_formed(value) if kind is str else value
    if kind is list and _SCALARS.issuperset(map(type, value)):
        return value if "".join(filter(_IS_TEXT, value)).isascii() else list(map(plain, value))
    if kind is dict and _TEXT.issuperset(map(type, value)):
        held = value.values()
        if _SCALARS.issuperset(map(type, held)):
            # Only other texts can hold a lone surrogate.
            texts = "".join(filter(_IS_TEXT, chain(value, held)))
            return value if texts.isascii() else _plain_object(value)
        return _plain_object(value)
    if isinstance(value, Mapping):
        return _plain_object(value)
    if isinstance(value, (str, int, float)):
        # As numpy's texts are, and the members of an enumeration.
        base: Any = next(base for base in (str, int, float) if isinstance(value, base))
        return well_formed(str.__str__(value)) if base is str else base(value)
    if kind.__name__ in _MISSING and kind.__module__.startswith("pandas"):
        return None
    return _converted(value)


def _plain_object(value: Mapping[Any, Any]) -> dict[Any, Any]:
    return {_plain_key(key): plain(held) for key, held in value.items()}


def _plain_key(key: Any) -> Any:
    found = plain(key)
    # A tuple becomes a list, which can't be a key.
    return found if isinstance(found, Hashable) else key


def _converted(value: Any) -> Any:
    if (rows := rows_of(value)) is not None:
        return list(map(plain, rows))
    for name in _CONVERTERS:
        if convert := getattr(value, name, None):
            found = convert()
            # What returns its own kind would be converted without end.
            return found if type(found) is type(value) else plain(found)
    if not isinstance(value, Iterable) or isinstance(value, (Path, *_BYTES)):
        return value
    listed = list(map(plain, value))
    # A set has no order, and equal ones must be equal lists.
    return sorted(listed, key=repr) if isinstance(value, Set) else listed


def is_plain(value: object) -> bool:
    """Return whether a value that is plain as a whole holds nothing of another kind."""
    if type(value) is list:
        return _SCALARS.issuperset(map(type, value)) or all(map(is_plain, value))
    if type(value) is dict:
        return all(map(is_plain, chain(value, value.values())))
    return type(value) in _SCALARS


def rows_of(table: Any) -> list[dict[Any, Any]] | None:
    """Return the rows of a table of pandas, polars or pyarrow; None of anything else."""
    if isinstance(table, (str, Path, Mapping, list, tuple)):
        return None
    # The method comes first, since polars' LazyFrame computes its columns.
    for method, has, arguments in _TABLES:
        if hasattr(table, method) and hasattr(table, has):
            rows: list[dict[Any, Any]] = getattr(table, method)(*arguments)
            return rows
    return None


def plain_source(source: Any, role: str) -> Any:
    """Return responses or references as plain values; paths and records of files as they are.

    Args:
        source: What a caller gave: a path, a mapping, a table, or an iterable.
        role: The name of the argument, for messages.

    Raises:
        ArchiveError: It is none of these.
    """
    if source is None or isinstance(source, (str, Path, Records)):
        return source
    if isinstance(source, Mapping):
        return plain(source)
    if (rows := rows_of(source)) is not None:
        return [
            Record(
                values={str(key): plain_cell(value) for key, value in row.items()},
                position=position,
                place=f"{role} row {position}",
            )
            for position, row in enumerate(rows)
        ]
    if not isinstance(source, Iterable):
        raise ArchiveError(
            f"{role}: a value of type {type(source).__name__} holds no records that can be read; "
            "give a path, a mapping from id to value, a list of records, or a table of pandas, "
            f"polars or pyarrow{' (collect() returns one)' if hasattr(source, 'collect') else ''}"
        )
    values = list(_plain_values(source))
    if values and not isinstance(source, (list, tuple)) and _TEXT.issuperset(map(type, values)):
        raise ArchiveError(
            f"{role}: texts without ids, in a value of type {type(source).__name__}; give a "
            "mapping from id to text, such as dict(zip(ids, texts)), ids='position', or a list of "
            "paths"
        )
    return values


def _plain_values(source: Iterable[Any]) -> Iterator[Any]:
    """Yield records and paths as they are, rows of tables that follow each other, plain values."""
    for value in source:
        # A text may be a path, whose bytes a system may have given as lone surrogates.
        if isinstance(value, (Record, Path)) or type(value) is str:
            yield value
        elif type(value) is not dict and (rows := rows_of(value)) is not None:
            yield from map(plain, rows)
        else:
            yield plain(value)


def plain_cell(value: object) -> object:
    """Return the cell of a table as JSON has it.

    NaN stands for a missing value. Decimals become numbers, times their text, and bytes too: older
    tools write texts so. Other bytes, such as images, become None.
    """
    found = plain(value)
    if isinstance(found, float) and math.isnan(found):
        return None
    if isinstance(found, _TIMES):
        return str(found)
    if isinstance(found, Decimal):
        return int(found) if found.is_finite() and found == int(found) else float(found)
    if isinstance(found, bytes):
        try:
            return found.decode()
        except UnicodeDecodeError:
            return None
    return found


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
