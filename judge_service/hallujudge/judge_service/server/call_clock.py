"""When a call has lasted too long: no first message, no more messages, or too long in total."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType

from ..errors import DeadlineError

__all__ = ["CallClock", "CallTimes"]


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
    """

    def __init__(self, times: CallTimes, *, many: bool) -> None:
        self._times = times
        self._many = many
        self._begun = False
        self._end = asyncio.get_running_loop().time() + times.total
        self._timeout = asyncio.timeout_at(self._soonest(times.first_message))

    def moved(self) -> None:
        """Note that a message arrived, or that the client took one that it waited for."""
        self._begun = True
        self._timeout.reschedule(self._soonest(self._times.idle) if self._many else self._end)

    async def __aenter__(self) -> CallClock:
        """Begin."""
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, and say which time was over.

        Raises:
            DeadlineError: The call lasted too long.
        """
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as err:
            raise self._error() from err

    def _soonest(self, seconds: float) -> float:
        return min(asyncio.get_running_loop().time() + seconds, self._end)

    def _error(self) -> DeadlineError:
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
