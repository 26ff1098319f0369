"""Errors that the SDK raises: the same classes whether scoring is embedded or remote.

The tree is drawn in :mod:`hallujudge.judge_service.errors`.
"""

from hallujudge.judge_service.errors import ArchiveError as ArchiveError
from hallujudge.judge_service.errors import CancelledError as CancelledError
from hallujudge.judge_service.errors import DeadlineError as DeadlineError
from hallujudge.judge_service.errors import HallujudgeError as HallujudgeError
from hallujudge.judge_service.errors import InternalError as InternalError
from hallujudge.judge_service.errors import InvalidInputError as InvalidInputError
from hallujudge.judge_service.errors import MissingExtraError as MissingExtraError
from hallujudge.judge_service.errors import NotFoundError as NotFoundError
from hallujudge.judge_service.errors import OutputError as OutputError
from hallujudge.judge_service.errors import OverloadedError as OverloadedError
from hallujudge.judge_service.errors import PermissionDeniedError as PermissionDeniedError
from hallujudge.judge_service.errors import UnauthenticatedError as UnauthenticatedError
from hallujudge.judge_service.errors import UnavailableError as UnavailableError
from hallujudge.judge_service.errors import UnsupportedError as UnsupportedError
from hallujudge.judge_service.errors import VersionMismatchError as VersionMismatchError
from hallujudge.judge_service.errors import Violation as Violation

__all__ = [name for name in dir() if not name.startswith("_")]
