"""Threads for the database, so that it never blocks the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

__all__ = ["DatabaseThreads"]

_P = ParamSpec("_P")
_T = TypeVar("_T")
_THREADS = 4


class DatabaseThreads:
    """Runs blocking calls in a few threads."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="hallujudge-jobs")

    async def run(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run a call; a caller that is cancelled does not stop it halfway."""
        task = self._threads.submit(work, *args, **kwargs)
        return await asyncio.shield(asyncio.wrap_future(task))

    def close(self) -> None:
        """Wait for running calls and end the threads."""
        self._threads.shutdown(wait=True)
