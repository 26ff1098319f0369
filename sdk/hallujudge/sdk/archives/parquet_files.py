"""Records from Parquet files, by pyarrow, a few megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..errors import ArchiveError, MissingExtraError

with MissingExtraError.unless_installed("reading Parquet files", "tables"):
    import pyarrow
    import pyarrow.compute
    from pyarrow.parquet import FileMetaData, ParquetFile

from .local_files import PARQUET, unpacked_file
from .plain_values import plain_cell
from .records import Record, Records

# Limits of a file, checked in its metadata before a row is read.
_MAX_ROWS = 1 << 26
_MAX_TABLE_BYTES = 1 << 35
# Rows that are read at a time: as many, or as few as have so many bytes.
_BATCH_ROWS = 100
BATCH_BYTES = 1 << 24


def read_parquet(path: Path) -> Records:
    """Return the rows of a table, which each iteration reads again."""
    return Records(lambda: _records(path), str(path))


def _records(path: Path) -> Iterator[Record]:
    try:
        with ParquetFile(unpacked_file(path, PARQUET)) as file:
            _refuse_large(file.metadata, path)
            yield from _rows(_plain_rows(file, path), path)
    except pyarrow.ArrowNotImplementedError as err:
        raise ArchiveError(
            f"{path}: a column has a type that pyarrow {pyarrow.__version__} can't read ({err}); "
            "write it with another type, such as text or 64-bit integers, or leave it out"
        ) from err
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as err:
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


def _plain_rows(file: ParquetFile, path: Path) -> Iterator[Mapping[str, object]]:
    # One by one, since each states sizes of its own.
    for number in range(file.metadata.num_row_groups):
        count = _rows_at_a_time(file.metadata, number, path)
        for batch in file.iter_batches(count, row_groups=[number]):
            yield from batch.to_pylist()


def _rows_at_a_time(meta: FileMetaData, number: int, path: Path) -> int:
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
        and _BATCH_ROWS * column.total_uncompressed_size > BATCH_BYTES
        # A list has several texts in a row, and its dictionary is not shown.
        and "." not in column.path_in_schema
    ]
    each += sum(_longest_texts(path, repeated, number)) if repeated else 0
    return max(1, min(_BATCH_ROWS, BATCH_BYTES // max(each, 1)))


def _longest_texts(path: Path, columns: list[str], number: int) -> Iterator[int]:
    """Yield the bytes of the longest text in the dictionary of some columns of a row group."""
    # With its dictionaries as they are stored, a single row shows all texts of a column.
    with ParquetFile(unpacked_file(path, PARQUET), read_dictionary=columns) as file:
        first = next(file.iter_batches(1, row_groups=[number], columns=columns), None)
    for column in () if first is None else first.columns:
        if pyarrow.types.is_dictionary(column.type):
            lengths = pyarrow.compute.binary_length(column.dictionary)
            yield pyarrow.compute.max(lengths).as_py() or 0


def _rows(rows: Iterable[Mapping[str, object]], path: Path) -> Iterator[Record]:
    for position, row in enumerate(rows):
        values = {key: plain_cell(value) for key, value in row.items()}
        yield Record(values=values, position=position, place=f"{path} row {position + 1}")
