"""The access log: one line of JSON for each call, without responses and keys."""

from __future__ import annotations

import json
import logging
import queue
import sys
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path

from ..errors import OutputError
from .recorder import Recorder
from .values import CallRecord

__all__ = ["AccessLog", "access_line"]

_LOG = logging.getLogger(__name__)
_MAX_ERROR = 500
# Lines that wait for a slow disk; more are dropped, because calls must not wait for it.
_MAX_LINES = 10_000


class AccessLog(Recorder):
    """Writes a line for each call, in a thread of its own.

    Args:
        target: A file, or ``-`` for standard output.
        errors: Whether lines hold the texts of errors, which may quote what callers sent.

    Raises:
        OutputError: The file cannot be written.
    """

    def __init__(self, target: str, *, errors: bool = False) -> None:
        self._errors = errors
        lines: queue.Queue[logging.LogRecord] = queue.Queue(_MAX_LINES)
        self._file = _handler(target)
        self._listener = QueueListener(lines, self._file)
        self._queue = _DroppingHandler(lines)
        self._listener.start()

    def call_ended(self, call: CallRecord) -> None:
        """Write a call's line."""
        super().call_ended(call)
        line = access_line(call, errors=self._errors)
        self._queue.handle(logging.LogRecord("access", logging.INFO, __file__, 0, line, None, None))

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._listener.stop()
        self._file.close()


class _DroppingHandler(QueueHandler):
    """Drops lines that find no room, and says so once."""

    dropped = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802, ARG002 - logging's name
        if not self.dropped:
            self.dropped = True
            _LOG.error("the access log is too slow; lines are dropped")


def access_line(call: CallRecord, *, errors: bool = False) -> str:
    """Return the line of a call. JSON escapes line breaks, so that a value cannot add a line."""
    fields: dict[str, object] = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "request_id": call.request_id,
        "key": call.key,
        "peer": call.peer,
        "method": call.method,
        "metric": call.metric,
        "items": call.items,
        "scored": call.outcomes["scored"],
        "unscored": call.outcomes["unscored"],
        "seconds": round(call.seconds, 6),
        "waited_seconds": round(call.waited_seconds, 6),
        "status": call.status,
    }
    if call.trace_id:
        fields["trace_id"] = call.trace_id
    if errors and call.error:
        fields["error"] = call.error[:_MAX_ERROR]
    return json.dumps(fields)


def _handler(target: str) -> logging.Handler:
    if target == "-":
        return logging.StreamHandler(sys.stdout)
    try:
        return logging.FileHandler(Path(target), encoding="utf-8")
    except OSError as err:
        raise OutputError(
            f"the access log {target!r} can't be written ({err.strerror or err}); set access_log "
            "to a file in a folder that the server may write, or to -"
        ) from err
