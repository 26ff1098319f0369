"""Tasks of workers in the server's own process, where no worker process starts."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from .frames import Reply, Task, WorkerSettings
from .work import Work

__all__ = ["WorkHere"]


class WorkHere:
    """Does tasks in a thread, one at a time, as a worker would.

    The thread shares the interpreter lock with the server, and can't be killed: a task has no limit
    of processor time.

    Args:
        settings: What workers need to know.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._work: Work | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hallujudge-work")

    async def do(self, task: Task) -> Reply:
        """Return the reply to a task."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._do, task)

    def close(self) -> None:
        """Begin no further task. One that runs is not waited for."""
        self._thread.submit(self._end)
        self._thread.shutdown(wait=False)

    def _do(self, task: Task) -> Reply:
        if self._work is None:
            self._work = Work(self._settings)
        return self._work.do(task)

    def _end(self) -> None:
        if self._work is not None:
            self._work.close()
