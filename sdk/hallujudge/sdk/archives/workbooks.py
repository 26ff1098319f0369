"""Records from XLSX workbooks, by openpyxl.

A workbook stores texts with marks: ``_x000D_`` is a carriage return, and ``_x005F_x000D_`` is the
text ``_x000D_`` (ECMA-376, 22.9.2.19). openpyxl leaves the first as it is and turns the second into
it, so that texts are decoded here from what is stored.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from ..errors import ArchiveError, MissingExtraError

with MissingExtraError.unless_installed("reading XLSX files", "tables"):
    from openpyxl.cell.text import Text
    from openpyxl.reader.excel import ExcelReader
    from openpyxl.utils.exceptions import InvalidFileException
    from openpyxl.worksheet.formula import ArrayFormula
    from openpyxl.xml.constants import SHARED_STRINGS, SHEET_MAIN_NS
    from openpyxl.xml.functions import fromstring, iterparse

from .json_files import named
from .local_files import read_bytes
from .record_values import MOST_EXACT
from .records import Record
from .table_files import EXCEL_CELL_CHARS, header_of

# The rows that an Excel sheet can have.
_MAX_ROWS = 1_048_576
# Limits on what a workbook may unpack to: it is a zip file, and may be a bomb.
MAX_UNPACKED_BYTES = 1 << 29
_MAX_PARTS = 10_000
_PIECE = 1 << 20
_CUT = f"cells of {EXCEL_CELL_CHARS:,} characters, where Excel cuts texts off,"
_FORMULAS = "formulas, which are not evaluated,"
_ERRORS = "errors such as #N/A, which are read as empty,"
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
# openpyxl lets through whatever its parsers raise.
_NOT_A_WORKBOOK = (
    InvalidFileException,
    ParseError,
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    ValueError,
    IndexError,
    SyntaxError,
    EOFError,
    OSError,
)


@dataclass(frozen=True, slots=True)
class _Formula:
    """A formula, which is not evaluated."""

    text: str


@dataclass(frozen=True, slots=True)
class _Error:
    """What Excel shows instead of a value, such as ``#N/A``."""

    text: str


# What Excel shows for a formula with a word that is no name: it was a response, not a formula.
_NO_NAME = _Error("#NAME?")


class _Reader(ExcelReader):  # type: ignore[misc]  # openpyxl has no types
    """openpyxl's reader, but texts stay as they are stored."""

    def read_strings(self) -> None:
        """Read the texts that cells refer to."""
        part = self.package.find(SHARED_STRINGS)
        if part is None:
            return
        with self.archive.open(part.PartName[1:]) as source:
            for _, node in iterparse(source):
                if node.tag == f"{{{SHEET_MAIN_NS}}}si":
                    self.shared_strings.append(Text.from_tree(node).content)
                    # Frees what was read.
                    node.clear()


def read_xlsx(path: Path) -> tuple[list[Record], tuple[str, ...]]:
    """Return the rows of a workbook's first sheet as records, and notes on oddities of the file.

    Formulas are not evaluated. A formula becomes the value that the spreadsheet stored with it, or
    its own text if there is none, as for a response that begins with an equals sign. Errors such as
    ``#N/A`` become empty.

    Raises:
        ArchiveError: The file is not a workbook, its sheet not a table with a header, or too large.
    """
    data = read_bytes(path)
    _refuse_bomb(data, path)
    records = list(_records(_sheet(data, path, computed=False), path))
    notes = _notes(records, path, _is_cut, _CUT)
    formulas = _notes(records, path, _is_formula, _FORMULAS)
    if formulas:
        # Of a row of formulas alone, there may be no stored value.
        computed = _records(_sheet(data, path, computed=True), path, keep_empty=True)
        records = _with_computed(records, {each.place: each.values for each in computed})
    notes += formulas + _notes(records, path, _is_error, _ERRORS)
    return [_without_errors(record) for record in records], tuple(notes)


def _sheet(data: bytes, path: Path, *, computed: bool) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the first sheet: of formulas their text, or their stored value."""
    try:
        reader = _Reader(io.BytesIO(data), read_only=True, data_only=computed, keep_links=False)
        reader.read()
        value_of = partial(_value, is_stale=computed and _is_stale(reader))
        for row in islice(reader.wb.worksheets[0].iter_rows(), _MAX_ROWS):
            yield tuple(map(value_of, row))
        reader.wb.close()
    except _NOT_A_WORKBOOK as err:
        problem = str(err).partition("\n")[0]
        raise ArchiveError(f"{path}: not an XLSX workbook, or damaged: {problem}") from err


def _is_stale(reader: _Reader) -> bool:
    """Return whether formulas are to be evaluated when the workbook is opened.

    Libraries that write workbooks ask for it, and store a 0 with each formula.
    """
    # openpyxl takes the attribute for given where it is missing.
    workbook = fromstring(reader.archive.read(reader.parser.workbook_part_name))
    settings = workbook.find(f"{{{SHEET_MAIN_NS}}}calcPr")
    return settings is not None and settings.get("fullCalcOnLoad") in ("1", "true")


def _value(cell: Any, *, is_stale: bool) -> object:
    """Return what a cell holds."""
    value = cell.value
    match cell.data_type:
        case "s" if isinstance(value, str):
            escaped = "_x" in value
            return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), value) if escaped else value
        case "f":
            return _Formula(_formula_text(value))
        case "e":
            return _Error(str(value))
        case "n" if isinstance(value, int):
            if is_stale and value == 0:
                return None
            # The file holds a float, of which the last digits are lost.
            return value if abs(value) < MOST_EXACT else float(value)
    return value


def _formula_text(formula: object) -> str:
    if isinstance(formula, ArrayFormula):
        return f"{{{formula.text}}}"
    return formula if isinstance(formula, str) else "="


def _is_formula(value: object) -> bool:
    return isinstance(value, _Formula)


def _is_error(value: object) -> bool:
    return isinstance(value, _Error)


def _is_cut(value: object) -> bool:
    return isinstance(value, str) and len(value) >= EXCEL_CELL_CHARS


def _with_computed(
    records: Iterable[Record], computed: Mapping[str, Mapping[str, object]]
) -> list[Record]:
    """Return the records with stored values for formulas, or their texts."""

    def value_of(value: object, key: str, stored: Mapping[str, object]) -> object:
        if not isinstance(value, _Formula):
            return value
        found = stored.get(key)
        return value.text if found is None or found == _NO_NAME else found

    return [
        record._replace(
            values={
                key: value_of(value, key, computed.get(record.place, {}))
                for key, value in record.values.items()
            }
        )
        for record in records
    ]


def _without_errors(record: Record) -> Record:
    if not any(map(_is_error, record.values.values())):
        return record
    values = {key: None if _is_error(value) else value for key, value in record.values.items()}
    return record._replace(values=values)


def _refuse_bomb(data: bytes, path: Path) -> None:
    """Refuse a workbook whose unpacked size is over the limit."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            parts = book.infolist()
            size = sum(part.file_size for part in parts)
            fits = size <= MAX_UNPACKED_BYTES and len(parts) <= _MAX_PARTS
            for part in parts if fits else ():
                _refuse_false_size(book, part)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        RuntimeError,
        ValueError,
        NotImplementedError,
    ) as err:
        raise ArchiveError(
            f"{path}: not an XLSX workbook, or cut off ({err}); save or copy it again"
        ) from err
    if not fits:
        raise ArchiveError(
            f"{path}: the workbook unpacks to {size:,} bytes in {len(parts):,} parts; the limits "
            f"are {MAX_UNPACKED_BYTES:,} and {_MAX_PARTS:,}. Save the sheet as CSV"
        )


def _refuse_false_size(book: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Read a part in pieces: one with more bytes than in the directory has another checksum."""
    with book.open(part) as stream:
        while stream.read(_PIECE):
            pass


def _records(
    rows: Iterator[tuple[object, ...]], path: Path, *, keep_empty: bool = False
) -> Iterator[Record]:
    first = list(next(rows, ()))
    # Columns that are only formatted may follow the last one.
    while first and first[-1] is None:
        first.pop()
    header = header_of(first, f"{path} row 1")
    position = 0
    for number, row in enumerate(rows, 2):
        if all(cell is None for cell in row) and not keep_empty:
            continue
        cells = (*row, *[None] * (len(header) - len(row)))
        yield Record(
            values=dict(zip(header, cells, strict=False)),
            position=position,
            place=f"{path} row {number}",
        )
        position += 1


def _notes(
    records: Iterable[Record], path: Path, is_odd: Callable[[object], bool], what: str
) -> list[str]:
    """Return a note on the rows that have an odd cell; none if no row has."""
    places = [
        record.place.removeprefix(f"{path} ")
        for record in records
        if any(map(is_odd, record.values.values()))
    ]
    return [f"{path}: {what} in {named(places)}"] if places else []
