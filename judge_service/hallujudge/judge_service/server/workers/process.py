"""The processes: one that has imported what workers need, and the workers that it forks.

A fork of a server would copy its sockets and the locks of its threads, and a fresh start of each
worker takes most of a second and a memory of its own.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import threading
from types import FrameType

from ..logs import set_up_logging
from .frames import (
    LENGTH_BYTES,
    Failure,
    Hello,
    Reply,
    WorkerSettings,
    decode_settings,
    decode_task,
    framed,
)
from .work import Work

__all__ = ["ONE_WORKER", "main"]

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


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
