"""Worker processes: the program they run, and the frames that blocks travel in.

    python -m hallujudge.judge_service.forked_workers DESCRIPTOR

:class:`ProcessPool` starts this program once. It imports what a job needs, and then forks a worker
whenever it is asked for one. A fork of the caller itself would copy its sockets and the locks of
its threads; starting each worker from scratch would take most of a second and memory of its own.
"""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple, Protocol

import msgspec

HEAD_BYTES = 9
"""Size of the head of a frame: the length of its block, little-endian, and a flag."""
LAST = 1
"""The flag of a reply after which its worker ends."""
ONE_WORKER = b"w"
"""The request for a worker; one end of a socket is passed with it."""

# A terminal or service manager sends these signals to every process of a program. Workers ignore
# them, because the process that started them ends them in an orderly way.
IGNORED = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""The signals that workers ignore."""


# Items are freed by their reference counts. With Python's default of 700 new objects, searching
# them for cycles takes a tenth of a CHAIR run and finds none.
_NEW_OBJECTS = 50_000


class Answer(NamedTuple):
    """What a job makes of a block."""

    block: bytes
    """The reply."""
    last: bool = False
    """Whether the worker ends after it."""


class Job(Protocol):
    """What workers do with blocks."""

    def prepare(self) -> None:
        """Load what all workers share; called once, in the process that they are forked from."""

    def begin(self) -> None:
        """Get a worker ready that was just forked."""

    def do(self, block: bytes) -> Answer:
        """Return the reply to a block; errors are part of it."""

    def close(self) -> None:
        """Release what the job holds, where no worker could be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What the processes of a pool do."""

    job: str
    """Where the function is that makes the job: its module, a colon and its name."""
    settings: bytes
    """The argument of that function."""
    nice: int = 0
    """How much lower the priority of workers is than the caller's."""

    @classmethod
    def of(cls, make: Callable[[bytes], Job], settings: bytes, *, nice: int = 0) -> Program:
        """Return the program of a function that makes a job of its settings."""
        return cls(job=f"{make.__module__}:{make.__qualname__}", settings=settings, nice=nice)

    def made(self) -> Job:
        """Return the job."""
        module, _, name = self.job.partition(":")
        job: Job = getattr(import_module(module), name)(self.settings)
        return job


def head_of(block: bytes, flag: int = 0) -> bytes:
    """Return the head of a frame."""
    return len(block).to_bytes(HEAD_BYTES - 1, "little") + bytes([flag])


def size_of(head: bytes) -> int:
    """Return the size of the block after a head."""
    return int.from_bytes(head[:-1], "little")


def main(descriptor: int) -> None:
    """Fork workers until the caller closes its end.

    Args:
        descriptor: The socket that brings the program, then requests for workers.
    """
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    # The caller blocks them, so that none ends this process before it ignores them.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED)
    with socket.socket(fileno=descriptor) as control:
        program = msgspec.msgpack.decode(_read(socket.SocketIO(control, "r")), type=Program)
        os.nice(program.nice)
        job = program.made()
        job.prepare()
        # The garbage collector must not touch the objects so far, or their memory would be copied.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_NEW_OBJECTS)
        # The system removes workers that ended; no exit code is read.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            message, passed, _, _ = socket.recv_fds(control, len(ONE_WORKER), 1)
            if not message:
                break
            with socket.socket(fileno=passed[0]) as caller:
                if os.fork() == 0:
                    # A worker that kept it would hide from the caller that the process it was
                    # forked from died.
                    control.close()
                    _work(caller, job)
    # Wait for the workers, which all notice that the caller is gone.
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def _work(caller: socket.socket, job: Job) -> None:
    """Reply to blocks until the caller closes its end, and end this process."""
    code = 0
    try:
        # Exit codes of processes that a job starts would otherwise be lost.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # A worker that is busy reads nothing, and would outlive a caller that was killed.
        threading.Thread(target=_end_with_caller, args=(caller,), daemon=True).start()
        job.begin()
        incoming = socket.SocketIO(caller, "r")
        _send(caller, Answer(str(os.getpid()).encode()))
        while block := _read(incoming):
            answer = job.do(block)
            _send(caller, answer)
            if answer.last:
                break
    except OSError:
        pass  # the caller is gone
    except BaseException:
        code = 1
        sys.excepthook(*sys.exc_info())
    finally:
        # os._exit flushes nothing.
        logging.shutdown()
        # No other cleanup: open files belong to the process that this one was forked from.
        os._exit(code)


def _end_with_caller(caller: socket.socket) -> None:
    """End this process at once when the caller is gone, for example by kill -9."""
    poll = select.poll()
    poll.register(caller, 0)  # hang-ups are always reported
    poll.poll()
    os._exit(1)


def _read(stream: socket.SocketIO) -> bytes:
    """Return the block of the next frame, or no bytes at the end."""
    head = _exactly(stream, HEAD_BYTES)
    return _exactly(stream, size_of(head)) if head else b""


def _exactly(stream: socket.SocketIO, size: int) -> bytes:
    data = bytearray(size)
    view, have = memoryview(data), 0
    while have < size:
        got = stream.readinto(view[have:])
        if not got:
            return b""
        have += got
    return bytes(data)


def _send(caller: socket.socket, answer: Answer) -> None:
    # Apart, because joining them would copy the block.
    caller.sendall(head_of(answer.block, LAST if answer.last else 0))
    caller.sendall(answer.block)


if __name__ == "__main__":
    main(int(sys.argv[1]))
