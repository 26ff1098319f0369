"""What is known of a server that this process supervises, for the calls that wait for it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

# Two looks, because one may have begun before what is asked about.
_LOOKS = 2
_POLL_SECONDS = 0.2
# Looks that fail for longer lead to a restart.
_MOST_DOUBT_SECONDS = 120.0


class Supervision:
    """Whether a supervised server is being started again. Any thread may read it.

    Args:
        name: What messages call it.
        most_seconds: How long calls wait for a restart at most.
        clock: Seconds on a clock that never goes back.
    """

    def __init__(
        self, name: str, most_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = name
        self._clock = clock
        self.most_seconds = most_seconds
        self.restarts = 0
        """How often it ended or hung so far."""
        self.given_up = ""
        """Why it is started no more; empty while it is."""
        self._looks = 0
        self._why = ""
        self._since = 0.0

    @property
    def is_down(self) -> bool:
        """Whether it is known not to serve."""
        return bool(self._why or self.given_up)

    @property
    def waiting(self) -> str:
        """What calls wait for, in one sentence; empty if it serves."""
        if not self._why:
            return ""
        return (
            f"{self.name} {self._why} and is started again, since {self.seconds:.0f} s; calls wait "
            f"for it, for {self.most_seconds:,.0f} s at most"
        )

    @property
    def seconds(self) -> float:
        """How long it has been down."""
        return self._clock() - self._since if self._why else 0.0

    def looked(self) -> None:
        """Note that it answered a look at its health."""
        self._looks += 1

    def began(self, why: str) -> None:
        """Note that it ended or hangs, and is started again."""
        if not self._why:
            self._since = self._clock()
            self.restarts += 1
        self._why = why

    def ended(self) -> None:
        """Note that it serves again."""
        self._why = ""

    def gives_up(self, why: str) -> None:
        """Note that it is started no more."""
        self._why, self.given_up = "", why

    async def ended_since(self, restarts: int, sleep: Callable[[float], Awaitable[None]]) -> bool:
        """Return whether it ended or hung after an earlier moment.

        It may hang without being known to: what the next looks at its health find is waited for.

        Args:
            restarts: The number of restarts at that moment.
            sleep: Waits for seconds.
        """
        looks, left = self._looks + _LOOKS, _MOST_DOUBT_SECONDS
        while not self._has_ended(restarts) and self._looks < looks and left > 0:
            await sleep(_POLL_SECONDS)
            left -= _POLL_SECONDS
        return self._has_ended(restarts)

    def _has_ended(self, restarts: int) -> bool:
        return self.restarts != restarts or self.is_down

    async def served(self, sleep: Callable[[float], Awaitable[None]], most: float) -> str:
        """Wait until it serves; return why it does not after all, and empty if it does.

        Args:
            sleep: Waits for seconds.
            most: How long is waited at most.
        """
        most = min(most, self.most_seconds)
        while self._why and self.seconds < most:
            await sleep(_POLL_SECONDS)
        if self.given_up:
            return self.given_up
        if self._why:
            return f"{self.name} {self._why}, and does not serve again after {most:,.0f} s"
        return ""
