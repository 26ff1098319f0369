"""Records out of CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from ..errors import ArchiveError
from .records import Record

__all__ = ["decoded", "is_csv", "read_bytes", "read_csv"]

_MAX_BYTES = 1 << 28


def is_csv(source: object) -> bool:
    """Whether an archive is a file whose name says CSV or TSV."""
    return isinstance(source, (str, Path)) and Path(source).suffix.lower() in (".csv", ".tsv")


def read_bytes(path: Path, limit: int = _MAX_BYTES) -> bytes:
    """A file's content, and no more of it than a bound.

    Raises:
        ArchiveError: It can't be read, or is larger.
    """
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as err:
        raise ArchiveError(f"{path}: {err.strerror or err}; check the path") from err
    if len(data) > limit:
        raise ArchiveError(f"{path}: more than {limit} bytes; split the file")
    return data


def decoded(data: bytes) -> tuple[str, str]:
    """The text, and what to say of its encoding: empty for UTF-8.

    What is no UTF-8 is read as Latin-1, as the released Mementos script reads its CSV files, one of
    which has a cut character in it.
    """
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        return data.decode("latin-1"), f"line {line} is not UTF-8; the file is read as Latin-1"


def read_csv(path: Path) -> tuple[list[Record], str]:
    """The rows as records, and a note on the encoding.

    Raises:
        ArchiveError: The file is no table with a header; the line is named.
    """
    text, note = decoded(read_bytes(path))
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=_delimiter(path, text), strict=True
    )
    try:
        records = list(_records(reader, path))
    except csv.Error as err:
        raise ArchiveError(f"{path} line {reader.line_num}: not CSV: {err}") from err
    return records, f"{path}: {note}" if note else ""


def _delimiter(path: Path, text: str) -> str:
    """What stands between columns: a spreadsheet writes semicolons where commas are for numbers."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    header = text.partition("\n")[0]
    return ";" if ";" in header and "," not in header else ","


def _records(reader: Iterator[list[str]], path: Path) -> Iterator[Record]:
    header = [name.strip() for name in next(reader, [])]
    if not any(header) or len(set(header)) < len(header):
        raise ArchiveError(f"{path} line 1: the header must name every column once: {header}")
    position = 0
    line = getattr(reader, "line_num", 1)
    for row in reader:
        place = f"{path} line {line + 1}"
        line = getattr(reader, "line_num", line)
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            raise ArchiveError(
                f"{place}: {len(row)} columns, and the header has {len(header)}; "
                "put texts with commas or line ends in quotation marks"
            )
        yield Record(values=dict(zip(header, row, strict=True)), position=position, place=place)
        position += 1
