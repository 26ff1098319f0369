"""The gRPC service: converts messages and calls the engine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc

from ..access.memory import call_memory
from ..access.turns import map_cpu
from ..engine import Engine, ScoringSession, metric_names
from ..engine.extraction import extract, normalize
from ..engine.ordered import ordered_map
from ..engine.progress import TICK_SECONDS
from ..engine.registry import metric_entry
from ..engine.ticks import with_ticks
from ..errors import InvalidInputError
from ..version import __version__
from ..wire import convert as _convert
from ..wire.metrics import metric_info
from ..wire.reports import pieces_of, shrink
from ..wire.scene_graphs import without_graphs
from .costs import GroupLimit, check_texts
from .counts import check_count
from .specs import admitted_spec, check_graph
from .window import Held, Window

if TYPE_CHECKING:
    import grpc
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    from hallujudge.metrics import Item, ItemResult

    from ..engine.entry import FoundClaim
    from ..engine.spec import ScoreSpec
    from ..settings.server import ServerSettings

__all__ = ["JudgeServicer"]

# Batches of one stream that are scored at the same time.
_MAX_CONCURRENCY = 8
# Larger reports are sent in pieces that fit the default limits of every gRPC client (4 MiB).
_REPORT_BYTES = 1 << 20
# What a message takes in memory for each of its bytes on the wire.
_RESULT_FACTOR = 4
# Converting a claim takes about as long as matching so many characters.
_CLAIM_CHARS = 100
# Copying so many results takes about a fifth of a millisecond.
_PART = 100


class JudgeServicer(pb_grpc.JudgeServiceServicer):
    """Implements the RPCs with the engine.

    Args:
        engine: The engine.
        settings: The limits of calls.
    """

    def __init__(self, engine: Engine, settings: ServerSettings) -> None:
        self._engine = engine
        self._settings = settings

    async def Score(
        self, request: pb.ScoreRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.ScoreResponse:
        """Score a small batch in one call."""
        spec = admitted_spec(request.spec)
        session = await self._engine.open(spec)
        items = await self._items(spec, request.items, "items")
        _convert.check_unique(items)
        self._group_limit(spec, session).add(items)
        results = await _messages(await session.score(items))
        report = await session.make_report()
        response = pb.ScoreResponse(
            report=_convert.report_to_proto(report), statistic_names=session.statistic_names
        )
        await _add_all(response.results, results)
        shrink(response, self._settings.max_message_bytes)
        return response

    async def ScoreStream(
        self,
        request_iterator: AsyncIterable[pb.ScoreStreamRequest],
        context: grpc.aio.ServicerContext[object, object],
    ) -> AsyncGenerator[pb.ScoreStreamResponse, None]:
        """Score any number of items: receive a spec and then batches; send the report last."""
        requests = aiter(request_iterator)
        first = await _first_of(requests)
        spec = admitted_spec(first.spec)
        call_memory().answered()
        session = await self._engine.open(spec)
        yield pb.ScoreStreamResponse(
            accepted=pb.StreamAccepted(statistic_names=session.statistic_names)
        )
        scored = self._scored(spec, session, requests, report=not first.results_only)
        responses = with_ticks(scored, TICK_SECONDS)
        async with aclosing(responses):
            memory = call_memory()
            async for response in responses:
                yield _progress(session) if response is None else response
                if response is not None and response.WhichOneof("message") == "batch":
                    memory.answered()

    async def _scored(
        self,
        spec: ScoreSpec,
        session: ScoringSession,
        requests: AsyncIterator[pb.ScoreStreamRequest],
        *,
        report: bool,
    ) -> AsyncGenerator[pb.ScoreStreamResponse, None]:
        """Yield the results of each batch, then the report if it is wanted."""
        window = Window(self._settings.max_unread_bytes, self._settings.max_batch_items)
        groups = self._group_limit(spec, session)

        async def work(one: tuple[pb.ScoreStreamRequest, Held]) -> pb.ScoreStreamResponse:
            request, batch = one
            response = await self._score_batch(spec, session, groups, request)
            window.made(batch, response.ByteSize())
            return response

        paced = window.paced(requests)
        async with aclosing(ordered_map(paced, work, limit=_MAX_CONCURRENCY)) as responses:
            async for response in responses:
                yield response
                window.sent()
        if not report:
            return
        made = await session.make_report()
        size = min(_REPORT_BYTES, self._settings.max_message_bytes // 2)
        for piece in pieces_of(_convert.report_to_proto(made), size):
            yield piece

    async def Extract(
        self, request: pb.ExtractRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.ExtractResponse:
        """Extract claims from texts."""
        check_count(self._settings.max_batch_items, len(request.texts), "texts")
        check_texts(request.texts)
        spec = admitted_spec(request.spec)
        texts = await extract(spec, request.texts, self._engine.resources)
        claims = await map_cpu(_text_claims, texts, chars=lambda found: _CLAIM_CHARS * len(found))
        return pb.ExtractResponse(texts=claims)

    async def Judge(
        self, request: pb.JudgeRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.JudgeResponse:
        """Judge claims without aggregating."""
        spec = admitted_spec(request.spec)
        items = await self._items(spec, request.items, "items")
        _convert.check_unique(items)
        response = pb.JudgeResponse()
        await _add_all(response.results, await _messages(await self._engine.judge(spec, items)))
        return response

    async def Normalize(
        self, request: pb.NormalizeRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.NormalizeResponse:
        """Return the roots of words."""
        check_count(self._settings.max_batch_items, len(request.words), "words")
        check_graph(request.graph)
        graph = _convert.graph_from_proto(request.graph)
        label, roots = await normalize(graph, request.words, self._engine.resources)
        return pb.NormalizeResponse(
            words=[
                pb.NormalizedWord(word=word, roots=found)
                for word, found in zip(request.words, roots, strict=True)
            ],
            graph_label=label,
        )

    async def ListMetrics(
        self, request: pb.ListMetricsRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.ListMetricsResponse:
        """Return the metrics."""
        return pb.ListMetricsResponse(
            metrics=[metric_info(metric_entry(name)) for name in metric_names()]
        )

    async def GetServerInfo(
        self, request: pb.GetServerInfoRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.GetServerInfoResponse:
        """Return the version and the limits."""
        from hallujudge.synonym_graphs import shipped_graphs

        return pb.GetServerInfoResponse(
            version=__version__,
            graphs=shipped_graphs(),
            max_message_bytes=self._settings.max_message_bytes,
            max_batch_items=self._settings.max_batch_items,
        )

    async def _score_batch(
        self,
        spec: ScoreSpec,
        session: ScoringSession,
        groups: GroupLimit,
        request: pb.ScoreStreamRequest,
    ) -> pb.ScoreStreamResponse:
        if request.WhichOneof("message") != "batch":
            raise InvalidInputError("after the spec, every message of a stream must be a batch")
        items = await self._items(spec, request.batch.items, "batch.items")
        groups.add(items)
        results = await _messages(await session.score(items))
        response = pb.ScoreStreamResponse(batch=pb.ResultBatch())
        await _add_all(response.batch.results, results)
        call_memory().result(_RESULT_FACTOR * response.ByteSize())
        return response

    async def _items(self, spec: ScoreSpec, messages: Sequence[pb.Item], within: str) -> list[Item]:
        """Return the items of a request for the metric of its spec."""
        check_count(self._settings.max_batch_items, len(messages), within)
        read = partial(_convert.read_item, item_type=metric_entry(spec.metric).item_type)
        return _convert.items_of(await map_cpu(read, messages, chars=_message_size), within=within)

    def _group_limit(self, spec: ScoreSpec, session: ScoringSession) -> GroupLimit:
        return GroupLimit(spec.group_by, session.metric, self._settings.max_report_groups)


def _message_size(message: pb.Item) -> int:
    return message.ByteSize()


async def _messages(results: Sequence[ItemResult]) -> list[pb.ItemResult]:
    """Return results as messages, without the scene graphs of their items."""
    return await map_cpu(_convert.result_to_proto, without_graphs(results), chars=lambda _: 0)


async def _add_all(
    to: RepeatedCompositeFieldContainer[pb.ItemResult], results: list[pb.ItemResult]
) -> None:
    """Add results to a response, which copies them."""
    parts = [results[at : at + _PART] for at in range(0, len(results), _PART)]
    await map_cpu(to.extend, parts, chars=lambda _: 0)


def _text_claims(claims: Sequence[FoundClaim]) -> pb.TextClaims:
    return pb.TextClaims(claims=[_convert.found_claim_to_proto(claim) for claim in claims])


def _progress(session: ScoringSession) -> pb.ScoreStreamResponse:
    progress = session.progress()
    return pb.ScoreStreamResponse(
        progress=pb.StreamProgress(answers=progress.answers, waiting=progress.waiting)
    )


async def _first_of(requests: AsyncIterator[pb.ScoreStreamRequest]) -> pb.ScoreStreamRequest:
    first = await anext(requests, None)
    if first is None or first.WhichOneof("message") != "spec":
        raise InvalidInputError("the first message of a scoring stream must be the spec")
    return first
