"""When a call ends early: no first message, no more messages, too long, or the server stops."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from ..errors import DeadlineError, HallujudgeError, UnavailableError

__all__ = ["CallClock", "CallTimes", "RunningCalls"]

# How much later than its time a call may end: all of them share one timer.
_LATE_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTimes:
    """How long calls may take, in seconds."""

    first_message: float
    """Until the first message has arrived."""
    idle: float
    """Between messages of a stream, in either direction."""
    total: float
    """In total."""


class CallClock:
    """Ends the block of a call that lasts too long. It frees the call's place in every case.

    Args:
        times: How long calls may take.
        many: Whether the client sends any number of messages, and is expected to go on.
        running: Knows the clocks of running calls.
    """

    def __init__(self, times: CallTimes, *, many: bool, running: RunningCalls) -> None:
        self._times = times
        self._running = running
        self._many = many
        self._begun = False
        self._stopped = False
        self._over = False
        self._cancelled = False
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        now = asyncio.get_running_loop().time()
        self._end = now + times.total
        self.due = min(now + times.first_message, self._end)
        """When the block is ended."""

    def stop(self) -> None:
        """End the block now, because the server stops."""
        self._stopped = True
        self.over()

    def over(self) -> None:
        """End the block now."""
        if not self._over:
            self._over = True
            # Not at once: the task of the block may be the one that runs.
            asyncio.get_running_loop().call_soon(self._cancel)

    def moved(self) -> None:
        """Note that a message arrived, or that the client took one that it waited for."""
        self._begun = True
        self.due = self._end
        if self._many:
            now = asyncio.get_running_loop().time()
            self.due = min(now + self._times.idle, self._end)
        self._running.look_at(self.due)

    def __enter__(self) -> CallClock:
        """Begin."""
        task = asyncio.current_task()
        assert task is not None, "a call has a task"
        self._task, self._cancelling = task, task.cancelling()
        self._running.begin(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, and say which time was over.

        Raises:
            DeadlineError: The call lasted too long.
            UnavailableError: The server stops.
        """
        self._running.end(self)
        task, self._task = self._task, None
        # As in asyncio.timeout(): a task that others cancel too stays cancelled.
        alone = self._cancelled and task is not None and task.uncancel() <= self._cancelling
        if alone and kind is asyncio.CancelledError:
            raise self._error() from error

    def _cancel(self) -> None:
        if self._task is not None:
            self._cancelled = True
            self._task.cancel()

    def _error(self) -> HallujudgeError:
        if self._stopped:
            return UnavailableError(
                "the server stops and ended the call; call again when it is back, or another one",
                reason="SERVER_DRAINING",
            )
        if asyncio.get_running_loop().time() >= self._end:
            return DeadlineError(
                f"the call took longer than {self._times.total:g} s; use a new call for the rest",
                reason="CALL_TOO_LONG",
            )
        if not self._begun:
            return DeadlineError(
                f"no message came within {self._times.first_message:g} s; send one",
                reason="STREAM_IDLE",
            )
        return DeadlineError(
            f"nothing was sent or read for {self._times.idle:g} s; open a stream when there is "
            "something to send, and read its responses",
            reason="STREAM_IDLE",
        )


class RunningCalls:
    """The calls that are running, so that a server that stops can end them.

    gRPC would cancel them: their clients would get a bare status, and some of them a traceback in
    the server's log.

    Args:
        times: How long calls may take.
    """

    def __init__(self, times: CallTimes) -> None:
        self._times = times
        self._clocks: set[CallClock] = set()
        self._stopped = False
        # One timer for all calls: most end before it is due, and set none of their own.
        self._timer: asyncio.TimerHandle | None = None

    def clock(self, *, many: bool) -> CallClock:
        """Return the clock of a call, whose block ends when its time is over or the server stops.

        Args:
            many: Whether the client sends any number of messages.
        """
        return CallClock(self._times, many=many, running=self)

    def begin(self, clock: CallClock) -> None:
        """Note that a call runs; after a stop it ends at once."""
        self._clocks.add(clock)
        if self._stopped:
            clock.stop()
        else:
            self.look_at(clock.due)

    def end(self, clock: CallClock) -> None:
        """Note that a call has ended."""
        self._clocks.discard(clock)

    def look_at(self, moment: float) -> None:
        """Look for calls whose time is over at a moment, or before."""
        if self._timer is not None:
            if self._timer.when() <= moment:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(moment, self._look)

    def _look(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        for clock in [clock for clock in self._clocks if clock.due <= now]:
            clock.over()
        later = [clock.due for clock in self._clocks if clock.due > now]
        if later:
            self.look_at(max(min(later), now + _LATE_SECONDS))

    def stop(self) -> None:
        """End the calls that are running, and those that begin later."""
        self._stopped = True
        for clock in tuple(self._clocks):
            clock.stop()
