"""The synchronous client: it runs the asynchronous client on an event loop in a thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from . import runs
from .async_client import AsyncClient
from .errors import CancelledError, MissingExtraError

if TYPE_CHECKING:
    from hallujudge.judge_service.settings.connection import Connection

    from .backends import ScoringBackend, Timeouts

__all__ = ["Client"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _blocking(
    method: Callable[Concatenate[AsyncClient, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate[Client, _P], _T]:
    """Return a method of the synchronous client that waits for one of the asynchronous client."""

    @functools.wraps(method)
    def called(self: Client, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return self._run(method(self._client, *args, **kwargs))

    return called


class Client:
    """Scores at a server, or in this process. It has the methods of :class:`AsyncClient`.

    It also works inside a running event loop, as in a notebook, because it has its own loop. One
    client may be used from several threads. A process that is forked from this one gets a loop of
    its own; it can score in itself, but not at a server that was called before the fork.

    Args:
        server: The server's host and port, such as ``"localhost:50051"``, or a backend that was
            constructed. To score without a server see :meth:`embedded`.
        timeouts: How long the server may take.
        connection: Certificates and API key; what it leaves out is from the environment.

    Example:
        >>> client = Client.embedded()
        >>> report = client.score(
        ...     "chair", responses={"1": "A dog on a sofa."}, references={"1": ["couch"]}
        ... )
        >>> report.chair_i
        0.5
        >>> client.close()
    """

    def __init__(
        self,
        server: str | ScoringBackend,
        *,
        timeouts: Timeouts | None = None,
        connection: Connection | None = None,
    ) -> None:
        self._client = AsyncClient(server, timeouts=timeouts, connection=connection)
        self._loop: _LoopThread | None = None
        self._lock = threading.Lock()

    @classmethod
    def embedded(cls, settings: Mapping[str, object] | None = None) -> Self:
        """Return a client that scores in this process; see :meth:`AsyncClient.embedded`."""
        with MissingExtraError.unless_whole("scoring in this process"):
            return cls(runs.EmbeddedBackend(settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __reduce__(self) -> str:
        """Refuse to be pickled or copied: connection, thread and keys belong to one process."""
        return self._client.__reduce__()

    def close(self) -> None:
        """Close the connection and the thread; the next call opens new ones."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.forget()
            loop.run(self._client.close())
            loop.stop()

    def _renew(self) -> None:
        """Leave the loop to the process that this one was forked from."""
        # The parent may have held the lock when it forked; this copy would stay locked.
        self._lock = threading.Lock()
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.forget()
            runs.leave_to_parent(loop)

    score = _blocking(AsyncClient.score)
    """Score responses against references; see :meth:`AsyncClient.score`."""
    score_items = _blocking(AsyncClient.score_items)
    """Score items that are already read; see :meth:`AsyncClient.score_items`."""
    score_into = _blocking(AsyncClient.score_into)
    """Score items into an open folder; see :meth:`AsyncClient.score_into`."""
    header = _blocking(AsyncClient.header)
    """Return what is known of a run before its first item; see :meth:`AsyncClient.header`."""
    evaluate = _blocking(AsyncClient.evaluate)
    """Return the result of each item; see :meth:`AsyncClient.evaluate`."""
    score_each = _blocking(AsyncClient.score_each)
    """Return the scores of each response; see :meth:`AsyncClient.score_each`."""
    extract = _blocking(AsyncClient.extract)
    """Return the claims of texts without verdicts; see :meth:`AsyncClient.extract`."""
    judge = _blocking(AsyncClient.judge)
    """Return verdicts on the claims of responses; see :meth:`AsyncClient.judge`."""
    estimate = _blocking(AsyncClient.estimate)
    """Return the number of judge calls and tokens; see :meth:`AsyncClient.estimate`."""
    estimate_prepared = _blocking(AsyncClient.estimate_prepared)
    """Return the same for a prepared run; see :meth:`AsyncClient.estimate_prepared`."""
    normalize = _blocking(AsyncClient.normalize)
    """Map each word to its roots in a graph; see :meth:`AsyncClient.normalize`."""
    submit = _blocking(AsyncClient.submit)
    """Submit a run to the server as a job; see :meth:`AsyncClient.submit`."""
    submit_prepared = _blocking(AsyncClient.submit_prepared)
    """Submit a prepared run; see :meth:`AsyncClient.submit_prepared`."""
    job = _blocking(AsyncClient.job)
    """Return a job of the server; see :meth:`AsyncClient.job`."""
    jobs = _blocking(AsyncClient.jobs)
    """Return the caller's jobs; see :meth:`AsyncClient.jobs`."""
    cancel_job = _blocking(AsyncClient.cancel_job)
    """Cancel a job; see :meth:`AsyncClient.cancel_job`."""
    delete_job = _blocking(AsyncClient.delete_job)
    """Delete a finished job; see :meth:`AsyncClient.delete_job`."""
    wait_for_job = _blocking(AsyncClient.wait_for_job)
    """Wait until a job is finished; see :meth:`AsyncClient.wait_for_job`."""
    job_report = _blocking(AsyncClient.job_report)
    """Return the report of a job that is done; see :meth:`AsyncClient.job_report`."""
    fetch_job = _blocking(AsyncClient.fetch_job)
    """Write a job into an open folder; see :meth:`AsyncClient.fetch_job`."""
    server_info = _blocking(AsyncClient.server_info)
    """Return the release and the graphs; see :meth:`AsyncClient.server_info`."""

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        with self._lock:
            if self._loop is None:
                self._loop = _LoopThread()
                self._loop.end_with(self, self._client)
                runs.renew_after_fork(self._renew)
            loop = self._loop
        return loop.run(work)


# How long a signal may wait until it is handled.
_SIGNAL_SECONDS = 0.5


class _LoopThread:
    """An event loop in its own thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # A program that forgets to close its client must still end.
        self._thread = threading.Thread(target=self._serve, name="hallujudge-client", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def end_with(self, owner: object, client: AsyncClient) -> None:
        """End the thread when its owner is garbage-collected without having been closed."""
        self._finalizer = weakref.finalize(owner, self._abandon, client)
        # At the end of the process the thread, being a daemon, ends by itself.
        self._finalizer.atexit = False

    def forget(self) -> None:
        """Let only :meth:`stop` end the thread."""
        self._finalizer.detach()

    def _abandon(self, client: AsyncClient) -> None:
        # Never waits: garbage is collected in any thread, which may be the loop's own.
        asyncio.run_coroutine_threadsafe(_end(client), self._loop)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run work to its end; Ctrl-C cancels it and waits for its cleanup."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            # The system may hand a signal to another thread. Python then notes it, and handles it
            # here once this thread runs again: a wait without end would never hear of it.
            while not concurrent.futures.wait([future], timeout=_SIGNAL_SECONDS).done:
                pass
            return future.result()
        # The call was not cancelled: the client was closed by another thread.
        except concurrent.futures.CancelledError as err:
            raise CancelledError("the client was closed during a call") from err
        except BaseException:
            if future.cancel():
                asyncio.run_coroutine_threadsafe(_settle(), self._loop).result(timeout=10)
            raise

    def stop(self) -> None:
        """Stop the loop and end the thread."""
        # On the loop's own thread: the caller's may be running a loop, which forbids another.
        asyncio.run_coroutine_threadsafe(_wind_up(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


async def _end(client: AsyncClient) -> None:
    loop = asyncio.get_running_loop()
    try:
        await client.close()
        await _wind_up()
    finally:
        loop.stop()


async def _wind_up() -> None:
    loop = asyncio.get_running_loop()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await _settle()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


async def _settle() -> None:
    """Wait until cancelled work has cleaned up."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        # Cleanup that hangs must not keep the caller from going on.
        await asyncio.wait(others, timeout=5)
