"""A pool of worker processes, to which blocks of bytes go and from which they come back.

The server's tasks and the parts of a run are made by it. Each worker has a socket of its own, which
ends with it at whatever moment: no process waits for a worker that is killed while it writes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from .forked_workers import HEAD_BYTES, IGNORED, LAST, ONE_WORKER, Job, Program, head_of, size_of
from .stopping import begun

_LOG = logging.getLogger(__name__)

ATTEMPTS = 2
"""How often a block is tried. It may be the cause of a worker's death, so it is repeated once."""

# Starting takes about a second, and up to a minute on an overloaded machine.
_START_SECONDS = 120.0
# How often starting a worker is tried again if it failed.
_RETRY_SECONDS = 60.0
# Buffer of the socket from a worker; frames may be larger.
_READ_BYTES = 1 << 20
# How long the process that workers are forked from may take to end.
_END_SECONDS = 5.0


class DiedError(Exception):
    """The workers died or hung in every attempt at a block."""


class ClosedError(DiedError):
    """The pool was closed."""


class ProcessPool:
    """Processes that reply to blocks.

    Workers start with the first blocks. Where none can be started, for lack of memory or of
    processes, a thread of this process does the same job, and the log says so once.

    Args:
        program: What the workers do.
        count: How many there are at most.
        environment: Their environment variables; by default those of this process.
        start_seconds: How long a worker may take to start.
        reply_seconds: How long a worker may take to reply; no limit by default.
        retry_seconds: How often starting a worker is tried again if it failed.
    """

    def __init__(
        self,
        program: Program,
        count: int,
        *,
        environment: Mapping[str, str] | None = None,
        start_seconds: float = _START_SECONDS,
        reply_seconds: float | None = None,
        retry_seconds: float = _RETRY_SECONDS,
    ) -> None:
        self._count = count
        self._places = asyncio.Semaphore(count)
        self._forker = _Forker(program, environment, start_seconds)
        self._here = _Here(program)
        self._reply_seconds = reply_seconds
        self._retry_seconds = retry_seconds
        self._retrying: asyncio.Task[None] | None = None
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._closed = False
        self.deaths = 0
        """How many workers died or hung at work."""

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
        with suppress(OSError):  # the first block tries again, and logs the error
            self._forker.start()

    async def start_all(self) -> None:
        """Start all workers, rather than with the first blocks.

        Raises:
            OSError: One can't be started.
            EOFError: One ended before it was ready.
        """

        async def start() -> None:
            async with self._places:
                self._idle.append(await self._forker.worker())

        await asyncio.gather(*(start() for _ in range(self._count)))

    async def reply(self, block: bytes) -> bytes:
        """Return a worker's reply to a block. A call that is cancelled ends its worker.

        Raises:
            DiedError: The workers died or hung in every attempt.
            ClosedError: The pool was closed.
        """
        async with self._places:
            for _ in range(ATTEMPTS):
                worker = await self._worker()
                if worker is None:
                    return await self._here.reply(block)
                reply = await self._attempt(worker, block)
                if reply is not None:
                    return reply
            raise DiedError

    async def _attempt(self, worker: _Worker, block: bytes) -> bytes | None:
        """Return a worker's reply, or None if it died or hung."""
        self._busy.add(worker)
        try:
            async with asyncio.timeout(self._reply_seconds):
                reply, flag = await worker.ask(block)
        except (OSError, EOFError) as err:
            worker.kill()
            if not self._closed:
                self.deaths += 1
                how = "did not reply" if isinstance(err, TimeoutError) else "died at work"
                _LOG.warning("worker %d %s", worker.pid, how)
            return None
        # Such as a cancellation: the worker still writes a reply, which no caller will read.
        except BaseException:
            worker.kill()
            raise
        finally:
            self._busy.discard(worker)
        if flag == LAST or self._closed:
            worker.kill()
        else:
            self._idle.append(worker)
        return reply

    def kill(self) -> None:
        """Kill all workers, and start none from now on."""
        self._closed = True
        if self._retrying is not None:
            self._retrying.cancel()
        for worker in (*self._idle, *self._busy):
            worker.kill()
        self._idle.clear()
        self._here.close()

    async def close(self) -> None:
        """Kill all workers, and wait for the process that they were forked from."""
        self.kill()
        await asyncio.to_thread(self._forker.close)

    async def _worker(self) -> _Worker | None:
        """Return a worker, or None if none can be started."""
        if self._closed:
            raise ClosedError
        while self._idle:
            worker = self._idle.pop()
            # It may have been killed while it had nothing to do.
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
            raise ClosedError from error
        if self._retrying is not None and not self._retrying.done():
            return
        _LOG.warning(
            "no worker process starts (%s); this process does their work until one does",
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


class _Worker:
    """A worker process and this end of its socket.

    Args:
        reader: The frames that it sends.
        writer: The frames for it.
        pid: Its process id.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self.pid = pid

    @property
    def alive(self) -> bool:
        """Whether the worker has not closed its end."""
        return not self._reader.at_eof()

    async def ask(self, block: bytes) -> tuple[bytes, int]:
        """Send a block, and return the reply and its flag.

        Raises:
            OSError: The worker died.
            EOFError: The same.
        """
        self._writer.writelines((head_of(block), block))
        await self._writer.drain()
        return await _frame(self._reader)

    def kill(self) -> None:
        """Kill the worker."""
        # After it has ended, its process id may belong to another process.
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self._writer.transport.abort()


async def _frame(reader: asyncio.StreamReader) -> tuple[bytes, int]:
    head = await reader.readexactly(HEAD_BYTES)
    return await reader.readexactly(size_of(head)), head[-1]


class _Forker:
    """The process that workers are forked from.

    Args:
        program: What the workers do.
        environment: Their environment variables.
        start_seconds: How long a worker may take to start.
    """

    def __init__(
        self, program: Program, environment: Mapping[str, str] | None, start_seconds: float
    ) -> None:
        self._program = program
        self._environment = environment
        self._start_seconds = start_seconds
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process.

        Raises:
            OSError: It can't be started.
        """
        # multiprocessing's fork server inherits the environment with its keys, ends at the SIGTERM
        # of a service manager, and runs the program's main script again in each worker.
        ours, theirs = socket.socketpair()
        try:
            with theirs, _signals_blocked():
                self._process = subprocess.Popen(  # noqa: S603 - the command is our own
                    [
                        sys.executable,
                        # Not from the current folder, where a file may have the name of a module of
                        # ours.
                        "-P",
                        "-m",
                        f"{__package__}.forked_workers",
                        str(theirs.fileno()),
                    ],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env=_with_path(os.environ if self._environment is None else self._environment),
                )
            program = msgspec.msgpack.encode(self._program)
            ours.sendall(head_of(program) + program)
        except OSError:
            ours.close()
            raise
        self._control = ours

    async def worker(self) -> _Worker:
        """Return a new worker.

        Raises:
            OSError: None can be started, or none started in time.
            EOFError: It ended before it was ready.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._send(theirs)
        except OSError:
            ours.close()
            raise
        # Another call may start a new one while this one waits.
        process = self._process
        reader, writer = await asyncio.open_connection(sock=ours, limit=_READ_BYTES)
        try:
            async with asyncio.timeout(self._start_seconds):
                pid, _ = await _frame(reader)
        except TimeoutError as err:
            # The process that workers are forked from is stuck; the next worker needs a new one.
            writer.transport.abort()
            if process is self._process:
                self._kill()
            raise TimeoutError(f"not ready after {self._start_seconds:g} s") from err
        except BaseException:
            writer.transport.abort()
            raise
        return _Worker(reader, writer, int(pid))

    def _send(self, theirs: socket.socket) -> None:
        for again in (True, False):
            if self._control is None:
                self.start()
            assert self._control is not None
            try:
                socket.send_fds(self._control, [ONE_WORKER], [theirs.fileno()])
            # The process has died meanwhile. A restarted one is tried once.
            except OSError:
                if not again:
                    raise
                self.close()
            else:
                return

    def _kill(self) -> None:
        """Kill the process; its workers continue."""
        if self._process is not None:
            self._process.kill()
        self.close()

    def close(self) -> None:
        """End the process; its workers must have ended, or end now."""
        process, self._process = self._process, None
        if self._control is not None:
            self._control.close()
            self._control = None
        if process is None:
            return
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block the signals that workers ignore in this thread, and in processes started meanwhile.

    Ctrl-C reaches every process of a terminal. Before the new process ignores it, it would end
    with a traceback.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _with_path(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which a new process finds the modules that this one finds."""
    path = os.pathsep.join(folder or str(Path.cwd()) for folder in sys.path)
    return {**environment, "PYTHONPATH": path}


class _Here:
    """Does a job in a thread of this process, one block at a time.

    A thread can't be killed, so that nothing ends a block that takes too long.

    Args:
        program: What workers do.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._job: Job | None = None
        self._thread: ThreadPoolExecutor | None = None

    async def reply(self, block: bytes) -> bytes:
        """Return the reply to a block."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="hallujudge-work")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._do, block)

    def close(self) -> None:
        """Start no further block, without waiting for a running one."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.submit(self._end)
            thread.shutdown(wait=False)

    def _do(self, block: bytes) -> bytes:
        if self._job is None:
            self._job = self._program.made()
        return self._job.do(block).block

    def _end(self) -> None:
        if self._job is not None:
            self._job.close()
