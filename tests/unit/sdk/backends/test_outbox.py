"""The batches of a run on their way to a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from hallujudge.metrics import Item
from hallujudge.sdk.backends.recovery import Outbox


def batch(*ids: str) -> list[Item]:
    return [Item(id=name) for name in ids]


async def source(*batches: Sequence[Item]) -> AsyncIterator[Sequence[Item]]:
    for each in batches:
        yield each


def ids(items: Sequence[Item]) -> str:
    return "".join(item.id for item in items)


async def test_batches_without_an_answer_are_sent_again_in_order() -> None:
    async with Outbox(source(batch("a"), batch("b"), batch("c")), limit=9) as outbox:
        assert not outbox.outstanding
        first = outbox.connect()
        assert [ids(await anext(first)), ids(await anext(first))] == ["a", "b"]
        assert outbox.outstanding
        assert ids(outbox.answered()) == "a"
        second = outbox.connect()
        assert not outbox.outstanding
        assert [ids(sent) async for sent in second] == ["b", "c"]
        # The first connection is over: it sends nothing that the second one sends.
        assert [ids(sent) async for sent in first] == []
        assert [ids(outbox.answered()), ids(outbox.answered())] == ["b", "c"]
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
        outbox.answered()
        assert ids(await waiting) == "cC"


async def test_a_batch_larger_than_the_limit_is_sent_alone() -> None:
    async with Outbox(source(batch("a", "b", "c"), batch("d")), limit=2) as outbox:
        sent = outbox.connect()
        assert ids(await anext(sent)) == "abc"
        outbox.answered()
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
