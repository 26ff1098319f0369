"""Runs many small jobs, a few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

__all__ = ["run_bounded"]

_T = TypeVar("_T")


async def run_bounded(
    jobs: Iterable[_T], work: Callable[[_T], Awaitable[None]], workers: int
) -> None:
    """Run jobs with a few workers, so that a million jobs do not make a million tasks.

    The first error ends all work and is raised as it is.

    Args:
        jobs: The jobs, taken one by one.
        work: Runs one job.
        workers: Jobs at the same time at most.
    """
    queue = iter(jobs)

    async def worker() -> None:
        for job in queue:
            await work(job)

    tasks = [asyncio.ensure_future(worker()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
