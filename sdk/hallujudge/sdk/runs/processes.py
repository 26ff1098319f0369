"""A pool of worker processes, each with its own pipe, and the parts that the pool makes.

``concurrent.futures.ProcessPoolExecutor`` has one pipe for the results of all workers. A worker
that is killed while it writes leaves part of a result there, and the reader waits for the rest
forever. A pipe of its own ends when its worker dies, at whatever moment.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import traceback
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.streams import ordered_map

from ..errors import HallujudgeError
from .batches import batch_size
from .parts import Part
from .worker import (
    ATTEMPTS,
    DiedError,
    Group,
    SliceCheck,
    WorkerSettings,
    do_task,
    groups_of,
    parts_of,
    prepare_worker,
)

if TYPE_CHECKING:
    from ..archives import ItemSource
    from ..archives.inputs import CheckedSlice, SliceReader
    from ..archives.json_lines import Span


Settings = TypeVar("Settings")
Task = TypeVar("Task")
Result = TypeVar("Result")

# One thread packs the next task, or unpacks a result, while the other waits for the process. With
# the pipe's own `send` and `recv`, the process would idle during packing.
_THREADS_PER_PROCESS = 2
# Groups that are begun for each process before the first result is written.
_GROUPS_AHEAD = 3


class Work(NamedTuple, Generic[Settings, Task, Result]):
    """What processes do. A process imports these functions by name."""

    prepare: Callable[[Settings], None]
    """Called once in each process."""
    settings: Settings
    """The argument of ``prepare``."""
    do: Callable[[Task], Result]
    """Called with each task of the process."""


class Processes(Generic[Settings, Task, Result]):
    """Processes that do tasks.

    Args:
        work: What they do.
        count: How many there are.
        attempts: How often a task is tried if its process dies.
        preload: Modules to import once for all processes, if the system can fork them.
    """

    def __init__(
        self,
        work: Work[Settings, Task, Result],
        *,
        count: int,
        attempts: int,
        preload: tuple[str, ...] = (),
    ) -> None:
        self._work = work
        self._count = count
        self._attempts = attempts
        self._context = _context(preload)
        self._lock = Lock()
        self._all: set[_Process] = set()
        self._idle: SimpleQueue[_Process] = SimpleQueue()
        self._closed = False
        self.threads = ThreadPoolExecutor(_THREADS_PER_PROCESS * count, "hallujudge-run")
        """Threads to call :meth:`result` in."""

    def start(self) -> None:
        """Start the processes that are not running.

        Raises:
            DiedError: The pool was closed.
        """
        with self._lock:
            if self._closed:
                raise DiedError
            while len(self._all) < self._count:
                self._add()

    def start_soon(self) -> Future[None]:
        """Start the processes in a thread, and return at once.

        The first start waits until the fork server has imported its modules. An error is raised
        again by :meth:`result`.
        """
        return self.threads.submit(self.start)

    def result(self, task: Task) -> Result:
        """Wait for an idle process, and return its result of a task.

        Raises:
            DiedError: The process died in every attempt, or the pool was closed.
            Exception: The error that the task raised.
        """
        self.start()
        packed = _packed(task)
        for _ in range(self._attempts):
            process = self._idle.get()
            reply = process.reply(packed)
            if reply is None:
                self._replace(process)
                continue
            self._idle.put(process)
            result: Result = _unpacked(reply)
            return result
        raise DiedError

    def results(self, tasks: Iterable[Task], *, ahead: int) -> Iterator[Result]:
        """Yield the results of tasks in their order.

        Args:
            tasks: The tasks.
            ahead: How many tasks are begun before the first result is read.

        Raises:
            DiedError: The process of a task died in every attempt, or the pool was closed.
            Exception: The error that a task raised.
        """
        left = iter(tasks)
        begun = deque(self.threads.submit(self.result, task) for task in islice(left, ahead))
        try:
            while begun:
                yield begun.popleft().result()
                begun.extend(self.threads.submit(self.result, task) for task in islice(left, 1))
        finally:
            for future in begun:
                future.cancel()

    def close(self) -> None:
        """Terminate the processes, even in the middle of a task."""
        with self._lock:
            self._closed = True
            for process in self._all:
                process.end()
        self.threads.shutdown(wait=False, cancel_futures=True)

    def _replace(self, dead: _Process) -> None:
        with self._lock:
            dead.end()
            if self._closed:
                # Threads that wait for an idle process get this one, and fail at once.
                self._idle.put(dead)
            else:
                self._all.discard(dead)
                self._add()

    def _add(self) -> None:
        process = _Process(self._context, self._work)
        self._all.add(process)
        self._idle.put(process)


class _Process:
    """A process and this end of its pipe, which one thread at a time uses."""

    def __init__(
        self,
        context: ForkServerContext | SpawnContext,
        work: Work[Settings, Task, Result],
    ) -> None:
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, work), daemon=True)
        with _sigint_blocked():
            self._process.start()
        # The pipe closes with the process only if this process does not keep that end open.
        other.close()

    def reply(self, packed: bytes) -> bytes | None:
        """Return the result of a task, or None if the process has died."""
        try:
            self._pipe.send_bytes(packed)
            return self._pipe.recv_bytes()
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        """End the process; a thread that waits for its reply gets none."""
        self._process.terminate()


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block Ctrl-C in this thread, and in processes that are started meanwhile.

    Ctrl-C reaches every process of a terminal. The fork server and workers ignore it, but not
    before they have imported what they need; until then they would end with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows has no masks
        yield
        return
    # Starting it later would unblock the signal again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Failed(NamedTuple):
    """The result of a task that raised an error."""

    error: Exception


def _serve(pipe: Connection, work: Work[Settings, Task, Result]) -> None:
    """Do tasks until the pipe closes; the main function of a process."""
    work.prepare(work.settings)
    try:
        while True:
            pipe.send_bytes(_done(work.do, pipe.recv_bytes()))
    except (EOFError, OSError):
        return


def _done(do: Callable[[Task], Result], task: bytes) -> bytes:
    try:
        return _packed(do(ForkingPickler.loads(task)))
    except Exception as err:
        if not isinstance(err, HallujudgeError):
            err.add_note(f"In a worker process:\n{traceback.format_exc()}")
        return _packed(_Failed(err))


def _packed(value: object) -> bytes:
    # A copy: `dumps` returns a view of a buffer, and Python 3.12.1 crashes when it collects a
    # traceback with such a view.
    return bytes(ForkingPickler.dumps(value))


def _unpacked(reply: bytes) -> Any:
    result = ForkingPickler.loads(reply)
    if isinstance(result, _Failed):
        raise result.error
    return result


def _context(preload: tuple[str, ...]) -> ForkServerContext | SpawnContext:
    """Return a context that forks workers from a preloaded server process, if the system can.

    A fork of this process would copy locks that other threads hold.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    return context


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
            Work(prepare_worker, settings, do_task),
            count=workers,
            attempts=ATTEMPTS,
            preload=(
                f"{__package__}.preloaded",
                # A worker imports the main module again, which is the command line's script.
                "hallujudge.sdk.cli",
                # Of the metrics only the run's own: all of them take half a second.
                entry.metric.__module__,
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
        loop, processes = asyncio.get_running_loop(), self._processes
        return await parts_of(
            group, lambda task: loop.run_in_executor(processes.threads, processes.result, task)
        )
