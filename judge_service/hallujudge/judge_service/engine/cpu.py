"""Work that needs the processor and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

__all__ = ["run_cpu"]

_T = TypeVar("_T")

# About ten milliseconds of matching: health checks can wait that long.
_INLINE_CHARS = 100_000


async def run_cpu(work: Callable[[], _T], *, chars: int) -> _T:
    """Runs work here when it is short, else in a thread, so that a server stays responsive.

    Threads share one interpreter lock: handing every small batch to one made scoring half as fast
    as doing it in place.

    Args:
        work: What to run.
        chars: Characters of text that it goes through.
    """
    if chars <= _INLINE_CHARS:
        return work()
    return await asyncio.to_thread(work)
