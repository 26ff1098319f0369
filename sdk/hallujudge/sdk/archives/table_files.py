"""Records from tables: CSV, TSV and XLSX files."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from ..errors import ArchiveError, MissingExtraError
from .bad_records import Unreadable
from .code_pages import decoded
from .json_files import named
from .local_files import read_bytes, suffix_of
from .records import Record

# The rows that an Excel sheet can have.
_MAX_ROWS = 1_048_576
# Limits on what a workbook may unpack to: it is a zip file, and may be a bomb.
MAX_UNPACKED_BYTES = 1 << 29
_MAX_PARTS = 10_000
_PIECE = 1 << 20
# Python's default of 131,072 characters is shorter than a long response.
_MAX_CELL_CHARS = 1 << 24
# Python's parser takes a hundred times the memory of its text.
_MAX_LIST_CHARS = 1 << 16
# Excel takes the separator from such a first line, and some tools write one for it.
_DECLARED_DELIMITER = re.compile(r'"?sep=([,;\t|])"?\r?\n')
# What has more digits than a float holds exactly stays a text.
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
# Excel silently truncates longer cells.
EXCEL_CELL_CHARS = 32_767


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
            return _listed(value)
    return value


def _listed(text: str) -> object:
    """Return the list or object that a cell holds as Python prints it; other texts as they are.

    pandas writes columns of lists so: ``['dining table', "chef's knife"]``. An array of numpy,
    ``['dog' 'cat']``, would be read as one text, so a list counts only if it prints as the cell.
    """
    # Python's parser warns of backslashes that escape nothing; names of objects have none.
    if not text.startswith(("[", "{")) or "\\" in text or len(text) > _MAX_LIST_CHARS:
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text
    return value if repr(value) == text else text


# CSV ----------------------------------------------------------------------------------------------


def read_csv(path: Path) -> tuple[list[Record], tuple[str, ...]]:
    """Return a CSV or TSV file's rows as records, and notes on oddities of the file.

    Raises:
        ArchiveError: The file is not a table with a header; the message names the row.
    """
    text, note = decoded(read_bytes(path), path)
    if not text.strip():
        raise ArchiveError(f"{path}: the file is empty; check that it was written")
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_CELL_CHARS))
    declared = _DECLARED_DELIMITER.match(text)
    before, delimiter = (1, declared[1]) if declared else (0, _delimiter(path, text))
    lines = io.StringIO(text[declared.end() :] if declared else text, newline="")
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        records = list(_csv_records(reader, path, before))
    except csv.Error as err:
        raise ArchiveError(f"{path} line {reader.line_num + before}: not CSV: {err}") from err
    return records, (f"{path}: {note}",) if note else ()


def _delimiter(path: Path, text: str) -> str:
    """Return the column separator: spreadsheets write semicolons where commas are for numbers."""
    header = text.partition("\n")[0]
    if suffix_of(path) == ".tsv" or ("\t" in header and "," not in header):
        return "\t"
    return ";" if ";" in header and "," not in header else ","


def _csv_records(reader: Iterator[list[str]], path: Path, before: int) -> Iterator[Record]:
    """Yield the rows after the header.

    Args:
        reader: Reads the rows.
        path: The file.
        before: Lines of the file before those that are read.
    """
    header = _header(next(reader, []), f"{path} line {1 + before}")
    position = 0
    line = getattr(reader, "line_num", 1)
    for row in reader:
        place = f"{path} line {line + 1 + before}"
        line = getattr(reader, "line_num", line)
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            problem = f"{place}: {_miscounted(len(row), len(header))}"
            yield Record(values=Unreadable(problem), position=position, place=place)
        else:
            yield Record(values=dict(zip(header, row, strict=True)), position=position, place=place)
        position += 1


def _miscounted(found: int, wanted: int) -> str:
    count = f"{found} column{'s' * (found != 1)}, but the header has {wanted}"
    if found > wanted:
        return f"{count}; quote texts that contain separators or line ends"
    return f"{count}; give every row all columns, or check whether the file is cut off"


def _header(cells: Iterable[object], place: str) -> list[str]:
    header = ["" if cell is None else str(cell).strip() for cell in cells]
    if not any(header) or len(set(header)) < len(header):
        raise ArchiveError(
            f"{place}: the header must name every column once; found {', '.join(header):.200}"
        )
    return header


# XLSX ---------------------------------------------------------------------------------------------


def read_xlsx(path: Path) -> tuple[list[Record], tuple[str, ...]]:
    """Return the rows of a workbook's first sheet as records, and notes on oddities of the file.

    Formulas are not evaluated. A formula becomes the value that the spreadsheet stored with it, or
    its own text if there is none, as for a response that begins with an equals sign.

    Raises:
        ArchiveError: The file is not a workbook, its sheet not a table with a header, or too large.
        MissingExtraError: openpyxl is not installed.
    """
    with MissingExtraError.unless_installed("reading XLSX files", "tables"):
        import openpyxl  # noqa: F401
    data = read_bytes(path)
    _refuse_bomb(data, path)
    records = list(_xlsx_records(_sheet(data, path, computed=False), path))
    notes = list(_cut_cells(records, path))
    if any(_is_formula(value) for record in records for value in record.values.values()):
        computed = list(_xlsx_records(_sheet(data, path, computed=True), path, keep_empty=True))
        by_place = {record.place: record.values for record in computed}
        records, formulas = _with_computed(records, by_place)
        if formulas:
            shown = named([place.removeprefix(f"{path} ") for place in formulas])
            notes.append(f"{path}: formulas, which are not evaluated, in {shown}")
    return records, tuple(notes)


def _sheet(data: bytes, path: Path, *, computed: bool) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the first sheet: of formulas their text, or their stored value."""
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=computed, keep_links=False)
        yield from islice(book.worksheets[0].iter_rows(values_only=True), _MAX_ROWS)
        book.close()
    except (
        InvalidFileException,
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        ValueError,
        IndexError,
        SyntaxError,
        EOFError,
    ) as err:
        problem = str(err).partition("\n")[0]
        raise ArchiveError(f"{path}: not an XLSX workbook, or damaged: {problem}") from err


def _is_formula(value: object) -> bool:
    return isinstance(value, str) and value.startswith("=") and len(value) > 1


def _with_computed(
    records: Iterable[Record], computed: Mapping[str, Mapping[str, object]]
) -> tuple[list[Record], list[str]]:
    """Return the records with stored values for formulas, and the places of formulas."""
    out, places = [], []
    for record in records:
        stored = computed.get(record.place, {})
        # A text that begins with an equals sign is equal in both readings of the sheet.
        formulas = {
            key: stored.get(key)
            for key, value in record.values.items()
            if _is_formula(value) and stored.get(key) != value
        }
        if formulas:
            places.append(record.place)
        kept = {key: value for key, value in formulas.items() if value is not None}
        out.append(record._replace(values={**record.values, **kept}))
    return out, places


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


def _xlsx_records(
    rows: Iterator[tuple[object, ...]], path: Path, *, keep_empty: bool = False
) -> Iterator[Record]:
    first = list(next(rows, ()))
    while first and first[-1] is None:
        first.pop()
    header = _header(first, f"{path} row 1")
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


def _cut_cells(records: Iterable[Record], path: Path) -> Iterator[str]:
    cut = [
        record.place.removeprefix(f"{path} ")
        for record in records
        if any(isinstance(v, str) and len(v) >= EXCEL_CELL_CHARS for v in record.values.values())
    ]
    if cut:
        yield (
            f"{path}: cells of {EXCEL_CELL_CHARS:,} characters, where Excel cuts texts off, in "
            f"{named(cut)}"
        )


def values_by_name(value: object) -> Mapping[str, object] | None:
    """Return the values of an object by name, or of a list by number; None of anything else."""
    if isinstance(value, (dict, Mapping)):
        return value
    numbered = enumerate(value, 1) if isinstance(value, (list, tuple)) else None
    return None if numbered is None else {str(number): each for number, each in numbered}


def are_objects(value: object) -> bool:
    """Return whether a value is a list of objects."""
    listed = value if isinstance(value, (list, tuple)) else ()
    return bool(listed) and all(isinstance(each, Mapping) for each in listed)
