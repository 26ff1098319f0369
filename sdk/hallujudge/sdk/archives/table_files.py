"""Records from tables, CSV, TSV and Parquet, and the codes of texts that are not UTF-8."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ..errors import ArchiveError, InvalidInputError, MissingExtraError
from .bad_records import Unreadable
from .found_files import FoundFile, copy_to_file, temporary_folder
from .local_files import PARQUET, ZIP, read_bytes, suffix_of, unpacked_file
from .plain_values import plain_cell
from .records import Record, Records

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData, ParquetFile

# Usual codes of East Asian, Cyrillic and Western texts, which one file often fits several of.
_CODES = ("gb18030", "big5", "shift_jis", "euc_jp", "euc_kr", "cp1251", "cp1252")
_SHOWN_BYTES = 16
_ASCII = bytes(range(128))
# A character of UTF-8 that is cut has its first byte and one or two more.
_CUT_BYTES = 2


def decoded(data: bytes, path: Path) -> tuple[str, str]:
    """Return the text of a file, and a note on a damaged character: empty without one.

    One cut character is read byte by byte, as in a released file of Mementos.

    Raises:
        ArchiveError: The text is not UTF-8; the message shows how other codes read it.
    """
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        text, rest = data[: err.start], data[err.end :]
        if err.end - err.start >= _CUT_BYTES and _is_utf8(rest):
            cut = data[err.start : err.end].decode("latin-1")
            note = f"line {line} is not UTF-8; its bytes are read one by one as {cut!r}"
            return text.decode("utf-8-sig") + cut + rest.decode(), note
        raise ArchiveError(
            f"{path}: line {line} is not UTF-8{_readings(data, err.start)}. Name its code with "
            "InputOptions(encoding=…), or save the file as UTF-8"
        ) from err


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _readings(data: bytes, fault: int) -> str:
    """Return how a line reads in the codes that fit the whole file.

    Args:
        data: The file.
        fault: Where it is not UTF-8; characters before may be so by chance.
    """
    found = []
    before = data[: fault + 1].rpartition(b"\n")[2]
    start = fault + 1 - len(before.lstrip(_ASCII))
    for code in _CODES:
        try:
            data.decode(code)
        except UnicodeDecodeError:
            continue
        read = data[start : start + _SHOWN_BYTES].decode(code, "ignore").splitlines()
        found.append(f"{code} reads {read[0] if read else ''!r}")
    return f": {', '.join(found)}" if found else ""


def recoded(file: FoundFile, encoding: str) -> FoundFile:
    """Return a copy in UTF-8 of a file whose text is in another code; others as they are.

    Args:
        file: The file.
        encoding: Name of the code; empty for UTF-8.

    Raises:
        ArchiveError: The file is not a text of this code.
        InvalidInputError: There is no such code.
    """
    if not encoding:
        return file
    try:
        codecs.lookup(encoding)
    except LookupError as err:
        raise InvalidInputError(
            f"InputOptions(encoding={encoding!r:.40}) is no code that Python knows; give a name "
            f"such as {', '.join(_CODES)}"
        ) from err
    data = read_bytes(file.path)
    # Of several files, some may be UTF-8 already. Workbooks and Parquet files have their own code.
    if data.startswith((ZIP, PARQUET)) or _is_utf8(data):
        return file
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        raise ArchiveError(
            f"{file.name}: line {line} is not {encoding}{_readings(data, err.start)}. Name its "
            "code with InputOptions(encoding=…)"
        ) from err
    pieces = iter((text.encode(), b""))
    # Models are named after folders.
    folder, name = temporary_folder(), file.path.relative_to(file.root or file.path.parent)
    path = copy_to_file(lambda _size: next(pieces), file.name, str(name), folder)
    return structs.replace(file, path=path, root=file.root and folder)


# Python's default of 131,072 characters is shorter than a long response.
_MAX_CELL_CHARS = 1 << 24
# Excel takes the separator from such a first line, and some tools write one for it.
_DECLARED_DELIMITER = re.compile(r'"?sep=([,;\t|])"?\r?\n')
EXCEL_CELL_CHARS = 32_767
"""Excel silently truncates longer cells."""


# CSV ----------------------------------------------------------------------------------------------


def read_csv(path: Path) -> tuple[list[Record], tuple[str, ...]]:
    """Return a CSV or TSV file's rows as records, and notes on oddities of the file.

    Raises:
        ArchiveError: The file is not a table with a header; the message names the row.
    """
    text, note = decoded(read_bytes(path), path)
    if not text.strip():
        raise ArchiveError(f"{path}: the file is empty; check that it was written")
    # It holds for the whole process, in which a caller may have set a larger one.
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_CELL_CHARS))
    declared = _DECLARED_DELIMITER.match(text)
    before, delimiter = (1, declared[1]) if declared else (0, _delimiter(path, text))
    lines = io.StringIO(text[declared.end() :] if declared else text, newline="")
    # Otherwise a quote that is never closed would take in the rest of the file unnoticed.
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
    header = header_of(next(reader, []), f"{path} line {1 + before}")
    position = 0
    line = getattr(reader, "line_num", 1)
    for row in reader:
        place = f"{path} line {line + 1 + before}"
        line = getattr(reader, "line_num", line)
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            # Not raised here, so that the rows after it can be read where bad ones are skipped.
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


def header_of(cells: Iterable[object], place: str) -> list[str]:
    """Return the names of columns.

    Raises:
        ArchiveError: A column has no name of its own.
    """
    header = ["" if cell is None else str(cell).strip() for cell in cells]
    if not any(header) or len(set(header)) < len(header):
        raise ArchiveError(
            f"{place}: the header must name every column once; found {', '.join(header):.200}"
        )
    return header


# Parquet ------------------------------------------------------------------------------------------


# Limits of a file, checked in its metadata before a row is read.
_MAX_ROWS = 1 << 26
_MAX_TABLE_BYTES = 1 << 35
# Rows that are read at a time: as many, or as few as have so many bytes.
_BATCH_ROWS = 100
_BATCH_BYTES = 1 << 24


def read_parquet(path: Path) -> Records:
    """Return the rows of a table, by pyarrow, which each iteration reads again.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    with MissingExtraError.unless_installed("reading Parquet files", "tables"):
        import pyarrow.compute
        import pyarrow.parquet
    return Records(lambda: _parquet_records(pyarrow, path), str(path))


def _parquet_records(arrow: Any, path: Path) -> Iterator[Record]:
    try:
        with arrow.parquet.ParquetFile(unpacked_file(path, PARQUET)) as file:
            _refuse_large(file.metadata, path)
            yield from _placed(_plain_rows(arrow, file, path), path)
    except arrow.ArrowNotImplementedError as err:
        raise ArchiveError(
            f"{path}: a column has a type that pyarrow {arrow.__version__} can't read ({err}); "
            "write it with another type, such as text or 64-bit integers, or leave it out"
        ) from err
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as err:
        # Arrow's first sentence names what it missed; the others explain what a Parquet file is.
        problem = str(err).partition(". ")[0]
        raise ArchiveError(
            f"{path}: the Parquet file is damaged or cut off ({problem}); copy it again"
        ) from err


def _refuse_large(meta: FileMetaData, path: Path) -> None:
    size = sum(meta.row_group(n).total_byte_size for n in range(meta.num_row_groups))
    if meta.num_rows > _MAX_ROWS or size > _MAX_TABLE_BYTES:
        raise ArchiveError(
            f"{path}: {meta.num_rows:,} rows of {size:,} bytes; the limits are {_MAX_ROWS:,} and "
            f"{_MAX_TABLE_BYTES:,}. Split the table"
        )


def _plain_rows(arrow: Any, file: ParquetFile, path: Path) -> Iterator[Mapping[str, object]]:
    # One by one, since each states sizes of its own.
    for number in range(file.metadata.num_row_groups):
        count = _rows_at_a_time(arrow, file.metadata, number, path)
        for batch in file.iter_batches(count, row_groups=[number]):
            yield from batch.to_pylist()


def _rows_at_a_time(arrow: Any, meta: FileMetaData, number: int, path: Path) -> int:
    """Return how many rows of a row group have the bytes of a batch at most.

    A column may hold each text once, in a dictionary, and refer to it in every row. Its rows are
    much larger than the file says, and each as large as the longest text at most.
    """
    group = meta.row_group(number)
    each: int = group.total_byte_size // max(group.num_rows, 1)
    repeated = [
        column.path_in_schema
        for column in map(group.column, range(group.num_columns))
        if column.has_dictionary_page
        and column.physical_type == "BYTE_ARRAY"
        and _BATCH_ROWS * column.total_uncompressed_size > _BATCH_BYTES
        # A list has several texts in a row, and its dictionary is not shown.
        and "." not in column.path_in_schema
    ]
    each += sum(_longest_texts(arrow, path, repeated, number)) if repeated else 0
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(each, 1)))


def _longest_texts(arrow: Any, path: Path, columns: list[str], number: int) -> Iterator[int]:
    """Yield the bytes of the longest text in the dictionary of some columns of a row group."""
    # With its dictionaries as they are stored, a single row shows all texts of a column.
    with arrow.parquet.ParquetFile(unpacked_file(path, PARQUET), read_dictionary=columns) as file:
        first = next(file.iter_batches(1, row_groups=[number], columns=columns), None)
    for column in () if first is None else first.columns:
        if arrow.types.is_dictionary(column.type):
            lengths = arrow.compute.binary_length(column.dictionary)
            yield arrow.compute.max(lengths).as_py() or 0


def _placed(rows: Iterable[Mapping[str, object]], path: Path) -> Iterator[Record]:
    for position, row in enumerate(rows):
        values = {key: plain_cell(value) for key, value in row.items()}
        yield Record(values=values, position=position, place=f"{path} row {position + 1}")
