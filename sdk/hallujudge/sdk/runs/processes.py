"""Worker processes of the SDK: tasks as values, for a pool that moves bytes."""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import aclosing, suppress
from importlib import import_module
from itertools import islice
from multiprocessing.reduction import ForkingPickler
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.streams import ordered_map
from hallujudge.judge_service.forked_workers import Answer, Program
from hallujudge.judge_service.process_pool import ClosedError, DiedError, ProcessPool
from hallujudge.metrics.families import family_of
from hallujudge.synonym_graphs.word_forms import load_tokenizers, textblob_inflect

from ..errors import HallujudgeError
from .parts import Part, batch_size
from .worker import Group, SliceCheck, WorkerSettings, groups_of, parts_of, run_worker

if TYPE_CHECKING:
    from ..archives import ItemSource
    from ..archives.inputs import CheckedSlice, SliceReader
    from ..archives.json_lines import Span


Settings = TypeVar("Settings")
Task = TypeVar("Task")
Result = TypeVar("Result")

Preloaded: TypeAlias = "tuple[str | Callable[[], object], ...]"
"""Modules to import, and functions to call, once for all processes."""
PRELOADED: Preloaded = ("numpy", load_tokenizers, textblob_inflect)
"""What scoring needs beside the modules that this one imports."""

# Groups that are begun for each process before the first result is written.
_GROUPS_AHEAD = 3


class Work(NamedTuple, Generic[Settings, Task, Result]):
    """What processes do."""

    make: Callable[[Settings], Callable[[Task], Result]]
    """Returns what does tasks; called once in each process, which imports it by name."""
    settings: Settings
    """Its argument."""


class Processes(Generic[Settings, Task, Result]):
    """Processes that do tasks. A thread has the event loop of their pool.

    Args:
        work: What they do.
        count: How many there are.
        preload: What all processes need.
    """

    def __init__(
        self, work: Work[Settings, Task, Result], *, count: int, preload: Preloaded = ()
    ) -> None:
        self._pool = ProcessPool(Program.of(task_job, _packed((preload, _packed(work)))), count)
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def start_soon(self) -> Future[None]:
        """Start the processes in the background, and return at once.

        They are ready when the future is done; an error is raised again by :meth:`submit`.
        """
        loop = self._running()
        self._pool.start()
        return asyncio.run_coroutine_threadsafe(self._pool.start_all(), loop)

    def submit(self, task: Task) -> Future[Result]:
        """Return the future result of a task.

        It raises DiedError if the process died in every attempt, ClosedError if the processes were
        closed, and otherwise the error that the task raised.

        Raises:
            ClosedError: The processes were closed.
        """
        loop, packed = self._running(), _packed(task)
        return asyncio.run_coroutine_threadsafe(self._result(packed), loop)

    def results(self, tasks: Iterable[Task], *, ahead: int) -> Iterator[Result]:
        """Yield the results of tasks in their order; see :meth:`submit`.

        Args:
            tasks: The tasks.
            ahead: How many tasks are begun before the first result is read.
        """
        left = iter(tasks)
        begun = deque(self.submit(task) for task in islice(left, ahead))
        try:
            while begun:
                yield begun.popleft().result()
                begun.extend(self.submit(task) for task in islice(left, 1))
        finally:
            for future in begun:
                future.cancel()

    def close(self) -> None:
        """Kill the processes, even in the middle of a task."""
        with self._lock:
            self._closed = True
            loop, self._loop = self._loop, None
        if loop is not None:
            killed = Event()
            asyncio.run_coroutine_threadsafe(self._end(killed), loop)
            # Pool and loop run in a daemon thread, which would end with this process before killing
            # any.
            killed.wait()

    async def _result(self, task: bytes) -> Result:
        result: Result = _unpacked(await self._pool.reply(task))
        return result

    def _running(self) -> asyncio.AbstractEventLoop:
        """Return the loop of the pool, which runs from the first task on."""
        with self._lock:
            if self._closed:
                raise ClosedError
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                Thread(target=_run, args=(self._loop,), name="hallujudge-run", daemon=True).start()
            return self._loop

    async def _end(self, killed: Event) -> None:
        self._pool.kill()
        killed.set()
        # Tasks that are left fail now that the pool is closed.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        await self._pool.close()
        asyncio.get_running_loop().stop()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


class _Failed(NamedTuple):
    """The result of a task that raised an error."""

    error: Exception


class TaskJob:
    """Does tasks that arrive as pickled values; see :class:`Job`.

    Args:
        preload: What all processes need.
        work: The pickled :class:`Work`.
    """

    def __init__(self, preload: Preloaded, work: bytes) -> None:
        self._preload = preload
        self._packed = work
        self._do: Callable[[Any], Any] | None = None

    def prepare(self) -> None:
        """Load what all processes need."""
        for each in self._preload:
            # A benchmark from outside may be a file, which each process loads by itself.
            with suppress(ImportError):
                if isinstance(each, str):
                    import_module(each)
                else:
                    each()

    def begin(self) -> None:
        """Get a process ready."""
        # The first task fails again, and returns the error.
        with suppress(Exception):
            self._made()

    def do(self, block: bytes) -> Answer:
        """Return the result of a task, or its error."""
        try:
            return Answer(_packed(self._made()(ForkingPickler.loads(block))))
        except Exception as err:
            # Pickling drops the traceback, and an unexpected error is of little use without it.
            if not isinstance(err, HallujudgeError):
                err.add_note(f"In a worker process:\n{traceback.format_exc()}")
            return Answer(_packed(_Failed(err)))

    def close(self) -> None:
        """Do nothing: tasks leave nothing open."""

    def _made(self) -> Callable[[Any], Any]:
        if self._do is None:
            work: Work[Any, Any, Any] = ForkingPickler.loads(self._packed)
            self._do = work.make(work.settings)
        return self._do


def task_job(settings: bytes) -> TaskJob:
    """Return the job of a process; the processes import this function by name."""
    return TaskJob(*ForkingPickler.loads(settings))


def _packed(value: object) -> bytes:
    # A copy: `dumps` returns a view of a buffer, and Python 3.12.1 crashes when it collects a
    # traceback with such a view.
    return bytes(ForkingPickler.dumps(value))


def _unpacked(reply: bytes) -> Any:
    result = ForkingPickler.loads(reply)
    if isinstance(result, _Failed):
        raise result.error
    return result


class PoolParts:
    """Parts that worker processes make.

    Args:
        settings: How the workers score.
        workers: How many there are.
    """

    def __init__(self, settings: WorkerSettings, workers: int) -> None:
        self._ahead = _GROUPS_AHEAD * workers
        entry = metric_entry(settings.spec.metric)
        self._size = batch_size(settings.spec, local=True)
        self._starting: Future[None] | None = None
        self._processes: Processes[WorkerSettings, Any, Any] = Processes(
            Work(run_worker, settings),
            count=workers,
            preload=(
                *PRELOADED,
                # Of the metrics only the run's own: all of them take half a second.
                f"hallujudge.metrics.{family_of(settings.spec.metric)}",
                entry.open.__module__,
            ),
        )

    def start(self) -> None:
        """Start the workers now, rather than with the first items, and return at once."""
        self._starting = self._processes.start_soon()

    def check(self, reader: SliceReader, spans: Iterable[Span]) -> Iterator[CheckedSlice | None]:
        """Yield what slices of an archive hold; see :class:`Spread`.

        Until the workers have started, this process checks slices itself.
        """
        left = iter(spans)
        while self._starting is not None and not self._starting.done():
            if (span := next(left, None)) is None:
                return
            yield reader.check(*span)
        tasks = (SliceCheck(reader, span) for span in left)
        try:
            yield from self._processes.results(tasks, ahead=self._ahead)
        except DiedError:
            yield None

    async def parts(self, items: ItemSource, first: int) -> AsyncGenerator[Part, None]:
        """Yield the parts of items; see :class:`PartSource`."""
        try:
            async with aclosing(
                ordered_map(groups_of(items, first, self._size), self._made, limit=self._ahead)
            ) as done:
                async for parts in done:
                    for part in parts:
                        yield part
        finally:
            self.close()

    def close(self) -> None:
        """End the workers."""
        self._processes.close()

    async def _made(self, group: Group) -> list[Part]:
        return await parts_of(group, lambda task: asyncio.wrap_future(self._processes.submit(task)))
