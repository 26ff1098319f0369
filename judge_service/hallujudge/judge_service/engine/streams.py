"""Streams of results: concurrent work in order, with ticks and progress in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

_In = TypeVar("_In")
_Out = TypeVar("_Out")
_T = TypeVar("_T")
TICK_SECONDS = 2.0
"""How often progress is reported while there are no results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """The progress of a run that has no results yet."""

    answers: int = 0
    """Answers of the run's language models so far, to any run."""
    cost: float | None = None
    """What their answers cost, or None if unknown, as for a server's models."""
    waiting: str = ""
    """What the run is waiting for, in one sentence; empty while it works."""


async def ordered_map(
    source: AsyncIterable[_In], work: Callable[[_In], Awaitable[_Out]], *, limit: int
) -> AsyncGenerator[_Out, None]:
    """Run ``work`` on up to ``limit`` inputs at once, and yield results in the order of the inputs.

    At most ``limit`` inputs are read ahead of the consumer, so that a slow consumer slows the
    source. If the consumer stops early or one piece of work fails, the remaining work is cancelled.
    """
    pending: asyncio.Queue[asyncio.Task[_Out] | None] = asyncio.Queue()
    room = asyncio.Semaphore(limit)

    async def feed() -> None:
        try:
            async for value in source:
                await room.acquire()
                pending.put_nowait(asyncio.ensure_future(work(value)))
        finally:
            pending.put_nowait(None)

    feeder = asyncio.ensure_future(feed())
    try:
        while (task := await pending.get()) is not None:
            try:
                yield await task
            finally:
                room.release()
                task.cancel()
        await feeder
    finally:
        feeder.cancel()
        while not pending.empty():
            if (task := pending.get_nowait()) is not None:
                task.cancel()
        await asyncio.gather(feeder, return_exceptions=True)


async def with_ticks(
    source: AsyncGenerator[_T, None], seconds: float
) -> AsyncGenerator[_T | None, None]:
    """Yield what a source yields, and None whenever it yielded nothing for some seconds.

    Closing the generator cancels what the source is doing, and closes the source.
    """
    async with aclosing(source):
        while True:
            coming = asyncio.ensure_future(anext(source))
            try:
                while not (await asyncio.wait({coming}, timeout=seconds))[0]:
                    yield None
            finally:
                if not coming.done():
                    coming.cancel()
                    await asyncio.gather(coming, return_exceptions=True)
            try:
                value = coming.result()
            except StopAsyncIteration:
                return
            yield value
