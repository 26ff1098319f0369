"""Batches of items, and parts: what a run keeps of a scored batch.

Batches depend on the items alone, and a part is a pure function of its batch, so a resumed run
writes the same files.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from hallujudge.judge_service import is_whole
from hallujudge.judge_service.engine.streams import StreamIds
from hallujudge.judge_service.threads import import_in_thread
from hallujudge.metrics import ItemResult, Metric, Outcome, Tally
from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict
from hallujudge.metrics.framework.results import JsonValue

from .. import runs
from ..archives.inputs import Spread
from .item_lines import ItemLines
from .saved_items import pack_shown

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import ScoreSpec
    from hallujudge.metrics import Item

    from ..archives import ItemSource
    from ..backends import Batch, BatchResult
    from .score_run import SaveOptions


BATCH_ITEMS = 64
"""How many items make a batch."""
# A batch costs as much time as thirty answers or ten captions, so that cheap items share one.
_MANY_ITEMS = 512
# A batch is one message to a server, and must stay below its size limit.
_BATCH_CHARS = 1 << 20


def batch_size(spec: ScoreSpec, *, local: bool) -> int:
    """Return how many items make a batch of a run.

    A batch costs as much time as thirty answers or ten captions. Items that need a model or a
    parser are kept soon, and those for a server must fit its messages.

    Args:
        spec: How the items are scored.
        local: Whether processes of this machine score, not a server.
    """
    if not local:
        return BATCH_ITEMS
    entry = runs.metric_entry(spec.metric)
    return BATCH_ITEMS if entry.needs_models(spec) or entry.parses(spec) else _MANY_ITEMS


def batches_of(items: Iterable[Item], size: int = BATCH_ITEMS) -> Iterator[Batch]:
    """Yield batches that are small in number and in text, so that no message grows too large.

    Consecutive items of one image stay in one batch if they can: a judge's prompts about an image
    begin with the same text, which its server then has in its prefix cache.

    A batch depends on nothing before its first item, so that a resumed run makes the same ones.

    Args:
        items: The items.
        size: How many make a batch; up to twice as many if they are of one image.
    """
    batch: list[Item] = []
    chars = 0
    for item in items:
        length = len(getattr(item, "response", None) or "")
        if pictures := getattr(item, "pictures", ()):
            length += sum(len(picture.data) for picture in pictures)
        if batch and (
            chars + length > _BATCH_CHARS
            or (len(batch) >= size and _is_full_batch(batch, item.group_id, 2 * size))
        ):
            yield batch
            batch, chars = [], 0
        batch.append(item)
        chars += length
    if batch:
        yield batch


def _is_full_batch(batch: Batch, group: str, most: int) -> bool:
    """Return whether an item of a group begins a new batch, after as many as make one.

    An image with more questions than ``most`` is split, so that no batch grows without limit.
    """
    return len(batch) == most or not group or batch[-1].group_id != group


async def batches_async(
    items: Iterable[Item], size: int = BATCH_ITEMS
) -> AsyncGenerator[Batch, None]:
    """Yield the same batches asynchronously.

    A client alone leaves the check of ids to its server.

    Raises:
        InvalidInputError: Two items have the same id.
    """
    known = StreamIds() if is_whole() else None
    if known is not None:
        # Ids are compared with it, and its import would hold up the event loop.
        await import_in_thread("numpy")
    for batch in batches_of(items, size):
        if known is not None:
            known.add_ids([item.id for item in batch])
        yield batch


# An example is printed as one note; details may quote whole responses.
_DETAIL_CHARS = 240
# Length of the JSON head of a journal's entry, before the head.
_HEAD_SIZE_BYTES = 4


@dataclass(slots=True)
class ReasonCounts:
    """Count and first example of each reason."""

    counts: Counter[str] = field(default_factory=Counter)
    """Reason -> count."""
    examples: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Reason -> id and detail of its first item."""

    def add(self, reason: str, item_id: str, detail: str) -> None:
        """Count one."""
        self.counts[reason] += 1
        if reason not in self.examples:
            cut = len(detail) > _DETAIL_CHARS
            self.examples[reason] = (item_id, f"{detail[:_DETAIL_CHARS]}…" if cut else detail)

    def merge(self, later: ReasonCounts) -> None:
        """Add the counts of later items."""
        self.counts.update(later.counts)
        for reason, example in later.examples.items():
            self.examples.setdefault(reason, example)

    def to_json(self) -> dict[str, JsonValue]:
        """Return reason -> count, id and detail."""
        return {reason: [n, *self.examples[reason]] for reason, n in self.counts.items()}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ReasonCounts:
        """Return the counts of what :meth:`to_json` returned."""
        made = cls()
        for reason, (count, item_id, detail) in values.items():
            made.counts[reason] = count
            made.examples[reason] = (item_id, detail)
        return made


@dataclass(slots=True)
class UnscoredCounts:
    """Reasons for a run's unscored items and claims."""

    items: ReasonCounts = field(default_factory=ReasonCounts)
    claims: ReasonCounts = field(default_factory=ReasonCounts)
    """Of claims, in scored and unscored items."""

    def add(self, results: Sequence[ItemResult]) -> None:
        """Count a batch of results."""
        for result in results:
            if result.outcome is Outcome.UNSCORED:
                self.items.add(result.reason, result.id, result.detail)
        # Most kinds of evidence have no claims; one example of each kind shows it.
        kinds = {type(result.evidence): result.evidence for result in results}
        if any(hasattr(evidence, "claims") for evidence in kinds.values()):
            for result in results:
                for claim in _unscored_claims(result):
                    self.claims.add(claim.reason, result.id, claim.detail)

    def merge(self, later: UnscoredCounts) -> None:
        """Add the counts of later items."""
        self.items.merge(later.items)
        self.claims.merge(later.claims)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the counts as a journal has them; empty if everything is scored."""
        kinds = {"items": self.items.to_json(), "claims": self.claims.to_json()}
        return {name: counts for name, counts in kinds.items() if counts}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> UnscoredCounts:
        """Return the counts of what :meth:`to_json` returned."""
        return cls(
            items=ReasonCounts.of(values.get("items", {})),
            claims=ReasonCounts.of(values.get("claims", {})),
        )


def _unscored_claims(result: ItemResult) -> list[ClaimVerdict]:
    claims = getattr(result.evidence, "claims", ())
    return [
        claim
        for claim in claims
        if isinstance(claim, ClaimVerdict) and claim.verdict is Verdict.UNSCORED and claim.reason
    ]


class Part(Struct, frozen=True, kw_only=True):
    """A scored batch."""

    items: int
    """Number of items."""
    lines: bytes
    """Their lines of ``items.jsonl``, without the run's signature."""
    lines_crc: int
    """Their CRC-32, by which a resumed run knows them."""
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
            # With a checksum, since the lines are in another file, which may be cut off.
            "lines": [offset, len(self.lines), self.lines_crc],
            "unscored": self.unscored.to_json(),
            "tally": len(self.tally),
        }
        text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
        return len(text).to_bytes(_HEAD_SIZE_BYTES, "little") + text + self.tally + self.shown


class Entry(Struct, frozen=True, kw_only=True):
    """A journal's entry of a part."""

    items: int
    """Number of items."""
    offset: int
    """Position of their lines in the file of lines."""
    size: int
    """Length of their lines."""
    lines_crc: int
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
        size = int.from_bytes(data[:_HEAD_SIZE_BYTES], "little")
        try:
            head: Any = json.loads(data[_HEAD_SIZE_BYTES : _HEAD_SIZE_BYTES + size])
            start = _HEAD_SIZE_BYTES + size
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
        # What is wrong with the JSON is a ValueError already.
        except (KeyError, TypeError) as err:
            raise ValueError(f"not an entry of a journal: {err}") from err


def tally_of(entries: Iterable[Entry], metric: Metric, group_by: Sequence[str]) -> Tally:
    """Return the statistics of the items in journal entries.

    Args:
        entries: The entries.
        metric: The metric of the run.
        group_by: Fields to report groups by.
    """
    tally = Tally(metric, group_by)
    for entry in entries:
        tally.merge_bytes(entry.tally)
    return tally


class PartMaker:
    """Makes the parts of a run.

    Args:
        metric: The run's metric.
        group_by: Fields to report groups by.
        options: What the run's folder holds of the items.
    """

    def __init__(self, metric: Metric, group_by: Sequence[str], options: SaveOptions) -> None:
        self._metric = metric
        self._group_by = tuple(group_by)
        self._lines = ItemLines(metric.columns, keep_text=options.keep_text)
        self._options = options

    def make(self, batch: BatchResult, first: int) -> Part:
        """Return the part of a batch.

        Args:
            batch: The batch with its results.
            first: Position of its first item in the run.
        """
        pairs = list(zip(batch.items, batch.results, strict=True))
        lines = self._lines.of(pairs)
        unscored = UnscoredCounts()
        unscored.add(batch.results)
        return Part(
            items=len(pairs),
            lines=lines,
            lines_crc=zlib.crc32(lines),
            tally=Tally.of(self._metric, batch.results, self._group_by).to_bytes(),
            unscored=unscored,
            shown=pack_shown(pairs, first, self._options),
        )


class PartSource(Protocol):
    """Scores items and yields the parts in input order."""

    def parts(self, items: ItemSource, first: int) -> AsyncGenerator[Part, None]:
        """Yield the parts of items.

        Args:
            items: All items of the run.
            first: Position of the first one that is still to be scored.
        """


class EarlyWorkers(PartSource, Spread, Protocol):
    """Workers that check slices of a run's archive before they make its parts."""
