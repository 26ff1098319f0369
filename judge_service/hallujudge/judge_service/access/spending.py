"""What each key spent on language models, by day; kept in a file that survives restarts."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from ..errors import OutputError, UnavailableError, VersionMismatchError
from ..state_files import (
    DatabaseLostError,
    DatabaseWatch,
    Migrations,
    NewerFormatError,
    create_folder,
    create_private,
    migrate,
    transaction,
)
from ..tenancy import Crowded, Hold, User
from ..threads import shielded

_LOG = logging.getLogger(__name__)
SPENDING_FORMAT = 1
"""Raised when older releases could misread what newer ones write."""

MIGRATIONS: Migrations = {}
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS spending (key TEXT NOT NULL, day TEXT NOT NULL, "
    "calls INTEGER NOT NULL, cost REAL NOT NULL, PRIMARY KEY (key, day)) WITHOUT ROWID"
)
_ADD = (
    "INSERT INTO spending VALUES (:key, :day, max(0, :calls), max(0.0, :cost)) "
    "ON CONFLICT (key, day) DO UPDATE "
    "SET calls = max(0, calls + :calls), cost = max(0.0, cost + :cost)"
)
# One statement checks and takes, so that several processes can't exceed a limit together.
_TAKE = (
    "UPDATE spending SET calls = calls + 1, cost = cost + :cost WHERE key = :key AND day = :day "
    "AND (:max_calls IS NULL OR calls < :max_calls) "
    "AND (:max_cost IS NULL OR cost + :cost <= :max_cost)"
)
_SPENT = "SELECT calls, cost FROM spending WHERE key = ? AND day = ?"
# How long a call waits for another program's lock, such as that of a backup.
_BUSY_SECONDS = 30.0
# Opening holds up the start of the server.
_OPEN_SECONDS = 2.0
# Far shorter than any call, and rare enough to cost nothing.
_PAUSE_SECONDS = 0.05
# A full or broken disk needs longer to come back than a lock.
_BROKEN_SECONDS = 1.0
_FAILURES = (sqlite3.Error, DatabaseLostError)
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_RETRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a key spent on one day."""

    calls: int = 0
    """Calls to language models, running ones included."""
    cost: float = 0.0
    """Money, the most that running calls can cost included."""


@dataclass(slots=True)
class _Spending:
    """Calls and their cost, of one key on one day."""

    calls: int = 0
    cost: float = 0.0


_Of: TypeAlias = tuple[str, str]


def _make_tables(file: sqlite3.Connection) -> None:
    """Make the table of a new file, or bring an older one to this format, in one transaction.

    Raises:
        NewerFormatError: A newer release wrote the file.
    """
    # A file in this format is not locked, which another program may do at this moment.
    if _format(file) == SPENDING_FORMAT:
        return
    with transaction(file, write=True):
        if found := _format(file):
            migrate(file.execute, found, SPENDING_FORMAT, MIGRATIONS)
        file.execute(_SCHEMA)
        file.execute(f"PRAGMA user_version = {SPENDING_FORMAT}")


def _format(file: sqlite3.Connection) -> int:
    return int(file.execute("PRAGMA user_version").fetchone()[0])


def today() -> str:
    """Return the day (UTC)."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


class Ledger:
    """Keeps what keys spend. A call is written down with its highest cost before it is sent.

    A server that dies in between has counted the call: it may have been charged for. The file is
    used in a thread of its own. While another program has locked it, calls of keys with a daily
    limit wait, and those of other keys are written down as soon as possible. After any other
    failure calls are refused, and what is not written yet is tried again.

    Args:
        path: The SQLite file; it is made if it is missing.
        day: Returns the day.
        clock: Seconds on a clock that never goes back.
        busy_seconds: How long a call waits until it can be written down.

    Raises:
        OutputError: The file can't be used.
        VersionMismatchError: A newer release wrote it.
    """

    def __init__(
        self,
        path: Path,
        day: Callable[[], str] = today,
        *,
        clock: Callable[[], float] = time.monotonic,
        busy_seconds: float = _BUSY_SECONDS,
    ) -> None:
        self._path = path
        self._day = day
        self._clock = clock
        self._busy_seconds = busy_seconds
        self._closing = threading.Event()
        self._settled: Future[None] = Future()
        # What follows changes in the thread only.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hallujudge-spending")
        self._unwritten: dict[_Of, _Spending] = {}
        self._running: dict[_Of, _Spending] = {}
        self._late_since: float | None = None
        self._is_waiting = False
        self._problem = ""
        try:
            create_folder(path.parent)
            create_private(path)
            self._file, self._watch = self._thread.submit(self._opened).result()
        except NewerFormatError as err:
            raise VersionMismatchError(f"the spending file {path} can't be used: {err}") from err
        except (sqlite3.Error, OSError) as err:
            raise OutputError(
                f"the spending file {path} can't be used ({err}); check its folder, or set "
                "access.spending_file"
            ) from err

    @property
    def database_id(self) -> str:
        """The id of the file, which another file does not have."""
        return self._watch.id

    async def written(self) -> None:
        """Wait until everything is written down."""
        while await shielded(self._thread.submit(lambda: bool(self._unwritten))):
            await asyncio.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        """Write down what is not written yet, and close the file."""
        self._closing.set()
        self._thread.submit(self._closed).result()

    async def take(self, user: User, cost: float, *, priced: bool) -> Hold | Crowded | str | None:
        """Count one call of a user before it is sent.

        Args:
            user: The caller.
            cost: The most that the call can cost.
            priced: Whether prices are known; without them no limit of money can be kept.

        Returns:
            What :meth:`settle` needs; None for a caller without a key; what a call has to wait for
            that may fit once running calls of this process cost less than they hold; or why the
            call may not be made, in words.

        Raises:
            UnavailableError: The call can't be written down.
        """
        if not user.key_id:
            return None
        limits = user.limits
        if limits.cost_per_day is not None and not priced:
            return (
                f"{user.name} has a budget in money, but this server has no prices; set "
                "llm.price_prompt and llm.price_completion"
            )
        hold = Hold(key=user.key_id, day=self._day(), cost=cost)
        if self._is_punctual and limits.cost_per_day is None and limits.judge_calls_per_day is None:
            self._thread.submit(self._count, hold)
            return hold
        work = self._thread.submit(self._taken, user, hold, self._clock() + self._busy_seconds)
        try:
            return await shielded(work)
        except asyncio.CancelledError:
            # It is still written down, now or later, for a call that is not made.
            work.add_done_callback(self._undo)
            raise

    def settle(self, hold: Hold, cost: float) -> None:
        """Replace the highest cost of a call by what it cost, soon."""
        self._thread.submit(self._end, hold, cost - hold.cost)

    def give_back(self, hold: Hold) -> None:
        """Forget a call that was not sent, soon."""
        self._thread.submit(self._end, hold, -hold.cost, -1)

    def spent(self, key_id: str) -> Spent:
        """Return what a key spent today."""
        return self._thread.submit(self._spent, key_id, self._day()).result()

    @property
    def _is_punctual(self) -> bool:
        """Whether what is to be written down waits for no longer than a call would."""
        late = self._late_since
        return not (self._problem or self._closing.is_set()) and (
            late is None or self._clock() - late < self._busy_seconds
        )

    def _opened(self) -> tuple[sqlite3.Connection, DatabaseWatch]:
        file = sqlite3.connect(
            self._path, timeout=_OPEN_SECONDS, isolation_level=None, check_same_thread=False
        )
        file.execute("PRAGMA journal_mode = WAL")
        # A power loss may lose the last calls' costs; syncing each call would slow all of them.
        file.execute("PRAGMA synchronous = NORMAL")
        _make_tables(file)
        watch = DatabaseWatch("", self._path)
        watch.begin(file.execute)
        # Each call has its own deadline, which passes for many calls at once.
        file.execute("PRAGMA busy_timeout = 0")
        return file, watch

    def _count(self, hold: Hold) -> None:
        """Write down a call without a limit, soon."""
        _add(self._running, hold, 1, hold.cost)
        _add(self._unwritten, hold, 1, hold.cost)
        self._flush()

    def _taken(self, user: User, hold: Hold, until: float) -> Hold | Crowded | str:
        values = {
            "key": hold.key,
            "day": hold.day,
            "cost": hold.cost,
            "max_calls": user.limits.judge_calls_per_day,
            "max_cost": user.limits.cost_per_day,
        }
        while True:
            try:
                with self._writing():
                    # The first call of a day makes the row in which the next statement counts.
                    self._file.execute(
                        "INSERT OR IGNORE INTO spending VALUES (:key, :day, 0, 0)", values
                    )
                    taken = self._file.execute(_TAKE, values).rowcount
                break
            except _FAILURES as err:
                if not self._is_late(err) or self._clock() >= until or self._closing.is_set():
                    raise _unwritable() from err
                self._closing.wait(_PAUSE_SECONDS)
        if not taken:
            return self._refusal(user, hold)
        _add(self._running, hold, 1, hold.cost)
        return hold

    def _undo(self, work: Future[Hold | Crowded | str]) -> None:
        if work.exception() is None and isinstance(hold := work.result(), Hold):
            self.give_back(hold)

    def _end(self, hold: Hold, cost: float, calls: int = 0) -> None:
        """Note that a call no longer runs, and how what is written down of it changes."""
        _add(self._running, hold, -1, -hold.cost)
        if not self._running[hold.key, hold.day].calls:
            del self._running[hold.key, hold.day]
        _add(self._unwritten, hold, calls, cost)
        self._flush()
        # Replaced first: a caller that is woken and still does not fit waits for the next one.
        settled, self._settled = self._settled, Future()
        settled.set_result(None)

    def _flush(self) -> None:
        """Write down what is not written yet, now or when the file can be written again."""
        if not self._unwritten:
            return
        try:
            # The transaction itself writes what waits.
            with self._writing():
                pass
        except _FAILURES as err:
            pause = 0.0 if self._is_late(err) else _BROKEN_SECONDS
            if not self._is_waiting:  # one attempt at a time waits
                self._thread.submit(self._flush_later, self._clock() + pause)
                self._is_waiting = True

    def _flush_later(self, moment: float) -> None:
        if self._closing.is_set():  # what is left was tried for the last time, or will be
            return
        self._closing.wait(_PAUSE_SECONDS)
        if self._clock() < moment:  # calls that came meanwhile are in the queue before this
            self._thread.submit(self._flush_later, moment)
            return
        self._is_waiting = False
        self._flush()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Provide a transaction, in which also is written what was not written before."""
        with self._watch.transaction(self._file):
            waiting = [
                {"key": key, "day": day, "calls": one.calls, "cost": one.cost}
                for (key, day), one in self._unwritten.items()
            ]
            self._file.executemany(_ADD, waiting)
            yield
        self._unwritten.clear()
        self._late_since, self._problem = None, ""

    def _is_late(self, error: Exception) -> bool:
        """Return whether the file is locked only; log what is wrong, once."""
        code = getattr(error, "sqlite_errorcode", None) or 0
        busy = code & 0xFF in _BUSY
        problem = "" if busy else str(error)
        if problem != self._problem or self._late_since is None:
            _LOG.error(
                "spending file %s: %s; judge calls of keys wait or are refused", self._path, error
            )
        self._problem = problem
        if self._late_since is None:
            self._late_since = self._clock()
        return busy

    def _spent(self, key: str, day: str) -> Spent:
        row = self._file.execute(_SPENT, (key, day)).fetchone() or (0, 0.0)
        more = self._unwritten.get((key, day), _Spending())
        return Spent(calls=row[0] + more.calls, cost=row[1] + more.cost)

    def _closed(self) -> None:
        self._flush()
        for (key, day), lost in self._unwritten.items():
            _LOG.error(
                "spending file %s: not written down for key %s on %s: %d calls, cost %+.6f",
                self._path, key, day, lost.calls, lost.cost,
            )  # fmt: skip
        self._file.close()

    def _refusal(self, user: User, hold: Hold) -> Crowded | str:
        spent, limits = self._spent(hold.key, hold.day), user.limits
        calls, most = limits.judge_calls_per_day, limits.cost_per_day
        running = self._running.get((hold.key, hold.day))
        calls_left = calls is None or spent.calls < calls
        if (
            running is not None
            and calls_left
            and most is not None
            and spent.cost - running.cost + hold.cost <= most
        ):
            return Crowded(settled=self._settled)
        parts = []
        if calls is not None:
            parts.append(f"{spent.calls} of {calls} judge calls made")
        if most is not None:
            parts.append(f"{spent.cost:.6f} of {most:.6f} spent or reserved")
        return f"{user.name}: {', '.join(parts)} today; the budget is renewed at 00:00 UTC"


def _add(to: dict[_Of, _Spending], hold: Hold, calls: int, cost: float) -> None:
    entry = to.setdefault((hold.key, hold.day), _Spending())
    entry.calls += calls
    entry.cost += cost


def _unwritable() -> UnavailableError:
    return UnavailableError(
        "what the key spent can't be written down, so no judge is called for it; ask the server's "
        f"administrator, whose log says why. Try again in {_RETRY_SECONDS:g} s",
        reason="SPENDING_UNAVAILABLE",
        retry_after=_RETRY_SECONDS,
    )
