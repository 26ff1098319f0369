"""Threads for the database, so that it never blocks the event loop."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from ..shielding import shielded

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
        return await shielded(self._threads.submit(work, *args, **kwargs))

    def close(self) -> None:
        """Wait for running calls and end the threads."""
        self._threads.shutdown(wait=True)
