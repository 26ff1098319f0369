"""One memory budget for the process: messages, queued results, graphs and models."""

from __future__ import annotations

import errno
import threading
from collections import deque
from contextvars import ContextVar

from ..errors import OverloadedError

_RETRY_SECONDS = 1.0
_MIB = 1 << 20


class MemoryBudget:
    """Counts the memory that callers make the process hold; safe to use from several threads.

    Args:
        limit: The most bytes; None to only count them.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._held = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """The bytes that are held."""
        return self._held

    def take(self, size: int, what: str = "the message") -> None:
        """Take bytes, which the caller returns later.

        Raises:
            OverloadedError: They do not fit.
        """
        with self._lock:
            if self.limit is not None and self._held + size > self.limit:
                raise self._full(size, what)
            self._held += size

    def add(self, size: int) -> None:
        """Count bytes that are already held, such as a finished response."""
        with self._lock:
            self._held += size

    def give_back(self, size: int) -> None:
        """Give bytes back."""
        with self._lock:
            self._held -= size

    def _full(self, size: int, what: str) -> OverloadedError:
        limit = self.limit or 0
        more = "" if size <= limit else "; send less in one message"
        return OverloadedError(
            f"the server's memory budget of {limit // _MIB} MiB has no room for {what} "
            f"({size / _MIB:.1f} MiB with what is made of it){more}",
            reason="MEMORY_FULL",
            metadata={"limit": str(limit), "needed": str(size)},
            retry_after=_RETRY_SECONDS if size <= limit else None,
        )


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


_MEMORY: ContextVar[CallMemory | None] = ContextVar("hallujudge_call_memory", default=None)


def begin_memory(memory: CallMemory) -> None:
    """Make the running task, which serves one RPC, hold memory in its name."""
    _MEMORY.set(memory)


def call_memory() -> CallMemory:
    """Return what the running call holds; outside of calls nothing is limited."""
    return _MEMORY.get() or CallMemory(MemoryBudget())


def memory_problem(error: BaseException) -> str | None:
    """Return what an error of too little memory means; None for every other error."""
    is_thread = isinstance(error, RuntimeError) and "start new thread" in str(error)
    is_full = isinstance(error, OSError) and error.errno == errno.ENOMEM
    if not (isinstance(error, MemoryError) or is_thread or is_full):
        return None
    most = address_space()
    limit = f"it may use {most >> 20} MiB (ulimit -v); raise that" if most else "free some"
    found = str(error) or type(error).__name__
    return f"this process has too little memory ({found}): {limit}, and try again"


def address_space() -> int | None:
    """Return how many bytes ``ulimit -v`` lets this process use; None for no limit."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if most == resource.RLIM_INFINITY else most
