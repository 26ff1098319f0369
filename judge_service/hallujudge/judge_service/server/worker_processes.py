"""Worker processes: how the server starts them, and the program that they run.

The server starts one process that imports everything workers need; workers are forked from it. A
fork of the server itself would copy its sockets and the locks of its threads. Starting each worker
from scratch would take most of a second and memory of its own.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from types import FrameType

from hallujudge.metrics.families import add_benchmarks

from ..settings.server_settings import worker_environment
from .logs import set_up_logging
from .worker_tasks import (
    LENGTH_BYTES,
    Failure,
    Hello,
    Reply,
    Task,
    Work,
    WorkerSettings,
    decode_hello,
    decode_reply,
    decode_settings,
    decode_task,
    framed,
)

ONE_WORKER = b"w"
"""The request for a worker; one end of a socket is passed with it."""

# A terminal or service manager sends these signals to every process of a server. Workers ignore
# them, because they must finish their tasks while the server drains.
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Workers have lower priority than the server's process, which all calls wait for.
_NICE = 5
# Work in C code may not notice the exception of the first timer; after this margin it is killed.
_MARGIN_SECONDS = 5.0


# Buffer of the pipe from a worker; frames may be larger.
_READ_BYTES = 1 << 20
# How long the process that workers are forked from may take to end.
_END_SECONDS = 5.0


class Worker:
    """A worker process, as the server sees it.

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

    async def ask(self, task: Task) -> Reply:
        """Send a task and return the reply.

        Raises:
            OSError: The worker died.
            EOFError: The same.
        """
        self._writer.write(framed(task))
        await self._writer.drain()
        return decode_reply(await _frame(self._reader))

    def kill(self) -> None:
        """Kill the worker."""
        # After it has ended, its process id may belong to another process.
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self._writer.transport.abort()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(LENGTH_BYTES)
    return await reader.readexactly(int.from_bytes(head, "little"))


class Forker:
    """The process that workers are forked from.

    Args:
        settings: The settings of workers.
        start_seconds: How long a worker may take to start.
    """

    def __init__(self, settings: WorkerSettings, start_seconds: float) -> None:
        self._settings = settings
        self._start_seconds = start_seconds
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process.

        Raises:
            OSError: It can't be started.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 - the command is our own
                    [
                        sys.executable,
                        "-P",
                        "-m",
                        f"{__package__}.worker_processes",
                        str(theirs.fileno()),
                    ],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env=worker_environment(),
                )
            ours.sendall(framed(self._settings))
        except OSError:
            ours.close()
            raise
        self._control = ours

    async def worker(self) -> Worker:
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
        process = self._process
        reader, writer = await asyncio.open_connection(sock=ours, limit=_READ_BYTES)
        try:
            async with asyncio.timeout(self._start_seconds):
                hello = decode_hello(await _frame(reader))
        except TimeoutError as err:
            # The process that workers are forked from is stuck; the next worker needs a new one.
            writer.transport.abort()
            if process is self._process:
                self._kill()
            raise TimeoutError(f"not ready after {self._start_seconds:g} s") from err
        except BaseException:
            writer.transport.abort()
            raise
        return Worker(reader, writer, hello.pid)

    def _send(self, theirs: socket.socket) -> None:
        for again in (True, False):
            if self._control is None:
                self.start()
            assert self._control is not None
            try:
                socket.send_fds(self._control, [ONE_WORKER], [theirs.fileno()])
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


class TooLongError(BaseException):
    """A task took too long. It is not an Exception, so that no handler of errors swallows it."""


def main(control: socket.socket) -> None:
    """Fork workers until the server closes its end.

    Args:
        control: The server's settings, then requests for workers.
    """
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICE)
    settings = decode_settings(_read(socket.SocketIO(control, "r")))
    set_up_logging(settings.log_level)
    add_benchmarks(settings.benchmarks, alone=True)
    work = Work(settings)
    work.warm_up()
    # A fork copies no thread, such as the log's: each worker starts its own.
    logging.shutdown()
    # The garbage collector must not touch the objects so far, or their memory would be copied.
    gc.collect()
    gc.freeze()
    # The system removes workers that ended; no exit code is read.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, passed, _, _ = socket.recv_fds(control, len(ONE_WORKER), 1)
        if not message:
            break
        with socket.socket(fileno=passed[0]) as server:
            if os.fork() == 0:
                control.close()
                _worker(server, work, settings)
    # Wait for the workers, which all notice that the server is gone.
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def _worker(server: socket.socket, work: Work, settings: WorkerSettings) -> None:
    """Work until the server closes its end."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGPROF, _too_long)
        threading.Thread(target=_end_with_server, args=(server,), daemon=True).start()
        logging.getLogger().handlers.clear()
        set_up_logging(settings.log_level)
        incoming = socket.SocketIO(server, "r")
        _send(server, Hello(pid=os.getpid()))
        while frame := _read(incoming):
            reply = _in_time(work, frame, settings.max_seconds)
            _send(server, reply)
            if reply.last:
                break
    except OSError:
        pass  # the server is gone
    finally:
        logging.shutdown()
        # No other cleanup: open files belong to the process that this one was forked from.
        os._exit(0)


def _in_time(work: Work, frame: bytes, seconds: float) -> Reply:
    """Return the reply to a task; if it takes too long, the worker ends after its reply."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    # The signal of this timer has no handler, so that the system kills the process.
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds + _MARGIN_SECONDS)
    try:
        return work.do(decode_task(frame))
    except TooLongError:
        return Reply(failure=too_long(seconds), seconds=seconds, last=True)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def too_long(seconds: float) -> Failure:
    """Return the failure of a task that takes too long."""
    return Failure(
        reason="TOO_COSTLY",
        message=f"the request took more than {seconds:g} s of processor time (setting "
        "max_work_seconds); send fewer or shorter items, or group by fewer values",
    )


def _too_long(_signal: int, _frame: FrameType | None) -> None:
    raise TooLongError


def _end_with_server(server: socket.socket) -> None:
    """End this process at once when the server is gone."""
    poll = select.poll()
    poll.register(server, 0)  # hang-ups are always reported
    poll.poll()
    os._exit(1)


def _read(stream: socket.SocketIO) -> bytes:
    """Return the next frame, or no bytes at the end."""
    head = _exactly(stream, LENGTH_BYTES)
    return _exactly(stream, int.from_bytes(head, "little")) if head else b""


def _exactly(stream: socket.SocketIO, size: int) -> bytes:
    data = bytearray(size)
    view, have = memoryview(data), 0
    while have < size:
        got = stream.readinto(view[have:])
        if not got:
            return b""
        have += got
    return bytes(data)


def _send(server: socket.socket, frame: Hello | Reply) -> None:
    server.sendall(framed(frame))


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
