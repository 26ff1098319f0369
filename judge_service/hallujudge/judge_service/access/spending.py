"""What each key spent on language models, by day; kept in a file that survives restarts."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..errors import OutputError
from .caller import Caller

_LOG = logging.getLogger(__name__)
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS spending (key TEXT NOT NULL, day TEXT NOT NULL, "
    "calls INTEGER NOT NULL, cost REAL NOT NULL, PRIMARY KEY (key, day)) WITHOUT ROWID"
)
# One statement checks and takes, so that several processes can't exceed a limit together.
_TAKE = (
    "UPDATE spending SET calls = calls + 1, cost = cost + :cost WHERE key = :key AND day = :day "
    "AND (:max_calls IS NULL OR calls < :max_calls) "
    "AND (:max_cost IS NULL OR cost + :cost <= :max_cost)"
)
# Other processes hold the lock for one statement only.
_LOCKED_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a key spent on one day."""

    calls: int = 0
    """Calls to language models, running ones included."""
    cost: float = 0.0
    """Money, the most that running calls can cost included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The most that one call can cost, taken from a key's day."""

    key: str
    """The key's id."""
    day: str
    """The day."""
    cost: float
    """The most that the call can cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowded:
    """A call that does not fit now, but may fit when the key's running calls have ended."""

    settled: asyncio.Event
    """Set when the cost of a running call is known."""


def today() -> str:
    """Return the day (UTC)."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


class Ledger:
    """Keeps what keys spend. A call is written down with its highest cost before it is sent.

    A server that dies in between has counted the call: it may have been charged for.

    Args:
        path: The SQLite file; it is made if it is missing.
        day: Returns the day.

    Raises:
        OutputError: The file can't be used.
    """

    def __init__(self, path: Path, day: Callable[[], str] = today) -> None:
        self._path = path
        self._day = day
        self._lock = threading.Lock()
        self._running: Counter[tuple[str, str]] = Counter()
        self._held: dict[tuple[str, str], float] = {}
        self._settled = asyncio.Event()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(
                path, timeout=_LOCKED_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._file.execute("PRAGMA journal_mode = WAL")
            # A power loss may lose the last calls' costs; syncing each call would slow all of them.
            self._file.execute("PRAGMA synchronous = NORMAL")
            self._file.execute(_SCHEMA)
        except (sqlite3.Error, OSError) as err:
            raise OutputError(
                f"the spending file {path} can't be used ({err}); check its folder, or set "
                "spending_file"
            ) from err

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def take(self, caller: Caller, cost: float, *, priced: bool) -> Hold | Crowded | str | None:
        """Count one call of a caller before it is sent.

        Args:
            caller: The caller.
            cost: The most that the call can cost.
            priced: Whether prices are known; without them no limit of money can be kept.

        Returns:
            What :meth:`settle` needs; None for a caller without a key; what a call has to wait for
            that may fit once running calls of this process cost less than they hold; or why the
            call may not be made, in words.
        """
        if not caller.key_id:
            return None
        limits, day = caller.limits, self._day()
        if limits.cost_per_day is not None and not priced:
            return (
                f"{caller.name} has a budget in money, but this server has no prices; set "
                "llm_price_prompt and llm_price_completion"
            )
        values = {
            "key": caller.key_id,
            "day": day,
            "cost": cost,
            "max_calls": limits.judge_calls_per_day,
            "max_cost": limits.cost_per_day,
        }
        try:
            with self._lock:
                self._file.execute(
                    "INSERT OR IGNORE INTO spending VALUES (:key, :day, 0, 0)", values
                )
                taken = self._file.execute(_TAKE, values).rowcount
        except sqlite3.Error as err:
            _LOG.error("spending file %s: %s", self._path, err)
            return "what the key spent can't be written down; ask the server's administrator"
        if not taken:
            return self._refusal(caller, day, cost)
        self._running[caller.key_id, day] += 1
        self._held[caller.key_id, day] = self._held.get((caller.key_id, day), 0.0) + cost
        return Hold(key=caller.key_id, day=day, cost=cost)

    def settle(self, hold: Hold, cost: float) -> None:
        """Replace the highest cost of a call by what it cost."""
        self._release(hold)
        try:
            with self._lock:
                self._file.execute(
                    "UPDATE spending SET cost = max(0.0, cost + ?) WHERE key = ? AND day = ?",
                    (cost - hold.cost, hold.key, hold.day),
                )
        except sqlite3.Error as err:
            _LOG.error("spending file %s: %s", self._path, err)
        self._settled.set()
        self._settled = asyncio.Event()

    def _release(self, hold: Hold) -> None:
        of = hold.key, hold.day
        self._running[of] -= 1
        self._held[of] -= hold.cost
        if not self._running[of]:
            del self._running[of], self._held[of]

    def spent(self, key_id: str) -> Spent:
        """Return what a key spent today."""
        with self._lock:
            row = self._file.execute(
                "SELECT calls, cost FROM spending WHERE key = ? AND day = ?", (key_id, self._day())
            ).fetchone()
        return Spent(calls=row[0], cost=row[1]) if row else Spent()

    def _refusal(self, caller: Caller, day: str, cost: float) -> Crowded | str:
        spent, limits = self.spent(caller.key_id), caller.limits
        calls, most = limits.judge_calls_per_day, limits.cost_per_day
        held = self._held.get((caller.key_id, day))
        calls_left = calls is None or spent.calls < calls
        if (
            held is not None
            and calls_left
            and most is not None
            and spent.cost - held + cost <= most
        ):
            return Crowded(settled=self._settled)
        parts = []
        if calls is not None:
            parts.append(f"{spent.calls} of {calls} judge calls made")
        if most is not None:
            parts.append(f"{spent.cost:.6f} of {most:.6f} spent or reserved")
        return f"{caller.name}: {', '.join(parts)} today; the budget is renewed at 00:00 UTC"
