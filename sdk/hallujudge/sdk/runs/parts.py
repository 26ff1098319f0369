"""Parts of a run: what is kept of a scored batch. A part is a pure function of its batch."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hallujudge.metrics import Metric, Tally

from .lines import item_lines
from .shown import packed
from .unscored import UnscoredCounts

if TYPE_CHECKING:
    from ..backends.base import BatchResult, RunHeader

__all__ = ["Entry", "Part", "PartMaker"]

_SIZE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A scored batch."""

    items: int
    """Number of items."""
    lines: bytes
    """Their lines of ``items.jsonl``, without the run's signature."""
    lines_crc: int
    """CRC-32 of the lines."""
    tally: bytes
    """Their statistics, as :meth:`Tally.merge_bytes` takes them."""
    unscored: UnscoredCounts
    """Why items and claims are unscored."""
    shown: bytes = b""
    """Items that the HTML page shows."""

    @classmethod
    def of(cls, entry: Entry, lines: bytes, *, shown: bytes) -> Part:
        """Return the part of an entry, for another run.

        Args:
            entry: The entry.
            lines: Its lines, without a signature.
            shown: Items that the HTML page shows.
        """
        return cls(
            items=entry.items,
            lines=lines,
            lines_crc=zlib.crc32(lines),
            tally=entry.tally,
            unscored=entry.unscored,
            shown=shown,
        )

    def entry(self, offset: int) -> bytes:
        """Return the journal's entry of the part: everything but the lines.

        Args:
            offset: Position of the lines in the file of lines.
        """
        head = {
            "items": self.items,
            "lines": [offset, len(self.lines), self.lines_crc],
            "unscored": self.unscored.to_json(),
            "tally": len(self.tally),
        }
        text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
        return len(text).to_bytes(_SIZE, "little") + text + self.tally + self.shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A journal's entry of a part."""

    items: int
    """Number of items."""
    offset: int
    """Position of their lines in the file of lines."""
    size: int
    """Length of their lines."""
    lines_crc: int
    """CRC-32 of their lines."""
    tally: bytes
    """Their statistics."""
    unscored: UnscoredCounts
    """Why items and claims are unscored."""
    shown: bytes
    """Items that the HTML page shows."""

    @classmethod
    def of(cls, data: bytes) -> Entry:
        """Return the entry of its bytes.

        Raises:
            ValueError: The bytes are not an entry.
        """
        size = int.from_bytes(data[:_SIZE], "little")
        try:
            head: Any = json.loads(data[_SIZE : _SIZE + size])
            start = _SIZE + size
            end = start + head["tally"]
            offset, length, crc = head["lines"]
            return cls(
                items=head["items"],
                offset=offset,
                size=length,
                lines_crc=crc,
                tally=data[start:end],
                unscored=UnscoredCounts.of(head["unscored"]),
                shown=data[end:],
            )
        except (KeyError, TypeError) as err:
            raise ValueError(f"not an entry of a journal: {err}") from err


class PartMaker:
    """Makes the parts of a run.

    Args:
        metric: The run's metric.
        group_by: Fields to report groups by.
        keep_text: Whether responses are kept; otherwise their SHA-256 is.
        html: Whether an HTML page is made.
    """

    def __init__(
        self, metric: Metric, group_by: Sequence[str], *, keep_text: bool, html: bool = False
    ) -> None:
        self._metric = metric
        self._group_by = tuple(group_by)
        self._statistics = tuple(column.name for column in metric.columns)
        self._keep_text = keep_text
        self._html = html

    @classmethod
    def of(
        cls, header: RunHeader, group_by: Sequence[str], *, keep_text: bool, html: bool = False
    ) -> PartMaker:
        """Return the maker of a run's parts."""
        return cls(header.metric, group_by, keep_text=keep_text, html=html)

    def make(self, batch: BatchResult, first: int) -> Part:
        """Return the part of a batch.

        Args:
            batch: The batch with its results.
            first: Position of its first item in the run.
        """
        pairs = list(zip(batch.items, batch.results, strict=True))
        lines = item_lines(pairs, self._statistics, keep_text=self._keep_text)
        tally = Tally(self._metric, self._group_by)
        tally.add_all(batch.results)
        unscored = UnscoredCounts()
        unscored.add(batch.results)
        return Part(
            items=len(pairs),
            lines=lines,
            lines_crc=zlib.crc32(lines),
            tally=tally.to_bytes(),
            unscored=unscored,
            shown=packed(pairs, first, keep_text=self._keep_text, html=self._html),
        )
