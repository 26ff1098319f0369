"""Limits of concurrent calls."""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractAsyncContextManager

from ..access.caller import Caller
from ..access.fair import FairQueue
from ..access.rates import CallerLimits
from ..errors import OverloadedError

__all__ = ["Admission"]


class Admission:
    """Limits the number of running calls and of calls that wait for them.

    Callers get places in turn. None has more than three quarters of them, so that there is always
    room for another caller.

    gRPC's own limits respond with a bare CANCELLED or without details, so that callers could not
    distinguish a busy server from a broken one.

    Args:
        running: The maximum number of running calls.
        waiting: The maximum number of waiting calls; further calls are rejected.
        retry_after: The time after which a rejected call should be repeated, in seconds.
    """

    def __init__(self, *, running: int, waiting: int, retry_after: float = 0.5) -> None:
        self._queue = FairQueue(running)
        self._limit = running + waiting
        self._share = _share(running)
        self._own_limit = _share(running) + _share(waiting)
        self._inside = 0
        self._own: dict[str, FairQueue] = {}
        self._idle: Counter[str] = Counter()
        self._retry_after = retry_after
        self.limits = CallerLimits()
        """What each caller uses of its own limits."""

    def admitted(self, caller: Caller, *, idle: bool = False) -> AbstractAsyncContextManager[None]:
        """Return a block that begins when a call of a caller may run, and ends with the call.

        Args:
            caller: The caller.
            idle: Whether the call only waits for something. Such calls take no places of calls
                that work; there are as many places for them as for all others.

        Raises:
            OverloadedError: The caller is at a limit of its own, or the queue is full.
        """
        return _Place(self, caller, idle=idle)

    async def enter(self, caller: Caller) -> None:
        """Wait until a call of a caller may run, to :meth:`leave` when it ends.

        Raises:
            OverloadedError: The caller has too many calls, or the queue is full.
        """
        own = self._begin(caller)
        try:
            await own.enter(caller.id, cost=1.0)
            try:
                await self._queue.enter(caller.id, cost=1.0, weight=caller.limits.weight)
            except BaseException:
                own.leave(caller.id)
                raise
        except BaseException:
            self._end(caller, own)
            raise

    def leave(self, caller: Caller) -> None:
        """Give the place of a call back."""
        self._queue.leave(caller.id)
        own = self._own[caller.id]
        own.leave(caller.id)
        self._end(caller, own)

    def enter_idle(self, caller: Caller) -> None:
        """Count a call that only waits, to :meth:`leave_idle` when it ends.

        Raises:
            OverloadedError: There are too many.
        """
        self._check("the server has", self._idle.total(), self._limit)
        self._check(f"{caller.name} has", self._idle[caller.id], self._own_limit)
        self._idle[caller.id] += 1

    def leave_idle(self, caller: Caller) -> None:
        """Give the place of a call back that only waited."""
        self._idle[caller.id] -= 1
        self._idle += Counter()  # forgets callers who have none

    def _begin(self, caller: Caller) -> FairQueue:
        """Count a call, and return the queue of its caller's own places."""
        own = self._own.get(caller.id) or FairQueue(self._share)
        self._check("the server has", self._inside, self._limit)
        self._check(f"{caller.name} has", own.inside + own.waiting, self._own_limit)
        self._inside += 1
        self._own[caller.id] = own
        return own

    def _end(self, caller: Caller, own: FairQueue) -> None:
        self._inside -= 1
        if not own.inside and not own.waiting:
            self._own.pop(caller.id, None)

    def _check(self, who: str, inside: int, limit: int) -> None:
        if inside >= limit:
            calls = "call" if inside == 1 else "calls"
            raise OverloadedError(
                f"{who} {inside} {calls} running or waiting; try again in {self._retry_after:g} s",
                metadata={"limit": str(limit)},
                retry_after=self._retry_after,
            )


class _Place:
    """A call from its admission to its end.

    A class and not a generator: with contexts of ``contextlib``, admission took a tenth of the
    processor time of a small call.
    """

    __slots__ = ("_admission", "_caller", "_idle", "_use")

    def __init__(self, admission: Admission, caller: Caller, *, idle: bool) -> None:
        self._admission = admission
        self._caller = caller
        self._idle = idle
        self._use = admission.limits.call(caller)

    async def __aenter__(self) -> None:
        self._use.__enter__()
        try:
            if self._idle:
                self._admission.enter_idle(self._caller)
            else:
                await self._admission.enter(self._caller)
        except BaseException:
            self._use.__exit__()
            raise

    async def __aexit__(self, *_: object) -> None:
        try:
            if self._idle:
                self._admission.leave_idle(self._caller)
            else:
                self._admission.leave(self._caller)
        finally:
            self._use.__exit__()


def _share(places: int) -> int:
    return places - places // 4
