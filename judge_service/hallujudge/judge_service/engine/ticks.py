"""Signs of life between the results of slow work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import TypeVar

__all__ = ["with_ticks"]

_T = TypeVar("_T")


async def with_ticks(
    source: AsyncGenerator[_T, None], seconds: float
) -> AsyncGenerator[_T | None, None]:
    """Yield what a source yields, and None whenever it yielded nothing for some seconds.

    Closing the generator cancels what the source is doing, and closes the source.
    """
    async with aclosing(source):
        while True:
            coming = asyncio.ensure_future(_next(source))
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


def _next(source: AsyncGenerator[_T, None]) -> Awaitable[_T]:
    return anext(source)
