"""The journal of a run: an append-only file of records with length and checksum.

A record is a header of 12 bytes and its content. The header is the mark ``hj``, the kind of the
record, a zero, and two 32-bit numbers in little-endian order: the length of the content and its
CRC-32. Writing may stop anywhere; the journal then ends with the last whole record.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

__all__ = ["PART", "SYNCED", "Record", "append", "read_journal"]

PART = 1
"""Kind of the record of a part."""

SYNCED = 2
"""Kind of a record that says: everything before it is on the disk."""

_HEADER = struct.Struct("<2sBxII")
_MARK = b"hj"


class Record(NamedTuple):
    """A record of a journal."""

    kind: int
    """``PART`` or ``SYNCED``."""
    content: bytes
    """The content."""
    end: int
    """Position after the record in the file."""


def append(file: BinaryIO, kind: int, content: bytes) -> None:
    """Write a record at the end of a journal.

    Raises:
        OSError: The file can't be written.
    """
    file.write(_HEADER.pack(_MARK, kind, len(content), zlib.crc32(content)) + content)


def read_journal(path: Path) -> Iterator[Record]:
    """Yield the whole records of a journal, up to the first that is torn or damaged.

    Raises:
        OSError: The file can't be read.
    """
    with path.open("rb") as file:
        end, size = 0, path.stat().st_size
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            mark, kind, length, crc = _HEADER.unpack(header)
            # A damaged length must not make this process allocate as much.
            if mark != _MARK or length > size - end:
                return
            content = file.read(length)
            if len(content) != length or zlib.crc32(content) != crc:
                return
            end += _HEADER.size + length
            yield Record(kind, content, end)
