"""What a stopped run leaves for the next one: its journal, and the marks of its archive.

The journal is an append-only file of records. A record is a header of 12 bytes and its content.
The header is the mark ``hj``, the kind of the record, the version of this format, and two 32-bit
numbers in little-endian order: the length of the content and its CRC-32. Writing may stop at any
byte; the journal then ends with its last complete record.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from ..errors import VersionMismatchError
from .manifest import MARKS, partial
from .parts import Entry

if TYPE_CHECKING:
    from .manifest import Manifest


PART = 1
"""Kind of the record of a part."""

SYNCED = 2
"""Kind of a record after which everything before it is known to be on the disk."""

JOURNAL_FORMAT = 1
"""Raised when older releases could misread what newer ones write."""

_HEADER = struct.Struct("<2sBBII")
_MARK = b"hj"
# SHA-256 of the manifest and the marks.
_DIGEST_BYTES = 32


class Record(NamedTuple):
    """A record of a journal."""

    kind: int
    """``PART`` or ``SYNCED``."""
    content: bytes
    end: int
    """Position after the record in the file."""


def append(file: BinaryIO, kind: int, content: bytes) -> None:
    """Write a record at the end of a journal.

    Raises:
        OSError: The file can't be written.
    """
    header = _HEADER.pack(_MARK, kind, JOURNAL_FORMAT, len(content), zlib.crc32(content))
    file.write(header + content)


def read_journal(path: Path) -> Iterator[Record]:
    """Yield the whole records of a journal, up to the first that is torn or damaged.

    Raises:
        OSError: The file can't be read.
        VersionMismatchError: A newer release wrote it.
    """
    with path.open("rb") as file:
        end, size = 0, path.stat().st_size
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            mark, kind, version, length, crc = _HEADER.unpack(header)
            # The first record alone: damage further on must not look like a newer release.
            if mark == _MARK and not end and version > JOURNAL_FORMAT:
                raise VersionMismatchError(
                    f"{path} has format {version}, and this release reads up to {JOURNAL_FORMAT}; "
                    "update hallujudge"
                )
            # A damaged length must not make this process allocate gigabytes.
            if mark != _MARK or length > size - end:
                return
            content = file.read(length)
            if len(content) != length or zlib.crc32(content) != crc:
                return
            end += _HEADER.size + length
            yield Record(kind, content, end)


@dataclass(frozen=True, slots=True)
class KeptParts:
    """The complete parts in a journal; none by default."""

    path: Path | None = None
    """The journal."""
    journal_end: int = 0
    """Position after the last whole record."""
    lines_end: int = 0
    """Position after the last line that belongs to it."""
    items: int = 0
    """Number of items."""

    def entries(self) -> Iterator[Entry]:
        """Yield the entries of the parts; each iteration reads the journal."""
        if self.path is None:
            return
        for record in read_journal(self.path):
            # What follows was found damaged, or was appended since the journal was checked.
            if record.end > self.journal_end:
                return
            if record.kind == PART:
                yield Entry.of(record.content)


def read_kept(journal: Path, lines: Path, *, trust: bool = False) -> KeptParts:
    """Return the parts whose record and lines are both complete.

    Args:
        journal: The journal.
        lines: The file of lines.
        trust: Whether to skip the check of the lines. Those of a complete run are signed, so their
            CRC no longer matches.

    Raises:
        OSError: A file can't be read.
    """
    if not journal.exists():
        return KeptParts()
    kept = KeptParts(journal)
    # After a power loss, these may be missing or zero although their length is right.
    unsynced: list[tuple[int, Entry]] = []
    size = lines.stat().st_size if lines.exists() else 0
    for record in read_journal(journal):
        if record.kind == SYNCED:
            # Everything before this record was flushed to the disk: its CRCs need no check.
            kept = replace(_with_entries(kept, unsynced), journal_end=record.end)
            unsynced = []
            continue
        try:
            entry = Entry.of(record.content)
        except ValueError:
            break
        # After a power loss, a record may be on the disk without the lines that it is about.
        if not trust and entry.offset + entry.size > size:
            break
        unsynced.append((record.end, entry))
    return _with_entries(kept, unsynced if trust else _whole_entries(unsynced, lines))


def _with_entries(kept: KeptParts, entries: list[tuple[int, Entry]]) -> KeptParts:
    if not entries:
        return kept
    end, last = entries[-1]
    items = kept.items + sum(entry.items for _, entry in entries)
    return replace(kept, journal_end=end, lines_end=last.offset + last.size, items=items)


def _whole_entries(entries: list[tuple[int, Entry]], lines: Path) -> list[tuple[int, Entry]]:
    """Return the entries up to the first whose lines are damaged."""
    if not entries:
        return []
    with lines.open("rb") as file:
        for index, (_, entry) in enumerate(entries):
            if _lines_crc(file, entry) != entry.lines_crc:
                return entries[:index]
    return entries


def _lines_crc(file: BinaryIO, entry: Entry) -> int:
    file.seek(entry.offset)
    return zlib.crc32(file.read(entry.size))


def write_marks(folder: Path, manifest: Manifest, marks: bytes) -> None:
    """Write the marks of a run that begins.

    Args:
        folder: The run's folder.
        manifest: The run's manifest, to which the marks belong.
        marks: The marks; empty if there are none.

    Raises:
        OSError: The file can't be written.
    """
    path = partial(folder, MARKS)
    if marks:
        path.write_bytes(_marks_digest(manifest, marks) + marks)
    else:
        path.unlink(missing_ok=True)


def read_marks(folder: Path, manifest: Manifest) -> bytes:
    """Return the marks of a run that stopped; empty if they are damaged or of another run.

    Raises:
        OSError: The file can't be read, for example because the run has no marks.
    """
    content = partial(folder, MARKS).read_bytes()
    digest, marks = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return marks if digest == _marks_digest(manifest, marks) else b""


def _marks_digest(manifest: Manifest, marks: bytes) -> bytes:
    return hashlib.sha256(manifest.to_text().encode() + marks).digest()
