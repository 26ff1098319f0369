"""The batches of a run on their way to a server, sent again where it died, and their results.

An item may be what ends a server. What was under way when it died is therefore sent again in groups
of half as many items, one group at a time. An item that was alone at a death comes after others
that are sent alone, until another death of it would prove that it is the cause.

Nothing here does I/O.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from math import isnan
from typing import Any, Self

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.flights import half, is_proven
from hallujudge.judge_service.stopping import begun
from hallujudge.judge_service.wire.convert import result_from_proto, with_graphs
from hallujudge.metrics import ItemResult, Outcome

from ..errors import InternalError
from . import Batch, BatchResult

_OTHER_RELEASE = (
    "the server returned results whose items are not those of the batch sent; install the same "
    "release on both sides"
)

_SCORED: dict[str, Any] = {"outcome": Outcome.SCORED}


@dataclass(slots=True, kw_only=True)
class _Parcel:
    """Items that are sent together."""

    first: int
    """Position of the first one in the run."""
    items: Batch
    is_suspect: bool = False
    """Whether it is sent alone, because the server died with it, or to compare it."""
    deaths: int = 0
    """How often the server died with nothing else under way."""

    def part(self, start: int, end: int, *, is_suspect: bool) -> _Parcel:
        """Return some of its items as a parcel of their own."""
        items = self.items[start:end]
        return _Parcel(first=self.first + start, items=items, is_suspect=is_suspect)


async def only(*batches: Batch) -> AsyncGenerator[Batch, None]:
    """Yield batches that are known already."""
    for batch in batches:
        yield batch


class Outbox:
    """Reads batches once, sends them in order, and sends unanswered ones again.

    A task of its own reads the batches because gRPC cancels the request iterator of a failed call.

    Args:
        batches: The batches.
        limit: Maximum number of items that are read but not answered. A larger batch is sent alone.
        on_answer: Called when the server has answered a batch.
    """

    def __init__(
        self,
        batches: AsyncIterable[Batch],
        limit: int,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        self._batches = batches
        self._on_answer = on_answer
        self._limit = limit
        # In the order in which they are sent; suspect ones come first.
        self._unanswered: deque[_Parcel] = deque()
        # Results of parcels that overtook others, by position.
        self._results: dict[int, BatchResult] = {}
        self._due = 0
        self._read = 0
        self._items = 0
        self._sent = 0
        self._deaths = 0
        self._survivors = 0
        self._connection = 0
        self._ended = False
        self._changed = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self.error: Exception | None = None
        """The error that reading the batches ended with."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        # Connections are numbered: a sender of an earlier one ends when it sees another number.
        self._connection += 1
        self._wake()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    @property
    def outstanding(self) -> bool:
        """Whether the server owes an answer, to a batch or to the end of the stream."""
        return bool(self._sent) or (self._ended and not self._unanswered)

    def connect(self) -> AsyncIterator[Batch]:
        """Return what a new connection sends: unanswered batches first, then the rest.

        The previous connection sends nothing more.
        """
        self._connection += 1
        self._sent = 0
        self._wake()
        if self._reader is None:
            self._reader = begun(self._read_all())
        return self._sending(self._connection)

    @property
    def fatal(self) -> bool:
        """Whether the batch that was sent last is an item that is known to end the server."""
        parcel = self._unanswered[self._sent - 1]
        return parcel.deaths > 0 and self._is_proven(parcel, parcel.deaths)

    def answered(self, paired: Callable[[Batch], BatchResult]) -> list[BatchResult]:
        """Remove the oldest batch that was sent; return the results that are complete up to here.

        Args:
            paired: Returns the results of the batch, which have arrived.
        """
        parcel = self._unanswered[0]
        self._results[parcel.first] = paired(parcel.items)
        if parcel.is_suspect and len(parcel.items) == 1 and not self.fatal:
            self._survivors += 1
        self._unanswered.popleft()
        self._items -= len(parcel.items)
        self._sent -= 1
        self._on_answer()
        self._wake()
        complete = []
        while (result := self._results.pop(self._due, None)) is not None:
            complete.append(result)
            self._due += len(result.items)
        return complete

    def died(self) -> None:
        """Send what was under way again, in smaller groups: the server died."""
        lost = [self._unanswered.popleft() for _ in range(self._sent)]
        self._sent = 0
        count = sum(len(parcel.items) for parcel in lost)
        if count > 1:
            joined = _Parcel(
                first=lost[0].first, items=[item for parcel in lost for item in parcel.items]
            )
            size = half(count)
            groups = [joined.part(at, at + size, is_suspect=True) for at in range(0, count, size)]
            self._unanswered.extendleft(reversed(groups))
        elif lost:
            lost[0].is_suspect = True
            lost[0].deaths += 1
            self._deaths += 1
            self._put_after_others(lost[0])
        self._connection += 1
        self._wake()

    def _put_after_others(self, parcel: _Parcel) -> None:
        """Let items overtake one that was alone at a death, to compare it with them."""
        others: list[_Parcel] = []
        while self._unanswered and not self._is_proven(parcel, parcel.deaths + 1, len(others)):
            other = self._unanswered.popleft()
            others.append(other if other.deaths else other.part(0, 1, is_suspect=True))
            if len(other.items) > 1:
                rest = other.part(1, len(other.items), is_suspect=other.is_suspect)
                self._unanswered.appendleft(rest)
        self._unanswered.extendleft(reversed([*others, parcel]))

    def _is_proven(self, parcel: _Parcel, deaths: int, survivors: int = 0) -> bool:
        others = self._deaths - parcel.deaths
        return is_proven(deaths, other_deaths=others, survivors=self._survivors + survivors)

    async def _sending(self, connection: int) -> AsyncIterator[Batch]:
        while connection == self._connection:
            if self._may_send:
                self._sent += 1
                yield self._unanswered[self._sent - 1].items
            elif self._sent < len(self._unanswered) or not self._ended:
                await self._changed.wait()
            elif self.error is not None:
                raise self.error
            else:
                return

    @property
    def _may_send(self) -> bool:
        """Whether the next batch may be sent now; a suspect one is under way alone."""
        if self._sent >= len(self._unanswered):
            return False
        return not (self._sent and self._unanswered[0].is_suspect)

    async def _read_all(self) -> None:
        try:
            async for batch in self._batches:
                # A single batch above the limit is still read, or it would wait for ever.
                while self._items and self._items + len(batch) > self._limit:
                    await self._changed.wait()
                self._items += len(batch)
                self._unanswered.append(_Parcel(first=self._read, items=batch))
                self._read += len(batch)
                self._wake()
        except Exception as err:
            # Raised by the sender, once it has sent what was read before.
            self.error = err
        finally:
            self._ended = True
            self._wake()

    def _wake(self) -> None:
        """Wake everything that waits for a change."""
        self._changed.set()
        # A new event for the next change: waiting tasks hold the old one.
        self._changed = asyncio.Event()


def scored_alone(batch: Batch, response: pb.ScoreResponse) -> list[ItemResult]:
    """Return results that hold the scores of a response, and nothing else."""
    columns = response.columns
    if any(len(column.values) != len(batch) for column in columns):
        raise InternalError(_OTHER_RELEASE)
    unscored: dict[int, dict[str, Any]] = {
        one.position: {"outcome": Outcome.UNSCORED, "reason": one.reason, "detail": one.detail}
        for one in response.unscored
    }
    values = [[None if isnan(v) else v for v in column.values] for column in columns]
    names = [column.name for column in columns]
    scores = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    return [
        ItemResult(id=item.id, group_id=item.id, scores=own, **unscored.get(at, _SCORED))
        for at, (item, own) in enumerate(zip(batch, scores, strict=True))
    ]


def paired_results(batch: Batch, messages: Iterable[pb.ItemResult]) -> BatchResult:
    """Return the results of a batch with its items.

    Raises:
        InternalError: They are not those of the batch.
    """
    results = [result_from_proto(result) for result in messages]
    # Results are matched by position, which a server of another release might not keep.
    if [item.id for item in batch] != [result.id for result in results]:
        raise InternalError(_OTHER_RELEASE)
    return BatchResult(items=batch, results=with_graphs(batch, results))
