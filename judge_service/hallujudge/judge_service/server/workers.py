"""Tasks for worker processes: fair turns of callers, costs, and what follows a worker's death."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from ..access import CallMemory, current_caller
from ..errors import InvalidInputError, UnavailableError
from ..fair_queue import FairQueue
from ..observe import WorkerState
from ..process_pool import ATTEMPTS, ClosedError, DiedError, ProcessPool
from ..settings.loading import worker_environment
from ..settings.server_settings import ServerSettings
from ..stopping import begun
from ..tenancy import tenancy
from ..threads import LONG_CHARS, can_fork, usable_cores
from .worker_tasks import Reply, Task, WorkerSettings, decode_reply, encode, worker_program

_LOG = logging.getLogger(__name__)

_DIED = f"{ATTEMPTS} worker processes ended or hung while they scored this item alone"
# How long a worker may continue a task after its call has ended, before it is killed.
_UNWANTED_SECONDS = 1.0
# Workers limit their own processor time. These limits are for a worker that is stuck: a busy one
# gets its processor time within them even if it shares a core with a few others.
_WALL_FACTOR = 4.0
_WALL_SECONDS = 60.0
# Room for the largest graph that a caller may send.
_GRAPH_BYTES = 96 << 20

# Size of the partial tallies that are kept before they are merged: those of about 100,000 captions.
_TALLY_BYTES = 4 << 20
# Making a report from more than this counts as a long task: about 5,000 captions.
_LONG_BYTES = 256 << 10


class DeadWorkersError(InvalidInputError):
    """A task ended every worker that did it."""


class Workers:
    """Runs tasks in worker processes, with a fair queue of callers.

    Long tasks, such as large reports, have a queue of their own, so that they never occupy all
    workers.

    Args:
        count: Maximum number of short tasks at the same time.
        settings: The settings of workers.
        limits: Limits of :class:`ProcessPool`, in seconds. By default a worker may take a minute
            more than four times its processor time to reply.
    """

    def __init__(self, count: int, settings: WorkerSettings, **limits: float) -> None:
        limits.setdefault(
            "reply_seconds", _WALL_FACTOR * settings.limits.max_work_seconds + _WALL_SECONDS
        )
        long = max(1, count // 2)
        self._short = FairQueue(count)
        self._long = FairQueue(long)
        program, environment = worker_program(settings), worker_environment()
        # Both queues have all their places at once, so there is a worker for each place.
        self.processes = ProcessPool(program, count + long, environment=environment, **limits)
        """The worker processes."""

    @property
    def state(self) -> WorkerState:
        """Number of busy workers, waiting tasks and deaths."""
        waiting = self._short.waiting + self._long.waiting
        return WorkerState(
            busy=len(self.processes.busy), waiting=waiting, deaths=self.processes.deaths
        )

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
        with tenancy().recorder.span("work", {"task": task.kind}):
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
        try:
            return decode_reply(await self.processes.reply(encode(task)))
        except ClosedError as err:
            raise UnavailableError("the server is draining", reason="SERVER_DRAINING") from err
        except DiedError as err:
            raise DeadWorkersError(
                f"{ATTEMPTS} worker processes ended or hung while they scored this message; send "
                "fewer or shorter items, to find the one that can't be scored",
                reason="TOO_COSTLY",
            ) from err


def _cost(work: asyncio.Future[Reply]) -> float:
    if work.cancelled() or work.exception() is not None:
        return 0.0
    return work.result().seconds


def worker_count(settings: ServerSettings) -> int:
    """Return the number of workers, which is 0 if the system can't fork."""
    if not can_fork():
        return 0
    count = usable_cores() if settings.workers < 0 else settings.workers
    # One worker would do no more than this process does, and cost the way to it.
    return count if count > 1 else 0


@asynccontextmanager
async def started(settings: ServerSettings) -> AsyncIterator[Workers | None]:
    """Run the workers that the settings ask for, if any."""
    count = worker_count(settings)
    if not count:
        yield None
        return
    pool = Workers(
        count,
        WorkerSettings(
            limits=settings.limits,
            max_graph_bytes=max(settings.limits.max_memory_bytes // count, _GRAPH_BYTES),
            log_level=settings.log.level,
            benchmarks=settings.outside,
            wants_items=bool(settings.evaluation_endpoint),
        ),
    )
    pool.processes.start()
    try:
        yield pool
    finally:
        await pool.processes.close()


class Tallies:
    """Collects the partial tallies of a report.

    Args:
        workers: The workers.
        spec: How items are scored.
    """

    def __init__(self, workers: Workers, spec: bytes) -> None:
        self._workers = workers
        self._spec = spec
        self._tallies: list[bytes] = []
        self._most_bytes = _TALLY_BYTES

    async def add(self, tally: bytes) -> None:
        """Add a partial tally; once they are large, they are merged into one."""
        self._tallies.append(tally)
        if self._size > self._most_bytes:
            task = Task(kind="merge", parts=(self._spec, *self._tallies))
            [merged] = (await self._workers.run(task, long=True)).parts
            self._tallies = [merged]
            # Grows with what is merged, so that merging takes time in proportion to what comes.
            self._most_bytes = _TALLY_BYTES + 2 * len(merged)

    async def report(self, kind: str) -> Reply:
        """Return the reply to a task that makes the report of all tallies."""
        long = self._size > _LONG_BYTES or len(self._spec) > LONG_CHARS
        return await self._workers.run(
            Task(kind=kind, parts=(self._spec, *self._tallies)), long=long
        )

    @property
    def _size(self) -> int:
        return sum(map(len, self._tallies))
