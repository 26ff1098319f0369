"""The jobs' database, SQLite in a file. Every method blocks."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ..errors import (
    HallujudgeError,
    InvalidInputError,
    MissingExtraError,
    OverloadedError,
    UnavailableError,
    VersionMismatchError,
)
from ..state_files import (
    DatabaseLostError,
    DatabaseWatch,
    Migrations,
    NewerFormatError,
    create_folder,
    create_private,
    identity,
    migrate,
)
from . import Job, JobState, Problem
from .tables import NAMES, metadata, versions

try:
    import sqlalchemy as sa
    from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
except ModuleNotFoundError as err:
    raise MissingExtraError.of("a database of jobs", "jobs") from err

_LOG = logging.getLogger(__name__)
# How long a writer waits for another one before the call fails as temporary.
_BUSY_SECONDS = 5.0
_CONNECTIONS = 8
_RETRY_SECONDS = 2.0
_LOST_SECONDS = 30.0
_WRITE = "hallujudge_write"

SCHEMA_VERSION = 1
"""Raised when older releases could misread what newer ones write."""

# New tables need none.
MIGRATIONS: Migrations = {}


class Database:
    """Connections to the jobs' database, with its tables.

    Args:
        address: A file, which is created if it does not exist.
        busy_seconds: How long a lock of another program is waited for.

    Raises:
        InvalidInputError: The address or the file can't be used.
        VersionMismatchError: A newer release wrote the tables.
        UnavailableError: The database can't be used now.
    """

    def __init__(self, address: str, *, busy_seconds: float = _BUSY_SECONDS) -> None:
        self.address = address
        self._engine = _sqlite(address, busy_seconds)
        self._watch = DatabaseWatch("the database of jobs", Path(address))
        try:
            with database_errors():
                self._make_tables()
        except BaseException:
            self._engine.dispose()
            raise
        self.id = self._watch.id
        """The id of the database, which another one does not have."""

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Provide a connection in a transaction that reads.

        Raises:
            UnavailableError: The database can't be used now, or is no longer the one that was
                opened: what is written to it would be lost.
        """
        with database_errors(), self._begun(write=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Provide a connection in a transaction that writes; it is committed at the end.

        Raises:
            UnavailableError: As for :meth:`reading`.
        """
        with database_errors():
            with self._begun(write=True) as connection:
                yield connection
                writes = self._watch.count(connection.exec_driver_sql)
            self._watch.committed(writes)

    @contextmanager
    def _begun(self, *, write: bool) -> Iterator[sa.Connection]:
        # A new connection would open the file that has taken the place of a deleted one.
        self._watch.check_file()
        # Read first: another thread may write while this transaction begins.
        before = self._watch.writes
        with self._engine.connect() as made, _begin(made, write=write) as connection:
            self._watch.check(connection.exec_driver_sql, before)
            yield connection

    def runner_lock(self) -> RunnerLock:
        """Return the lock of the server that runs the jobs of this database."""
        return RunnerLock(Path(f"{self.address}.lock"))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _make_tables(self) -> None:
        with self._engine.connect() as made, _begin(made, write=True) as connection:
            versions.create(connection, checkfirst=True)
            found = connection.scalar(sa.select(sa.func.max(versions.c.version)))
            if found is None:
                connection.execute(versions.insert().values(version=SCHEMA_VERSION))
            elif found != SCHEMA_VERSION:
                self._migrate(connection, found)
            metadata.create_all(connection)
            self._watch.begin(connection.exec_driver_sql)

    def _migrate(self, connection: sa.Connection, found: int) -> None:
        try:
            migrate(connection.exec_driver_sql, found, SCHEMA_VERSION, MIGRATIONS)
        except NewerFormatError as err:
            raise VersionMismatchError(f"the database of jobs can't be used: {err}") from err
        connection.execute(versions.update().values(version=SCHEMA_VERSION))


@contextmanager
def _begin(connection: sa.Connection, *, write: bool) -> Iterator[sa.Connection]:
    with connection.execution_options(**{_WRITE: write}).begin():
        yield connection


def _sqlite(address: str, busy_seconds: float) -> sa.Engine:
    if "://" in address:
        scheme = address.partition("://")[0]
        raise InvalidInputError(
            f"jobs_database is an address ({scheme}://...), but jobs are kept in a file; name the "
            "file, or leave the setting out for jobs.sqlite in data_folder"
        )
    path = Path(address)
    try:
        create_folder(path.parent)
        create_private(path)
        with closing(sqlite3.connect(path, timeout=busy_seconds)) as probe:
            probe.execute("PRAGMA journal_mode = WAL").fetchone()
    except sqlite3.OperationalError as err:
        if err.sqlite_errorcode not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise _unusable(path, err) from err
    except (sqlite3.DatabaseError, OSError) as err:
        raise _unusable(path, err) from err
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        connect_args={"timeout": busy_seconds, "check_same_thread": False},
        pool_size=_CONNECTIONS,
    )
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _unusable(path: Path, error: Exception) -> HallujudgeError:
    return InvalidInputError(
        f"jobs_database {str(path)!r} can't be used: {error}; name another file, or move this one "
        "away"
    )


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # SQLAlchemy begins transactions, see _begin_sqlite; the driver must not.
    connection.isolation_level = None
    for pragma in ("foreign_keys = ON", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    # A transaction that first reads and then writes fails at once if another one wrote between.
    write = connection.get_execution_options().get(_WRITE)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


class RunnerLock:
    """A lock that at most one server holds: a file next to the database. Every method blocks.

    The system releases it when the process ends.

    Args:
        path: The lock's own file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._identity: tuple[int, int] | None = None

    def acquire(self) -> bool:
        """Take the lock, or check that it is still held; return whether it is."""
        if self._descriptor is not None and identity(self._path) == self._identity:
            return True
        # Another server may hold a lock on the file that took the place of a deleted one.
        self.release()
        with database_errors():
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor, self._identity = descriptor, identity(self._path)
        return True

    def release(self) -> None:
        """Let another server take the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def database_errors() -> Iterator[None]:
    """Convert what the database raises, except violated constraints.

    Raises:
        OverloadedError: The disk of the database is full.
        UnavailableError: The database can't be used now, or was deleted, replaced or set back.
    """
    try:
        yield
    except IntegrityError:
        raise
    except DatabaseLostError as err:
        raise _lost() from err
    except (SQLAlchemyError, OSError) as err:
        raise _converted(err) from err


def is_full(error: DBAPIError) -> bool:
    """Return whether SQLite refused a change because its disk is full."""
    return getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def _lost() -> UnavailableError:
    return UnavailableError(
        "the server's database of jobs was deleted, replaced or set back while the server ran, so "
        "no jobs are taken that could be lost. Ask the server's administrator to put it back, or "
        "to restart the server with what is there now",
        reason="JOBS_LOST",
        retry_after=_LOST_SECONDS,
    )


def _converted(error: Exception) -> HallujudgeError:
    # The database's message may contain parts of items, or its address: only the log gets it.
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
        "the server's database of jobs can't be used now: it is locked or can't be opened; the "
        f"server's log says why. Try again in {_RETRY_SECONDS:g} s",
        reason="JOBS_UNAVAILABLE",
        retry_after=_RETRY_SECONDS,
    )


def job_of(row: Any) -> Job:
    """Return the job of a row of :data:`LISTED` or :data:`WHOLE`."""
    values = {name: getattr(row, name) for name in NAMES if not name.startswith("problem")}
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
