"""Ids that repeat, results of concurrent work in order, and ticks between those of slow work."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from support.messages import expected_message
from support.threads import PATIENCE, unseen_errors

from hallujudge.judge_service.engine.streams import (
    ID_BYTES,
    StreamIds,
    distinct,
    keys_of,
    ordered_map,
    with_ticks,
)
from hallujudge.judge_service.errors import InvalidInputError

SOON = 0.01


async def test_slow_values_come_with_ticks_and_quick_ones_without() -> None:
    gate = asyncio.Event()

    async def source() -> AsyncGenerator[int, None]:
        yield 1
        await gate.wait()
        yield 2

    seen: list[int | None] = []
    async for value in with_ticks(source(), SOON):
        seen.append(value)
        if seen.count(None) == 2:
            gate.set()
    assert seen[:3] == [1, None, None]
    assert [value for value in seen if value is not None] == [1, 2]


async def test_a_failure_of_the_source_that_comes_too_late_is_not_logged() -> None:
    logged: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
    gate, failed = asyncio.Event(), asyncio.Event()

    async def source() -> AsyncGenerator[int, None]:
        await gate.wait()
        failed.set()
        raise ValueError
        yield 1

    async with aclosing(with_ticks(source(), SOON)) as values:
        assert await anext(values) is None
        gate.set()
        await failed.wait()
        await asyncio.sleep(0)
    del values
    gc.collect()
    await asyncio.sleep(0)
    assert logged == []


async def test_closing_it_early_cancels_and_closes_the_source() -> None:
    ended: list[str] = []

    async def source() -> AsyncGenerator[int, None]:
        try:
            await asyncio.Event().wait()
            yield 1
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        finally:
            ended.append("closed")

    async with aclosing(with_ticks(source(), SOON)) as ticks:
        assert await anext(ticks) is None
    assert ended == ["cancelled", "closed"]


async def test_an_error_of_the_source_is_raised() -> None:
    async def source() -> AsyncGenerator[int, None]:
        yield 1
        raise ValueError("broken")

    ticks = with_ticks(source(), SOON)
    assert await anext(ticks) == 1
    with pytest.raises(ValueError, match="broken"):
        await anext(ticks)


def add(ids: StreamIds, *batch: str) -> None:
    ids.add(keys_of(batch), batch.__getitem__)


@pytest.mark.parametrize("first", [0, 1, 63, 64, 4_000, 4_999])
def test_an_id_repeats_wherever_it_was(first: int) -> None:
    ids, names = StreamIds(), [f"item {number}" for number in range(5_000)]
    sizes = (64, 1, 0, 200, 7)
    at = turn = 0
    while at < len(names):
        add(ids, *names[at : at + sizes[turn % 5]])
        at, turn = at + sizes[turn % 5], turn + 1
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.engine.streams:items-id-is-also-the-id-of", first),
    ) as caught:
        add(ids, "new", names[first])
    assert caught.value.message.startswith(f"items[5001].id: 'item {first}'")
    assert [one.field for one in caught.value.violations] == ["items[5001].id"]


def test_an_id_repeats_in_its_own_batch() -> None:
    ids = StreamIds()
    add(ids, "a")
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.engine.streams:items-id-is-also-the-id-of", 2),
    ) as caught:
        add(ids, "b", "c", "d", "c")
    assert caught.value.message.startswith("items[4].id: 'c'")


async def test_what_is_kept_of_a_stream_is_counted() -> None:
    async def source() -> AsyncGenerator[list[str], None]:
        yield ["a", "b"]
        yield []
        yield ["c"]
        yield ["d", "a"]

    kept: list[int] = []
    seen: list[list[str]] = []
    batches = distinct(source(), list, kept.append)
    seen.extend([await anext(batches) for _ in range(3)])
    with pytest.raises(InvalidInputError):
        await anext(batches)
    assert seen == [["a", "b"], [], ["c"]]
    assert kept == [2 * ID_BYTES, 0, ID_BYTES, 2 * ID_BYTES]


async def test_a_source_that_ends_while_the_consumer_is_cancelled_is_looked_at() -> None:
    consumers: list[asyncio.Task[None]] = []

    async def source() -> AsyncGenerator[int, None]:
        yield 1
        consumers.pop().cancel()

    async def consume() -> None:
        async for _ in with_ticks(source(), 60.0):
            pass

    with unseen_errors() as unseen:
        consumers.append(asyncio.create_task(consume()))
        ((ended,), _) = await asyncio.wait(consumers)
        assert ended.cancelled()
        del ended
    assert unseen == []


async def test_work_has_ended_with_its_stream_and_is_looked_at() -> None:
    ended: list[int] = []

    async def source() -> AsyncGenerator[int, None]:
        for number in range(3):
            yield number

    async def work(number: int) -> int:
        if number == 2:
            raise ValueError("broken")
        try:
            await asyncio.sleep(0 if number == 0 else PATIENCE)
        except asyncio.CancelledError:
            # As a group of calls does of which one fails at the moment of the cancellation.
            await asyncio.sleep(0)
            ended.append(number)
            raise ValueError("broken as well") from None
        return number

    with unseen_errors() as unseen:
        async with aclosing(ordered_map(source(), work, limit=3)) as results:
            assert await anext(results) == 0
        assert ended == [1]
        del results
    assert unseen == []
