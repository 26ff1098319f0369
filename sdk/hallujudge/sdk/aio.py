"""The client, asynchronous. The synchronous one is a thin façade over it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Self, TypeAlias

from hallujudge.metrics import Report

from .errors import InvalidInputError

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.entry import FoundClaim
    from hallujudge.judge_service.engine.spec import ScoreSpec
    from hallujudge.judge_service.llm.estimate import Estimate
    from hallujudge.metrics import Item, ItemResult

    from .archives import InputOptions, References, Responses
    from .backends.base import Batch, BatchResult, ScoringBackend, ServerInfo

__all__ = ["AsyncClient", "OnBatch"]

OnBatch: TypeAlias = "Callable[[BatchResult], None]"
"""Told each batch of items with their results, in the order of the items."""

HERE = "this process"
"""What stands for an address where there is no server."""

_BATCH_ITEMS = 64
_BATCH_CHARS = 1 << 20


class AsyncClient:
    """Scores at a server, or in this process.

    Args:
        target: The server's host and port, such as ``"localhost:50051"``. For scoring without a
            server see :meth:`embedded`.
        timeout: How long one call may take, in seconds.
        stream_timeout: How long a whole run may take, in seconds.

    Example:
        >>> import asyncio
        >>> async def main() -> None:
        ...     async with AsyncClient.embedded() as client:
        ...         report = await client.score(
        ...             "chair", responses={"1": "A dog on a sofa."}, references={"1": ["couch"]}
        ...         )
        ...         print(report.chair_i)
        >>> asyncio.run(main())
        0.5
    """

    def __init__(
        self, target: str, *, timeout: float = 60.0, stream_timeout: float = 86_400.0
    ) -> None:
        self._target = _address(target)
        self._timeout = timeout
        self._stream_timeout = stream_timeout
        self._settings: Mapping[str, object] = {}
        self._backend: ScoringBackend | None = None

    @classmethod
    def embedded(cls, settings: Mapping[str, object] | None = None) -> Self:
        """A client that scores in this process.

        Args:
            settings: Settings of the judges by name, such as ``{"llm_url": "http://…/v1"}``, over
                those of the environment. Keys come from the environment alone.
        """
        client = cls(HERE)
        client._settings = dict(settings or {})
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Lets go of the connection; the next call makes a new one."""
        if self._backend is not None:
            await self._backend.close()
            self._backend = None

    async def score(
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
        """Scores responses against references.

        Args:
            metric: The metric's name, such as ``"chair"``.
            responses: A file, a mapping id -> text, or records.
            references: A file, or a mapping id -> reference; None where responses carry them.
            variant: The named reading; empty for the metric's default.
            graph: A shipped graph's name or a file; for metrics with several, role -> either.
            options: The metric's own settings by name.
            group_by: Record fields to report groups by.
            seed: Where the random numbers of intervals start.
            replicates: Bootstrap replicates; 0 switches intervals off.
            confidence: Share of replicates that an interval holds.
            inputs: How files are read and joined.
            on_batch: Told each batch of results, in the order of the responses.

        Raises:
            ArchiveError: A file can't be used, or ids don't join.
            InvalidInputError: The variant, graph or an option can't be used.
            NotFoundError: The metric or graph is unknown.
            UnavailableError: The server can't be reached.
        """
        from .archives import read_items
        from .spec import make_spec

        spec = make_spec(
            metric,
            variant=variant,
            graph=graph,
            options=options,
            group_by=group_by,
            seed=seed,
            replicates=replicates,
            confidence=confidence,
        )
        items = read_items(metric, responses, references, options=inputs, group_by=spec.group_by)
        return await self.score_items(spec, items, on_batch=on_batch)

    async def score_items(
        self, spec: ScoreSpec, items: Iterable[Item], *, on_batch: OnBatch | None = None
    ) -> Report:
        """Scores items that are already read.

        Args:
            spec: How.
            items: What; read as the backend takes them.
            on_batch: Told each batch of results, in the order of the items.
        """
        # Closed here and not by the garbage collector, so that whoever stops early also stops the
        # server.
        async with aclosing(self._get_backend().score_stream(spec, _batches(items))) as parts:
            async for part in parts:
                if isinstance(part, Report):
                    return part
                if on_batch is not None:
                    on_batch(part)
        raise AssertionError("a backend ended its stream without a report")

    async def extract(
        self,
        metric: str,
        texts: Sequence[str],
        *,
        variant: str = "",
        graph: str | Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> list[list[FoundClaim]]:
        """Claims of texts without verdicts: mentions, triplets or keywords, with their places.

        Args:
            metric: The metric whose claims are wanted.
            texts: The texts.
            variant: The named reading; empty for the metric's default.
            graph: As for :meth:`score`.
            options: As for :meth:`score`.
        """
        from .spec import make_spec

        spec = make_spec(metric, variant=variant, graph=graph, options=options)
        return await self._get_backend().extract(spec, texts)

    async def judge(
        self,
        metric: str,
        *,
        responses: Responses,
        references: References | None = None,
        options: Mapping[str, str] | None = None,
        inputs: InputOptions | None = None,
    ) -> list[ItemResult]:
        """Verdicts on the claims of responses, without a report; for small batches.

        Args:
            metric: The metric whose claims are judged, such as ``"tri-he"``.
            responses: As for :meth:`score`.
            references: As for :meth:`score`.
            options: As for :meth:`score`.
            inputs: As for :meth:`score`.

        Raises:
            UnsupportedError: No judge decides the metric's claims.
        """
        from .archives import read_items
        from .spec import make_spec

        spec = make_spec(metric, options=options)
        items = read_items(metric, responses, references, options=inputs)
        return await self._get_backend().judge(spec, list(items))

    async def estimate(self, spec: ScoreSpec, items: Iterable[Item]) -> list[Estimate]:
        """What judges that cost money would be asked about items, without asking them.

        Raises:
            UnsupportedError: The metric asks no such judge, or a server does the scoring: what it
                remembers and what its judges cost is known to it alone.
        """
        from .backends.embedded import EmbeddedBackend
        from .errors import UnsupportedError

        backend = self._get_backend()
        if not isinstance(backend, EmbeddedBackend):
            raise UnsupportedError("only embedded scoring can be estimated; leave the server out")
        return await backend.estimate(spec, list(items))

    async def normalize(
        self, words: Sequence[str], *, graph: str = "coco"
    ) -> dict[str, tuple[str, ...]]:
        """Words -> their roots in a graph: none where it doesn't know the word."""
        from .spec import graph_source

        return await self._get_backend().normalize(graph_source(graph), words)

    async def server_info(self) -> ServerInfo:
        """Who scores: the server's version and graphs, or this process's."""
        return await self._get_backend().server_info()

    def _get_backend(self) -> ScoringBackend:
        # Connecting imports grpc, and scoring here imports the engine: neither before it is needed.
        if self._backend is None:
            self._backend = self._connect()
        return self._backend

    def _connect(self) -> ScoringBackend:
        if self._target == HERE:
            from .backends.embedded import EmbeddedBackend

            return EmbeddedBackend(self._settings)
        from .backends.remote import RemoteBackend

        return RemoteBackend(
            self._target, timeout=self._timeout, stream_timeout=self._stream_timeout
        )


def _address(target: str) -> str:
    """The address, where it can be one."""
    if not target.strip():
        raise InvalidInputError(
            "the server's address is empty; give HOST:PORT, or name no server at all to score in "
            "this process"
        )
    if target.startswith(("http://", "https://")):
        raise InvalidInputError(
            f"the server's address {target!r} is a web address; give HOST:PORT, such as "
            "localhost:50051",
            metadata={"target": target},
        )
    return target


async def _batches(items: Iterable[Item]) -> AsyncGenerator[Batch, None]:
    """Batches that are small in number and in text, so that no message grows too large."""
    batch: list[Item] = []
    chars = 0
    for item in items:
        size = len(getattr(item, "response", None) or "")
        if batch and (len(batch) == _BATCH_ITEMS or chars + size > _BATCH_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(item)
        chars += size
    if batch:
        yield batch
