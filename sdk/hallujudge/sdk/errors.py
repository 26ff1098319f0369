"""Errors that the SDK raises: the same classes whether scoring is embedded or remote.

The tree is drawn in :mod:`hallujudge.judge_service.errors`.
"""

from hallujudge.judge_service.errors import (
    ArchiveError,
    CancelledError,
    DeadlineError,
    HallujudgeError,
    InternalError,
    InvalidInputError,
    MissingExtraError,
    NotFoundError,
    OutputError,
    OverloadedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
    UnsupportedError,
    VersionMismatchError,
    Violation,
)

__all__ = [
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
    "PermissionDeniedError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnsupportedError",
    "VersionMismatchError",
    "Violation",
]
