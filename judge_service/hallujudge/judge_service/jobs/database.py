"""The jobs' database: SQLite in a file, or a PostgreSQL server. Every method blocks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ..errors import HallujudgeError, InvalidInputError, MissingExtraError, VersionMismatchError

try:
    import sqlalchemy as sa
    from sqlalchemy.exc import SQLAlchemyError
except ModuleNotFoundError as err:
    raise MissingExtraError.of("a database of jobs", "jobs") from err

from .tables import (
    SCHEMA_VERSION,
    FileLock,
    RunnerLock,
    ServerLock,
    database_errors,
    metadata,
    versions,
)

__all__ = ["Database", "is_postgres"]

_BUSY_SECONDS = 5.0
_CONNECT_SECONDS = 10
_CONNECTIONS = 8
_WRITE = "hallujudge_write"
# Any number that other programs on the same PostgreSQL server are unlikely to lock.
_SCHEMA_LOCK = 0x68616C6A
_RUNNER_LOCK = 0x68616C6B


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
        try:
            with database_errors():
                self._make_tables()
        except BaseException:
            self._engine.dispose()
            raise

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Provide a connection in a transaction that reads."""
        with database_errors(), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Provide a connection in a transaction that writes; it is committed at the end."""
        with database_errors(), self._engine.connect() as made:
            connection = made.execution_options(**{_WRITE: True})
            with connection.begin():
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
        with self.writing() as connection:
            self.lock_key(connection, _SCHEMA_LOCK)
            metadata.create_all(connection)
            found = connection.scalar(sa.select(sa.func.max(versions.c.version)))
            if found is None:
                connection.execute(versions.insert().values(version=SCHEMA_VERSION))
            elif found > SCHEMA_VERSION:
                raise VersionMismatchError(
                    f"a newer release of hallujudge wrote the database of jobs (version {found}; "
                    f"this release knows {SCHEMA_VERSION}); update hallujudge"
                )


def _sqlite(address: str, busy_seconds: float) -> sa.Engine:
    path = Path(address)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
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
    if url.password:
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
