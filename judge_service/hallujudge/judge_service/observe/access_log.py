"""The access log: one line of JSON for each call, without responses and keys."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime

from ..errors import OutputError
from .line_writer import LineWriter
from .recorder import CallRecord, Recorder

_LOG = logging.getLogger(__name__)
# Errors may quote what callers sent.
_MAX_ERROR = 500
_STANDARD_OUTPUT = 1
# What a line has of a call as it is.
_COPIED = (
    *("request_id", "key", "key_name", "peer", "method", "metric"),
    *("items", "scored", "unscored"),
)


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
        self._writer = LineWriter(_opened(target), "access log", _complain)

    @property
    def dropped(self) -> int:
        """How many lines were lost."""
        return self._writer.dropped

    def call_ended(self, call: CallRecord) -> None:
        """Write a call's line, soon."""
        super().call_ended(call)
        self._writer.put(access_line(call, errors=self._errors))

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._writer.close()


def _complain(problem: str) -> None:
    _LOG.error("the access log loses lines: %s", problem)


def access_line(call: CallRecord, *, errors: bool = False) -> str:
    """Return the line of a call. JSON escapes line breaks, so that a value cannot add a line."""
    fields: dict[str, object] = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        **{name: getattr(call, name) for name in _COPIED},
        "seconds": round(call.seconds, 6),
        "waited_seconds": round(call.waited_seconds, 6),
        "status": call.status,
    }
    if call.trace_id:
        fields["trace_id"] = call.trace_id
    if errors and call.error:
        fields["error"] = call.error[:_MAX_ERROR]
    return json.dumps(fields)


def _opened(target: str) -> int:
    if target == "-":
        return _STANDARD_OUTPUT
    try:
        return os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as err:
        raise OutputError(
            f"the access log {target!r} can't be written ({err.strerror or err}); set access_log "
            "to a file in a folder that the server may write, or to -"
        ) from err
