"""The jobs' database: SQLite in a file, or a PostgreSQL server. Every method blocks."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

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
_CONNECT_SECONDS = 10
_CONNECTIONS = 8
_RETRY_SECONDS = 2.0
_LOST_SECONDS = 30.0
_WRITE = "hallujudge_write"

# Any number that other programs on the same PostgreSQL server are unlikely to lock.
_SCHEMA_LOCK = 0x68616C6A
_RUNNER_LOCK = 0x68616C6B

# https://www.sqlite.org/rescode.html, and appendix A of PostgreSQL's manual.
_SQLITE_FULL = {sqlite3.SQLITE_FULL}
_POSTGRES_FULL = {"53100", "53200"}
SCHEMA_VERSION = 1
"""Raised when older releases could misread what newer ones write."""

# Each statement runs in SQLite and in PostgreSQL. New tables need none.
MIGRATIONS: Migrations = {}


def is_postgres(address: str) -> bool:
    """Return whether an address names a PostgreSQL server; otherwise it is a file."""
    return address.startswith(("postgresql://", "postgres://"))


class Database:
    """Connections to the jobs' database, with its tables.

    Args:
        address: A file, which is created if it does not exist, or ``postgresql://…``.
        busy_seconds: How long a lock of another program is waited for.

    Raises:
        InvalidInputError: The address or the file can't be used.
        VersionMismatchError: A newer release wrote the tables.
        MissingExtraError: The driver of PostgreSQL is not installed.
        UnavailableError: The database can't be used now.
    """

    def __init__(self, address: str, *, busy_seconds: float = _BUSY_SECONDS) -> None:
        self.address = address
        self.is_postgres = is_postgres(address)
        self._engine = _postgres(address) if self.is_postgres else _sqlite(address, busy_seconds)
        self._watch = DatabaseWatch(
            "the database of jobs", None if self.is_postgres else Path(address)
        )
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

    def lock_key(self, connection: sa.Connection, key: int) -> None:
        """Let no other transaction with the same key run until this one ends."""
        # A transaction of SQLite that writes is alone already.
        if self.is_postgres:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(key)))

    def runner_lock(self) -> RunnerLock:
        """Return the lock of the server that runs the jobs of this database."""
        if self.is_postgres:
            return ServerLock(self._engine, _RUNNER_LOCK)
        return FileLock(Path(f"{self.address}.lock"))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _make_tables(self) -> None:
        with self._engine.connect() as made, _begin(made, write=True) as connection:
            self.lock_key(connection, _SCHEMA_LOCK)
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


def _postgres(address: str) -> sa.Engine:
    try:
        url = sa.make_url(address).set(drivername="postgresql+psycopg")
    except (SQLAlchemyError, ValueError) as err:
        raise InvalidInputError(
            "jobs_database is not an address of a PostgreSQL server; write "
            "postgresql://USER@HOST:PORT/DATABASE"
        ) from err
    if url.password or "password" in url.query:
        raise InvalidInputError(
            "jobs_database holds a password, which `config show` would print; leave it out, and "
            "give it by PGPASSFILE or PGPASSWORD"
        )
    try:
        return sa.create_engine(
            url,
            pool_pre_ping=True,
            pool_size=_CONNECTIONS,
            # A database in the encoding SQL_ASCII would otherwise send its texts as bytes.
            connect_args={"connect_timeout": _CONNECT_SECONDS, "client_encoding": "utf8"},
        )
    except ModuleNotFoundError as err:
        raise MissingExtraError.of("a PostgreSQL database of jobs", "postgres") from err


class RunnerLock(Protocol):
    """A lock that at most one server holds. Every method blocks."""

    def acquire(self) -> bool:
        """Take the lock, or check that it is still held; return whether it is."""

    def release(self) -> None:
        """Let another server take the lock."""


class FileLock:
    """A lock file next to the database; the system releases the lock when the process ends.

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


class ServerLock:
    """A lock of a PostgreSQL server; it releases the lock when the connection ends.

    Args:
        engine: Makes connections.
        key: The lock's number.
    """

    def __init__(self, engine: sa.Engine, key: int) -> None:
        self._engine = engine
        self._key = key
        self._connection: sa.Connection | None = None

    def acquire(self) -> bool:
        """Take the lock, or check that it is still held; return whether it is."""
        if self._connection is not None:
            try:
                self._connection.execute(sa.select(1))
                return True
            except SQLAlchemyError:
                # With the connection the server has released the lock.
                self.release()
        with database_errors():
            connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            # Out of the pool: no other user may get the connection that holds the lock.
            connection.detach()
            # Services may share a server, each with a schema of its own.
            schema = sa.func.hashtext(sa.func.current_schema())
            try:
                taken = connection.scalar(
                    sa.select(sa.func.pg_try_advisory_lock(self._key, schema))
                )
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
    """Return whether a database refused a change because its disk is full."""
    origin = error.orig
    if isinstance(origin, sqlite3.Error):
        return getattr(origin, "sqlite_errorcode", None) in _SQLITE_FULL
    return getattr(origin, "sqlstate", None) in _POSTGRES_FULL


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
        "the server's database of jobs can't be used now: it is locked or can't be reached; the "
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
