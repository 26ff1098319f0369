"""Concurrent work with results in the order of the inputs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from typing import TypeVar

__all__ = ["ordered_map"]

_In = TypeVar("_In")
_Out = TypeVar("_Out")


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
                pending.put_nowait(asyncio.ensure_future(_run(work, value)))
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


async def _run(work: Callable[[_In], Awaitable[_Out]], value: _In) -> _Out:
    return await work(value)
