"""One call for equal questions at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

__all__ = ["SingleFlight"]

_T = TypeVar("_T")


@dataclass(slots=True)
class _Flight(Generic[_T]):
    task: asyncio.Task[_T]
    waiting: int


class SingleFlight(Generic[_T]):
    """Runs a question's call once; callers that ask it meanwhile get the same result.

    The call is cancelled when no caller waits for it any more, and only then.
    """

    def __init__(self) -> None:
        self._flights: dict[tuple[int, str], _Flight[_T]] = {}

    async def do(self, key: str, call: Callable[[], Awaitable[_T]]) -> _T:
        """Return the call's result.

        Args:
            key: The question.
            call: Makes the call.
        """
        # Tasks belong to a loop, and a judge may serve several, one after the other.
        at = (id(asyncio.get_running_loop()), key)
        flight = self._flights.get(at)
        if flight is None:
            flight = self._flights[at] = _Flight(asyncio.ensure_future(_awaited(call)), 0)
            flight.task.add_done_callback(partial(self._forget, at, flight))
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                self._forget(at, flight)
                flight.task.cancel()

    def _forget(self, at: tuple[int, str], flight: _Flight[_T], _task: object = None) -> None:
        if self._flights.get(at) is flight:
            del self._flights[at]


async def _awaited(call: Callable[[], Awaitable[_T]]) -> _T:
    return await call()
