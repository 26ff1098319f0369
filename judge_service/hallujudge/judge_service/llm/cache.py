"""The verdict cache: what was paid for once is never paid for again.

One SQLite file in WAL mode, shared by every user of a server and by several processes. A record's
key is the SHA-256 of everything that the answer depends on: the judge's identity (model, revision,
server version), the template's hash, every parameter and the prompt itself. Failures are not kept.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from hallujudge.metrics.framework.result import JsonValue

from ..errors import InvalidInputError, OutputError

__all__ = ["CACHE_FORMAT", "Record", "VerdictCache", "cache_key"]

CACHE_FORMAT = 1
"""Raised when older releases could misread what newer ones write."""

Record = dict[str, JsonValue]
"""What is kept of an answer, as JSON."""

_APPLICATION_ID = 0x68616C6A  # "halj"
_EXPORT_NAME = "hallujudge-verdicts"
_MAX_LINE_BYTES = 16 << 20
_BUSY_SECONDS = 10.0
_WAL_PAUSE = 0.02
_SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS answers (
  key BLOB PRIMARY KEY,
  judge TEXT NOT NULL,
  record TEXT NOT NULL
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS servers (
  url TEXT NOT NULL,
  model TEXT NOT NULL,
  server TEXT NOT NULL,
  PRIMARY KEY (url, model)
) WITHOUT ROWID
""",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {CACHE_FORMAT}",
)


def cache_key(parts: Mapping[str, object]) -> str:
    """The key of an answer.

    Args:
        parts: Everything that it depends on, as JSON values.
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(text.encode()).hexdigest()


class VerdictCache:
    """Answers by key, safe to use from several threads and processes.

    Args:
        path: The file; made if absent. Its folder must exist.

    Raises:
        InvalidInputError: It is no verdict cache, is damaged, or comes from a newer release.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0
        with self._reported():
            self._db = sqlite3.connect(
                self.path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None
            )
        try:
            with self._reported():
                self._prepare()
        except InvalidInputError:
            self._db.close()
            raise

    def get(self, key: str) -> Record | None:
        """What is kept under a key; None: nothing."""
        with self._lock, self._reported():
            row = self._db.execute(
                "SELECT record FROM answers WHERE key = ?", (bytes.fromhex(key),)
            ).fetchone()
        if row is None:
            self.misses += 1
            return None
        self.hits += 1
        return self._record(row[0])

    def put(self, key: str, judge: str, record: Record) -> None:
        """Keeps a record; what was kept under the key before is replaced.

        Args:
            key: From :func:`cache_key`.
            judge: The judge in words, for people who look at the file.
            record: The answer.
        """
        text = json.dumps(record, separators=(",", ":"), sort_keys=True)
        with self._lock, self._reported():
            self._db.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)",
                (bytes.fromhex(key), judge, text),
            )

    def server_of(self, url: str, model: str) -> str | None:
        """The server version last seen at an address, for runs while it is away."""
        with self._lock, self._reported():
            row = self._db.execute(
                "SELECT server FROM servers WHERE url = ? AND model = ?", (url, model)
            ).fetchone()
        return row[0] if row else None

    def remember_server(self, url: str, model: str, server: str) -> None:
        """Keeps the server version seen at an address."""
        with self._lock, self._reported():
            self._db.execute(
                "INSERT OR REPLACE INTO servers VALUES (?, ?, ?)", (url, model, server)
            )

    def __len__(self) -> int:
        with self._lock, self._reported():
            return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def export(self, path: str | Path) -> int:
        """Writes every record as JSON lines, sorted by key, and gives their number.

        Raises:
            OutputError: The file can't be written.
        """
        count = 0
        try:
            with Path(path).open("w", encoding="utf-8") as stream:
                stream.write(_line({"format": _EXPORT_NAME, "version": CACHE_FORMAT}))
                for key, judge, record in self._rows():
                    entry = {"key": key.hex(), "judge": judge, "record": json.loads(record)}
                    stream.write(_line(entry))
                    count += 1
        except OSError as err:
            raise OutputError(
                f"verdicts can't be written to {str(path)!r}: {err.strerror}"
            ) from err
        return count

    def import_(self, path: str | Path) -> int:
        """Takes in what :meth:`export` wrote; records that are there already stay.

        Nothing is taken in if any line can't be read.

        Returns:
            How many records were new.

        Raises:
            InvalidInputError: The file isn't such an export, or comes from a newer release.
        """
        with self._lock, self._reported():
            before = self._db.total_changes
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(
                    "INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", _exported(Path(path))
                )
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
            return self._db.total_changes - before

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._db.close()

    def _rows(self) -> Iterator[tuple[bytes, str, str]]:
        last = b""
        while True:
            with self._lock, self._reported():
                rows = self._db.execute(
                    "SELECT key, judge, record FROM answers WHERE key > ? ORDER BY key LIMIT 1000",
                    (last,),
                ).fetchall()
            if not rows:
                return
            yield from rows
            last = rows[-1][0]

    def _prepare(self) -> None:
        # In one transaction: of processes that make the file together, each sees it whole or not.
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._check_owner()
            for statement in _SCHEMA:
                self._db.execute(statement)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
        self._set_wal()
        self._db.execute("PRAGMA synchronous = NORMAL")

    def _set_wal(self) -> None:
        """Switches to the write-ahead log; SQLite doesn't wait for others that do the same."""
        until = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(_WAL_PAUSE)
            else:
                return

    def _check_owner(self) -> None:
        owner = self._db.execute("PRAGMA application_id").fetchone()[0]
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        empty = not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if owner != _APPLICATION_ID and not (owner == 0 and empty):
            self._unusable("it is a database of something else; name another file")
        if version > CACHE_FORMAT:
            self._unusable(
                f"it has format {version}, and this release reads up to {CACHE_FORMAT}; "
                "upgrade hallujudge or name another file"
            )

    def _record(self, text: str) -> Record:
        try:
            record = json.loads(text)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            self._unusable("it holds a record that is not JSON; move it away and start anew")
        return record

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as err:
            raise InvalidInputError(
                f"verdict cache {str(self.path)!r} can't be used: {err}; see that its folder "
                "exists, can be written to and has room, and that no other program locks it",
                reason="CACHE_INVALID",
                metadata={"path": str(self.path)},
            ) from err
        except sqlite3.DatabaseError as err:
            self._unusable(f"it is damaged ({err}); move it away and start anew", err)

    def _unusable(self, problem: str, cause: Exception | None = None) -> NoReturn:
        raise InvalidInputError(
            f"verdict cache {str(self.path)!r}: {problem}",
            reason="CACHE_INVALID",
            metadata={"path": str(self.path)},
        ) from cause


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True) + "\n"


def _exported(path: Path) -> Iterator[tuple[bytes, str, str]]:
    try:
        with path.open("rb") as stream:
            _check_head(path, _parsed(path, 1, stream.readline(_MAX_LINE_BYTES)))
            number = 1
            while line := stream.readline(_MAX_LINE_BYTES):
                number += 1
                yield _row(path, number, _parsed(path, number, line))
    except OSError as err:
        raise InvalidInputError(
            f"verdict export {str(path)!r}: {err.strerror or err}", reason="CACHE_INVALID"
        ) from err


def _parsed(path: Path, number: int, line: bytes) -> dict[str, object]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _bad_export(path, f"line {number} is no JSON object")
    return value


def _check_head(path: Path, head: Mapping[str, object]) -> None:
    version = head.get("version")
    if head.get("format") != _EXPORT_NAME or not isinstance(version, int):
        raise _bad_export(path, "its first line doesn't say that it is one")
    if version > CACHE_FORMAT:
        raise _bad_export(
            path,
            f"it has format {version}, and this release reads up to {CACHE_FORMAT}; "
            "upgrade hallujudge",
        )


def _row(path: Path, number: int, entry: Mapping[str, object]) -> tuple[bytes, str, str]:
    key, judge, record = entry.get("key"), entry.get("judge"), entry.get("record")
    try:
        raw = bytes.fromhex(key) if isinstance(key, str) else b""
    except ValueError:
        raw = b""
    if len(raw) != 32 or not isinstance(judge, str) or not isinstance(record, dict):
        raise _bad_export(path, f"line {number} is no record: it needs key, judge and record")
    return raw, judge, json.dumps(record, separators=(",", ":"), sort_keys=True)


def _bad_export(path: Path, problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"{str(path)!r} is no export of a verdict cache: {problem}",
        reason="CACHE_INVALID",
        metadata={"path": str(path)},
    )
