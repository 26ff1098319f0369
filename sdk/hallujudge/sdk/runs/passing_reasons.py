"""Items of a complete run without a verdict for a reason that may pass, which are scored again.

A budget, a judge that was away or a process that died says nothing about an item. Such items are
scored again in their batches; the other parts of the run stay as they are.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from hallujudge.metrics.framework.results import UnscoredReason

from .item_lines import unsigned_lines
from .journal import PART, read_journal
from .manifest import ITEMS, JOURNAL, REPORT
from .parts import Entry, Part, UnscoredCounts

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
