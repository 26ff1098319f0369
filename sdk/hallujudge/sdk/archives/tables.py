"""Records from tables: CSV, TSV and XLSX files, and DataFrames."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import ArchiveError, MissingExtraError
from .local_files import read_bytes, suffix_of
from .records import Record

__all__ = ["decoded", "is_table", "read_frame", "read_table", "structured"]

_CSV = (".csv", ".tsv")
_XLSX = ".xlsx"
_MAX_ROWS = 1_048_576
_MAX_UNPACKED_BYTES = 1 << 30
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
# Excel silently truncates longer cells.
_EXCEL_CELL_CHARS = 32_767


def is_table(source: object) -> bool:
    """Return whether a source is a file with a CSV, TSV or XLSX suffix."""
    return isinstance(source, (str, Path)) and suffix_of(Path(source)) in (*_CSV, _XLSX)


def read_table(path: Path) -> tuple[list[Record], tuple[str, ...]]:
    """Return a table's rows as records, and notes on oddities of the file.

    Raises:
        ArchiveError: The file is not a table with a header; the message names the row.
        MissingExtraError: The file is XLSX and openpyxl is not installed.
    """
    return _read_xlsx(path) if suffix_of(path) == _XLSX else _read_csv(path)


def read_frame(frame: object, name: str) -> list[Record] | None:
    """Return the rows of a pandas or polars DataFrame as records; None if it is neither.

    Args:
        frame: A possible DataFrame.
        name: Name of the argument, for messages.
    """
    if isinstance(frame, (str, Path, Mapping, list, tuple)) or not hasattr(frame, "columns"):
        return None
    if hasattr(frame, "to_dicts"):
        rows = frame.to_dicts()
    elif hasattr(frame, "to_dict"):
        rows = frame.to_dict("records")
    else:
        return None
    return [
        Record(
            values={str(key): _plain(value) for key, value in row.items()},
            position=position,
            place=f"{name} row {position}",
        )
        for position, row in enumerate(rows)
    ]


def structured(value: object) -> object:
    """Return the list, object or number that a table's cell holds; other values as they are.

    Only for keys that never hold a text: a response may begin with a bracket too.
    """
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    if value.lstrip()[0] in "[{" or _NUMBER.fullmatch(value.strip()):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _plain(value: Any) -> object:
    """Return a DataFrame's value as a plain one: NaN becomes None, numpy scalars plain numbers."""
    value = value.item() if hasattr(value, "item") and not hasattr(value, "__len__") else value
    return None if isinstance(value, float) and math.isnan(value) else value


def decoded(data: bytes) -> tuple[str, str]:
    """Return the text, and a note on its encoding: empty for UTF-8.

    Other bytes are read as Latin-1, as the released Mementos script reads its CSV files, one of
    which has a cut character in it.
    """
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        return data.decode("latin-1"), f"line {line} is not UTF-8; the file is read as Latin-1"


# CSV ----------------------------------------------------------------------------------------------


def _read_csv(path: Path) -> tuple[list[Record], tuple[str, ...]]:
    text, note = decoded(read_bytes(path))
    if not text.strip():
        raise ArchiveError(f"{path}: the file is empty")
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=_delimiter(path, text), strict=True
    )
    try:
        records = list(_csv_records(reader, path))
    except csv.Error as err:
        raise ArchiveError(f"{path} line {reader.line_num}: not CSV: {err}") from err
    return records, (f"{path}: {note}",) if note else ()


def _delimiter(path: Path, text: str) -> str:
    """Return the column separator: spreadsheets write semicolons where commas are for numbers."""
    if suffix_of(path) == ".tsv":
        return "\t"
    header = text.partition("\n")[0]
    return ";" if ";" in header and "," not in header else ","


def _csv_records(reader: Iterator[list[str]], path: Path) -> Iterator[Record]:
    header = _header(next(reader, []), f"{path} line 1")
    position = 0
    line = getattr(reader, "line_num", 1)
    for row in reader:
        place = f"{path} line {line + 1}"
        line = getattr(reader, "line_num", line)
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            raise ArchiveError(
                f"{place}: {len(row)} columns, but the header has {len(header)}; "
                "quote texts that contain commas or line ends"
            )
        yield Record(values=dict(zip(header, row, strict=True)), position=position, place=place)
        position += 1


def _header(cells: Iterable[object], place: str) -> list[str]:
    header = ["" if cell is None else str(cell).strip() for cell in cells]
    if not any(header) or len(set(header)) < len(header):
        raise ArchiveError(
            f"{place}: the header must name every column once; found {header!r:.200}"
        )
    return header


# XLSX ---------------------------------------------------------------------------------------------


def _read_xlsx(path: Path) -> tuple[list[Record], tuple[str, ...]]:
    """Read the first sheet; a formula gives its last computed value."""
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError as err:
        raise MissingExtraError.of("reading XLSX files", "tables") from err
    data = read_bytes(path)
    _refuse_bomb(data, path)
    try:
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
        rows = book.worksheets[0].iter_rows(values_only=True)
        records = list(_xlsx_records(islice(rows, _MAX_ROWS), path))
        book.close()
    except ArchiveError:
        raise
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, IndexError) as err:
        raise ArchiveError(f"{path}: not an XLSX workbook: {err}") from err
    return records, tuple(_cut_cells(records, path))


def _refuse_bomb(data: bytes, path: Path) -> None:
    """Refuse a workbook whose unpacked size is over the limit."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            size = sum(part.file_size for part in parts.infolist())
    except zipfile.BadZipFile as err:
        raise ArchiveError(f"{path}: not an XLSX workbook: {err}") from err
    if size > _MAX_UNPACKED_BYTES:
        raise ArchiveError(
            f"{path}: the workbook unpacks to {size:,} bytes; the limit is {_MAX_UNPACKED_BYTES:,}"
            ". Save the sheet as CSV"
        )


def _xlsx_records(rows: Iterator[tuple[object, ...]], path: Path) -> Iterator[Record]:
    first = list(next(rows, ()))
    while first and first[-1] is None:
        first.pop()
    header = _header(first, f"{path} row 1")
    position = 0
    for number, row in enumerate(rows, 2):
        if all(cell is None for cell in row):
            continue
        cells = (*row, *[None] * (len(header) - len(row)))
        yield Record(
            values=dict(zip(header, cells, strict=False)),
            position=position,
            place=f"{path} row {number}",
        )
        position += 1


def _cut_cells(records: Iterable[Record], path: Path) -> Iterator[str]:
    cut = [
        record.place.removeprefix(f"{path} ")
        for record in records
        if any(isinstance(v, str) and len(v) >= _EXCEL_CELL_CHARS for v in record.values.values())
    ]
    if cut:
        yield (
            f"{path}: {len(cut)} rows have a cell of {_EXCEL_CELL_CHARS:,} characters, where "
            f"Excel cuts texts off: {', '.join(cut[:10])}"
        )
