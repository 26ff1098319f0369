"""The pool of worker processes: assigns tasks, replaces workers that died, and sums up reports."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from ..access.caller import current_caller
from ..access.fair_queue import FairQueue
from ..access.memory import CallMemory
from ..errors import InvalidInputError, UnavailableError
from ..observe.recorder import WorkerState
from ..settings.server_settings import ServerSettings
from ..stopping import begun
from ..threads import LONG_CHARS, usable_cores
from ..work_recorder import recorder
from .worker_processes import Forker, Worker
from .worker_tasks import Reply, Task, Work, WorkerSettings

_LOG = logging.getLogger(__name__)

# A task is repeated once if its worker died, since the task itself may be the cause.
_ATTEMPTS = 2
_DIED = f"{_ATTEMPTS} worker processes ended or hung while they scored this item alone"
# How long a worker may continue a task after its call has ended, before it is killed.
_UNWANTED_SECONDS = 1.0
# Starting takes about a second, and up to a minute on an overloaded machine.
_START_SECONDS = 120.0
# Workers limit their own processor time. These limits are for a worker that is stuck: a busy one
# gets its processor time within them even if it shares a core with a few others.
_WALL_FACTOR = 4.0
_WALL_SECONDS = 60.0
# How often starting a worker is tried again if it failed.
_RETRY_SECONDS = 60.0
# Room for the largest graph that a caller may send.
_GRAPH_BYTES = 96 << 20

# Size of the partial tallies that are kept before they are merged: those of about 100,000 captions.
_TALLY_BYTES = 4 << 20
# Making a report from more than this counts as a long task: about 5,000 captions.
_LONG_BYTES = 256 << 10


class DeadWorkersError(InvalidInputError):
    """A task ended every worker that did it."""


class WorkerPool:
    """Runs tasks in worker processes, with a fair queue of callers.

    Workers start with the first tasks. Long tasks, such as large reports, have a queue of their
    own, so that they never occupy all workers.

    Args:
        count: Maximum number of short tasks at the same time.
        settings: The settings of workers.
        start_seconds: How long a worker may take to start.
        reply_seconds: How long a worker may take to reply; by default a minute more than four times
            its processor time.
        retry_seconds: How often starting a worker is tried again; until one starts, this process
            does the tasks.
    """

    def __init__(
        self,
        count: int,
        settings: WorkerSettings,
        *,
        start_seconds: float = _START_SECONDS,
        reply_seconds: float | None = None,
        retry_seconds: float = _RETRY_SECONDS,
    ) -> None:
        if reply_seconds is None:
            reply_seconds = _WALL_FACTOR * settings.max_seconds + _WALL_SECONDS
        self._reply_seconds = reply_seconds
        self._retry_seconds = retry_seconds
        self._here = WorkHere(settings)
        self._retrying: asyncio.Task[None] | None = None
        self._short = FairQueue(count)
        self._long = FairQueue(max(1, count // 2))
        self._forker = Forker(settings, start_seconds)
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._closed = False
        self._deaths = 0

    @property
    def state(self) -> WorkerState:
        """Number of busy workers, waiting tasks and deaths."""
        waiting = self._short.waiting + self._long.waiting
        return WorkerState(busy=len(self._busy), waiting=waiting, deaths=self._deaths)

    @property
    def idle(self) -> tuple[int, ...]:
        """The process ids of idle workers; the last one is used next."""
        return tuple(worker.pid for worker in self._idle)

    @property
    def busy(self) -> tuple[int, ...]:
        """The process ids of busy workers."""
        return tuple(worker.pid for worker in self._busy)

    def start(self) -> None:
        """Start the process that workers are forked from, without waiting for it."""
        with suppress(OSError):  # the first task tries again, and logs the error
            self._forker.start()

    async def close(self) -> None:
        """Kill all workers."""
        self._closed = True
        if self._retrying is not None:
            self._retrying.cancel()
        for worker in (*self._idle, *self._busy):
            worker.kill()
        self._idle.clear()
        self._here.close()
        await asyncio.to_thread(self._forker.close)

    async def run(
        self, task: Task, memory: CallMemory | None = None, *, long: bool = False
    ) -> Reply:
        """Return the reply to a task.

        Args:
            task: The task.
            memory: The memory of the call; more is taken if the messages need it.
            long: Whether the task takes more than about a tenth of a second.

        Raises:
            HallujudgeError: The task failed, or two workers died while doing it.
        """
        with recorder().span("work", {"task": task.kind}):
            reply = await self._turn(task, long=long)
            # Workers count the fields of large messages, which may need more than was charged.
            if reply.needs and memory is not None:
                memory.grow(max(0, reply.needs - (task.memory or 0)))
                reply = await self._turn(replace(task, memory=reply.needs), long=long)
        if reply.failure is not None:
            raise reply.failure.error()
        return reply

    async def run_items(
        self,
        task: Task,
        alone: Callable[[], Sequence[Task]],
        memory: CallMemory | None = None,
        *,
        long: bool = False,
    ) -> list[Reply]:
        """Return the reply to a task with items, or to each of them if it ends its workers.

        An item that ends its workers when it is alone is not scored.

        Args:
            task: The task.
            alone: Returns a task for each item.
            memory: See :meth:`run`.
            long: See :meth:`run`.
        """
        try:
            return [await self.run(task, memory, long=long)]
        except DeadWorkersError:
            tasks = alone()
        if len(tasks) == 1:
            return [await self.run(replace(tasks[0], died=_DIED))]
        return [await self._alone(one) for one in tasks]

    async def _alone(self, task: Task) -> Reply:
        try:
            return await self.run(task)
        except DeadWorkersError as err:
            _LOG.warning("an item is not scored: %s", err)
            return await self.run(replace(task, died=_DIED))

    async def _turn(self, task: Task, *, long: bool) -> Reply:
        queue, working_for = self._long if long else self._short, current_caller()
        caller = working_for.id
        await queue.enter(caller, weight=working_for.limits.weight)
        work = begun(self._done(task))
        # Fair queueing by processor time, which is known only when the worker has replied.
        work.add_done_callback(lambda _: queue.leave(caller, cost=_cost(work)))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # The call has ended, but its place is released only when the worker is free.
            asyncio.get_running_loop().call_later(_UNWANTED_SECONDS, work.cancel)
            raise

    async def _done(self, task: Task) -> Reply:
        for _ in range(_ATTEMPTS):
            worker = await self._worker()
            if worker is None:
                return await self._here.do(task)
            self._busy.add(worker)
            try:
                async with asyncio.timeout(self._reply_seconds):
                    reply = await worker.ask(task)
            except (OSError, EOFError) as err:
                self._deaths += 1
                how = "did not reply" if isinstance(err, TimeoutError) else "died at work"
                _LOG.warning("worker %d %s", worker.pid, how)
                worker.kill()
                continue
            except BaseException:
                worker.kill()
                raise
            finally:
                self._busy.discard(worker)
            if reply.last:
                worker.kill()
            else:
                self._idle.append(worker)
            return reply
        raise DeadWorkersError(
            f"{_ATTEMPTS} worker processes ended or hung while they scored this message; send "
            "fewer or shorter items, to find the one that can't be scored",
            reason="TOO_COSTLY",
        )

    async def _worker(self) -> Worker | None:
        """Return a worker, or None if none can be started."""
        if self._closed:
            raise _draining()
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            worker.kill()
        if self._retrying is not None and not self._retrying.done():
            return None
        try:
            return await self._forker.worker()
        except (OSError, EOFError) as err:
            self._no_worker(err)
            return None

    def _no_worker(self, error: Exception) -> None:
        """Log once that no worker starts, and keep trying in the background."""
        if self._closed:
            raise _draining() from error
        if self._retrying is not None and not self._retrying.done():
            return
        _LOG.warning(
            "no worker process starts (%s); the server's process scores until one does",
            str(error) or type(error).__name__,
        )
        self._retrying = begun(self._retry())

    async def _retry(self) -> None:
        while True:
            with suppress(OSError, EOFError):
                self._idle.append(await self._forker.worker())
                _LOG.info("worker processes start again")
                return
            await asyncio.sleep(self._retry_seconds)


def _draining() -> UnavailableError:
    return UnavailableError("the server is draining", reason="SERVER_DRAINING")


def _cost(work: asyncio.Future[Reply]) -> float:
    if work.cancelled() or work.exception() is not None:
        return 0.0
    return work.result().seconds


def worker_count(settings: ServerSettings) -> int:
    """Return the number of workers, which is 0 if the system can't fork."""
    if not hasattr(os, "fork") or not sys.executable:
        return 0
    count = usable_cores() if settings.workers < 0 else settings.workers
    return count if count > 1 else 0


@asynccontextmanager
async def started(settings: ServerSettings) -> AsyncIterator[WorkerPool | None]:
    """Run the workers that the settings ask for, if any."""
    count = worker_count(settings)
    if not count:
        yield None
        return
    pool = WorkerPool(
        count,
        WorkerSettings(
            max_message_bytes=settings.max_message_bytes,
            max_batch_items=settings.max_batch_items,
            max_report_groups=settings.max_report_groups,
            max_graph_bytes=max(settings.max_memory_bytes // count, _GRAPH_BYTES),
            max_seconds=settings.max_work_seconds,
            log_level=settings.log_level,
            benchmarks=settings.outside,
            wants_items=bool(settings.evaluation_endpoint),
        ),
    )
    pool.start()
    try:
        yield pool
    finally:
        await pool.close()


class Tallies:
    """Collects the partial tallies of a report.

    Args:
        pool: The workers.
        spec: How items are scored.
    """

    def __init__(self, pool: WorkerPool, spec: bytes) -> None:
        self._pool = pool
        self._spec = spec
        self._tallies: list[bytes] = []
        self._most_bytes = _TALLY_BYTES

    async def add(self, tally: bytes) -> None:
        """Add a partial tally; once they are large, they are merged into one."""
        self._tallies.append(tally)
        if self._size > self._most_bytes:
            task = Task(kind="merge", parts=(self._spec, *self._tallies))
            [merged] = (await self._pool.run(task, long=True)).parts
            self._tallies = [merged]
            self._most_bytes = _TALLY_BYTES + 2 * len(merged)

    async def report(self, kind: str) -> Reply:
        """Return the reply to a task that makes the report of all tallies."""
        long = self._size > _LONG_BYTES or len(self._spec) > LONG_CHARS
        return await self._pool.run(Task(kind=kind, parts=(self._spec, *self._tallies)), long=long)

    @property
    def _size(self) -> int:
        return sum(map(len, self._tallies))


class WorkHere:
    """Does the tasks of workers in a thread of this process, one at a time.

    It is the fallback while no worker process starts. A thread can't be killed, so that tasks have
    no limit of processor time here.

    Args:
        settings: The settings of workers.
    """

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._work: Work | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hallujudge-work")

    async def do(self, task: Task) -> Reply:
        """Return the reply to a task."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._do, task)

    def close(self) -> None:
        """Start no further task, without waiting for a running one."""
        self._thread.submit(self._end)
        self._thread.shutdown(wait=False)

    def _do(self, task: Task) -> Reply:
        if self._work is None:
            self._work = Work(self._settings)
        return self._work.do(task)

    def _end(self) -> None:
        if self._work is not None:
            self._work.close()
