"""The access log: one line of JSON for each call, without responses and keys."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from ..errors import OutputError
from .recorder import CallRecord, Recorder

_LOG = logging.getLogger(__name__)
# Errors may quote what callers sent.
_MAX_ERROR = 500
# Lines that wait for a slow disk; more are dropped, because calls must not wait for it.
_MAX_LINES = 10_000
# Lines are written together: a write for each would take longer than a small call.
_WRITE_SECONDS = 0.1


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
        self._lines: deque[str] = deque()
        self._file = _opened(target)
        self._complained = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write, name="access log", daemon=True)
        self._thread.start()

    def call_ended(self, call: CallRecord) -> None:
        """Write a call's line, soon."""
        super().call_ended(call)
        if len(self._lines) < _MAX_LINES:
            # The thread is not woken: that would cost a third of a small call's time.
            self._lines.append(access_line(call, errors=self._errors))
        else:
            self._complain("it is too slow")

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._closing.set()
        self._thread.join()
        if self._file is not sys.stdout:
            with suppress(OSError):
                self._file.close()

    def _write(self) -> None:
        while not self._closing.wait(_WRITE_SECONDS):
            self._write_waiting()
        self._write_waiting()

    def _write_waiting(self) -> None:
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if not lines:
            return
        try:
            self._file.write("".join(f"{line}\n" for line in lines))
            self._file.flush()
        except OSError as err:
            self._complain(err.strerror or str(err))

    def _complain(self, problem: str) -> None:
        if not self._complained:
            self._complained = True
            _LOG.error("the access log loses lines: %s", problem)


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
        "scored": call.scored,
        "unscored": call.unscored,
        "seconds": round(call.seconds, 6),
        "waited_seconds": round(call.waited_seconds, 6),
        "status": call.status,
    }
    if call.trace_id:
        fields["trace_id"] = call.trace_id
    if errors and call.error:
        fields["error"] = call.error[:_MAX_ERROR]
    return json.dumps(fields)


def _opened(target: str) -> TextIO:
    if target == "-":
        return sys.stdout
    try:
        return Path(target).open("a", encoding="utf-8")
    except OSError as err:
        raise OutputError(
            f"the access log {target!r} can't be written ({err.strerror or err}); set access_log "
            "to a file in a folder that the server may write, or to -"
        ) from err
