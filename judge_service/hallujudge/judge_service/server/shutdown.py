"""What signals ask of a server: the first drains it, the second ends the drain."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
import sys
from pathlib import Path
from typing import IO

__all__ = ["Shutdown"]

_LOG = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# For what follows the drain: closing files, and stopping a vLLM server.
_MARGIN_SECONDS = 15.0


class Shutdown:
    """Follows SIGTERM and SIGINT, and makes sure that the process ends.

    A thread that works on does not keep the process: after the drain and a margin, faulthandler
    writes what every thread is doing and ends the process. Its timer needs no interpreter lock.

    Args:
        drain_seconds: How long running calls may take to finish.
        margin: How long the process may take after that, in seconds.
    """

    def __init__(self, drain_seconds: float, margin: float = _MARGIN_SECONDS) -> None:
        self._drain_seconds = drain_seconds
        self._margin = margin
        self.stopping = asyncio.Event()
        """Set by the first signal."""
        self.hurry = asyncio.Event()
        """Set by the second signal."""

    def listen(self) -> None:
        """Begin to follow signals."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._next)

    def ignore(self) -> None:
        """Ignore further signals, which would print a traceback about a closed loop."""
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)

    def _next(self) -> None:
        if not self.stopping.is_set():
            _LOG.info("draining for up to %g s; a second signal ends it", self._drain_seconds)
            self.stopping.set()
            _end_after(self._drain_seconds + self._margin)
        elif not self.hurry.is_set():
            _LOG.info("the drain ends: running calls are cancelled")
            self.hurry.set()
            _end_after(self._margin)


def _end_after(seconds: float) -> None:
    faulthandler.dump_traceback_later(seconds, exit=True, file=_standard_error())


def _standard_error() -> IO[str]:
    """Return standard error, or what takes its place where there is none."""
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return Path(os.devnull).open("w")
    return sys.stderr
