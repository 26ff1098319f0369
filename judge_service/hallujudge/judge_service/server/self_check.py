"""The server's own check: it scores a small item now and then, and tells whether it is well."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from ..engine import Engine, ScoreSpec
from ..engine.registry import metric_entry
from ..observe.recorder import Recorder, begin_recording

__all__ = ["SelfCheck"]

_LOG = logging.getLogger(__name__)
_METRIC = "chair"
# A server without a good score for this many rounds needs a restart, not only fewer calls.
_DEAD_ROUNDS = 3


class SelfCheck:
    """Scores a tiny CHAIR item with a known score.

    Args:
        engine: Scores it.
        interval: Seconds between scores.
        limit: Seconds that a score may take.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        interval: float,
        limit: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._interval = interval
        self._limit = limit
        self._clock = clock
        self._good_at = clock()
        self.problem = ""
        """What was wrong with the last score; empty: nothing."""
        self.seconds = 0.0
        """How long the last score took."""
        self.draining = False
        """Whether the server is about to end."""

    def alive(self) -> str:
        """Return why the process should be restarted; empty: it is well.

        It may be called from another thread, so that a blocked event loop is found out.
        """
        silent = self._clock() - self._good_at
        if self._interval and silent > _DEAD_ROUNDS * (self._interval + self._limit):
            return f"no correct score for {silent:.0f} s; {self.problem or 'the loop is blocked'}"
        return ""

    def ready(self) -> str:
        """Return why no calls should come; empty: they are welcome."""
        if self.draining:
            return "the server is draining"
        return self.problem or self.alive()

    async def check(self) -> str:
        """Score the item once; return what is wrong, or an empty text."""
        began = self._clock()
        try:
            self.problem = await asyncio.wait_for(self._wrong(), self._limit)
        except TimeoutError:
            self.problem = f"scoring a small item took longer than {self._limit:g} s"
        except Exception as error:
            self.problem = f"scoring a small item failed: {type(error).__name__}"
        self.seconds = self._clock() - began
        if not self.problem:
            self._good_at = self._clock()
        return self.problem

    async def run(self, tell: Callable[[bool], None]) -> None:
        """Check until cancelled.

        Args:
            tell: Told whether the server is well, whenever that changes.
        """
        begin_recording(Recorder())  # no caller sent the item
        well = True
        while True:
            problem = await self.check()
            if well is bool(problem):
                well = not well
                _LOG.log(
                    logging.INFO if well else logging.ERROR,
                    "self check: %s",
                    problem or "well again",
                )
                tell(well)
            await asyncio.sleep(self._interval)

    async def _wrong(self) -> str:
        trial = metric_entry(_METRIC).trial
        session = await self._engine.open(ScoreSpec(metric=_METRIC))
        [result] = await session.score([trial.item])
        value = result.scores.get(trial.score)
        if value != trial.value:
            return f"{trial.score} of a small item is {value}, not {trial.value:g}"
        return ""
