"""The batches of a run: sent in order, and again in smaller groups where their server died."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from random import Random

import pytest

from hallujudge.metrics import Item
from hallujudge.sdk.backends import BatchResult
from hallujudge.sdk.backends.outbox import Outbox


def batch(*ids: str) -> list[Item]:
    return [Item(id=name) for name in ids]


async def source(*batches: Sequence[Item]) -> AsyncIterator[Sequence[Item]]:
    for each in batches:
        yield each


def ids(items: Sequence[Item]) -> str:
    return "".join(item.id for item in items)


def paired(items: Sequence[Item]) -> BatchResult:
    return BatchResult(items=items, results=())


def answered(outbox: Outbox) -> str:
    """Answer the oldest batch; return the items whose results are complete."""
    return "".join(ids(result.items) for result in outbox.answered(paired))


async def test_batches_without_an_answer_are_sent_again_in_order() -> None:
    async with Outbox(source(batch("a"), batch("b"), batch("c")), limit=9) as outbox:
        assert not outbox.outstanding
        first = outbox.connect()
        assert [ids(await anext(first)), ids(await anext(first))] == ["a", "b"]
        assert outbox.outstanding
        assert answered(outbox) == "a"
        second = outbox.connect()
        assert not outbox.outstanding
        assert [ids(sent) async for sent in second] == ["b", "c"]
        # The first connection is over: it sends nothing that the second one sends.
        assert [ids(sent) async for sent in first] == []
        assert [answered(outbox), answered(outbox)] == ["b", "c"]
        assert outbox.outstanding  # the end of the run


async def test_no_more_is_read_than_the_limit_allows() -> None:
    read: list[str] = []

    async def slow() -> AsyncIterator[Sequence[Item]]:
        for name in "abcde":
            read.append(name)
            yield batch(name, name.upper())

    async with Outbox(slow(), limit=4) as outbox:
        sent = outbox.connect()
        assert [ids(await anext(sent)) for _ in range(2)] == ["aA", "bB"]
        waiting = asyncio.ensure_future(anext(sent))
        await asyncio.sleep(0)
        assert (waiting.done(), read) == (False, ["a", "b", "c"])
        answered(outbox)
        assert ids(await waiting) == "cC"


async def test_a_batch_larger_than_the_limit_is_sent_alone() -> None:
    async with Outbox(source(batch("a", "b", "c"), batch("d")), limit=2) as outbox:
        sent = outbox.connect()
        assert ids(await anext(sent)) == "abc"
        answered(outbox)
        assert ids(await anext(sent)) == "d"


async def test_an_error_of_the_source_ends_what_is_sent() -> None:
    async def broken() -> AsyncIterator[Sequence[Item]]:
        yield batch("a")
        raise ValueError("line 2")

    async with Outbox(broken(), limit=9) as outbox:
        sent = outbox.connect()
        assert ids(await anext(sent)) == "a"
        with pytest.raises(ValueError, match="line 2"):
            await anext(sent)
        assert isinstance(outbox.error, ValueError)


async def test_a_cancelled_connection_does_not_stop_the_reading() -> None:
    """gRPC cancels what reads for a call that failed."""
    release = asyncio.Event()

    async def late() -> AsyncIterator[Sequence[Item]]:
        yield batch("a")
        await release.wait()
        yield batch("b")

    async with Outbox(late(), limit=9) as outbox:
        first = outbox.connect()
        await anext(first)
        waiting = asyncio.ensure_future(anext(first))
        await asyncio.sleep(0)
        waiting.cancel()
        second = outbox.connect()
        release.set()
        assert [ids(sent) async for sent in second] == ["a", "b"]


async def test_leaving_closes_the_source() -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[Sequence[Item]]:
        try:
            await asyncio.Event().wait()
            yield []
        finally:
            closed.set()

    async with Outbox(endless(), limit=9) as outbox:
        outbox.connect()
        await asyncio.sleep(0)
    assert closed.is_set()


class Run:
    """A run at a server that dies when a test says so."""

    def __init__(self, count: int, dies: Callable[[Sequence[str]], bool]) -> None:
        self.names = [f"{number}." for number in range(count)]
        self.deaths = 0
        self.results: list[str] = []
        self.sizes: list[int] = []
        self.blamed: list[str] = []
        self._dies = dies

    async def run(self, size: int, limit: int) -> None:
        names = self.names
        batches = [batch(*names[at : at + size]) for at in range(0, len(names), size)]
        async with Outbox(source(*batches), limit) as outbox:
            while len(self.results) < len(names):
                await self._connection(outbox)

    async def _connection(self, outbox: Outbox) -> None:
        """Send as much as may be, until the server dies or has answered all of it."""
        sending, under_way, batches = outbox.connect(), list[str](), 0
        while (items := await self._next(sending)) is not None:
            under_way += [item.id for item in items]
            batches += 1
            if outbox.fatal:
                self.blamed += under_way
                break
        else:
            self.sizes.append(len(under_way))
            if self._dies(under_way):
                self.deaths += 1
                outbox.died()
                return
        for _ in range(batches):
            for result in outbox.answered(paired):
                self.results += [item.id for item in result.items]

    async def _next(self, sending: AsyncIterator[Sequence[Item]]) -> Sequence[Item] | None:
        """Return the next batch; None if no more may be sent now."""
        taken = asyncio.ensure_future(anext(sending, None))
        for _ in range(5):
            await asyncio.sleep(0)
        if taken.done():
            return taken.result()
        taken.cancel()
        await asyncio.gather(taken, return_exceptions=True)
        return None


async def test_what_was_under_way_at_a_death_is_sent_again_in_halves() -> None:
    deaths = [False, True]
    run = Run(40, lambda _names: bool(deaths) and deaths.pop(0))
    await run.run(size=4, limit=16)
    assert run.sizes == [16, 16, 8, 8, 8]
    assert run.results == run.names
    assert run.blamed == []


async def test_an_item_that_ends_the_server_is_found_and_results_stay_in_order() -> None:
    run = Run(60, lambda names: "37." in names)
    await run.run(size=4, limit=16)
    assert run.blamed == ["37."]
    assert run.results == run.names
    # With 16, 8, 4 and 2; then twice alone, after six others that survive.
    assert run.deaths == 6


async def test_the_only_item_of_a_run_is_fatal_after_six_deaths() -> None:
    run = Run(1, lambda _names: True)
    await run.run(size=4, limit=16)
    assert (run.blamed, run.deaths) == (["0."], 6)


@pytest.mark.parametrize("seed", range(20))
async def test_random_kills_blame_no_item(seed: int) -> None:
    random = Random(seed)
    run = Run(400, lambda _names: random.random() < 0.1)
    await run.run(size=4, limit=16)
    assert run.blamed == []
    assert run.results == run.names
