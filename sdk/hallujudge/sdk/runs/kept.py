"""What a journal and its lines hold whole."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from .journal import PART, SYNCED, read_journal
from .parts import Entry

__all__ = ["KeptParts", "read_kept"]


@dataclass(frozen=True, slots=True)
class KeptParts:
    """The parts that a journal holds whole; by default none."""

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
            if record.end > self.journal_end:
                return
            if record.kind == PART:
                yield Entry.of(record.content)


@dataclass(slots=True)
class _Checked:
    """Position up to which journal and lines are whole, and what was read since they were synced.

    After a power loss, what was not synced may be missing or zero although its length is right.
    """

    journal_end: int = 0
    lines_end: int = 0
    items: int = 0
    unsynced: list[tuple[int, Entry]] = field(default_factory=list)


def read_kept(journal: Path, lines: Path, *, trust: bool = False) -> KeptParts:
    """Return the parts that journal and lines hold whole.

    Args:
        journal: The journal.
        lines: The file of lines.
        trust: Whether the lines are not looked at: those of a complete run are signed.

    Raises:
        OSError: A file can't be read.
    """
    if not journal.exists():
        return KeptParts()
    state = _Checked()
    size = lines.stat().st_size if lines.exists() else 0
    for record in read_journal(journal):
        if record.kind == SYNCED:
            _take(state, state.unsynced)
            state.unsynced = []
            state.journal_end = record.end
            continue
        try:
            entry = Entry.of(record.content)
        except ValueError:
            break
        if not trust and entry.offset + entry.size > size:
            break
        state.unsynced.append((record.end, entry))
    whole = state.unsynced if trust else _whole(state.unsynced, lines)
    _take(state, whole)
    return KeptParts(journal, state.journal_end, state.lines_end, state.items)


def _take(state: _Checked, entries: list[tuple[int, Entry]]) -> None:
    for end, entry in entries:
        state.journal_end = end
        state.lines_end = entry.offset + entry.size
        state.items += entry.items


def _whole(entries: list[tuple[int, Entry]], lines: Path) -> list[tuple[int, Entry]]:
    """Return the entries up to the first whose lines are damaged."""
    if not entries:
        return []
    with lines.open("rb") as file:
        for index, (_, entry) in enumerate(entries):
            if _crc(file, entry) != entry.lines_crc:
                return entries[:index]
    return entries


def _crc(file: BinaryIO, entry: Entry) -> int:
    file.seek(entry.offset)
    return zlib.crc32(file.read(entry.size))
