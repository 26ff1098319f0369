"""Items of a run as a table: pandas and Parquet, the extra ``tables``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import MissingExtraError, OutputError
from ..report.frames import frame

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Schema

__all__ = ["items_frame", "write_parquet"]

Line: TypeAlias = "Mapping[str, Any]"
"""An item as ``items.jsonl`` has it."""

_TEXTS = ("id", "group_id", "outcome", "reason", "detail")
# Nested objects whose entries are columns of their own: name -> whether they are numbers.
_NESTED = {"fields": False, "scores": True, "statistics": True}
_AT_ONCE = 4096


def items_frame(lines: Callable[[], Iterable[Line]]) -> DataFrame:
    """Return items as a DataFrame with a row for each.

    Args:
        lines: Yields the items, each time from the beginning.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    return frame(_rows(lines(), _columns(lines())), "a DataFrame of items")


def write_parquet(path: Path, lines: Callable[[], Iterable[Line]]) -> None:
    """Write items as a Parquet file, in bounded memory.

    Args:
        path: The file, which is replaced when it is complete.
        lines: Yields the items, each time from the beginning.

    Raises:
        MissingExtraError: pyarrow is not installed.
        OutputError: The file can't be written.
    """
    try:
        from pyarrow import Table
        from pyarrow.parquet import ParquetWriter
    except ImportError as err:
        raise MissingExtraError.of("a Parquet file of items", "tables") from err
    columns = _columns(lines())
    schema, rows = _schema(columns), _rows(lines(), columns)
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with ParquetWriter(part, schema) as writer:
            while batch := list(islice(rows, _AT_ONCE)):
                writer.write_table(Table.from_pylist(batch, schema=schema))
        part.replace(path)
    except OSError as err:
        with suppress(OSError):
            part.unlink()
        raise OutputError.of(path, err, "give another path") from err


def _columns(lines: Iterable[Line]) -> dict[str, tuple[str, ...]]:
    """Return the names in each nested object of any item, in the order of their appearance."""
    found: dict[str, dict[str, None]] = {name: {} for name in _NESTED}
    for line in lines:
        for name, known in found.items():
            known.update(dict.fromkeys(line.get(name) or ()))
    return {name: tuple(known) for name, known in found.items()}


def _schema(columns: Mapping[str, tuple[str, ...]]) -> Schema:
    import pyarrow

    nested = [
        (f"{name}.{key}", pyarrow.float64() if _NESTED[name] else pyarrow.string())
        for name, keys in columns.items()
        for key in keys
    ]
    texts = [(name, pyarrow.string()) for name in (*_TEXTS, "response")]
    return pyarrow.schema([*texts, *nested, ("evidence", pyarrow.string())])


def _rows(
    lines: Iterable[Line], columns: Mapping[str, tuple[str, ...]]
) -> Iterator[dict[str, str | float | None]]:
    """Yield flat rows; what has no fixed shape is JSON text."""
    for line in lines:
        row: dict[str, str | float | None] = {name: line.get(name, "") for name in _TEXTS}
        row["response"] = _text(line.get("response"))
        for name, keys in columns.items():
            values = line.get(name) or {}
            for key in keys:
                value = values.get(key)
                row[f"{name}.{key}"] = value if value is None or not _NESTED[name] else float(value)
        row["evidence"] = _text(line.get("evidence"))
        yield row


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        # A response may hold half a surrogate pair, which no file in UTF-8 can.
        return value and value.encode("utf-8", "replace").decode()
    text = json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode()
