"""Start-time fair queueing between callers."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field

# More lines than this are searched for callers who are back at the start.
_KEPT_LINES = 1024


@dataclass(slots=True)
class _Line:
    """One caller: what it used, and what it waits for."""

    tag: float
    """Its virtual time; the lowest is next."""
    weight: float = 1.0
    """Its share, relative to other callers."""
    inside: int = 0
    waiting: OrderedDict[asyncio.Future[None], float] = field(default_factory=OrderedDict)
    """Its requests in order, each with what it costs."""

    @property
    def idle(self) -> bool:
        return not self.inside and not self.waiting


class FairQueue:
    """Gives places to callers so that each gets its share, however many requests it has.

    Shares are equal, or as callers' weights: what a caller uses counts divided by its weight. This
    is start-time fair queueing (Goyal, Vin and Cheng, 1996). A caller's tag is what it used,
    and the lowest tag is next. A caller who comes back starts at the tag of the request that was
    served last: it has no claim to what it did not use meanwhile. The algorithm orders requests by
    where they start, so a cost may be added afterwards, when it is known.

    Args:
        places: How many requests are served at the same time.
        each: Whether a caller without a place gets one beyond them: requests that never end then
            stop no other caller.
    """

    def __init__(self, places: int = 1, *, each: bool = False) -> None:
        self._places = places
        self._each = each
        self._inside = 0
        self._waiting = 0
        self._virtual = 0.0
        self._lines: dict[str, _Line] = {}

    @property
    def inside(self) -> int:
        """Requests that have a place."""
        return self._inside

    @property
    def waiting(self) -> int:
        """Requests that wait for a place."""
        return self._waiting

    def resize(self, places: int) -> None:
        """Change the number of places."""
        self._places = places
        self._wake()

    async def enter(self, caller: str, *, cost: float = 0.0, weight: float = 1.0) -> None:
        """Wait for a place.

        Args:
            caller: The id of the caller.
            cost: What the request uses, as far as it is known.
            weight: The caller's share, relative to other callers.
        """
        line = self._line(caller)
        line.weight = weight
        if (self._inside < self._places and not self._waiting) or self._has_own(line):
            self._admit(line, cost)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.waiting[turn] = cost
        self._waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn in line.waiting:
                del line.waiting[turn]
                self._waiting -= 1
            # The place was given in the same moment: another request gets it.
            elif not turn.cancelled():
                self.leave(caller)
            raise

    def leave(self, caller: str, *, cost: float = 0.0) -> None:
        """Give a place back.

        Args:
            caller: The id of the caller.
            cost: What the request used beyond its earlier cost.
        """
        line = self._lines[caller]
        line.tag += cost / line.weight
        line.inside -= 1
        self._inside -= 1
        if self._waiting:
            self._wake()
        if not self._inside and not self._waiting:
            # Most often there is one, that of the caller.
            lines = self._lines.values()
            self._virtual = line.tag if len(lines) == 1 else max(line.tag for line in lines)
            self._lines.clear()

    def _line(self, caller: str) -> _Line:
        line = self._lines.get(caller)
        if line is None:
            if len(self._lines) >= _KEPT_LINES:
                self._forget()
            line = self._lines[caller] = _Line(self._virtual)
        elif line.idle:
            line.tag = max(line.tag, self._virtual)
        return line

    def _forget(self) -> None:
        kept = {
            caller: line
            for caller, line in self._lines.items()
            if not line.idle or line.tag > self._virtual
        }
        self._lines = kept

    def _admit(self, line: _Line, cost: float) -> None:
        self._virtual = max(self._virtual, line.tag)
        # A place beyond the others takes nothing from the other callers.
        if self._inside < self._places:
            line.tag += cost / line.weight
        line.inside += 1
        self._inside += 1

    def _has_own(self, line: _Line) -> bool:
        return self._each and not line.inside

    def _wake(self) -> None:
        while self._waiting and (self._each or self._inside < self._places):
            line = min(
                (
                    line
                    for line in self._lines.values()
                    if line.waiting and (self._inside < self._places or self._has_own(line))
                ),
                key=lambda line: line.tag,
                default=None,
            )
            if line is None:
                return
            turn, cost = line.waiting.popitem(last=False)
            self._waiting -= 1
            if not turn.done():
                self._admit(line, cost)
                turn.set_result(None)
