"""How long running work may take to finish when a server stops."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

__all__ = ["MARGIN_SECONDS", "Grace", "in_daemon_thread"]

_LOG = logging.getLogger(__name__)

MARGIN_SECONDS = 10.0
"""For what follows the grace period: cancelled work unwinds, files and connections are closed."""


class Grace:
    """A period in which running work may finish. The parts of a server share it.

    Args:
        seconds: The longest wait.
        hurry: Ends the period when it is set; None: nothing does.
        margin: How long a part may take to end after the period, in seconds.
    """

    def __init__(
        self,
        seconds: float,
        hurry: asyncio.Event | None = None,
        *,
        margin: float = MARGIN_SECONDS,
    ) -> None:
        self._end = asyncio.get_running_loop().time() + seconds
        self._hurry = hurry or asyncio.Event()
        self._margin = margin

    @property
    def left(self) -> float:
        """Seconds until the end of the period; at least 0."""
        if self._hurry.is_set():
            return 0.0
        return max(0.0, self._end - asyncio.get_running_loop().time())

    async def wait(self, *work: asyncio.Future[None]) -> None:
        """Wait until all work is done, or until the period is over. Nothing is cancelled."""
        if not work:
            return
        done = asyncio.ensure_future(asyncio.wait(work))
        hurried = asyncio.ensure_future(self._hurry.wait())
        try:
            await asyncio.wait(
                {done, hurried}, timeout=self.left, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            done.cancel()
            hurried.cancel()

    async def end(self, part: str, ending: Awaitable[None]) -> None:
        """Let a part end. The log names one that fails or does not end; nothing waits for it.

        Args:
            part: Its name, for the log.
            ending: Ends it.
        """
        work = asyncio.ensure_future(ending)
        await self.wait(work)
        if not work.done():
            await asyncio.wait({work}, timeout=self._margin)
        if not work.done():
            _LOG.error(
                "%s did not end within %g s after the drain; the server ends without it",
                part,
                self._margin,
            )
            work.cancel()
        elif not work.cancelled() and (error := work.exception()) is not None:
            _LOG.error("%s did not end well", part, exc_info=error)


async def in_daemon_thread(work: Callable[[], None]) -> None:
    """Run work in a thread that does not keep the process, as threads of a pool do."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell(error: Exception | None) -> None:
        if done.done():  # the caller no longer waits
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: Exception | None = None
        try:
            work()
        except Exception as err:
            error = err
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, error)

    threading.Thread(target=run, daemon=True).start()
    await done
