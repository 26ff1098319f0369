"""Streams: ids that may not repeat, and concurrent work in order, with ticks and progress."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from hallujudge.metrics.framework.tally import cluster_key

from ..errors import InvalidInputError, Violation
from ..threads import import_in_thread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

from ..stopping import JointWork, begun, cancel_all

_In = TypeVar("_In")
_Out = TypeVar("_Out")
_T = TypeVar("_T")
TICK_SECONDS = 2.0
"""How often progress is reported while there are no results."""


class RunProgress(Struct, frozen=True, kw_only=True):
    """The progress of a run that has no results yet."""

    answers: int = 0
    """Answers of the run's language models so far, to any run."""
    tokens: int = 0
    """What they sent and received; 0 if unknown, as for a server's models."""
    cost: float | None = None
    """What their answers cost, or None if unknown, as for a server's models."""
    reused: int = 0
    """How often a reply that was paid for was found in the verdict cache."""
    verdicts: Mapping[str, int] = {}
    """Verdicts that each of the run's judges gave so far, also on items without a result yet."""
    waiting: str = ""
    """What the run is waiting for, in one sentence; empty while it works."""


ID_BYTES = 16
"""Memory of one id of a stream: its key twice, in order of arrival and sorted."""


def keys_of(ids: Iterable[str]) -> bytes:
    """Return the 64-bit keys of ids, as :class:`StreamIds` takes them."""
    return array("Q", map(cluster_key, ids)).tobytes()


class StreamIds:
    """The ids of a stream's items, of which none may repeat.

    Ids are kept as 64-bit keys: among a million different ones, two have the same key with a
    probability of n² / 2⁶⁵, or one in 37 million. Such a stream is refused.
    """

    def __init__(self) -> None:
        self._keys = array("Q")
        # Sorted parts, each more than twice as long as the next: a key is moved log₂ n times.
        self._sorted: list[NDArray[np.uint64]] = []

    def add_ids(self, ids: Sequence[str]) -> None:
        """Add the ids of the next items.

        Raises:
            InvalidInputError: An item has the id of an earlier one.
        """
        # In a tenth of the time of `keys_of`, whose keys are the same in other processes.
        self.add(array("q", map(hash, ids)).tobytes(), ids.__getitem__)

    def add(self, keys: bytes, id_at: Callable[[int], str]) -> None:
        """Add the keys of the next items.

        Args:
            keys: From :func:`keys_of`.
            id_at: Returns the id of one of these items.

        Raises:
            InvalidInputError: An item has the id of an earlier one.
        """
        import numpy as np

        start, batch = len(self._keys), np.frombuffer(keys, np.uint64)
        self._keys.frombytes(keys)
        new = np.sort(batch)
        # A key above all of a part has its place after the end; the remainder leads to a smaller
        # one.
        known = [new[part[np.searchsorted(part, new) % part.size] == new] for part in self._sorted]
        repeated = np.concatenate((*known, new[1:][new[1:] == new[:-1]]))
        for place in np.flatnonzero(np.isin(batch, repeated)) if repeated.size else ():
            # An id that repeats in its own batch is found at both places.
            if (first := self._keys.index(int(batch[place]))) < start + place:
                raise repeated_id(id_at(int(place)), first, start + int(place))
        if new.size:
            self._sorted.append(new)
        while len(self._sorted) > 1 and self._sorted[-2].size <= 2 * self._sorted[-1].size:
            both = np.concatenate((self._sorted.pop(), self._sorted.pop()))
            # Timsort for keys of this width, which merges two sorted parts in linear time.
            both.sort(kind="stable")
            self._sorted.append(both)


def repeated_id(item_id: str, first: int, second: int) -> InvalidInputError:
    """Return the error for two items of a stream or job with the same id."""
    field = f"items[{second}].id"
    problem = (
        f"{item_id[:80]!r} is also the id of items[{first}], counted over all messages; ids must "
        "be unique"
    )
    return InvalidInputError(
        f"{field}: {problem}", violations=(Violation(field=field, description=problem),)
    )


async def distinct(
    source: AsyncIterable[_T],
    ids_of: Callable[[_T], Sequence[str]],
    keep: Callable[[int], None],
) -> AsyncGenerator[_T, None]:
    """Yield the batches of a stream.

    Args:
        source: The batches.
        ids_of: Returns the ids of a batch.
        keep: Receives how many bytes are kept of each batch.

    Raises:
        InvalidInputError: An id repeats, in a batch or in two.
    """
    await import_in_thread("numpy")
    known = StreamIds()
    async for batch in source:
        ids = ids_of(batch)
        keep(ID_BYTES * len(ids))
        known.add_ids(ids)
        yield batch


async def ordered_map(
    source: AsyncIterable[_In],
    work: Callable[[_In], Awaitable[_Out]],
    *,
    limit: int,
    joint: JointWork | None = None,
) -> AsyncGenerator[_Out, None]:
    """Run ``work`` on up to ``limit`` inputs at once, and yield results in the order of the inputs.

    At most ``limit`` inputs are read ahead of the consumer, so that a slow consumer slows the
    source. If the consumer stops early or one piece of work fails, the remaining work is cancelled.

    Args:
        source: The inputs.
        work: Makes a result.
        limit: How many inputs at once.
        joint: What the consumer does with the results too, if it may be done again with the work.
    """
    pending: asyncio.Queue[asyncio.Task[_Out] | None] = asyncio.Queue()
    room = asyncio.Semaphore(limit)

    async def feed() -> None:
        try:
            async for value in source:
                await room.acquire()
                pending.put_nowait(begun(work(value)))
        finally:
            # Also where the source fails, or the consumer would wait for ever.
            pending.put_nowait(None)

    joint = joint or JointWork()
    feeder = begun(feed())
    try:
        with joint:
            while (task := await pending.get()) is not None:
                try:
                    yield await task
                finally:
                    room.release()
            # Raises the error of the source, once all results before it are yielded.
            await feeder
    finally:
        # The feeder first: it adds to the queue. Nothing of a stream works on after its end.
        await joint.cancel(feeder)
        left = (pending.get_nowait() for _ in range(pending.qsize()))
        await joint.cancel(*(task for task in left if task is not None))


async def with_ticks(
    source: AsyncGenerator[_T, None], seconds: float
) -> AsyncGenerator[_T | None, None]:
    """Yield what a source yields, and None whenever it yielded nothing for some seconds.

    Closing the generator cancels what the source is doing, and closes the source.
    """
    async with aclosing(source):
        while True:
            coming = begun(anext(source))
            try:
                # Unlike wait_for, this leaves the step under way when the time is over.
                while not (await asyncio.wait({coming}, timeout=seconds))[0]:
                    yield None
            finally:
                await cancel_all(coming)
            try:
                value = coming.result()
            except StopAsyncIteration:
                return
            yield value
