"""Files that a server keeps: private to its user, and noticed when they are deleted or set back."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

try:
    import fcntl
except ImportError:  # Windows: two processes must not change a file at the same moment
    fcntl = None  # type: ignore[assignment]  # checked where it is used

_LOG = logging.getLogger(__name__)
_LOGS = ("-wal", "-shm", "-journal")
"""What SQLite keeps next to a file, with the same permissions."""

_Execute: TypeAlias = Callable[[str], Any]
Migrations: TypeAlias = Mapping[int, Sequence[str]]
"""Format of a database -> the statements that lead to it from the format before it."""

_TABLE = "CREATE TABLE IF NOT EXISTS hallujudge_state (id VARCHAR(40), writes BIGINT NOT NULL)"
_INSERT = (
    "INSERT INTO hallujudge_state SELECT '{}', 0 WHERE NOT EXISTS (SELECT id FROM hallujudge_state)"
)
_READ = "SELECT id, writes FROM hallujudge_state"
# For a lock of another process; a database that is locked for longer counts as unreadable.
_READ_SECONDS = 2.0
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DatabaseLostError(Exception):
    """A database is no longer what this process wrote; the message says why."""


class NewerFormatError(Exception):
    """A newer release wrote a file; the message names the formats and what to do."""

    def __init__(self, found: int, now: int) -> None:
        super().__init__(
            f"a newer release of hallujudge wrote it (format {found}; this release reads up to "
            f"{now}); update hallujudge"
        )


@contextmanager
def transaction(file: sqlite3.Connection, *, write: bool) -> Iterator[None]:
    """Provide a transaction of SQLite: the whole block happens, or nothing.

    Args:
        file: The connection, which must not begin transactions by itself.
        write: Whether it writes. One that first reads and then writes would fail at once if
            another one wrote between.
    """
    # A writer locks at once: where it only read so far, another write in between would fail it.
    file.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield
        file.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself where the disk is full.
        with suppress(sqlite3.Error):
            file.execute("ROLLBACK")
        raise


def migrate(execute: _Execute, found: int, now: int, migrations: Migrations) -> None:
    """Bring the tables of an older release to this release's format.

    Call it in a transaction that also writes the new number: the whole change happens, or nothing.

    Args:
        execute: Runs a statement in that transaction.
        found: The format of the database.
        now: The format of this release.
        migrations: The statements, from format 2 on.

    Raises:
        NewerFormatError: A newer release wrote the database.
    """
    if found > now:
        raise NewerFormatError(found, now)
    for number in range(found + 1, now + 1):
        for statement in migrations[number]:
            execute(statement)


class DatabaseWatch:
    """Notices that an open database was deleted, replaced, or set back to an older state.

    A deleted file is still there for the process that has it open: everything that is written to it
    is lost when the process ends. Each transaction that writes therefore counts in the database,
    and each transaction first compares file and count with what this process saw last.

    Args:
        name: What it is, for the log; empty to log nothing.
        path: The file of SQLite, which must be open.
    """

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._problem = ""
        self._files = [path, path.with_name(f"{path.name}-wal")]
        self._seen: list[tuple[int, int] | None] = []
        self.id = ""
        """The id of the database; empty for a file that can only be read."""
        self.writes = 0
        """The last count that this process saw."""

    def begin(self, execute: _Execute) -> None:
        """Read the count, which is made if there is none.

        Args:
            execute: Runs a statement, and returns its rows.
        """
        execute(_TABLE)
        if (row := execute(_READ).fetchone()) is None:
            # Another process may do the same, which SQLite lets wait.
            execute(_INSERT.format(secrets.token_hex(16)))
            row = execute(_READ).fetchone()
        self.id, self.writes = row
        self._seen = [identity(file) for file in self._files]

    def check_file(self) -> None:
        """Check that the path still leads to the open file.

        Raises:
            DatabaseLostError: It does not.
        """
        for number, seen in enumerate(self._seen):
            file = self._files[number]
            if (found := identity(file)) == seen:
                continue
            if seen is None:  # the log is made at the first write
                self._seen[number] = found
                continue
            change = "was deleted" if found is None else "was replaced by another file"
            raise self._lost(f"{file} {change}")

    def _check(self, execute: _Execute, writes: int) -> None:
        """Check that the database has what this process wrote.

        Args:
            execute: Runs a statement in the transaction, and returns its rows.
            writes: :attr:`writes` before the transaction began.

        Raises:
            DatabaseLostError: It has not.
        """
        if not self.id:  # a file that can only be read
            return
        try:
            row = execute(_READ).fetchone()
        except Exception as err:  # of the driver
            if not _has_no_table(err):
                raise
            row = None
        if row is None or row[0] != self.id or row[1] < writes:
            raise self._lost("it was set back to an older state, or exchanged for another")

    @contextmanager
    def transaction(self, file: sqlite3.Connection, *, write: bool = True) -> Iterator[None]:
        """Provide a transaction of SQLite; one that writes is counted.

        Args:
            file: The connection, which must not begin transactions by itself.
            write: Whether it writes.

        Raises:
            DatabaseLostError: The database is no longer what this process wrote.
        """
        # Read first: another thread may write while this transaction begins.
        before = self.writes
        with transaction(file, write=write):
            self.check_file()
            self._check(file.execute, before)
            yield
            if write:
                file.execute("UPDATE hallujudge_state SET writes = writes + 1")
                writes = int(file.execute(_READ).fetchone()[1])
        if write:
            # Threads may come here in another order.
            self.writes = max(self.writes, writes)
            self._problem = ""

    def _lost(self, problem: str) -> DatabaseLostError:
        if self._name and problem != self._problem:
            self._problem = problem
            _LOG.error(
                "%s can't be used: %s; put it back, or restart the server with what is there now",
                self._name,
                problem,
            )
        return DatabaseLostError(problem)


def database_id(path: Path) -> str | None:
    """Return the id of a SQLite database that a :class:`DatabaseWatch` has watched.

    Returns:
        The id; empty if the file is missing or has no tables; None if it can't be read now.
    """
    if not path.exists():
        return ""
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_READ_SECONDS)
        ) as file:
            row = file.execute(_READ).fetchone()
    except sqlite3.Error as err:
        return "" if _has_no_table(err) else None
    return str(row[0]) if row else ""


def _has_no_table(error: Exception) -> bool:
    """Return whether a statement failed because its table is missing."""
    return "no such table" in str(error)


def lacks_room(error: Exception) -> bool:
    """Return whether a write failed for want of room: a full disk, a quota or a limit of sizes."""
    if isinstance(error, sqlite3.Error):
        # SQLite tells a full disk from other failures of a write, but not a quota.
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def identity(path: Path) -> tuple[int, int] | None:
    """Return what identifies a file, so that a replacement is noticed; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def create_folder(path: Path) -> None:
    """Create a folder that only its owner may use, unless it exists.

    Raises:
        OSError: It can't be created.
    """
    # Folders above it get the usual mode: they belong to others too.
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def create_private(path: Path) -> None:
    """Create a file that only its owner may read, unless it exists.

    Raises:
        OSError: It can't be created.
    """
    with suppress(FileExistsError):
        # Never opened again by its name: closing it would end the locks of SQLite on it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def make_private(folder: Path | None, files: Iterable[Path]) -> None:
    """Take other users' access to a server's folder and files; log what had to be changed.

    Args:
        folder: A folder that has only files of the server.
        files: The files, which need not exist, without their logs of SQLite.
    """
    if folder is not None:
        _take_access(folder)
    for path in files:
        for end in ("", *_LOGS):
            _take_access(path.with_name(path.name + end))


def warn_of_readers(path: Path) -> None:
    """Log that all users of this machine can read another program's private file."""
    if path.stat().st_mode & 0o007:
        _LOG.warning("all users of this machine may read %s; change its permissions", path)


def _take_access(path: Path) -> None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:  # there is none, or what opens it says why it can't be used
        return
    if not mode & 0o077:
        return
    try:
        if mode & stat.S_ISVTX:  # a folder such as /tmp, which is everybody's
            raise PermissionError(0, "it belongs to all users")
        path.chmod(mode & 0o700)
    except FileNotFoundError:  # it is deleted at this moment, as a log of SQLite is
        return
    except OSError as err:
        outcome = f"that can't be changed ({err.strerror or err}); use a folder of the server"
    else:
        outcome = f"its mode is now {mode & 0o700:03o}"
    _LOG.warning("other users of this machine could use %s (mode %03o); %s", path, mode, outcome)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time change a file, by a lock on a file next to it.

    Raises:
        OSError: The folder can't be written.
    """
    lock = path.with_name(f".{path.name}.lock")
    create_folder(path.parent)
    create_private(lock)
    with lock.open("a") as holder:
        if fcntl is not None:
            fcntl.flock(holder, fcntl.LOCK_EX)
        yield


def replace_private(path: Path, text: str) -> None:
    """Replace a file at once; only its owner may read it.

    Raises:
        OSError: The file can't be written.
    """
    fresh = path.with_name(f".{path.name}.new")
    # An earlier writer may have died; its file may have other permissions.
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
        stream.flush()
        # Before the rename: after a loss of power the name must not lead to an empty file.
        os.fsync(stream.fileno())
    fresh.replace(path)
