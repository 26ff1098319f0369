"""Stopping: how long a server's running work may take, and which judge calls are held back."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, TypeVar

from .tenancy import CallGate

_LOG = logging.getLogger(__name__)
MARGIN_SECONDS = 10.0
"""For what follows the grace period: cancelled work unwinds, files and connections are closed."""

_T = TypeVar("_T")


class Grace:
    """A period in which running work may finish. The parts of a server share it.

    Args:
        seconds: The longest wait.
        hurry: Ends the period when it is set.
        margin: How long a part may take to end after the period, in seconds.
    """

    def __init__(
        self, seconds: float, hurry: asyncio.Event | None = None, *, margin: float = MARGIN_SECONDS
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
        done = begun(asyncio.wait(work))
        hurried = begun(self._hurry.wait())
        try:
            await asyncio.wait(
                {done, hurried}, timeout=self.left, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            # This cancels the waiting alone: asyncio.wait leaves the work as it is.
            done.cancel()
            hurried.cancel()

    async def end(self, part: str, ending: Awaitable[None]) -> None:
        """Let a part end. The log names one that fails or does not end; nothing waits for it.

        Args:
            part: Its name, for the log.
            ending: Ends it.
        """
        work = begun(ending)
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


def begun(work: Awaitable[_T]) -> asyncio.Task[_T]:
    """Return the task of some work, whose error is for those who wait for it.

    If they have gone, asyncio would log that it was never retrieved, at any later moment.

    Args:
        work: What the task does.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(_retrieve)
    return task


def _retrieve(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


async def in_daemon_thread(work: Callable[[], None]) -> None:
    """Run work in a thread that does not keep the process, as threads of a pool do."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def finish(error: Exception | None) -> None:
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
            loop.call_soon_threadsafe(finish, error)

    # A daemon: the interpreter waits for all other threads when it ends.
    threading.Thread(target=run, daemon=True).start()
    await done


KEEPING_CALLS = "the work may be done again, so calls that are sent come to their ends"
"""The message of a cancellation whose work may be done again. It goes with the cancellation through
everything that is awaited, down to the judge's call."""


def keeps_calls(error: BaseException | None) -> bool:
    """Return whether an error is a cancellation of work that may be done again."""
    return isinstance(error, asyncio.CancelledError) and error.args == (KEEPING_CALLS,)


async def cancel_all(*tasks: asyncio.Future[Any], message: str | None = None) -> None:
    """Cancel tasks and wait for their ends.

    One may have failed at this very moment. asyncio would log an error that is never retrieved.

    Args:
        tasks: The tasks.
        message: The message of the cancellation.
    """
    for task in tasks:
        task.cancel(message)
    await asyncio.gather(*tasks, return_exceptions=True)


class JointWork:
    """Pieces of work that end together; a context manager for what waits for them.

    After a failure the work may be done again, so calls that the pieces have sent come to their
    ends, and their replies are kept. Those of work that is only cancelled are cancelled with it: no
    one wants it.
    """

    def __init__(self) -> None:
        self._again = False

    def __enter__(self) -> None:
        return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._again = self._again or isinstance(error, Exception) or keeps_calls(error)

    async def cancel(self, *pieces: asyncio.Future[Any]) -> None:
        """Cancel pieces of the work and wait for their ends."""
        await cancel_all(*pieces, message=KEEPING_CALLS if self._again else None)


class HeldBackError(Exception):
    """The work was ended, because all its judge calls are held back."""


class CallDrain(CallGate):
    """Lets the judge calls of some work come to an end.

    A call that is cancelled after it was sent is paid for, and its reply is lost. From a moment on,
    no further call is therefore sent; the work is ended when every reply has arrived and is kept.

    Args:
        draining: Set from that moment on.
    """

    def __init__(self, draining: asyncio.Event) -> None:
        self._draining = draining
        self._open = 0
        self._held = 0
        self._works = 0
        self._idle = asyncio.Event()
        self._ended = asyncio.Event()

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Return the result of work.

        Raises:
            HeldBackError: It was ended, because the calls of all work are held back.
        """
        with self.guard():
            task = begun(work)
        idle, joint = begun(self._idle.wait()), JointWork()
        self._works += 1
        try:
            with joint:
                await asyncio.wait({task, idle}, return_when=asyncio.FIRST_COMPLETED)
                if not task.done():
                    raise HeldBackError
                return task.result()
        finally:
            await joint.cancel(task, idle)
            self._works -= 1
            if self.is_closed and not self._works:
                # Calls that are left have callers of another kind, who wait for the same reply.
                self._ended.set()

    @property
    def is_closed(self) -> bool:
        """Whether no further call may be sent."""
        return self._draining.is_set() and not self._ended.is_set()

    async def leave(self) -> None:
        """Wait until a further call may be sent."""
        if not self.is_closed:
            return
        self._held += 1
        try:
            self._look()
            await self._ended.wait()
        finally:
            self._held -= 1

    @contextmanager
    def open(self) -> Iterator[None]:
        """Return a block with a call, from before it is sent until its reply is kept."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self._look()

    def _look(self) -> None:
        # All calls that are open are held back, so that no reply is still to come.
        if self.is_closed and 0 < self._held >= self._open:
            self._idle.set()
