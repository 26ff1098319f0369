"""What each key spent on language models, by day; kept in a file that survives restarts."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..errors import OutputError
from .caller import Caller

__all__ = ["Hold", "Ledger", "Spent"]

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
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(
                path, timeout=_LOCKED_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._file.execute("PRAGMA journal_mode = WAL")
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

    def take(self, caller: Caller, cost: float, *, priced: bool) -> Hold | str | None:
        """Count one call of a caller before it is sent.

        Args:
            caller: The caller.
            cost: The most that the call can cost.
            priced: Whether prices are known; without them no limit of money can be kept.

        Returns:
            What :meth:`settle` needs; None for a caller without a key; or why the call may not be
            made, in words.
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
        if taken:
            return Hold(key=caller.key_id, day=day, cost=cost)
        return self._refusal(caller)

    def settle(self, hold: Hold, cost: float) -> None:
        """Replace the highest cost of a call by what it cost."""
        try:
            with self._lock:
                self._file.execute(
                    "UPDATE spending SET cost = max(0.0, cost + ?) WHERE key = ? AND day = ?",
                    (cost - hold.cost, hold.key, hold.day),
                )
        except sqlite3.Error as err:
            _LOG.error("spending file %s: %s", self._path, err)

    def spent(self, key_id: str) -> Spent:
        """Return what a key spent today."""
        with self._lock:
            row = self._file.execute(
                "SELECT calls, cost FROM spending WHERE key = ? AND day = ?", (key_id, self._day())
            ).fetchone()
        return Spent(calls=row[0], cost=row[1]) if row else Spent()

    def _refusal(self, caller: Caller) -> str:
        spent, limits = self.spent(caller.key_id), caller.limits
        parts = []
        if limits.judge_calls_per_day is not None:
            parts.append(f"{spent.calls} of {limits.judge_calls_per_day} judge calls made")
        if limits.cost_per_day is not None:
            parts.append(f"{spent.cost:.6f} of {limits.cost_per_day:.6f} spent or reserved")
        return f"{caller.name}: {', '.join(parts)} today; the budget is renewed at 00:00 UTC"
