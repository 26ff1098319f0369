"""Work in threads that a cancelled caller does not call off."""

from __future__ import annotations

import asyncio
import concurrent.futures
from typing import TypeVar

__all__ = ["shielded"]

_T = TypeVar("_T")


async def shielded(work: concurrent.futures.Future[_T]) -> _T:
    """Wait for work in a thread; it goes on when the caller is cancelled.

    asyncio would log the error of work that no caller waits for any more, with a traceback.
    """
    result = asyncio.wrap_future(work)
    result.add_done_callback(_look_at)
    return await asyncio.shield(result)


def _look_at(result: asyncio.Future[_T]) -> None:
    if not result.cancelled():
        result.exception()
