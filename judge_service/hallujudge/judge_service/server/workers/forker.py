"""Processes as the server sees them: a worker, and what workers are forked from."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

from ...settings.server import worker_environment
from .frames import (
    LENGTH_BYTES,
    Reply,
    Task,
    WorkerSettings,
    decode_hello,
    decode_reply,
    framed,
)
from .process import ONE_WORKER

__all__ = ["Forker", "Worker"]

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
                    [sys.executable, "-P", "-m", f"{__package__}.process", str(theirs.fileno())],
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
