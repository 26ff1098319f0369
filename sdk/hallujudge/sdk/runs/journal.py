"""What a run leaves for the next one: its journal, the marks of its archive, unsettled items.

The journal is an append-only file of records. A record is a header of 12 bytes and its content.
The header is the mark ``hj``, the kind of the record, the version of this format, and two 32-bit
numbers in little-endian order: the length of the content and its CRC-32. Writing may stop at any
byte; the journal then ends with its last complete record.

Items of a complete run may lack a verdict for a reason that may pass: a budget, a judge that was
away or a process that died says nothing about an item. They are scored again in their batches; the
other parts of the run stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msgspec import Struct

from hallujudge.metrics.framework.results import UnscoredReason

from ..errors import VersionMismatchError
from .item_lines import unsigned_lines
from .manifest import ITEMS, JOURNAL, MARKS, REPORT, Manifest, partial
from .parts import Entry, Part, UnscoredCounts

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

_PASSING = (
    UnscoredReason.JUDGE_BUDGET_EXHAUSTED,
    UnscoredReason.JUDGE_QUOTA_EXHAUSTED,
    UnscoredReason.JUDGE_AUTH_FAILED,
    UnscoredReason.JUDGE_MODEL_UNKNOWN,
    UnscoredReason.JUDGE_RATE_LIMITED,
    UnscoredReason.JUDGE_SERVER_ERROR,
    UnscoredReason.JUDGE_UNREACHABLE,
    UnscoredReason.JUDGE_TIMEOUT,
    UnscoredReason.JUDGE_NOT_THE_API,
    UnscoredReason.JUDGE_OTHER_MODEL,
    UnscoredReason.JUDGE_CIRCUIT_OPEN,
    UnscoredReason.JUDGE_NO_REPLY,
    UnscoredReason.PROCESS_DIED,
)
# Of an item or of a claim in its evidence. Quotes within texts are escaped, so that no response
# reads like it.
_WRITTEN = re.compile(rb'"reason":"(%b)"' % "|".join(_PASSING).encode())


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


# Items that are scored again ---------------------------------------------------------------------


def passing_reasons(unscored: UnscoredCounts) -> list[str]:
    """Return the reasons of a run's items and claims that may pass."""
    found = unscored.items.counts.keys() | unscored.claims.counts.keys()
    return [str(reason) for reason in _PASSING if reason in found]


class EarlierRun(Struct, frozen=True, kw_only=True):
    """A complete run in a folder of which some items are scored again."""

    folder: Path
    reasons: Mapping[str, int]
    """Reason -> number of items that lack a verdict for it."""

    @classmethod
    def of(cls, folder: Path) -> EarlierRun | None:
        """Return the run of a folder; None if no reason may pass.

        Raises:
            OSError: A file can't be read.
        """
        reasons: Counter[str] = Counter()
        with (folder / ITEMS).open("rb") as file:
            for line in file:
                reasons.update({found.decode() for found in _WRITTEN.findall(line)})
        return cls(folder=folder, reasons=reasons) if reasons else None

    def __str__(self) -> str:
        """How many items lack a verdict, for notes."""
        named = ", ".join(f"{reason}: {count:,}" for reason, count in self.reasons.items())
        return f"items lack a verdict for a reason that may pass ({named})"

    def pieces(self, first: int) -> Iterator[tuple[Entry, Part] | range]:
        """Yield the parts that stay, and the positions of items that are scored again.

        Args:
            first: Position of the first item that the new run does not hold yet.
        """
        signature = json.loads((self.folder / REPORT).read_bytes())["signature"]
        again: range | None = None
        for at, entry, lines in self._parts():
            end = at + entry.items
            if end <= first:
                continue
            # A run that was spread otherwise may have stopped within a part.
            if at < first or _WRITTEN.search(lines):
                again = range(max(at, first) if again is None else again.start, end)
                continue
            if again is not None:
                yield again
                again = None
            kept = Part.of(entry, unsigned_lines(lines, signature), shown=entry.shown)
            yield entry, kept
        if again is not None:
            yield again

    def _parts(self) -> Iterator[tuple[int, Entry, bytes]]:
        """Yield the position, the journal's entry and the lines of each part."""
        at = 0
        with (self.folder / ITEMS).open("rb") as file:
            for one in read_journal(self.folder / JOURNAL):
                if one.kind == PART:
                    entry = Entry.of(one.content)
                    # By lines: the entry's offset is from before they were signed, which made them
                    # longer.
                    yield at, entry, b"".join(file.readline() for _ in range(entry.items))
                    at += entry.items
