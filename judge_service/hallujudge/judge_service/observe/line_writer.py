"""Lines written by a thread of their own, so that a blocked pipe or disk delays no call."""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable

# Lines that wait for a slow reader; more are dropped, because calls must not wait for it.
_MAX_LINES = 10_000
# Lines are written together: a write for each would take longer than a small call.
_WRITE_SECONDS = 0.1


class LineWriter:
    """Writes lines to a file descriptor. Callers never wait for it; it drops lines if it must.

    It writes to the descriptor itself: Python's own streams take a lock that a blocked writer would
    hold, and the interpreter waits for that lock when it ends.

    Args:
        descriptor: Where lines go. It belongs to the writer, except standard output and error.
        name: The name of the thread.
        on_error: Called in the writer's thread with what is wrong, at the first failed write.
    """

    def __init__(
        self, descriptor: int, name: str, on_error: Callable[[str], None] | None = None
    ) -> None:
        self._descriptor = descriptor
        self._on_error = on_error
        self._lines: deque[str] = deque()
        self._closing = threading.Event()
        self.dropped = 0
        """How many lines were lost, because they came too fast or could not be written."""
        self._thread = threading.Thread(target=self._write, name=name, daemon=True)
        self._thread.start()

    def put(self, line: str) -> None:
        """Write a line, soon, or drop it."""
        if len(self._lines) < _MAX_LINES:
            # The thread is not woken: that would cost a third of a small call's time.
            self._lines.append(line)
        else:
            self.dropped += 1

    def close(self, seconds: float | None = None) -> None:
        """Write what waits, for so many seconds at most, and close the descriptor."""
        self._closing.set()
        self._thread.join(seconds)
        if not self._thread.is_alive() and self._descriptor > 2:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self) -> None:
        while not self._closing.wait(_WRITE_SECONDS):
            self._write_waiting()
        self._write_waiting()

    def _write_waiting(self) -> None:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if not lines:
            return
        try:
            self._send("".join(f"{line}\n" for line in lines).encode(errors="backslashreplace"))
        except OSError as err:
            self.dropped += len(lines)
            if self._on_error is not None:
                self._on_error(err.strerror or str(err))
                self._on_error = None

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:  # the parent process made it non-blocking
                select.select([], [self._descriptor], [])
