"""One memory budget for the process: messages, queued results, graphs and models."""

from __future__ import annotations

import errno
import threading

from .errors import OverloadedError

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]  # checked where it is used

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
    if resource is None:
        return None
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if most == resource.RLIM_INFINITY else most
