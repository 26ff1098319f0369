"""Worker processes: how the server starts them, and the program that they run."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from types import FrameType

from ...settings.server_settings import worker_environment
from ..logs import set_up_logging
from .tasks import (
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
"""Asks for a worker; its end of a socket comes with it."""

# Signals that a terminal or a service manager sends to every process of a server: it drains, and
# its workers with it.
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Where cores are short, the server's process goes first: its work is short, and all wait for it.
_NICE = 5
# For work that holds the interpreter lock, which no exception reaches.
_MARGIN_SECONDS = 5.0


class TooLongError(BaseException):
    """A task took too long. No handler of ordinary errors may hold it up."""


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
    work = Work(settings)
    work.warm_up()
    # Objects that are here now stay; not looking at them keeps their memory shared.
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
    # The end of the last worker; all of them see that the server is gone.
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
        # No cleaning up: what is open belongs to the process that was forked.
        os._exit(0)


def _in_time(work: Work, frame: bytes, seconds: float) -> Reply:
    """Return the reply to a task; one that takes too long is ended, and the worker with it."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    # Its signal is not handled: the system ends the process.
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
    """End this process, at work or not, when the server is gone."""
    poll = select.poll()
    poll.register(server, 0)  # hang-ups are always reported
    poll.poll()
    os._exit(1)


def _read(stream: socket.SocketIO) -> bytes:
    """Return the next frame; empty: there is none any more."""
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


_READ_BYTES = 1 << 20
_END_SECONDS = 5.0


class Worker:
    """A worker process.

    Args:
        reader: What it sends.
        writer: What it gets.
        pid: Its process.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self.pid = pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended, as far as is known."""
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
        """End it, whatever it does."""
        # One that has ended has closed its end, and its number may be that of another process.
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
        settings: What workers need to know.
        start_seconds: How long a worker may take to start.
    """

    def __init__(self, settings: WorkerSettings, start_seconds: float) -> None:
        self._settings = settings
        self._start_seconds = start_seconds
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it.

        Raises:
            OSError: It can't be started.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 - the command is our own
                    [sys.executable, "-P", "-m", f"{__package__}.processes", str(theirs.fileno())],
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
            # What workers are forked from hangs; the next worker comes from another one.
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
        """End it at once; its workers go on."""
        if self._process is not None:
            self._process.kill()
        self.close()

    def close(self) -> None:
        """End it; the workers must have ended, or end now."""
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


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
