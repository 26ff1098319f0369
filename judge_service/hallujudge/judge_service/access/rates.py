"""Limits of each caller: calls in a minute, and calls at the same time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import OverloadedError
from .caller import Caller

__all__ = ["CallerLimits"]

_MINUTE = 60.0
_BUSY_SECONDS = 1.0


@dataclass(slots=True)
class _Use:
    """What a caller uses now."""

    left: float
    filled: float
    inside: int = 0

    def __enter__(self) -> None:
        self.inside += 1

    def __exit__(self, *_: object) -> None:
        self.inside -= 1


# Of callers without limits nothing is looked at.
_UNCOUNTED = _Use(0.0, 0.0)


class CallerLimits:
    """Counts what callers use; only those with limits are counted.

    A caller may make a minute's calls at once. They come back evenly over the next minute.

    Args:
        clock: Seconds on a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._uses: dict[str, _Use] = {}

    def call(self, caller: Caller) -> _Use:
        """Return a block in which a call is counted.

        Raises:
            OverloadedError: The caller is at one of its limits.
        """
        limit = caller.limits.max_concurrency
        use = self._use(caller)
        if limit is not None and use.inside >= limit:
            calls = "call" if use.inside == 1 else "calls"
            raise OverloadedError(
                f"{caller.name} has {use.inside} {calls} running or waiting, and may have {limit}; "
                f"try again in {_BUSY_SECONDS:g} s",
                reason="KEY_CONCURRENCY_LIMIT",
                metadata={"limit": str(limit)},
                retry_after=_BUSY_SECONDS,
            )
        if (wait := self._wait(caller, use)) > 0:
            raise OverloadedError(
                f"{caller.name} may make {caller.limits.calls_per_minute} calls in a minute; "
                f"try again in {wait:.1f} s",
                reason="KEY_RATE_LIMIT",
                metadata={"limit": str(caller.limits.calls_per_minute)},
                retry_after=wait,
            )
        return use

    async def message(self, caller: Caller) -> None:
        """Wait until the caller may send another message of a stream."""
        while (wait := self._wait(caller, self._use(caller))) > 0:
            await asyncio.sleep(wait)

    def _use(self, caller: Caller) -> _Use:
        limits = caller.limits
        if limits.calls_per_minute is None and limits.max_concurrency is None:
            return _UNCOUNTED
        use = self._uses.get(caller.id)
        if use is None:
            use = _Use(float(limits.calls_per_minute or 0), self._clock())
            self._uses[caller.id] = use
        return use

    def _wait(self, caller: Caller, use: _Use) -> float:
        """Take one call if there is one left; else return the seconds until there is one."""
        most = caller.limits.calls_per_minute
        if most is None:
            return 0.0
        moment = self._clock()
        use.left = min(most, use.left + (moment - use.filled) * most / _MINUTE)
        use.filled = moment
        if use.left >= 1:
            use.left -= 1
            return 0.0
        return max((1 - use.left) * _MINUTE / most, 0.001)
