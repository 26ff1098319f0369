"""The verdict cache: a reply that was paid for once is not paid for again.

One SQLite file, shared by every user of a server and by several processes. A record's key is the
SHA-256 of everything that the reply depends on: the judge's identity (model, revision, server
version), the template's hash, every parameter and the prompt itself. Failures are not kept.

Its file is used in a thread of its own, so that another program's lock does not block the event
loop. While the file cannot be written, one warning is logged, records wait in memory, and calls go
on. Where the disk is full, the caller's gate is notified: a run that is kept in files then sends no
further call.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ..errors import InvalidInputError, OutputError
from ..state_files import DatabaseLostError, create_folder, lacks_room
from ..stopping import begun
from ..tenancy import CallGate, tenancy
from ..threads import shielded
from .cache_file import CacheFile, Claim, Record, Row, new_owner, record_of

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")
_READ, _WRITE = "read", "write"
_ROW = "SELECT key, judge, record FROM answers WHERE key = ?"
# Another program's lock is waited for this long; then work goes on without the file for a while.
_BUSY_SECONDS = 5.0
_RETRY_SECONDS = 10.0
# A claim outlives its process by at most this, in case nothing else shows that it died.
_CLAIM_SECONDS = 60.0
# A reply takes seconds, and a look for it is one read by the key.
_POLL_SECONDS = 0.25
# Bounds the memory of records that cannot be written; further ones are not kept.
_MAX_PENDING = 100_000
_OURS = Claim(None, ours=True)


class VerdictCache:
    """Records by key. Use one in each process; several processes may share a file.

    Args:
        path: The file; created if absent. Its folder must exist.
        clock: Seconds on a clock that never goes back.
        sleep: Waits; between two looks at a call that another process makes, and before records
            are written again.
        busy_seconds: How long another program's lock is waited for before work goes on without.
        beside: Files of other runs, separated as in ``PATH``, which are read only; what is found
            there is kept here too.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        beside: str = "",
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        busy_seconds: float = _BUSY_SECONDS,
    ) -> None:
        self.path = Path(path)
        self._clock = clock
        self._sleep = sleep
        self._busy_seconds = busy_seconds
        self._owner = new_owner()
        # One thread: SQLite's calls block, and writes keep their order.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hallujudge-cache")
        self._pending: dict[str, Row] = {}
        self._pending_facts: dict[tuple[str, str, str], str] = {}
        self._writer: asyncio.Task[None] | None = None
        self._is_closed = False
        # Used in the thread only.
        self._file: CacheFile | None = None
        self._was_open = False
        self._retry_at = {_READ: float("-inf"), _WRITE: float("-inf")}
        self._warned = False
        self._unkept = ""
        self._beside: dict[Path, sqlite3.Connection | None] = {
            Path(other): None for other in beside.split(os.pathsep) if other
        }

    async def open(self) -> None:
        """Open the file, so that one that cannot be used is refused before anything is paid.

        Raises:
            InvalidInputError: The file is not a verdict cache, is damaged, comes from a newer
                release or cannot be created.
        """
        await self._run(_READ, lambda _file: None, None)

    def check(self) -> None:
        """Do the same as :meth:`open` and block until it is done, for use outside an event loop."""
        self._thread.submit(self._with_file, _READ, lambda _file: None, None).result()

    async def get(self, key: str) -> Record | None:
        """Return the record of a key; None if there is none."""
        if (row := self._pending.get(key)) is not None:
            return record_of(row.record)
        record = await self._run(_READ, lambda file: file.get(key), None)
        if record is None and self._beside and not self._is_closed:
            row = await shielded(self._thread.submit(self._row_beside, key))
            if row is not None and (record := record_of(row.record)) is not None:
                self._pend(key, row)
                await self._write()
        return record

    def _row_beside(self, key: str) -> Row | None:
        """Return the record of a key in a file of another run; None without one."""
        # A copy, since files that can't be read are removed on the way.
        for path, opened in [*self._beside.items()]:
            try:
                file = opened or sqlite3.connect(
                    f"{path.resolve().as_uri()}?mode=ro",
                    uri=True,
                    timeout=0,
                    check_same_thread=False,
                )
                self._beside[path] = file
                found = file.execute(_ROW, (bytes.fromhex(key),)).fetchone()
            except sqlite3.Error as err:
                # It only saves calls, and another run may be writing to it.
                _LOG.info("the verdicts of %s are not looked up: %s", path, err)
                del self._beside[path]
                continue
            if found is not None:
                return Row(*found)
        return None

    async def claim(self, key: str) -> Record | None:
        """Return the record of a key, or None if the caller must make the call now.

        While another process makes the same call, its record is waited for. A caller that gets None
        ends its claim with :meth:`put` or :meth:`release`, and renews it with :meth:`renew`.
        """
        while (record := await self.get(key)) is None:
            record, ours = await self._run(
                _WRITE, lambda file: file.claim(key, self._owner, _CLAIM_SECONDS), _OURS
            )
            if record is not None or ours:
                break
            await self._sleep(_POLL_SECONDS)
        return record

    async def renew(self, key: str) -> None:
        """Keep a claim whose call is still under way; to be called every 20 seconds."""
        await self._run(_WRITE, lambda file: file.renew(key, self._owner, _CLAIM_SECONDS), None)

    async def release(self, key: str) -> None:
        """End a claim whose call produced no record."""
        await self._run(_WRITE, lambda file: file.release(key, self._owner), None)

    async def release_all(self) -> None:
        """End all claims: those who made the calls have died."""
        await self._run(_WRITE, lambda file: file.release_all(self._owner), None)

    async def put(self, key: str, judge: str, record: Record) -> None:
        """Keep a record, even if the caller is cancelled meanwhile.

        Args:
            key: From :func:`cache_key`.
            judge: The judge in words, for people who look at the file.
            record: The record.
        """
        text = json.dumps(record, separators=(",", ":"), sort_keys=True)
        row = Row(bytes.fromhex(key), judge, text)
        self._pend(key, row)
        await self._write()

    async def _write(self) -> None:
        """Write what waits in memory, now or when the file can be used again."""
        await self._run(_WRITE, lambda _file: None, None)
        if self._is_waiting and (self._writer is None or self._writer.done()):
            self._writer = begun(self._write_later())

    async def _write_later(self) -> None:
        while self._is_waiting:
            await self._sleep(_RETRY_SECONDS)
            await self._run(_WRITE, lambda _file: None, None)

    @property
    def _is_waiting(self) -> bool:
        return bool(self._pending or self._pending_facts)

    async def fact_of(self, url: str, model: str, fact: str) -> str | None:
        """Return what is known of the judge at an address, for runs while it is away.

        Args:
            url: The address.
            model: The judge's model.
            fact: ``SERVER_VERSION``, ``ANSWERED``: whether it ever answered a call, ``THINKS``:
                whether it thinks before it answers, or ``DIALECT``.
        """
        if (value := self._pending_facts.get((url, model, fact))) is not None:
            return value
        return await self._run(_READ, lambda file: file.fact_of(url, model, fact), None)

    async def keep_fact(self, url: str, model: str, fact: str, value: str) -> None:
        """Keep what was seen of the judge at an address."""
        self._pending_facts[url, model, fact] = value
        await self._write()

    async def count(self) -> int:
        """Return the number of records, those that wait in memory included."""
        return await self._run(_READ, lambda file: len(file), 0) + len(self._pending)

    async def close(self) -> None:
        """Write what waits in memory and close the file."""

        def end() -> None:
            # The last chance to write, also soon after a failure.
            self._retry_at[_WRITE] = float("-inf")
            with suppress(InvalidInputError):
                # Calls that were cancelled end their claims later, when the file is closed.
                self._with_file(_WRITE, lambda file: file.release_all(self._owner), None)
            if self._pending:
                _LOG.warning(
                    "verdict cache %s: %d records were not written", self.path, len(self._pending)
                )
            if self._file is not None:
                self._file.close()
            for opened in filter(None, self._beside.values()):
                opened.close()

        if self._writer is not None:
            self._writer.cancel()
        # From here on nothing is queued behind the end.
        self._is_closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, end)
        # The end was awaited above; waiting here would block the event loop.
        self._thread.shutdown(wait=False)

    async def _run(self, kind: str, work: Callable[[CacheFile], _T], otherwise: _T) -> _T:
        """Do work in the cache's thread; a caller that is cancelled does not call it off."""
        if self._is_closed:
            return otherwise
        done = await shielded(self._thread.submit(self._with_file, kind, work, otherwise))
        if self._unkept and kind == _WRITE:
            tenancy().gate.cannot_keep(self._unkept)
        return done

    def _with_file(self, kind: str, work: Callable[[CacheFile], _T], otherwise: _T) -> _T:
        """Do work with the file, or return the other value while the file cannot be used."""
        if self._clock() < self._retry_at[kind]:
            return otherwise
        try:
            try:
                return self._done(kind, work)
            except DatabaseLostError as err:
                self._reopen(err)
                return self._done(kind, work)
        except (sqlite3.Error, OSError, DatabaseLostError) as err:
            self._degrade(kind, err)
            return otherwise
        except InvalidInputError as err:
            # Before the first call an unusable file is an error; later, paid work goes on.
            if not self._was_open:
                raise
            self._degrade(kind, err)
            return otherwise

    def _done(self, kind: str, work: Callable[[CacheFile], _T]) -> _T:
        if self._file is None:
            self._file = CacheFile(self.path, self._busy_seconds)
            self._was_open = True
        # A file that was deleted or replaced stays open here, and writes to it would be lost.
        self._file.check()
        if kind == _WRITE:
            self._flush(self._file)
        done = work(self._file)
        if kind == _WRITE:
            self._unkept = ""
        return done

    def _reopen(self, problem: DatabaseLostError) -> None:
        """Open the file that is there now, and keep the records of the lost one in it."""
        gone, self._file = self._file, None
        assert gone is not None, "a file that was not opened is not lost"
        rows = []
        with suppress(sqlite3.Error):
            rows = gone.rows()
        gone.close()
        # They wait in memory if the new file can't be opened.
        for row in rows:
            self._pending.setdefault(row.key.hex(), row)
        # A folder that was deleted too is made again, so that what was paid for is kept at once.
        create_folder(self.path.parent)
        if not self.path.exists():
            # Logs of the deleted file do not belong to the new one.
            for end in ("-wal", "-shm"):
                self.path.with_name(self.path.name + end).unlink(missing_ok=True)
        self._file = CacheFile(self.path, self._busy_seconds)
        self._flush(self._file)
        _LOG.warning(
            "verdict cache %s is used again with %d records (%s); calls whose records are not "
            "among them are paid for again",
            self.path,
            len(self._file),
            problem,
        )

    def _pend(self, key: str, row: Row) -> None:
        if len(self._pending) < _MAX_PENDING:
            self._pending[key] = row

    def _flush(self, file: CacheFile) -> None:
        """Write what waits in memory."""
        # A copy, here and below: the event loop's thread may add more meanwhile.
        for fact, value in list(self._pending_facts.items()):
            file.keep_fact(*fact, value)
            self._pending_facts.pop(fact, None)
        if waiting := dict(self._pending):
            file.put(waiting.values())
            for key in waiting:
                self._pending.pop(key, None)
            if self._warned:
                self._warned = False
                _LOG.warning("verdict cache %s can be written again", self.path)

    def _degrade(self, kind: str, err: Exception) -> None:
        self._retry_at[kind] = self._clock() + _RETRY_SECONDS
        if kind == _WRITE and lacks_room(err):
            self._unkept = (
                f"replies can't be kept in {self.path} ({err}), so no further call is sent and "
                "paid for. Make room there and go on: what was kept is not paid for again"
            )
        if not self._warned:
            self._warned = True
            _LOG.warning(
                "verdict cache %s cannot be used now (%s); verdicts wait in memory, and are "
                "written when it can be used again",
                self.path,
                err,
            )


class KeptReplies(CallGate):
    """Sends the calls of a run only while their replies can be kept.

    Once the disk is full, further replies would be paid for and lost.
    """

    def __init__(self) -> None:
        self._problem = ""

    @property
    def is_closed(self) -> bool:
        """Whether no further call may be sent."""
        return bool(self._problem)

    async def leave(self) -> None:
        """Let a call be sent.

        Raises:
            OutputError: Its reply could not be kept.
        """
        if self._problem:
            raise OutputError(self._problem)

    def cannot_keep(self, problem: str) -> None:
        """Send no further call."""
        self._problem = problem
