"""Worker processes of a run: what they receive, and what they do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from hallujudge.judge_service.engine.spec import read_items
from hallujudge.judge_service.process_pool import DiedError
from hallujudge.metrics.families import add_benchmarks, added_sources

from ..backends import BatchResult
from ..backends.embedded import EmbeddedBackend
from ..errors import InternalError
from .parts import BATCH_ITEMS, Part, PartMaker, batch_size, batches_of

if TYPE_CHECKING:
    from hallujudge.judge_service.engine import ScoringSession
    from hallujudge.judge_service.engine.spec import ScoreSpec
    from hallujudge.judge_service.llm.budget import SharedCalls
    from hallujudge.metrics import Item, ItemResult

    from ..archives import ItemSource
    from ..archives.inputs import CheckedSlice, ItemSlices, SliceReader
    from ..archives.json_lines import Mark, Span
    from ..backends import Batch
    from .score_run import SaveOptions


_LOG = logging.getLogger(__name__)

# If so many items in a row end their workers when they are alone, the items are not the cause.
_MOST_DEATHS = 4
_DIED = "each worker process that scored this item died"

# Sending each small batch alone would cost a round trip of the pipe each time.
_GROUP_ITEMS = 512

# A slice is read by the worker, so it may be larger than a group, which travels through the pipe.
_SLICE_ITEMS = 2048
_SLICE_BYTES = 2 << 20


class GroupReaders:
    """The archive readers that a process received, without duplicates.

    Each group arrives with a copy of its reader, but only the first one loads the references.
    """

    def __init__(self) -> None:
        self._readers: list[SliceReader] = []

    def of(self, sent: SliceReader) -> SliceReader:
        """Return the first received reader that equals this one."""
        if sent not in self._readers:
            self._readers.append(sent)
        # The first one, which has the references loaded.
        return self._readers[self._readers.index(sent)]


@dataclass(frozen=True, slots=True)
class ItemGroup:
    """Items that the sending process read."""

    made: Sequence[Batch]
    """The items in batches."""
    first: int
    """Position of the first item in the run."""

    @property
    def size(self) -> int:
        """Number of items."""
        return sum(map(len, self.made))

    def batches(self, readers: GroupReaders, size: int) -> Iterator[Batch]:  # noqa: ARG002  # as of the other groups
        """Yield the items in batches; see :class:`SliceGroup`."""
        return iter(self.made)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceGroup:
    """Items that the receiving process reads."""

    reader: SliceReader
    """Reads the archive."""
    start: Mark
    """Where to begin."""
    piece: int
    """How many bytes the items have."""
    first: int
    """Position of the first item in the run."""
    size: int
    """Number of items."""

    def batches(self, readers: GroupReaders, size: int) -> Iterator[Batch]:
        """Yield the items in batches.

        Args:
            readers: The readers of this process.
            size: How many items make a batch.
        """
        items = readers.of(self.reader).items(self.start, self.piece)
        skipped = self.first - self.start.values
        return batches_of(islice(items, skipped, skipped + self.size), size)


Group: TypeAlias = "ItemGroup | SliceGroup"
"""Consecutive items of a run, which one process scores."""


class ItemAlone(NamedTuple):
    """An item that is scored alone, because it may end its worker."""

    item: Item


class AloneScored(NamedTuple):
    """A batch whose items were scored alone."""

    batch: Batch
    """The items."""
    results: Sequence[ItemResult | None]
    """Their results; None for an item that ended its workers."""
    first: int
    """Position of the first item in the run."""


Task: TypeAlias = "Group | ItemAlone | AloneScored"
"""What a worker does for a run."""


async def parts_of(group: Group, done: Callable[[Task], Awaitable[Any]]) -> list[Part]:
    """Return the parts of a group that workers score.

    If its workers die, each item is scored alone. One that ends its workers then is unscored.

    Args:
        group: The group.
        done: Returns what a worker makes of a task, or raises :class:`DiedError`.

    Raises:
        InternalError: The workers die of every item.
    """
    try:
        whole: list[Part] = await done(group)
    except DiedError:
        return await _parts_one_by_one(group, done)
    return whole


async def _parts_one_by_one(group: Group, done: Callable[[Task], Awaitable[Any]]) -> list[Part]:
    parts: list[Part] = []
    first, found = group.first, _Found()
    for batch in group.batches(GroupReaders(), BATCH_ITEMS):
        results = [await _result_alone(item, done, found) for item in batch]
        parts += await done(AloneScored(batch, results, first))
        first += len(batch)
    return parts


@dataclass(slots=True)
class _Found:
    """How many items of a group were scored, and how many ended their workers."""

    scored: int = 0
    died: int = 0


async def _result_alone(
    item: Item, done: Callable[[Task], Awaitable[Any]], found: _Found
) -> ItemResult | None:
    try:
        result: ItemResult = await done(ItemAlone(item))
    except DiedError as err:
        found.died += 1
        if not found.scored and found.died == _MOST_DEATHS:
            raise InternalError(
                f"worker processes died of each of {_MOST_DEATHS} items, up to {item.id!r:.80}, "
                "perhaps for lack of memory; go on with --workers 1 --resume"
            ) from err
        _LOG.warning("item %.80r is not scored: %s", item.id, _DIED)
        return None
    found.scored += 1
    return result


async def groups_of(items: ItemSource, first: int, size: int) -> AsyncIterator[Group]:
    """Yield the groups of a source's items, for processes on this machine.

    Args:
        items: The items.
        first: Position of the first item to score.
        size: How many items make a batch.
    """
    made = (
        item_groups(items.start_at(first), first, size)
        if items.slices is None
        else slice_groups(items.slices, first, len(items))
    )
    for group in made:
        yield group


def item_groups(
    items: Iterator[Item], first: int, size: int, count: int | None = None
) -> Iterator[Group]:
    """Yield groups of items that this process reads.

    Args:
        items: The items.
        first: Position of the first one in the run.
        size: How many items make a batch.
        count: Batches of a group; None for as many as have some hundred items.
    """
    source = batches_of(items, size)
    while made := list(islice(source, count or max(1, _GROUP_ITEMS // size))):
        group = ItemGroup(made, first)
        yield group
        first += group.size


def slice_groups(slices: ItemSlices, first: int, count: int) -> Iterator[Group]:
    """Yield groups of items that the processes read.

    Args:
        slices: Places in the archive where reading can begin.
        first: Position of the first item to score.
        count: Number of items in the archive.
    """
    start = slices.marks.before(first)
    for mark in [*slices.marks.marks, None]:
        end = count if mark is None else mark.values
        # The last slice ends with the archive, however small it is.
        if end <= first or not (mark is None or _is_full_slice(start, mark)):
            continue
        piece = mark.offset - start.offset if mark is not None else 0
        yield SliceGroup(
            reader=slices.reader, start=start, piece=piece, first=first, size=end - first
        )
        first = end
        start = mark or start


def _is_full_slice(start: Mark, end: Mark) -> bool:
    items, size = end.values - start.values, end.offset - start.offset
    return items >= _SLICE_ITEMS or size >= _SLICE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What a worker needs to score batches."""

    spec: ScoreSpec
    """How items are scored."""
    judges: Mapping[str, object]
    """Settings of the judges."""
    save: SaveOptions
    """What the run's folder holds of the items."""
    benchmarks: tuple[str, ...] = field(default_factory=added_sources)
    """Benchmarks from outside that the sending process has added."""


class SliceCheck(NamedTuple):
    """A slice of an archive that a worker checks."""

    reader: SliceReader
    """Reads the archive."""
    span: Span
    """The slice."""


class Worker:
    """Scores batches with an engine of its own.

    Args:
        settings: How it scores.
        shared: Verdict store and budgets that workers share, if they call language models.
    """

    def __init__(self, settings: WorkerSettings, shared: SharedCalls | None = None) -> None:
        # A new process knows the installed ones alone.
        add_benchmarks(settings.benchmarks)
        self._settings = settings
        self._backend = EmbeddedBackend(settings.judges, shared)
        self._readers = GroupReaders()
        self._opening = asyncio.Lock()
        self._opened: tuple[ScoringSession, PartMaker] | None = None

    async def open(self) -> tuple[ScoringSession, PartMaker]:
        """Load the engine and its models once."""
        # Several tasks may arrive while the models are loaded.
        async with self._opening:
            if self._opened is None:
                settings = self._settings
                session = await self._backend.open(settings.spec)
                maker = PartMaker(session.metric, settings.spec.group_by, settings.save)
                self._opened = session, maker
        return self._opened

    async def done(self, task: Task) -> list[Part] | ItemResult:
        """Return the parts of a task's items, or the result of an item that is scored alone."""
        session, maker = await self.open()
        if isinstance(task, ItemAlone):
            return (await session.evaluate([task.item]))[0]
        if isinstance(task, AloneScored):
            pairs = zip(task.batch, task.results, strict=True)
            results = [kept or session.unscored([item], _DIED)[0] for item, kept in pairs]
            return [maker.make(self._read(session, task.batch, results), task.first)]
        return await self.parts(task)

    async def parts(self, group: Group) -> list[Part]:
        """Return the parts of a group of items."""
        session, maker = await self.open()
        size = batch_size(self._settings.spec, local=True)
        parts = []
        first = group.first
        for batch in group.batches(self._readers, size):
            results = await session.evaluate(batch)
            parts.append(maker.make(self._read(session, batch, results), first))
            first += len(batch)
        return parts

    def check(self, task: SliceCheck) -> CheckedSlice | None:
        """Return what a slice of an archive holds."""
        return self._readers.of(task.reader).check(*task.span)

    def _read(
        self, session: ScoringSession, batch: Batch, results: Sequence[ItemResult]
    ) -> BatchResult:
        read = read_items(session.metric, self._settings.spec.options, batch, results)
        return BatchResult(items=read, results=results)


def run_worker(settings: WorkerSettings) -> Callable[[Task | SliceCheck], Any]:
    """Return what makes tasks' parts and results, and checks slices, in a process of its own."""
    loop, worker = asyncio.new_event_loop(), Worker(settings)
    # Loading is done before the first task, while the parent still reads the archive.
    loop.run_until_complete(worker.open())

    def do(task: Task | SliceCheck) -> list[Part] | ItemResult | CheckedSlice | None:
        if isinstance(task, SliceCheck):
            return worker.check(task)
        return loop.run_until_complete(worker.done(task))

    return do
