"""Running of CPU-bound work without blocking the event loop for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

__all__ = ["run_cpu"]

_T = TypeVar("_T")

# About ten milliseconds of matching, which health checks tolerate.
_INLINE_CHARS = 100_000


async def run_cpu(work: Callable[[], _T], *, chars: int) -> _T:
    """Run short work in place and long work in a thread, so that a server stays responsive.

    Running every small batch in a thread halved the speed, because threads share the interpreter
    lock.

    Args:
        work: The work.
        chars: The number of characters that it processes.
    """
    if chars <= _INLINE_CHARS:
        return work()
    return await asyncio.to_thread(work)
