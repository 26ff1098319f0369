"""Handling of Ctrl-C and SIGTERM, which end a run in the same way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["TerminatedError", "stop_on_sigterm", "stopped_by"]


class TerminatedError(KeyboardInterrupt):
    """The process received SIGTERM."""


def stopped_by(err: KeyboardInterrupt) -> str:
    """Return what stopped a run: ``Ctrl-C`` or ``SIGTERM``."""
    return "SIGTERM" if isinstance(err, TerminatedError) else "Ctrl-C"


@contextmanager
def stop_on_sigterm() -> Iterator[None]:
    """Let SIGTERM raise :class:`TerminatedError`, as Ctrl-C raises ``KeyboardInterrupt``."""
    if threading.current_thread() is not threading.main_thread():
        # Only the main thread may set handlers.
        yield
        return

    def stop(_number: int, _frame: object) -> None:
        raise TerminatedError

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
