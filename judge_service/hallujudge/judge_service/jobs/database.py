"""The jobs' database, SQLite in a file. Every method blocks."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..errors import (
    HallujudgeError,
    InvalidInputError,
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
    transaction,
)
from . import Job, JobState, Problem

VERSIONS = "CREATE TABLE IF NOT EXISTS hallujudge_jobs_version (version INTEGER PRIMARY KEY)"
"""One row: the version of the other tables."""

_OF_ITEMS = """
    job INTEGER NOT NULL REFERENCES hallujudge_jobs (number) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    PRIMARY KEY (job, position)
"""

TABLES = (
    # One row for each job.
    """
CREATE TABLE IF NOT EXISTS hallujudge_jobs (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id VARCHAR(40) NOT NULL UNIQUE,
    owner VARCHAR(200) NOT NULL,
    caller TEXT NOT NULL,
    request_id VARCHAR(200) NOT NULL,
    state VARCHAR(20) NOT NULL,
    spec BLOB NOT NULL,
    header BLOB NOT NULL,
    note TEXT NOT NULL,
    report BLOB,
    items BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    scored BIGINT NOT NULL,
    unscored BIGINT NOT NULL,
    problem VARCHAR(60) NOT NULL,
    problem_detail TEXT NOT NULL,
    created_at DOUBLE NOT NULL,
    -- When the caller last added items, or the job ended: what retention counts from.
    touched_at DOUBLE NOT NULL,
    finished_at DOUBLE,
    UNIQUE (owner, request_id)
)""",
    "CREATE INDEX IF NOT EXISTS ix_hallujudge_jobs_state ON hallujudge_jobs (state)",
    # One row for each item of a job.
    f"""
CREATE TABLE IF NOT EXISTS hallujudge_job_items (
    item BLOB NOT NULL,
    -- All three are NULL until the item is answered: an unanswered item is never an unscored one.
    scored BOOLEAN,
    reason VARCHAR(60),
    result BLOB,
    {_OF_ITEMS})""",
    # One row for each item of a job that is open: the ids of later items must differ. The key is
    # the 64-bit key of the id, as a signed number.
    """
CREATE TABLE IF NOT EXISTS hallujudge_job_ids (
    job INTEGER NOT NULL REFERENCES hallujudge_jobs (number) ON DELETE CASCADE,
    "key" BIGINT NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (job, "key")
) WITHOUT ROWID""",
    # One row for each item that a server works on now, or worked on when it died.
    f"CREATE TABLE IF NOT EXISTS hallujudge_job_flights ({_OF_ITEMS})",
    # One row for each item that was in flight when the server died.
    f"""
CREATE TABLE IF NOT EXISTS hallujudge_job_suspicions (
    -- How many items may be scored together with it, itself included.
    together INTEGER NOT NULL,
    -- While it was scored alone.
    deaths INTEGER NOT NULL,
    -- Whether it was scored alone, without a death.
    survived BOOLEAN NOT NULL,
    {_OF_ITEMS})""",
)
"""The statements that make the tables."""

NAMES = (
    *("number", "id", "owner", "caller", "request_id", "state"),
    *("items", "bytes", "scored", "unscored"),
    *("problem", "problem_detail", "created_at", "finished_at"),
)
"""Columns of a job that are listed, by name."""

LISTED = ", ".join(NAMES)
"""Columns of a job without its spec, which may hold a synonym graph."""

WHOLE = f"{LISTED}, spec"
"""Columns of a job."""
_LOG = logging.getLogger(__name__)
# How long a writer waits for another one before the call fails as temporary.
_BUSY_SECONDS = 5.0
# A lock or a full disk is often gone after seconds; a lost database needs somebody to act.
_RETRY_SECONDS = 2.0
_LOST_SECONDS = 30.0

SCHEMA_VERSION = 1
"""Raised when older releases could misread what newer ones write."""

# New tables need none.
MIGRATIONS: Migrations = {}


def marks(count: int) -> str:
    """Return the marks of so many values of a statement, in brackets."""
    return f"({', '.join('?' * count)})"


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
        self._busy_seconds = busy_seconds
        # Connections that no thread uses now: as many as threads have used it at once.
        self._free: list[sqlite3.Connection] = []
        _prepare(address, busy_seconds)
        self._watch = DatabaseWatch("the database of jobs", Path(address))
        try:
            with database_errors():
                self._make_tables()
        except BaseException:
            self.close()
            raise
        self.id = self._watch.id
        """The id of the database, which another one does not have."""

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Provide a connection in a transaction that reads.

        Raises:
            UnavailableError: The database can't be used now, or is no longer the one that was
                opened: what is written to it would be lost.
        """
        with database_errors(), self._begun(write=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Provide a connection in a transaction that writes; it is committed at the end.

        Raises:
            UnavailableError: As for :meth:`reading`.
        """
        with database_errors(), self._begun(write=True) as connection:
            yield connection

    @contextmanager
    def _begun(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        # A new connection would open the file that has taken the place of a deleted one.
        self._watch.check_file()
        with self._connected() as connection, self._watch.transaction(connection, write=write):
            yield connection

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            # Without a lock, because taking from the end of a list is atomic.
            connection = self._free.pop()
        except IndexError:
            connection = self._new()
        try:
            yield connection
        finally:
            self._free.append(connection)

    def _new(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.address,
            timeout=self._busy_seconds,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.row_factory = sqlite3.Row
        try:
            # SQLite checks no references by default, and may sync less often: a job that was
            # confirmed must survive a loss of power.
            for pragma in ("foreign_keys = ON", "synchronous = FULL"):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    def runner_lock(self) -> FileLock:
        """Return the lock of the server that runs the jobs of this database."""
        return FileLock(Path(f"{self.address}.lock"))

    def close(self) -> None:
        """Close all connections."""
        while self._free:
            self._free.pop().close()

    def _make_tables(self) -> None:
        with self._connected() as connection, transaction(connection, write=True):
            connection.execute(VERSIONS)
            [found] = connection.execute(
                "SELECT max(version) FROM hallujudge_jobs_version"
            ).fetchone()
            if found is None:
                connection.execute(
                    "INSERT INTO hallujudge_jobs_version VALUES (?)", (SCHEMA_VERSION,)
                )
            elif found != SCHEMA_VERSION:
                _migrate(connection, found)
            for statement in TABLES:
                connection.execute(statement)
            self._watch.begin(connection.execute)


def _migrate(connection: sqlite3.Connection, found: int) -> None:
    try:
        migrate(connection.execute, found, SCHEMA_VERSION, MIGRATIONS)
    except NewerFormatError as err:
        raise VersionMismatchError(f"the database of jobs can't be used: {err}") from err
    connection.execute("UPDATE hallujudge_jobs_version SET version = ?", (SCHEMA_VERSION,))


def _prepare(address: str, busy_seconds: float) -> None:
    """Make the file of a database where there is none, and see that it is one."""
    if "://" in address:
        scheme = address.partition("://")[0]
        raise InvalidInputError(
            f"jobs.database is an address ({scheme}://...), but jobs are kept in a file; name the "
            "file, or leave the setting out for jobs.sqlite in data_folder"
        )
    path = Path(address)
    try:
        create_folder(path.parent)
        create_private(path)
        with closing(sqlite3.connect(path, timeout=busy_seconds)) as probe:
            # The file keeps this mode, so that no other connection has to set it.
            probe.execute("PRAGMA journal_mode = WAL").fetchone()
    except sqlite3.OperationalError as err:
        # Of a file that is only locked, the next statement says so as a temporary error.
        if err.sqlite_errorcode not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise _unusable(path, err) from err
    except (sqlite3.DatabaseError, OSError) as err:
        raise _unusable(path, err) from err


def _unusable(path: Path, error: Exception) -> HallujudgeError:
    return InvalidInputError(
        f"jobs.database {str(path)!r} can't be used: {error}; name another file, or move this one "
        "away"
    )


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
            # No lease with a time: clocks would have to agree, and a dead server's jobs to wait.
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
    except sqlite3.IntegrityError:
        raise
    except DatabaseLostError as err:
        raise _lost() from err
    except (sqlite3.Error, OSError) as err:
        raise _converted(err) from err


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
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
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


def job_of(row: sqlite3.Row) -> Job:
    """Return the job of a row of :data:`LISTED` or :data:`WHOLE`."""
    values = {name: row[name] for name in NAMES if not name.startswith("problem")}
    return Job(
        **values | {"state": JobState(row["state"])},
        problem=Problem(reason=row["problem"], detail=row["problem_detail"]),
        spec=row["spec"] if "spec" in row.keys() else b"",  # noqa: SIM118 - a row is not a mapping
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
