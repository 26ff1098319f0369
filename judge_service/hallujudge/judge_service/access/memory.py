"""What a call to the server holds of the memory budget, and what its stream waits for."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from msgspec.structs import replace

from ..memory_budget import MemoryBudget
from ..tenancy import RunningCall, tenancy, work_as


class CallMemory:
    """What one call holds of the memory budget.

    Work that outlives its call, such as that of a cancelled stream, gets no memory in its name: it
    would never be given back.

    Args:
        budget: The budget of the process.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._messages: deque[int] = deque()
        self._results: deque[int] = deque()
        self._kept = 0
        self._ended = False

    def take(self, size: int) -> None:
        """Take bytes for a message of the call.

        Raises:
            OverloadedError: They do not fit.
        """
        if not self._ended:
            self._budget.take(size)
            self._messages.append(size)

    def grow(self, size: int) -> None:
        """Take more bytes for the newest message.

        Raises:
            OverloadedError: They do not fit.
        """
        if not self._ended:
            self._budget.take(size)
            self._messages[-1] += size

    def keep(self, size: int) -> None:
        """Take bytes that stay until the call ends.

        Raises:
            OverloadedError: They do not fit.
        """
        if not self._ended:
            self._budget.take(size, "what is kept of its items")
            self._kept += size

    def result(self, size: int) -> None:
        """Count a result that waits to be sent, until :meth:`answered`."""
        if not self._ended:
            self._budget.add(size)
            self._results.append(size)

    @property
    def busy(self) -> bool:
        """Whether a message has no answer yet."""
        return bool(self._messages)

    def answered(self) -> None:
        """Give back what the oldest message and result held: the answer is sent."""
        for sizes in (self._messages, self._results):
            if sizes:
                self._budget.give_back(sizes.popleft())

    def close(self) -> None:
        """Give back everything: the call has ended."""
        self._ended = True
        while self._messages or self._results:
            self.answered()
        self._budget.give_back(self._kept)
        self._kept = 0


@dataclass(slots=True, kw_only=True)
class ServedCall(RunningCall):
    """What one RPC holds and waits for."""

    memory: CallMemory | None = None
    """What it holds of the memory budget; None before it is admitted."""
    pause: str = ""
    """Why its stream takes no message now; empty while it does."""


def served_call() -> ServedCall:
    """Return the RPC that the running task serves; a new one outside of calls."""
    call = tenancy().call
    return call if isinstance(call, ServedCall) else ServedCall()


def begin_memory(memory: CallMemory) -> None:
    """Make the running task, which serves one RPC, hold memory in its name."""
    now = tenancy()
    if isinstance(now.call, ServedCall):
        now.call.memory = memory
    else:
        work_as(replace(now, call=ServedCall(memory=memory)))


def call_memory() -> CallMemory:
    """Return what the running call holds; outside of calls nothing is limited."""
    return served_call().memory or CallMemory(MemoryBudget())
