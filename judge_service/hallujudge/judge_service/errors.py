"""Errors that reach users, drawn as the tree they are.

    HallujudgeError
    ├── InvalidInputError       what was sent can't be used; every violation is listed
    │   └── ArchiveError        a file of responses, references or ids can't be used
    ├── NotFoundError           a metric or a graph that is not there
    ├── UnsupportedError        something this release does not do
    ├── OverloadedError         the server has no room now; it says when to come back
    ├── UnavailableError        the server or its judge can't be reached
    ├── DeadlineError           the call took longer than it was given
    ├── CancelledError          the call was called off
    ├── VersionMismatchError    client and server are of releases that don't understand each other
    ├── MissingExtraError       a part that is not installed
    ├── OutputError             a result can't be written
    └── InternalError           a defect of ours; the id is found in the server's log

Meaning travels in fields: ``reason`` is fixed and never reused, ``metadata`` holds whatever varies
in the message, ``retry_after`` is in seconds. The table ``REASONS`` says which gRPC code and class
a reason belongs to; both directions of the wire read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

__all__ = [
    "DOMAIN",
    "REASONS",
    "ArchiveError",
    "CancelledError",
    "DeadlineError",
    "HallujudgeError",
    "InternalError",
    "InvalidInputError",
    "MissingExtraError",
    "NotFoundError",
    "OutputError",
    "OverloadedError",
    "ReasonRow",
    "UnavailableError",
    "UnsupportedError",
    "VersionMismatchError",
    "Violation",
]

DOMAIN = "hallujudge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One thing that is wrong with what was sent."""

    field: str
    """Where it stands, such as ``items[3].id``."""
    description: str
    """What is wrong with it and what to do."""


class HallujudgeError(Exception):
    """Root of everything that Hallujudge raises on purpose."""

    default_reason: ClassVar[str] = "INTERNAL"

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
        violations: tuple[Violation, ...] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or self.default_reason
        self.metadata: dict[str, str] = dict(metadata or {})
        self.violations = violations
        self.retry_after = retry_after


class InvalidInputError(HallujudgeError):
    """What was sent can't be used."""

    default_reason = "INVALID_INPUT"


class ArchiveError(InvalidInputError):
    """A file of responses, references or ids can't be used."""

    default_reason = "ARCHIVE_INVALID"


class NotFoundError(HallujudgeError):
    """A metric or a graph that is not there."""

    default_reason = "NOT_FOUND"


class UnsupportedError(HallujudgeError):
    """Something this release does not do."""

    default_reason = "UNSUPPORTED"


class OverloadedError(HallujudgeError):
    """The server has no room now."""

    default_reason = "SERVER_OVERLOADED"


class UnavailableError(HallujudgeError):
    """The server or its judge can't be reached."""

    default_reason = "SERVER_UNREACHABLE"


class DeadlineError(HallujudgeError):
    """The call took longer than it was given."""

    default_reason = "DEADLINE_EXCEEDED"


class CancelledError(HallujudgeError):
    """The call was called off."""

    default_reason = "CALL_CANCELLED"


class VersionMismatchError(HallujudgeError):
    """Client and server are of releases that don't understand each other."""

    default_reason = "VERSION_MISMATCH"


class MissingExtraError(HallujudgeError):
    """A part that is not installed."""

    default_reason = "EXTRA_MISSING"

    @classmethod
    def of(cls, feature: str, extra: str) -> MissingExtraError:
        """The error for a feature whose extra is not installed."""
        from .extras import install_advice

        return cls(
            f"{feature} needs the extra {extra}: {install_advice(extra)}",
            metadata={"feature": feature, "extra": extra},
        )


class OutputError(HallujudgeError):
    """A result can't be written."""

    default_reason = "OUTPUT_FAILED"


class InternalError(HallujudgeError):
    """A defect of ours."""

    default_reason = "INTERNAL"


class ReasonRow(NamedTuple):
    """What a reason is on the wire and in Python."""

    code: str
    """Name of the canonical gRPC status code."""
    error: type[HallujudgeError]
    """The class raised on both sides."""


REASONS: Mapping[str, ReasonRow] = {
    "INVALID_INPUT": ReasonRow("INVALID_ARGUMENT", InvalidInputError),
    "ARCHIVE_INVALID": ReasonRow("INVALID_ARGUMENT", ArchiveError),
    "GRAPH_INVALID": ReasonRow("INVALID_ARGUMENT", InvalidInputError),
    "NOT_FOUND": ReasonRow("NOT_FOUND", NotFoundError),
    "METRIC_UNKNOWN": ReasonRow("NOT_FOUND", NotFoundError),
    "GRAPH_UNKNOWN": ReasonRow("NOT_FOUND", NotFoundError),
    "UNSUPPORTED": ReasonRow("UNIMPLEMENTED", UnsupportedError),
    "SERVER_OVERLOADED": ReasonRow("RESOURCE_EXHAUSTED", OverloadedError),
    "MESSAGE_TOO_LARGE": ReasonRow("RESOURCE_EXHAUSTED", InvalidInputError),
    "SERVER_UNREACHABLE": ReasonRow("UNAVAILABLE", UnavailableError),
    "SERVER_DRAINING": ReasonRow("UNAVAILABLE", UnavailableError),
    "DEADLINE_EXCEEDED": ReasonRow("DEADLINE_EXCEEDED", DeadlineError),
    "CALL_CANCELLED": ReasonRow("CANCELLED", CancelledError),
    "JUDGE_AUTH_FAILED": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    "JUDGE_MODEL_UNKNOWN": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    "JUDGE_OTHER_MODEL": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    # Not UNAVAILABLE: gRPC clients would repeat the run by themselves.
    "JUDGE_NO_PROGRESS": ReasonRow("ABORTED", UnavailableError),
    "JUDGE_NOT_CONFIGURED": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    "CACHE_INVALID": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    "JUDGE_UNREACHABLE": ReasonRow("UNAVAILABLE", UnavailableError),
    "EXTRACTION_FAILED": ReasonRow("UNAVAILABLE", UnavailableError),
    "VERSION_MISMATCH": ReasonRow("FAILED_PRECONDITION", VersionMismatchError),
    "EXTRA_MISSING": ReasonRow("FAILED_PRECONDITION", MissingExtraError),
    "OUTPUT_FAILED": ReasonRow("INTERNAL", OutputError),
    "INTERNAL": ReasonRow("INTERNAL", InternalError),
}
"""Every reason. A reason is API: it is added, never changed and never reused."""
