"""Errors that users see.

::

    HallujudgeError
    ├── InvalidInputError       the input is invalid; the error lists every violation
    │   └── ArchiveError        a file of responses, references or ids is invalid
    ├── NotFoundError           a metric or a graph does not exist
    ├── UnsupportedError        this release does not support the request
    ├── UnauthenticatedError    the server does not know who calls: no key, or not a valid one
    ├── PermissionDeniedError   the caller's key does not allow the call
    ├── OverloadedError         the server is at its limit; the error has the time to wait
    ├── UnavailableError        the server or its judge cannot be reached
    ├── DeadlineError           the call exceeded its deadline
    ├── CancelledError          the call was cancelled
    ├── VersionMismatchError    client and server have incompatible versions
    ├── MissingExtraError       an optional part is not installed
    ├── OutputError             a result cannot be written
    └── InternalError           a defect of Hallujudge; the server's log has the details by id

Programs read the fields, people the message. ``reason`` is fixed and never reused, ``metadata``
has the variable parts of the message, and ``retry_after`` is in seconds. ``REASONS`` maps each
reason to its gRPC code and class, on clients and servers.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

DOMAIN = "hallujudge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A field of the input that is invalid."""

    field: str
    """The field, such as ``items[3].id``."""
    description: str
    """What is wrong with it and what to do."""


class HallujudgeError(Exception):
    """Base class of the errors that Hallujudge raises.

    Args:
        message: What is wrong and what to do.
        reason: A key of ``REASONS``; by default that of the class.
        metadata: The variable parts of the message, by name.
        violations: The fields that are invalid.
        retry_after: Seconds to wait before another attempt, if known.
    """

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

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows of the error: a sentence, for the cell is what to change."""
        # IPython calls this in place of its own traceback, which shows every frame of this package.
        return [f"{type(self).__name__}: {self}"]


class InvalidInputError(HallujudgeError):
    """The input is invalid."""

    default_reason = "INVALID_INPUT"


class ArchiveError(InvalidInputError):
    """A file of responses, references or ids is invalid."""

    default_reason = "ARCHIVE_INVALID"

    @classmethod
    @contextmanager
    def of_content(cls, what: str, remedy: str) -> Iterator[None]:
        """Say what content is not, where a block that reads it meets another form.

        Args:
            what: The place and what its content is not.
            remedy: What to do, as the end of the sentence.

        Raises:
            ArchiveError: The block met another form.
        """
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as err:
            raise cls(f"{what}: {fault_of(err)}; {remedy}") from err


class NotFoundError(HallujudgeError):
    """A metric or a graph does not exist."""

    default_reason = "NOT_FOUND"


class UnsupportedError(HallujudgeError):
    """This release does not support the request."""

    default_reason = "UNSUPPORTED"


class UnauthenticatedError(HallujudgeError):
    """The server does not know who calls."""

    default_reason = "KEY_INVALID"


class PermissionDeniedError(HallujudgeError):
    """The caller may not make this call."""

    default_reason = "SCOPE_MISSING"


class OverloadedError(HallujudgeError):
    """The server, or the caller's key, is at a limit."""

    default_reason = "SERVER_OVERLOADED"


class UnavailableError(HallujudgeError):
    """The server or its judge cannot be reached."""

    default_reason = "SERVER_UNREACHABLE"


class DeadlineError(HallujudgeError):
    """The call exceeded its deadline."""

    default_reason = "DEADLINE_EXCEEDED"


class CancelledError(HallujudgeError):
    """The call was cancelled."""

    default_reason = "CALL_CANCELLED"


class VersionMismatchError(HallujudgeError):
    """Client and server have incompatible versions."""

    default_reason = "VERSION_MISMATCH"


class MissingExtraError(HallujudgeError):
    """An optional part is not installed."""

    default_reason = "EXTRA_MISSING"

    @classmethod
    @contextmanager
    def unless_installed(cls, feature: str, extra: str) -> Iterator[None]:
        """Name the extra that a feature needs if a block can't import it.

        Raises:
            MissingExtraError: The block can't import a package.
        """
        try:
            yield
        except ImportError as err:
            raise cls.of(feature, extra) from err

    @classmethod
    def of(cls, feature: str, extra: str) -> MissingExtraError:
        """Return the error for a feature whose extra is not installed."""
        from . import install_advice

        return cls(
            f"{feature} needs the extra {extra}: {install_advice(extra)}",
            metadata={"feature": feature, "extra": extra},
        )

    @classmethod
    @contextmanager
    def unless_package(cls, package: str) -> Iterator[None]:
        """Name the package of another project that a block can't import.

        Raises:
            MissingExtraError: It is not installed.
        """
        try:
            yield
        # Not ImportError: an installed package that can't be imported is not reported as missing.
        except ModuleNotFoundError as err:
            raise cls(
                f"{package} is not installed: pip install {package}", metadata={"feature": package}
            ) from err

    @classmethod
    @contextmanager
    def unless_whole(cls, feature: str) -> Iterator[None]:
        """Name the package that a feature needs if a block can't import its modules.

        Raises:
            MissingExtraError: Only the client is installed.
        """
        try:
            yield
        except ImportError as err:
            from . import is_whole

            if is_whole():
                raise
            raise cls.without_whole(feature) from err

    @classmethod
    def without_whole(cls, feature: str) -> MissingExtraError:
        """Return the error for a feature that the client alone does not have."""
        from . import CLIENT, WHOLE

        return cls(
            f"{feature} needs the package {WHOLE}, and only {CLIENT} is installed: "
            f"pip install {WHOLE}",
            metadata={"feature": feature, "package": WHOLE},
        )


class OutputError(HallujudgeError):
    """A result cannot be written."""

    default_reason = "OUTPUT_FAILED"

    @classmethod
    def of(cls, path: Path, error: OSError, remedy: str) -> Self:
        """Return the error of a file that can't be written.

        Args:
            path: The file.
            error: The system's error.
            remedy: What to do, as the end of the sentence.
        """
        folder = next((each for each in path.parents if each.exists()), path.parent)
        # The system's message is that the folder exists, or only that something is not a folder.
        reason = error.strerror or str(error) if folder.is_dir() else f"{folder} is not a folder"
        return cls(f"can't write {path}: {reason}; {remedy}")


class InternalError(HallujudgeError):
    """A defect of Hallujudge."""

    default_reason = "INTERNAL"

    def _render_traceback_(self) -> list[str]:
        """Return the whole traceback, which a report of the defect needs."""
        return "".join(traceback.format_exception(self)).splitlines()


class ReasonRow(NamedTuple):
    """The gRPC code and the Python class of a reason."""

    code: str
    """The name of the gRPC status code."""
    error: type[HallujudgeError]
    """The class that clients and servers raise."""


REASONS: Mapping[str, ReasonRow] = {
    "INVALID_INPUT": ReasonRow("INVALID_ARGUMENT", InvalidInputError),
    "ARCHIVE_INVALID": ReasonRow("INVALID_ARGUMENT", ArchiveError),
    "GRAPH_INVALID": ReasonRow("INVALID_ARGUMENT", InvalidInputError),
    "NOT_FOUND": ReasonRow("NOT_FOUND", NotFoundError),
    "METRIC_UNKNOWN": ReasonRow("NOT_FOUND", NotFoundError),
    "GRAPH_UNKNOWN": ReasonRow("NOT_FOUND", NotFoundError),
    "UNSUPPORTED": ReasonRow("UNIMPLEMENTED", UnsupportedError),
    "MALFORMED_MESSAGE": ReasonRow("INVALID_ARGUMENT", InvalidInputError),
    "MODEL_NOT_OFFERED": ReasonRow("NOT_FOUND", NotFoundError),
    "KEY_MISSING": ReasonRow("UNAUTHENTICATED", UnauthenticatedError),
    "KEY_INVALID": ReasonRow("UNAUTHENTICATED", UnauthenticatedError),
    "SCOPE_MISSING": ReasonRow("PERMISSION_DENIED", PermissionDeniedError),
    "KEY_RATE_LIMIT": ReasonRow("RESOURCE_EXHAUSTED", OverloadedError),
    "KEY_CONCURRENCY_LIMIT": ReasonRow("RESOURCE_EXHAUSTED", OverloadedError),
    "MEMORY_FULL": ReasonRow("RESOURCE_EXHAUSTED", OverloadedError),
    "SERVER_OVERLOADED": ReasonRow("RESOURCE_EXHAUSTED", OverloadedError),
    # gRPC itself uses this code for messages that are too large.
    "MESSAGE_TOO_LARGE": ReasonRow("RESOURCE_EXHAUSTED", InvalidInputError),
    "SERVER_UNREACHABLE": ReasonRow("UNAVAILABLE", UnavailableError),
    "SERVER_DRAINING": ReasonRow("UNAVAILABLE", UnavailableError),
    "TOO_COSTLY": ReasonRow("INVALID_ARGUMENT", InvalidInputError),
    "DEADLINE_EXCEEDED": ReasonRow("DEADLINE_EXCEEDED", DeadlineError),
    "STREAM_IDLE": ReasonRow("DEADLINE_EXCEEDED", DeadlineError),
    "CALL_TOO_LONG": ReasonRow("DEADLINE_EXCEEDED", DeadlineError),
    "CALL_CANCELLED": ReasonRow("CANCELLED", CancelledError),
    # Not UNAUTHENTICATED, which would blame the caller's key and not the judge's.
    "JUDGE_AUTH_FAILED": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    "JUDGE_MODEL_UNKNOWN": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    "JUDGE_OTHER_MODEL": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    "JUDGE_REQUEST_REFUSED": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    # Not UNAVAILABLE, for which gRPC clients would repeat the whole run automatically.
    "JUDGE_NO_PROGRESS": ReasonRow("ABORTED", UnavailableError),
    "JUDGE_NOT_CONFIGURED": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    "CACHE_INVALID": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    "JUDGE_UNREACHABLE": ReasonRow("UNAVAILABLE", UnavailableError),
    "EXTRACTION_FAILED": ReasonRow("UNAVAILABLE", UnavailableError),
    "JOB_UNKNOWN": ReasonRow("NOT_FOUND", NotFoundError),
    "JOB_REQUEST_DIFFERS": ReasonRow("ALREADY_EXISTS", InvalidInputError),
    "JOB_TOO_LARGE": ReasonRow("INVALID_ARGUMENT", InvalidInputError),
    "JOB_NOT_OPEN": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    "JOB_NOT_FINISHED": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    "JOB_CHANGED": ReasonRow("FAILED_PRECONDITION", InvalidInputError),
    "JOB_LIMIT": ReasonRow("RESOURCE_EXHAUSTED", OverloadedError),
    "JOBS_FULL": ReasonRow("RESOURCE_EXHAUSTED", OverloadedError),
    "SPENDING_UNAVAILABLE": ReasonRow("UNAVAILABLE", UnavailableError),
    "SERVER_DIED": ReasonRow("UNAVAILABLE", UnavailableError),
    "JOBS_LOST": ReasonRow("UNAVAILABLE", UnavailableError),
    "JOBS_UNAVAILABLE": ReasonRow("UNAVAILABLE", UnavailableError),
    "VERSION_MISMATCH": ReasonRow("FAILED_PRECONDITION", VersionMismatchError),
    "EXTRA_MISSING": ReasonRow("FAILED_PRECONDITION", MissingExtraError),
    "OUTPUT_FAILED": ReasonRow("INTERNAL", OutputError),
    "INTERNAL": ReasonRow("INTERNAL", InternalError),
}
"""Every reason. Reasons are public API: they may be added, but never changed or reused."""


_MOST_CHARS = 80
# Messages of Python itself, of which only the quoted value may reach a user.
_NOT_A_NUMBER = re.compile(r"(?:could not convert|invalid literal).*?: (?P<value>'.*)")
_NOT_A_CHOICE = re.compile(r"(?P<value>.+) is not a valid \w+")
_NOT_FORMATTED = re.compile(r"(?:Cannot specify|Unknown format code|Invalid format specifier) .*")
# Python limits integers to a few thousand digits, and advises to change that limit.
_TOO_LONG = re.compile(r"Exceeds the limit \(\d+ digits\) for integer string conversion.*")
TOO_MANY_DIGITS = "a number has too many digits"
_OTHER_KIND = "a value in it is of another kind than expected"


def fault_of(error: Exception) -> str:
    """Return what is wrong with content, from the error of the code that read it.

    Args:
        error: What was raised; a ``ValueError`` of our own keeps its message.
    """
    match error:
        # Before ValueError, of which this and UnicodeDecodeError are kinds.
        case JSONDecodeError():
            return f"it is not JSON: {error.msg.lower()} in line {error.lineno}"
        case KeyError():
            return f"it has no {error.args[0]!r:.{_MOST_CHARS}}"
        case RecursionError():
            return "it is nested too deeply"
        case UnicodeDecodeError():
            return "it is not UTF-8 text"
        case ValueError():
            return _plain(str(error))[:_MOST_CHARS]
        case _:
            return _OTHER_KIND


def _plain(message: str) -> str:
    if found := _NOT_A_NUMBER.match(message):
        return f"{found['value']} is not a number"
    if found := _NOT_A_CHOICE.fullmatch(message):
        return f"{found['value']} is not a known value"
    if _NOT_FORMATTED.fullmatch(message):
        return _OTHER_KIND
    if _TOO_LONG.fullmatch(message):
        return TOO_MANY_DIGITS
    return message
