"""The report of many items that workers scored, from the shares of their batches."""

from __future__ import annotations

from ...access.turns import LONG_CHARS
from .frames import Reply, Task
from .pool import WorkerPool

__all__ = ["Tallies"]

# Shares of a report that are kept before they are merged: those of about 100,000 captions.
_TALLY_BYTES = 4 << 20
# Those of about 5,000 captions.
_LONG_BYTES = 256 << 10


class Tallies:
    """Keeps shares of a report.

    Args:
        pool: The workers.
        spec: How items are scored.
    """

    def __init__(self, pool: WorkerPool, spec: bytes) -> None:
        self._pool = pool
        self._spec = spec
        self._tallies: list[bytes] = []
        self._most_bytes = _TALLY_BYTES

    async def add(self, tally: bytes) -> None:
        """Keep a share; many are merged, which folds those of many items."""
        self._tallies.append(tally)
        if self._size > self._most_bytes:
            task = Task(kind="merge", parts=(self._spec, *self._tallies))
            [merged] = (await self._pool.run(task, long=True)).parts
            self._tallies = [merged]
            self._most_bytes = _TALLY_BYTES + 2 * len(merged)

    async def report(self, kind: str) -> Reply:
        """Return the reply to a task that makes the report of all shares."""
        long = self._size > _LONG_BYTES or len(self._spec) > LONG_CHARS
        return await self._pool.run(Task(kind=kind, parts=(self._spec, *self._tallies)), long=long)

    @property
    def _size(self) -> int:
        return sum(map(len, self._tallies))
