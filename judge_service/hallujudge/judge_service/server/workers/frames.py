"""What a server and its worker processes send each other."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from ...errors import REASONS, HallujudgeError, Violation

__all__ = [
    "LENGTH_BYTES",
    "Failure",
    "Hello",
    "Reply",
    "Task",
    "WorkerSettings",
    "decode_hello",
    "decode_reply",
    "decode_settings",
    "decode_task",
    "framed",
]

LENGTH_BYTES = 4
"""Size of the length before each frame, little-endian."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What a worker needs to know. It has no keys, addresses or files of the server."""

    max_message_bytes: int
    """Most bytes of a message."""
    max_batch_items: int
    """Most items of a message."""
    max_report_groups: int
    """Most groups of a report, for each field."""
    max_graph_bytes: int
    """Memory for the graphs that callers send."""
    max_seconds: float
    """Most processor time of a task."""
    log_level: str = "info"
    """The lowest level of messages that are logged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Work for a worker."""

    kind: str
    """What to do; see :class:`Work`."""
    parts: tuple[bytes, ...]
    """Messages as they came in."""
    report: bool = False
    """Whether a batch is for a report."""
    memory: int | None = None
    """What may be made of the messages, in bytes; None: there is no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The first frame of a worker: it is ready."""

    pid: int
    """Its process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error of a worker, for the caller."""

    reason: str
    """A key of ``REASONS``."""
    message: str
    """What is wrong and what to do."""
    metadata: dict[str, str] = field(default_factory=dict)
    """The variable parts of the message."""
    violations: tuple[tuple[str, str], ...] = ()
    """The fields that are invalid, each with its description."""
    retry_after: float | None = None
    """Seconds to wait before another attempt."""

    @classmethod
    def of(cls, error: HallujudgeError) -> Failure:
        """Return an error as it is sent."""
        return cls(
            reason=error.reason,
            message=error.message,
            metadata=error.metadata,
            violations=tuple((one.field, one.description) for one in error.violations),
            retry_after=error.retry_after,
        )

    def error(self) -> HallujudgeError:
        """Return the error."""
        return REASONS[self.reason].error(
            self.message,
            reason=self.reason,
            metadata=self.metadata,
            violations=tuple(
                Violation(field=name, description=text) for name, text in self.violations
            ),
            retry_after=self.retry_after,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What became of a task."""

    parts: tuple[bytes, ...] = ()
    """Messages to send, and what the server keeps for the report."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """Reason -> number of unscored items; the empty reason has the scored items."""
    reasons: tuple[str, ...] = ()
    """Why each item of a job is unscored; empty: it is scored."""
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Field to report groups by -> values in a batch."""
    needs: int = 0
    """The memory that the messages need, if they need more than the task allows."""
    failure: Failure | None = None
    """Why the task failed."""
    seconds: float = 0.0
    """The processor time that it took."""
    last: bool = False
    """Whether the worker ends after it."""


_encoder = msgspec.msgpack.Encoder()


def framed(frame: WorkerSettings | Task | Hello | Reply) -> bytearray:
    """Return the bytes of a frame, with their length in front."""
    data = bytearray(LENGTH_BYTES)
    _encoder.encode_into(frame, data, LENGTH_BYTES)
    data[:LENGTH_BYTES] = (len(data) - LENGTH_BYTES).to_bytes(LENGTH_BYTES, "little")
    return data


decode_task = msgspec.msgpack.Decoder(Task).decode
decode_hello = msgspec.msgpack.Decoder(Hello).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode
decode_settings = msgspec.msgpack.Decoder(WorkerSettings).decode
