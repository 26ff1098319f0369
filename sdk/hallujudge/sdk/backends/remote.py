"""Scoring at a server, over gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service import __version__
from hallujudge.judge_service.engine.spec import RunHeader, header_of, known_metric
from hallujudge.judge_service.engine.streams import RunProgress, with_ticks
from hallujudge.judge_service.settings.connection import Connection, load_connection
from hallujudge.judge_service.threads import leave_to_parent, renew_after_fork
from hallujudge.judge_service.wire import convert as _convert
from hallujudge.judge_service.wire.errors import error_from_rpc
from hallujudge.metrics import ItemResult, Report

from ..errors import (
    HallujudgeError,
    OverloadedError,
    UnavailableError,
    UnsupportedError,
    VersionMismatchError,
)
from . import Batch, BatchResult, ServerInfo, Timeouts, checked_address
from .channel import (
    Feed,
    call_metadata,
    channel_options,
    check_key,
    check_versions,
    diagnose,
    open_channel,
    responses_of,
    trace_headers,
)
from .recovery import (
    LOST,
    Losses,
    Outbox,
    ProgressWatch,
    Reconnecting,
    WaitLog,
    only,
    paired_results,
    scored_alone,
)

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.found_claims import FoundClaim
    from hallujudge.judge_service.engine.spec import GraphSource, ScoreSpec
    from hallujudge.judge_service.llm.estimate import Estimate
    from hallujudge.metrics import Item

_LOG = logging.getLogger(__name__)

MAX_CONCURRENCY = 256
"""Maximum number of unanswered items; more would only fill buffers on both sides."""

# How soon a frozen server is noticed, whose connection stays open.
_KEEPALIVE_SECONDS = 8.0
# What a stream recovers from: a lost server, an item that ends it, and too large a message.
_STREAMED = LOST | {"TOO_COSTLY"}

_StubT = TypeVar("_StubT")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What a stream asks for."""

    spec: ScoreSpec
    """How items are scored."""
    scores: Sequence[str] = ()
    """Names of scores that results have besides the metric's own."""
    reported: bool = False
    """Whether the server makes the report."""


class RemoteBackend:
    """Scores at a server over gRPC.

    Args:
        target: Host and port, or any target that gRPC supports.
        timeouts: How long the client waits for the server.
        keepalive: Seconds between keepalive pings, and until a ping times out. A frozen server is
            noticed after twice this time.
        connection: Certificates and API key; the environment provides what it leaves out.

    Raises:
        InvalidInputError: The target is empty or a URL, a file can't be read, or the API key would
            be sent in plain text to another machine.
    """

    worker_settings = None
    """Worker processes can't share the work of a server."""

    def __init__(
        self,
        target: str,
        *,
        timeouts: Timeouts | None = None,
        keepalive: float = _KEEPALIVE_SECONDS,
        connection: Connection | None = None,
    ) -> None:
        self._connection = load_connection(connection)
        check_key(target, self._connection)
        self._metadata = call_metadata(self._connection)
        self.timeouts = timeouts or Timeouts()
        """How long the client waits for the server."""
        self.target = checked_address(target)
        """The server's address."""
        self._keepalive_ms = int(keepalive * 1000)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._greeted = False
        self._start_id = ""
        self._waits = WaitLog()
        renew_after_fork(self._renew)

    def _renew(self) -> None:
        """Leave the channel to the process that this one was forked from."""
        if self._loop is not None:
            self._loop = None
            leave_to_parent(self._channel, self._stub)

    def origin(self) -> dict[str, Any]:
        """Return that a server scores; its address is not part of a run."""
        return {"server": True}

    def with_cache(self, path: Path) -> None:
        """Return None: the server has a verdict cache of its own."""

    async def header(self, spec: ScoreSpec) -> RunHeader:
        """Return what is known of a run before its first item, from a report of no items."""
        await self._greet()
        report = await self._admitted(partial(self._empty_report, spec))
        return header_of(_convert.report_from_proto(report))

    async def _empty_report(self, spec: ScoreSpec) -> Any:
        async with (
            Outbox(only(), MAX_CONCURRENCY) as outbox,
            aclosing(self._responses(_Request(spec=spec, reported=True), outbox)) as responses,
        ):
            reports = [r.report async for r in responses if r.WhichOneof("message") == "report"]
        return reports[-1]

    async def score_stream(
        self,
        spec: ScoreSpec,
        header: RunHeader,
        batches: AsyncIterable[Batch],
        scores: Sequence[str] = (),
    ) -> AsyncGenerator[BatchResult | RunProgress, None]:
        """Yield the results of each batch in input order, and progress in between.

        If the connection is lost, it is opened again and unanswered batches are sent again: in
        smaller groups if the server died, or if it has answered nothing between two losses. An item
        that is the only one lost again and again, while others alone survive, is unscored.

        Raises:
            DeadlineError: The server made no progress for ``progress_timeout`` seconds.
            UnavailableError: The server was away for ``reconnect_timeout`` seconds.
            VersionMismatchError: It came back with other judges or another release.
        """
        request = _Request(spec=spec, scores=scores)
        # Closed at once where the caller stops early: the server would score on.
        async with aclosing(self._recovered(request, header, batches)) as parts:
            async for part in parts:
                if not isinstance(part, Report):
                    yield part

    async def reported(
        self,
        spec: ScoreSpec,
        header: RunHeader,
        batches: AsyncIterable[Batch],
        on_batch: Callable[[BatchResult], None] | None,
        on_progress: Callable[[RunProgress], None] | None,
    ) -> Report:
        """Return the report that the server makes of a stream.

        Raises:
            UnavailableError: The connection was lost after the first results, so that the server
                that goes on knows only the rest.
        """
        request, report = _Request(spec=spec, reported=True), None
        async with aclosing(self._recovered(request, header, batches)) as parts:
            async for part in parts:
                if isinstance(part, Report):
                    report = part
                elif isinstance(part, RunProgress):
                    if on_progress is not None:
                        on_progress(part)
                elif on_batch is not None:
                    on_batch(part)
        assert report is not None, "a stream that ends well ends with its report"
        return report

    async def _recovered(
        self, request: _Request, header: RunHeader, batches: AsyncIterable[Batch]
    ) -> AsyncGenerator[BatchResult | RunProgress | Report, None]:
        """Yield what all connections of a stream give, each of which goes on where one was lost."""
        reconnecting, lost = self.reconnecting(), False
        losses = Losses(self._start_id, reconnecting.back)
        begun = False
        async with Outbox(batches, MAX_CONCURRENCY, losses.answered) as outbox:
            while True:
                try:
                    if lost:
                        await self._check_same(request.spec, header)
                        if losses.are_deadly(self._start_id):
                            outbox.died()
                    async with aclosing(self._results(request, outbox)) as parts:
                        async for part in parts:
                            if isinstance(part, BatchResult):
                                part = replace(part, items=header.read(part.items, part.results))
                                begun = True
                            elif isinstance(part, RunProgress):
                                reconnecting.progress(part.answers)
                            yield part
                    return
                except HallujudgeError as err:
                    # An error of the caller's own batches is not the server's.
                    if outbox.error is not None:
                        raise
                    pause = reconnecting.lost(err)
                    if begun and request.reported:
                        raise self._no_report(err) from err
                    if err.reason == "SERVER_UNREACHABLE":
                        losses.add()
                    # A server that refuses a call for now is still the same.
                    lost = lost or not isinstance(err, OverloadedError)
                yield RunProgress(waiting=reconnecting.waiting)
                await asyncio.sleep(pause)

    def _no_report(self, error: HallujudgeError) -> UnavailableError:
        return UnavailableError(
            f"the server at {self.target!r} was lost in the middle of the run ({error}), and makes "
            "no report over the items before. Score again, submit the run as a job, which outlives "
            "its server, or install the whole package, which goes on with a run: "
            "pip install hallujudge",
            metadata={"target": self.target},
        )

    async def _check_same(self, spec: ScoreSpec, header: RunHeader) -> None:
        """Refuse a server that came back different: a run must not mix the scores of two."""
        # The server may have been replaced by another release.
        self._greeted = False
        now = await self.header(spec)
        if now.signature != header.signature:
            raise VersionMismatchError(
                f"the server at {self.target!r} came back with other judges or another release; "
                f"the run began with {header.signature!r} and would go on with {now.signature!r}. "
                "Score it again",
                metadata={"target": self.target},
            )

    async def _results(
        self, request: _Request, outbox: Outbox
    ) -> AsyncGenerator[BatchResult | RunProgress | Report, None]:
        """Yield results in input order, progress, and the report, of one connection."""
        groups: list[Any] = []
        async with aclosing(self._responses(request, outbox)) as responses:
            async for response in responses:
                kind = response.WhichOneof("message")
                if kind == "batch":
                    paired = partial(paired_results, messages=response.batch.results)
                    for result in outbox.answered(paired):
                        yield result
                elif kind == "progress":
                    now = response.progress
                    yield RunProgress(
                        answers=now.answers, verdicts=dict(now.verdicts), waiting=now.waiting
                    )
                elif kind == "groups":
                    groups += response.groups.groups
                elif kind == "report":
                    response.report.groups.extend(groups)
                    yield _convert.report_from_proto(response.report)

    async def _responses(
        self, request: _Request, outbox: Outbox
    ) -> AsyncGenerator[pb.ScoreStreamResponse, None]:
        """Yield the messages of one connection."""

        async def requests() -> AsyncIterator[pb.ScoreStreamRequest]:
            # A server that comes after a loss could report on the rest of the run alone.
            yield pb.ScoreStreamRequest(
                spec=_convert.spec_to_proto(request.spec), results_only=not request.reported
            )
            async for batch in outbox.connect():
                items = [_convert.item_to_proto(item) for item in batch]
                message = pb.ItemBatch(items=items, scores=request.scores)
                if outbox.fatal:
                    message.died = f"the server at {self.target} died each time it scored this item"
                    _LOG.warning("item %.80r is not scored: %s", batch[0].id, message.died)
                yield pb.ScoreStreamRequest(batch=message)

        feed = Feed(requests())
        async with self._errors(feed):
            call = self._connect().ScoreStream(feed, **self._with(self.timeouts.stream_timeout))
            timeout = self.timeouts.progress_timeout
            watch = ProgressWatch(self.target, timeout, log=self._waits)
            async with aclosing(with_ticks(responses_of(call), watch.tick)) as responses:
                async for response in responses:
                    watch.check(response, outstanding=outbox.outstanding)
                    if response is not None:
                        yield response
                        if response.WhichOneof("message") != "progress":
                            # The caller may have taken its time with the results.
                            watch.moved()

    async def evaluate(
        self, spec: ScoreSpec, header: RunHeader, batch: Batch, scores: Sequence[str] = ()
    ) -> Sequence[ItemResult]:
        """Return the result of each item of one batch, in order.

        Some scores alone come in one message, which takes a third of the time of a stream. A stream
        recovers from a lost server and from an item that ends it, and reports slow models.
        """
        if scores and not known_metric(spec.metric).needs_models(spec.options):
            request = pb.ScoreRequest(
                spec=_convert.spec_to_proto(spec),
                items=map(_convert.item_to_proto, batch),
                scores=scores,
            )
            try:
                return scored_alone(batch, await self._unary("Score", request))
            except HallujudgeError as err:
                if err.reason not in _STREAMED:
                    raise
        stream = self.score_stream(spec, header, only(batch), scores)
        async with aclosing(stream) as parts:
            # Several parts, where the server died with the batch.
            done = [part.results async for part in parts if isinstance(part, BatchResult)]
        return [result for results in done for result in results]

    async def extract(self, spec: ScoreSpec, texts: Sequence[str]) -> list[list[FoundClaim]]:
        """Return the claims of each text, without verdicts."""
        request = pb.ExtractRequest(spec=_convert.spec_to_proto(spec), texts=texts)
        response = await self._unary("Extract", request)
        return [
            [_convert.found_claim_from_proto(claim) for claim in text.claims]
            for text in response.texts
        ]

    async def judge(self, spec: ScoreSpec, items: Sequence[Item]) -> list[ItemResult]:
        """Return verdicts on each item's claims, without a report."""
        request = pb.JudgeRequest(
            spec=_convert.spec_to_proto(spec),
            items=[_convert.item_to_proto(item) for item in items],
        )
        return list(paired_results(items, (await self._unary("Judge", request)).results).results)

    async def normalize(
        self, source: GraphSource, words: Sequence[str]
    ) -> dict[str, tuple[str, ...]]:
        """Map each word to its roots in a graph."""
        request = pb.NormalizeRequest(graph=_convert.graph_to_proto(source), words=words)
        response = await self._unary("Normalize", request)
        return {word.word: tuple(word.roots) for word in response.words}

    async def server_info(self) -> ServerInfo:
        """Return the server's release and its graphs."""
        info = await self.called(self._connect().GetServerInfo, pb.GetServerInfoRequest())
        self._start_id = info.start_id
        return ServerInfo(version=info.version, graphs=tuple(info.graphs))

    async def _unary(self, name: str, request: Any) -> Any:
        """Return the response of a unary method, after checking the server's release."""
        await self._greet()
        return await self.called(getattr(self._connect(), name), request)

    async def service(self, make: Callable[[grpc.aio.Channel], _StubT]) -> _StubT:
        """Return the stub of another service of the server, on the same connection.

        Args:
            make: The stub's class.
        """
        await self._greet()
        self._connect()
        return make(self._channel)

    async def called(self, method: Callable[..., Awaitable[Any]], request: Any) -> Any:
        """Return the response of a unary method of a stub."""

        async def call() -> Any:
            async with self._errors():
                return await method(request, **self._with(self.timeouts.call_timeout))

        return await self._admitted(call)

    def reconnecting(self) -> Reconnecting:
        """Return what decides whether and when a call or run is repeated."""
        return Reconnecting(self.target, self.timeouts.reconnect_timeout, log=self._waits)

    async def _admitted(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """Return what a call returns, and repeat it as long as the server refuses it for now."""
        reconnecting = self.reconnecting()
        while True:
            try:
                return await call()
            except OverloadedError as err:
                pause = reconnecting.lost(err)
            await asyncio.sleep(pause)

    async def streamed(
        self, method: Callable[..., AsyncIterable[Any]], request: Any
    ) -> AsyncGenerator[Any, None]:
        """Yield the responses of a streaming method of a stub."""
        async with self._errors():
            call: Any = method(request, **self._with(self.timeouts.stream_timeout))
            try:
                async for response in call:
                    yield response
            finally:
                # A caller that stops early must not leave the call running at the server.
                call.cancel()

    async def estimate(self, spec: ScoreSpec, items: Sequence[Item]) -> list[Estimate]:  # noqa: ARG002
        """Refuse: only the server knows its cache and the prices of its judges.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError(
            f"the server at {self.target!r} can't estimate a run; estimate it in this process, "
            "without a server"
        )

    async def close(self) -> None:
        """Close the channel; the next call opens a new one."""
        if self._loop is not None:
            self._loop = None
            await self._channel.close()

    def _with(self, timeout: float) -> dict[str, Any]:
        """Return the keyword arguments of every call."""
        return {"timeout": timeout, "metadata": (*self._metadata, *trace_headers())}

    def _connect(self) -> pb_grpc.JudgeServiceAsyncStub:
        """Return a stub of the service for the running event loop.

        A channel works only on the loop that created it. One script may run several loops in turn.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            options = channel_options(self._keepalive_ms)
            self._channel = open_channel(self.target, self._connection, options)
            self._stub = pb_grpc.JudgeServiceStub(self._channel)
            self._loop = loop
        return self._stub

    async def _greet(self) -> None:
        """Check once that the releases of client and server are compatible."""
        if not self._greeted:
            check_versions(__version__, (await self.server_info()).version, self.target)
            self._greeted = True

    @asynccontextmanager
    async def _errors(self, feed: Feed | None = None) -> AsyncGenerator[None, None]:
        try:
            yield
        except (grpc.RpcError, asyncio.CancelledError) as err:
            # The feed's error is the cause; gRPC only reports that the stream ended early.
            if feed is not None and feed.error is not None:
                raise feed.error from err
            if isinstance(err, grpc.RpcError):
                raise await self._error(err) from err
            raise

    async def _error(self, err: grpc.RpcError) -> HallujudgeError:
        error = error_from_rpc(err, target=self.target)
        if error.reason == "SERVER_UNREACHABLE" and (
            found := await asyncio.to_thread(diagnose, self.target, self._connection)
        ):
            return UnavailableError(
                f"no call reaches {self.target!r}: {found}", metadata={"target": self.target}
            )
        return error
