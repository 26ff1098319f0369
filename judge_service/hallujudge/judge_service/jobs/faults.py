"""Errors of the jobs' database as the errors that callers see."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from ..errors import HallujudgeError, OverloadedError, UnavailableError

__all__ = ["database_errors", "is_full"]

_LOG = logging.getLogger(__name__)
_RETRY_SECONDS = 2.0

# https://www.sqlite.org/rescode.html, and appendix A of PostgreSQL's manual.
_SQLITE_FULL = {sqlite3.SQLITE_FULL}
_POSTGRES_FULL = {"53100", "53200"}


@contextmanager
def database_errors() -> Iterator[None]:
    """Convert what the database raises, except violated constraints.

    Raises:
        OverloadedError: The disk of the database is full.
        UnavailableError: The database can't be used now, for another reason.
    """
    try:
        yield
    except IntegrityError:
        raise
    except (SQLAlchemyError, OSError) as err:
        raise _converted(err) from err


def is_full(error: DBAPIError) -> bool:
    """Return whether a database refused a change because its disk is full."""
    origin = error.orig
    if isinstance(origin, sqlite3.Error):
        return getattr(origin, "sqlite_errorcode", None) in _SQLITE_FULL
    return getattr(origin, "sqlstate", None) in _POSTGRES_FULL


def _converted(error: Exception) -> HallujudgeError:
    # What a database says may hold parts of items, or its address: it goes to the log only.
    first = str(error).partition("\n")[0][:500]
    _LOG.warning("the database of jobs can't be used: %s", first)
    if isinstance(error, DBAPIError) and is_full(error):
        return OverloadedError(
            "the disk of the server's database of jobs is full; make room there, and repeat the "
            "request",
            reason="JOBS_FULL",
            retry_after=_RETRY_SECONDS,
        )
    return UnavailableError(
        "the server's database of jobs can't be used now: it is locked or can't be reached; the "
        f"server's log says why. Try again in {_RETRY_SECONDS:g} s",
        reason="JOBS_UNAVAILABLE",
        retry_after=_RETRY_SECONDS,
    )
