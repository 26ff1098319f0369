"""Log lines of bounded length, and internal errors logged under an id.

A thread writes the lines, so that a blocked pipe or disk delays no call. Libraries in C write to
standard error themselves; such a write fails where it would wait.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import select
import stat
import sys
import threading
import uuid
from collections import deque
from collections.abc import Callable
from functools import partial

from ..command_process import STANDARD_ERROR, STANDARD_OUTPUT
from ..errors import InternalError

# Lines that wait for a slow reader; more are dropped, because calls must not wait for it.
_MAX_LINES = 10_000
# Lines are written together: a write for each would take longer than a small call.
_WRITE_SECONDS = 0.1
# For the last lines: two logs that are not read then end within a drain of five seconds.
_CLOSE_SECONDS = 1.5


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

    def close(self) -> None:
        """Write what waits, unless it is not read, and close the descriptor."""
        self._closing.set()
        self._thread.join(_CLOSE_SECONDS)
        if not self._thread.is_alive() and self._descriptor > STANDARD_ERROR:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self) -> None:
        while not self._closing.wait(_WRITE_SECONDS):
            self._write_waiting()
        self._write_waiting()

    def _write_waiting(self) -> None:
        # As many as there are now, since more may come meanwhile.
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if not lines:
            return
        try:
            self._send("".join(f"{line}\n" for line in lines).encode(errors="backslashreplace"))
        except OSError as err:
            self.dropped += len(lines)
            if self._on_error is not None:
                self._on_error(err.strerror or str(err))
                # Reported once: the next lines fail in the same way.
                self._on_error = None

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:  # the parent process made it non-blocking
                # Unlike `select`, for descriptors above 1,023 too.
                ready = select.poll()
                ready.register(self._descriptor, select.POLLOUT)
                ready.poll()


_LOG = logging.getLogger(__name__)

_MAX_MESSAGE = 2_000
_MAX_TRACEBACK = 20_000
# A line break in a caller's text would forge a log line, and an escape sequence would control the
# terminal of a reader.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class ShortFormatter(logging.Formatter):
    """Formats log records as single lines of bounded length, with control characters escaped."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class's name
        """Return the line without a traceback."""
        # Cut first, because escapes make a text longer.
        record.message = _cut(_CONTROL.sub(_escaped, record.message[: 2 * _MAX_MESSAGE]), record)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:  # noqa: N802 - the base class's name
        """Return a traceback, without its middle if it is long."""
        text = super().formatException(ei)  # type: ignore[arg-type]  # the base class's tuple
        half = _MAX_TRACEBACK // 2
        if len(text) > _MAX_TRACEBACK:
            text = f"{text[:half]}\n… {len(text) - _MAX_TRACEBACK} characters …\n{text[-half:]}"
        # The line breaks of the traceback itself stay.
        return "\n".join(_CONTROL.sub(_escaped, line) for line in text.split("\n"))


def _cut(text: str, record: logging.LogRecord) -> str:
    if len(text) <= _MAX_MESSAGE:
        return text
    return f"{text[:_MAX_MESSAGE]}… ({len(record.getMessage())} characters)"


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def is_news(record: logging.LogRecord) -> bool:
    """Return whether a record should be logged.

    gRPC logs a traceback for every header that is not UTF-8, before a call is admitted: one client
    could fill a disk with them. It may also log one for a call that is cancelled while it ends,
    which is normal at the end of a drain.
    """
    if not record.name.startswith("grpc._cython"):
        return True
    kind = record.exc_info[0] if record.exc_info else None
    if kind is not None and issubclass(kind, asyncio.CancelledError):
        return False
    return not (isinstance(record.msg, str) and record.msg.startswith("Invalid encoding"))


class WritingHandler(logging.Handler):
    """Passes formatted records to a :class:`LineWriter`, which drops them if the pipe is full.

    Args:
        descriptor: Where lines go.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._writer = LineWriter(descriptor, "log")

    @property
    def dropped(self) -> int:
        """How many lines were lost."""
        return self._writer.dropped

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, soon."""
        try:
            line = self.format(record)
        except Exception as err:  # the base class would write to standard error, and wait for it
            line = f"ERROR {record.name} a record can't be formatted: {type(err).__name__}"
        self._writer.put(line)

    def close(self) -> None:
        """Write the waiting lines, unless the pipe stays full."""
        self._writer.close()
        super().close()


def dropped_lines() -> int:
    """Return how many lines of this process's log were lost."""
    handlers = logging.getLogger().handlers
    return sum(one.dropped for one in handlers if isinstance(one, WritingHandler))


def say(line: str) -> None:
    """Write a line to standard output. One that is not read or can't be written stops nothing.

    Takes a second or two where nothing is read: call it in a thread.
    """
    complain = partial(_LOG.warning, "standard output can't be written: %s")
    writer = LineWriter(STANDARD_OUTPUT, "standard output", complain)
    writer.put(line)
    writer.close()


def set_up_logging(level: str) -> None:
    """Log to standard error, without ever waiting for it.

    Args:
        level: The lowest level.
    """
    try:
        own = sys.stderr.fileno()
        _let_no_write_wait(own)
        handler: logging.Handler = WritingHandler(own)
    except (AttributeError, OSError, ValueError):  # there is no standard error
        handler = logging.NullHandler()
    handler.setFormatter(ShortFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    handler.addFilter(is_news)
    logging.basicConfig(level=level.upper(), handlers=[handler])
    # Python writes both to standard error itself, and may do so in the thread of the event loop.
    logging.captureWarnings(True)
    sys.unraisablehook = _log_unraisable


def _let_no_write_wait(descriptor: int) -> None:
    """Let every write to a descriptor fail where it would wait.

    gRPC's core and libraries of models write to standard error from C, past Python's logging. A
    full pipe would hold up the thread that writes: gRPC's core then serves no call.
    """
    # A write to a file on a disk never waits, and opened again it would have another position.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        other = open_again(descriptor)
        os.dup2(other, descriptor)
        os.close(other)


def open_again(descriptor: int) -> int:
    """Return another descriptor of the same file, to which no write waits."""
    try:
        # A file description of our own: the option of the other one also holds for our parent.
        return os.open(f"/dev/fd/{descriptor}", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
    except OSError:  # a socket, such as that of a service manager, can't be opened again
        found = os.dup(descriptor)
        # The shell shares the option of a terminal that belongs to another user.
        if not os.isatty(found):
            os.set_blocking(found, False)
        return found


def _log_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    error = unraisable.exc_value
    _LOG.error("%s %r", unraisable.err_msg or "an error in", unraisable.object, exc_info=error)


def internal_error(error: Exception) -> InternalError:
    """Log a defect, and return an error that only has its id: details may contain users' texts."""
    error_id = uuid.uuid4().hex[:12]
    _LOG.error("error %s", error_id, exc_info=error)
    return InternalError(
        f"the server failed; its log has the details under {error_id}",
        metadata={"error_id": error_id},
    )
