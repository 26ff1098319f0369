"""Changes of jobs: who waits for them, and since when there was none."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from ..observe.recorder import JobsActivity
from . import JobState

_UNDER_WAY = (JobState.QUEUED, JobState.RUNNING)

# Counting reads an index of all jobs; metrics are fetched every 15 seconds or so.
_COUNT_SECONDS = 2.0


class Activity:
    """Follows the jobs of a database. It may be read from another thread.

    Args:
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: Mapping[str, int] = {}
        self._counted_at = float("-inf")
        self._moved_at: float | None = None

    @property
    def state(self) -> JobsActivity:
        """What metrics show."""
        moved_at = self._moved_at
        still = 0.0 if moved_at is None else self._clock() - moved_at
        return JobsActivity(counts=self._counts, still_seconds=still)

    @property
    def count_is_due(self) -> bool:
        """Whether the jobs were last counted some time ago."""
        return self._clock() - self._counted_at >= _COUNT_SECONDS

    def begin(self) -> None:
        """Note that there may be jobs under way; whether they move shows from now on."""
        if self._moved_at is None:
            self.moved()

    def moved(self) -> None:
        """Note that a job got results or ended, or that another server runs the jobs."""
        self._moved_at = self._clock()

    def counted(self, counts: Mapping[str, int]) -> None:
        """Note how many jobs there are.

        Args:
            counts: State -> number of jobs, without the states that no job has.
        """
        self._counts = {state.value: counts.get(state.value, 0) for state in JobState}
        self._counted_at = self._clock()
        if not any(self._counts[state.value] for state in _UNDER_WAY):
            self.moved()


class Changes:
    """Wakes the tasks that wait for a change of any job in this process."""

    def __init__(self) -> None:
        self.next = asyncio.Event()
        """The event of the next change; take it before looking at what may change."""

    def notify(self) -> None:
        """Wake all tasks that wait."""
        self.next.set()
        self.next = asyncio.Event()

    async def wait(self, change: asyncio.Event, seconds: float) -> None:
        """Wait for a change, but no longer than this: changes by another server are not notified.

        Args:
            change: From :attr:`next`.
            seconds: The longest wait.
        """
        with suppress(TimeoutError):
            await asyncio.wait_for(change.wait(), seconds)
