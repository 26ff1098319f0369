"""The client, synchronous: the asynchronous one on a private event loop in a thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import weakref
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from .aio import HERE, AsyncClient
from .errors import CancelledError

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.entry import FoundClaim
    from hallujudge.judge_service.engine.spec import ScoreSpec
    from hallujudge.judge_service.llm.estimate import Estimate
    from hallujudge.metrics import Item, ItemResult, Report

    from .aio import OnBatch
    from .archives import InputOptions, References, Responses
    from .backends.base import ServerInfo

__all__ = ["Client"]

_T = TypeVar("_T")


class Client:
    """Scores at a server, or in this process. The same methods as :class:`AsyncClient`.

    Works inside a running event loop too, as in a notebook: the loop here is its own. One client
    may be used from several threads.

    Args:
        target: The server's host and port, such as ``"localhost:50051"``. For scoring without a
            server see :meth:`embedded`.
        timeout: How long one call may take, in seconds.
        stream_timeout: How long a whole run may take, in seconds.

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
        self, target: str, *, timeout: float = 60.0, stream_timeout: float = 86_400.0
    ) -> None:
        self._client = AsyncClient(target, timeout=timeout, stream_timeout=stream_timeout)
        self._loop: _LoopThread | None = None
        self._lock = threading.Lock()

    @classmethod
    def embedded(cls, settings: Mapping[str, object] | None = None) -> Self:
        """A client that scores in this process; see :meth:`AsyncClient.embedded`."""
        client = cls(HERE)
        client._client = AsyncClient.embedded(settings)
        return client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the connection and the thread; the next call makes new ones."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.forget()
            loop.run(self._client.close())
            loop.stop()

    def score(
        self,
        metric: str,
        *,
        responses: Responses,
        references: References | None = None,
        variant: str = "",
        graph: str | Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        group_by: Sequence[str] = (),
        seed: int = 0,
        replicates: int = 1000,
        confidence: float = 0.95,
        inputs: InputOptions | None = None,
        on_batch: OnBatch | None = None,
    ) -> Report:
        """Scores responses against references; see :meth:`AsyncClient.score`."""
        return self._run(
            self._client.score(
                metric,
                responses=responses,
                references=references,
                variant=variant,
                graph=graph,
                options=options,
                group_by=group_by,
                seed=seed,
                replicates=replicates,
                confidence=confidence,
                inputs=inputs,
                on_batch=on_batch,
            )
        )

    def score_items(
        self, spec: ScoreSpec, items: Iterable[Item], *, on_batch: OnBatch | None = None
    ) -> Report:
        """Scores items that are already read; see :meth:`AsyncClient.score_items`."""
        return self._run(self._client.score_items(spec, items, on_batch=on_batch))

    def extract(
        self,
        metric: str,
        texts: Sequence[str],
        *,
        variant: str = "",
        graph: str | Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> list[list[FoundClaim]]:
        """Claims of texts without verdicts; see :meth:`AsyncClient.extract`."""
        return self._run(
            self._client.extract(metric, texts, variant=variant, graph=graph, options=options)
        )

    def judge(
        self,
        metric: str,
        *,
        responses: Responses,
        references: References | None = None,
        options: Mapping[str, str] | None = None,
        inputs: InputOptions | None = None,
    ) -> list[ItemResult]:
        """Verdicts on the claims of responses; see :meth:`AsyncClient.judge`."""
        return self._run(
            self._client.judge(
                metric, responses=responses, references=references, options=options, inputs=inputs
            )
        )

    def estimate(self, spec: ScoreSpec, items: Iterable[Item]) -> list[Estimate]:
        """What judges that cost money would be asked; see :meth:`AsyncClient.estimate`."""
        return self._run(self._client.estimate(spec, items))

    def normalize(self, words: Sequence[str], *, graph: str = "coco") -> dict[str, tuple[str, ...]]:
        """Words -> their roots in a graph; see :meth:`AsyncClient.normalize`."""
        return self._run(self._client.normalize(words, graph=graph))

    def server_info(self) -> ServerInfo:
        """Who scores; see :meth:`AsyncClient.server_info`."""
        return self._run(self._client.server_info())

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        with self._lock:
            if self._loop is None:
                self._loop = _LoopThread()
                self._loop.end_with(self, self._client)
            loop = self._loop
        return loop.run(work)


class _LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="hallujudge-client", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def end_with(self, owner: object, client: AsyncClient) -> None:
        """Ends the thread when nobody holds its owner any more, who need not have closed it."""
        self._finalizer = weakref.finalize(owner, self._abandon, client)
        # At the end of the process the thread, being a daemon, ends by itself.
        self._finalizer.atexit = False

    def forget(self) -> None:
        """Leaves the end of the thread to :meth:`stop`."""
        self._finalizer.detach()

    def _abandon(self, client: AsyncClient) -> None:
        # Nothing to wait for: garbage is collected in any thread, and this one may be it.
        asyncio.run_coroutine_threadsafe(_end(client), self._loop)

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Runs work to its end; Ctrl-C cancels it and waits until it has let go."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError as err:
            raise CancelledError("the client was closed while it was at work") from err
        except BaseException:
            if future.cancel():
                asyncio.run_coroutine_threadsafe(_settle(), self._loop).result(timeout=10)
            raise

    def stop(self) -> None:
        """Ends the thread."""
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
    """Waits until cancelled work has cleaned up behind itself."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=5)
