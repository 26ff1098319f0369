"""Items in flight: written down before they are worked on, so that a death shows what was.

An item is in flight while this process works on it, or waits for a reply to one of its calls. It
is not while all its calls wait for a place at the judge, or for a reply that another item asked
for. So at most about as many items are in flight as calls are sent at once.

Processes die for other reasons than an item, too. What was in flight at a death is therefore scored
again in groups of half as many, until one item is alone when the process dies. How often that
happens by chance is known from the other items that were scored alone. An item is blamed when its
deaths would be a rare chance.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence, Set
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace

from .errors import OverloadedError, UnavailableError
from .stopping import begun, cancel_all
from .tenancy import Flight, tenancy, within

_LOG = logging.getLogger(__name__)
# A place at the judge is held no longer than this for the sake of a write.
_PATIENCE = 0.2
# A database that was locked or full is mostly available again after seconds.
_RETRY_SECONDS = 2.0
# There are two threads for extraction and matching, and one event loop.
_AT_WORK = 4
# Once may be chance, however many others survive.
_LEAST_DEATHS = 2
# By chance, one of so many items that are alone at a death is blamed.
_ONE_OF = 64


class FlightLog:
    """The items of one job that are in flight, in memory and where they survive a death.

    Items are added before anything is done with them; that they have left is written soon. While
    nothing can be written, no item takes off.

    Args:
        write: Writes down which positions were added and which have left.
        sleep: Waits for seconds.
    """

    def __init__(
        self,
        write: Callable[[Set[int], Set[int]], Awaitable[None]],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._write = write
        self._sleep = sleep
        self._wanted: set[int] = set()
        self._written: set[int] = set()
        self._writing: asyncio.Task[None] | None = None
        self._round = asyncio.Event()
        self._failed = False
        self.runway = asyncio.Semaphore(_AT_WORK)
        """Held by items from their begin to their first wait, so that few are worked on at once."""

    async def add(self, positions: Collection[int]) -> None:
        """Write down that items are in flight."""
        while not await self.try_add(positions):
            pass

    async def try_add(self, positions: Collection[int]) -> bool:
        """Write down that items are in flight; return whether that was possible soon."""
        self._wanted.update(positions)
        self._begin()
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                while not self._written.issuperset(positions):
                    await self._next_round()
        return self._written.issuperset(positions)

    async def ready(self) -> bool:
        """Wait a little for a write under way; return whether there is none left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_RETRY_SECONDS):
                while self._is_late:
                    await self._next_round()
        return not self._is_late

    def remove(self, positions: Collection[int]) -> None:
        """Note that items are no longer in flight."""
        self._wanted.difference_update(positions)
        self._begin()

    async def close(self) -> None:
        """End the writes."""
        if self._writing is not None:
            await cancel_all(self._writing)

    @property
    def _is_late(self) -> bool:
        """Whether something could not be written down when it was tried."""
        return self._failed and self._writing is not None and not self._writing.done()

    def _begin(self) -> None:
        if (self._writing is None or self._writing.done()) and self._wanted != self._written:
            self._writing = begun(self._flush())

    async def _next_round(self) -> None:
        if self._writing is not None and self._writing.done():
            self._writing.result()  # raises what ended it
        await self._round.wait()

    async def _flush(self) -> None:
        try:
            while self._wanted != self._written:
                added, left = self._wanted - self._written, self._written - self._wanted
                try:
                    await self._write(added, left)
                except (UnavailableError, OverloadedError) as err:
                    if not self._failed:
                        _LOG.warning("no item of a job is begun: %s", err)
                    self._failed = True
                    await self._sleep(_RETRY_SECONDS)
                    continue
                self._failed = False
                self._written = (self._written | added) - left
                self._wake()
        finally:
            self._wake()

    def _wake(self) -> None:
        self._round.set()
        self._round = asyncio.Event()


class ItemFlight(Flight):
    """One item at work.

    Args:
        log: The items in flight.
        position: The item's position in its job.
    """

    def __init__(self, log: FlightLog, position: int) -> None:
        self._log = log
        self._position = position
        self._sent = 0
        self._is_on_runway = False

    @asynccontextmanager
    async def work(self) -> AsyncIterator[None]:
        """Provide a block in which this item is at work; tasks that begin in it work for it."""
        await self._log.runway.acquire()
        self._is_on_runway = True
        try:
            await self._log.add({self._position})
            with within(replace(tenancy(), flight=self)):
                yield
        finally:
            self._leave_runway()
            self._log.remove({self._position})

    def waits(self) -> None:
        """Note that a call waits: without another one that is sent, the item has left."""
        self._leave_runway()
        if not self._sent:
            self._log.remove({self._position})

    def _leave_runway(self) -> None:
        if self._is_on_runway:
            self._is_on_runway = False
            self._log.runway.release()

    async def ready(self) -> bool:
        """Wait a little until items can be written down; return whether they can."""
        return await self._log.ready()

    async def takes_off(self) -> bool:
        """Write down that a call is about to be sent; return whether that was possible soon."""
        # With another call under way the item is written down already.
        if not (self._sent or await self._log.try_add({self._position})):
            return False
        self._sent += 1
        return True

    def lands(self) -> None:
        """Note that a call that was sent is answered, or has failed."""
        self._sent -= 1


class Flights:
    """The items of a chunk.

    Args:
        log: The items in flight.
        positions: Their positions in their job.
    """

    def __init__(self, log: FlightLog, positions: Sequence[int]) -> None:
        self._log = log
        self._positions = positions

    @asynccontextmanager
    async def all(self) -> AsyncIterator[None]:
        """Provide a block in which all of them are at work."""
        try:
            await self._log.add(self._positions)
            yield
        finally:
            self._log.remove(self._positions)

    def one(self, index: int) -> ItemFlight:
        """Return one of them, which is at work by itself."""
        return ItemFlight(self._log, self._positions[index])


def half(count: int) -> int:
    """Return how many of so many items that died together are scored together again."""
    return max(1, (count + 1) // 2)


def is_proven(deaths: int, *, other_deaths: int, survivors: int) -> bool:
    """Return whether an item's deaths are hardly by chance.

    Two deaths are enough where six others survived alone, six where there is no other item.

    Args:
        deaths: How often the process died while it scored the item alone.
        other_deaths: How often it did with other items.
        survivors: Other items that it scored alone, and survived.
    """
    # Laplace's rule of succession: the chance that an innocent item is alone at a death.
    chance = (other_deaths + 1) / (other_deaths + survivors + 2)
    return deaths >= _LEAST_DEATHS and chance**deaths * _ONE_OF <= 1
