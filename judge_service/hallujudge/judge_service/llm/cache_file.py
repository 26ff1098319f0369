"""The SQLite file behind the verdict cache. Every method blocks: use a thread of its own."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, NoReturn

from hallujudge.metrics.framework.results import JsonValue

from ..errors import InvalidInputError
from ..state_files import DatabaseWatch, Migrations, create_private, migrate

CACHE_FORMAT = 1
"""Raised when older releases could misread what newer ones write."""

MIGRATIONS: Migrations = {}

Record = dict[str, JsonValue]
"""What is kept of a reply, as JSON."""

# Tells a verdict cache from another program's database, in which no table must be made.
_APPLICATION_ID = 0x68616C6A  # "halj"
# SQLite's busy timeout does not cover the switch to the write-ahead log.
_WAL_PAUSE = 0.02
# Rows are found by their hash only: with row ids each look-up would search a second tree.
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS answers "
    "(key BLOB PRIMARY KEY, judge TEXT NOT NULL, record TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS judge_facts (url TEXT NOT NULL, model TEXT NOT NULL, fact TEXT "
    "NOT NULL, value TEXT NOT NULL, PRIMARY KEY (url, model, fact)) WITHOUT ROWID",
    # Calls that some process is making now, so that others wait for the record instead of paying.
    "CREATE TABLE IF NOT EXISTS claims "
    "(key BLOB PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {_APPLICATION_ID}",
)


class Row(NamedTuple):
    """One record as it is stored."""

    key: bytes
    """SHA-256 of everything that the reply depends on."""
    judge: str
    """The judge in words, for people who look at the file."""
    record: str
    """The record as JSON."""


class Claim(NamedTuple):
    """The outcome of claiming a key."""

    record: Record | None
    """The record, where there is one already."""
    ours: bool
    """Whether the caller may make the call; False: another process is making it."""


def cache_key(parts: Mapping[str, object]) -> str:
    """Return the key of a reply.

    Args:
        parts: Everything that it depends on, as JSON values.
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode()).hexdigest()


def kept_replies(path: Path) -> int:
    """Return how many replies a file has; 0 if it is missing or can't be read now."""
    # SQLite would create the file.
    if not path.exists():
        return 0
    with suppress(sqlite3.Error), closing(sqlite3.connect(path, timeout=0)) as file:
        return int(file.execute("SELECT count(*) FROM answers").fetchone()[0])
    return 0


class CacheFile:
    """Records by key in one SQLite file in WAL mode, shared by several processes.

    Args:
        path: The file; created if absent. Its folder must exist.
        busy_seconds: How long a lock of another process is waited for.

    Raises:
        InvalidInputError: The file is not a verdict cache, is damaged, comes from a newer release
            or cannot be created.
        sqlite3.OperationalError: Another program has locked the file.
    """

    def __init__(self, path: Path, busy_seconds: float) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._watch = DatabaseWatch("", path)
        with self._refused():
            with suppress(OSError):  # SQLite says better what is wrong
                create_private(path)
            self._db = sqlite3.connect(
                path, timeout=busy_seconds, check_same_thread=False, isolation_level=None
            )
        try:
            with self._refused():
                self._prepare()
        # No other code has the file yet, so none can close it.
        except BaseException:
            self._db.close()
            raise

    def check(self) -> None:
        """Check that the path still leads to the open file.

        Raises:
            DatabaseLostError: It was deleted or replaced. Methods that write raise it too, also if
                it was set back to an older state.
        """
        self._watch.check_file()

    def get(self, key: str) -> Record | None:
        """Return the record of a key; None if there is none that can be read."""
        row = self._db.execute(
            "SELECT record FROM answers WHERE key = ?", (bytes.fromhex(key),)
        ).fetchone()
        return record_of(row[0]) if row else None

    def put(self, rows: Iterable[Row]) -> None:
        """Keep records and end the claims on their keys; an older record of a key is replaced."""
        with self._watch.transaction(self._db):
            for row in rows:
                self._db.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", row)
                self._db.execute("DELETE FROM claims WHERE key = ?", (row.key,))

    def claim(self, key: str, owner: str, seconds: float) -> Claim:
        """Return the record of a key, or claim the call that makes it.

        Args:
            key: The key.
            owner: The claiming process.
            seconds: How long the claim holds unless it is renewed.
        """
        if (record := self.get(key)) is not None:
            return Claim(record, ours=False)
        raw, now = bytes.fromhex(key), time.time()
        with self._watch.transaction(self._db):
            # Looked up again: another process may have kept the record meanwhile.
            if (record := self.get(key)) is not None:
                return Claim(record, ours=False)
            # A record that cannot be read is replaced by the reply of this call.
            self._db.execute("DELETE FROM answers WHERE key = ?", (raw,))
            held = self._db.execute("SELECT owner, until FROM claims WHERE key = ?", (raw,))
            holder, until = held.fetchone() or (owner, 0.0)
            if holder != owner and until > now and not _has_died(holder):
                return Claim(None, ours=False)
            self._db.execute(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?)", (raw, owner, now + seconds)
            )
        return Claim(None, ours=True)

    def renew(self, key: str, owner: str, seconds: float) -> None:
        """Extend a claim whose call is still under way."""
        self._db.execute(
            "UPDATE claims SET until = ? WHERE key = ? AND owner = ?",
            (time.time() + seconds, bytes.fromhex(key), owner),
        )

    def release(self, key: str, owner: str) -> None:
        """End a claim whose call produced no record."""
        self._db.execute(
            "DELETE FROM claims WHERE key = ? AND owner = ?", (bytes.fromhex(key), owner)
        )

    def release_all(self, owner: str) -> None:
        """End all claims of an owner that has died."""
        self._db.execute("DELETE FROM claims WHERE owner = ?", (owner,))

    def fact_of(self, url: str, model: str, fact: str) -> str | None:
        """Return what is known of the judge at an address."""
        row = self._db.execute(
            "SELECT value FROM judge_facts WHERE url = ? AND model = ? AND fact = ?",
            (url, model, fact),
        ).fetchone()
        return row[0] if row else None

    def keep_fact(self, url: str, model: str, fact: str, value: str) -> None:
        """Keep what was seen of the judge at an address."""
        # An unchanged fact takes no write lock, for which other processes would wait.
        if self.fact_of(url, model, fact) != value:
            self._db.execute(
                "INSERT OR REPLACE INTO judge_facts VALUES (?, ?, ?, ?)", (url, model, fact, value)
            )

    def rows(self) -> list[Row]:
        """Return all records."""
        return [Row(*row) for row in self._db.execute("SELECT key, judge, record FROM answers")]

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _prepare(self) -> None:
        try:
            # In one transaction: of processes that create the file together, each sees it whole.
            with self._watch.transaction(self._db):
                if found := self._format():
                    migrate(self._db.execute, found, CACHE_FORMAT, MIGRATIONS)
                for statement in _SCHEMA:
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {CACHE_FORMAT}")
                self._watch.begin(self._db.execute)
            self._set_wal()
            # A reply is paid for: it must survive a power loss.
            self._db.execute("PRAGMA synchronous = FULL")
        except sqlite3.OperationalError as err:
            if "readonly" not in str(err):
                raise
            # A file that can only be read still answers what it knows.
            self._format()

    def _set_wal(self) -> None:
        """Switch to the write-ahead log; SQLite does not wait for others that do the same."""
        until = time.monotonic() + self._busy_seconds
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as err:
                if "locked" not in str(err) or time.monotonic() > until:
                    raise
                time.sleep(_WAL_PAUSE)
            else:
                return

    def _format(self) -> int:
        """Return the file's format; 0 for a new file."""
        owner = self._db.execute("PRAGMA application_id").fetchone()[0]
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        empty = not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if owner != _APPLICATION_ID and not (owner == 0 and empty):
            self._unusable("it is a database of another program; name another file")
        if version > CACHE_FORMAT:
            self._unusable(
                f"it has format {version}, and this release reads up to {CACHE_FORMAT}; "
                "update hallujudge or name another file"
            )
        return int(version)

    @contextmanager
    def _refused(self) -> Iterator[None]:
        """Convert what makes the file unusable into an error with advice."""
        try:
            yield
        except sqlite3.OperationalError as err:
            # A lock passes; the cache goes on without the file for a while.
            if "locked" in str(err):
                raise
            self._unusable(f"{err}; check that its folder exists, is writable and has room", err)
        except sqlite3.DatabaseError as err:
            problem = f"it is not a verdict cache, or it is damaged ({err})"
            self._unusable(f"{problem}; name another file, or move this one away", err)

    def _unusable(self, problem: str, cause: Exception | None = None) -> NoReturn:
        raise InvalidInputError(
            f"verdict cache {str(self.path)!r}: {problem}",
            reason="CACHE_INVALID",
            metadata={"path": str(self.path)},
        ) from cause


def new_owner() -> str:
    """Return a name for this process as the owner of claims."""
    # The token tells this process from an earlier one with the same id.
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def _has_died(owner: str) -> bool:
    """Return whether an owner is a process of this machine that runs no more."""
    host, _, rest = owner.rpartition(":")[0].rpartition(":")
    # On Windows, signal 0 is CTRL_C_EVENT, which would interrupt the process.
    if host != socket.gethostname() or not rest.isdigit() or os.name != "posix":
        return False
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    # Another user's process runs; of a number that is not a process id, no death is known.
    except (OSError, OverflowError):
        return False
    return False


def record_of(text: str) -> Record | None:
    """Read a stored record; None if it is not a JSON object."""
    try:
        record = json.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
