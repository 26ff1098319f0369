"""Tables of the jobs' database, its errors, and the lock of the server that runs its jobs."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import sqlalchemy as sa
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    select,
)
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from ..errors import HallujudgeError, OverloadedError, UnavailableError
from .job import Job, JobState, Problem

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


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


SCHEMA_VERSION = 1
"""Raised when older releases could misread what newer ones write."""

metadata = MetaData()
"""All tables."""

# SQLite numbers rows by itself only in a column of the type INTEGER.
_Number = BigInteger().with_variant(Integer, "sqlite")

versions = Table("hallujudge_jobs_version", metadata, Column("version", Integer, primary_key=True))
"""One row: the version of these tables."""

jobs = Table(
    "hallujudge_jobs",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("id", String(40), nullable=False, unique=True),
    Column("owner", String(200), nullable=False),
    Column("caller", Text, nullable=False),
    Column("request_id", String(200), nullable=False),
    Column("state", String(20), nullable=False, index=True),
    Column("spec", LargeBinary, nullable=False),
    Column("header", LargeBinary, nullable=False),
    Column("note", Text, nullable=False),
    Column("report", LargeBinary),
    Column("items", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("scored", BigInteger, nullable=False),
    Column("unscored", BigInteger, nullable=False),
    Column("problem", String(60), nullable=False),
    Column("problem_detail", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    # When the caller last added items, or the job ended: what retention counts from.
    Column("touched_at", Double, nullable=False),
    Column("finished_at", Double),
    UniqueConstraint("owner", "request_id"),
    sqlite_autoincrement=True,
)
"""One row for each job."""

items = Table(
    "hallujudge_job_items",
    metadata,
    Column("job", _Number, ForeignKey(jobs.c.number, ondelete="CASCADE"), primary_key=True),
    Column("position", _Number, primary_key=True),
    Column("item", LargeBinary, nullable=False),
    # All three are NULL until the item is answered: an unanswered item is never an unscored one.
    Column("scored", Boolean),
    Column("reason", String(60)),
    Column("result", LargeBinary),
)
"""One row for each item of a job."""


class RunnerLock(Protocol):
    """A lock that at most one server holds. Every method blocks."""

    def acquire(self) -> bool:
        """Take the lock, or check that it is still held; return whether it is."""
        ...

    def release(self) -> None:
        """Let another server take the lock."""
        ...


class FileLock:
    """A lock beside a file; the system releases it when the process ends.

    Args:
        path: The lock's own file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Take the lock, or check that it is still held; return whether it is."""
        if self._descriptor is not None:
            return True
        with database_errors():
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Let another server take the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class ServerLock:
    """A lock of a PostgreSQL server; it releases the lock when the connection ends.

    Args:
        engine: Makes connections.
        key: The lock's number.
    """

    def __init__(self, engine: Engine, key: int) -> None:
        self._engine = engine
        self._key = key
        self._connection: Connection | None = None

    def acquire(self) -> bool:
        """Take the lock, or check that it is still held; return whether it is."""
        if self._connection is not None:
            try:
                self._connection.execute(select(1))
                return True
            except SQLAlchemyError:
                # With the connection the server has released the lock.
                self.release()
        with database_errors():
            connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            # Out of the pool: no other user may get the connection that holds the lock.
            connection.detach()
            # Services may share a server, each with a schema of its own.
            schema = func.hashtext(func.current_schema())
            try:
                taken = connection.scalar(select(func.pg_try_advisory_lock(self._key, schema)))
            except BaseException:
                connection.close()
                raise
            if taken:
                self._connection = connection
                return True
            connection.close()
        return False

    def release(self) -> None:
        """Let another server take the lock."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


_NAMES = (
    *("number", "id", "owner", "caller", "request_id", "state"),
    *("items", "bytes", "scored", "unscored"),
    *("problem", "problem_detail", "created_at", "finished_at"),
)
LISTED = tuple(jobs.c[name] for name in _NAMES)
"""Columns of a job without its spec, which may hold a synonym graph."""
WHOLE: tuple[sa.Column[Any], ...] = (*LISTED, jobs.c.spec)
"""Columns of a job."""


def job_of(row: Any) -> Job:
    """Return the job of a row of :data:`LISTED` or :data:`WHOLE`."""
    values = {name: getattr(row, name) for name in _NAMES if not name.startswith("problem")}
    return Job(
        **values | {"state": JobState(row.state)},
        problem=Problem(reason=row.problem, detail=row.problem_detail),
        spec=bytes(getattr(row, "spec", b"")),
    )


def fitting(sizes: Iterable[int | None], max_bytes: int) -> int:
    """Return how many rows from the first on fit; the first one always does.

    Args:
        sizes: The size of each row; None ends the page.
        max_bytes: The most bytes.
    """
    count = total = 0
    for size in sizes:
        if size is None or (count and total + size > max_bytes):
            break
        total += size
        count += 1
    return count
