"""The gRPC service for scoring: converts messages and calls the engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from contextlib import aclosing
from typing import TypeVar

from google.protobuf.message import Message

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.metrics.families import metric_names
from hallujudge.synonym_graphs import shipped_graphs

from .. import __version__
from ..access import call_memory, stream_pause
from ..engine import Engine, ScoringSession
from ..engine.registry import MetricEntry, metric_entry
from ..engine.spec import ScoreSpec
from ..engine.streams import TICK_SECONDS, distinct, ordered_map, with_ticks
from ..errors import InvalidInputError
from ..settings.server_settings import LimitSettings
from .calls import Calls, died_of, with_scores
from .flow_control import Held, Window
from .interceptors import Context
from .request_checks import GroupLimit, groups_of

_MessageT = TypeVar("_MessageT", bound=Message)

# One batch at a time would leave all workers but one idle.
MAX_CONCURRENCY = 8
"""Number of batches of one stream that are scored at the same time."""
# Results are held as messages until they are sent, which take more than their bytes.
RESULT_FACTOR = 4
"""Memory of a message for each of its bytes on the wire."""


class JudgeServicer(Calls, pb_grpc.JudgeServiceServicer):
    """Implements the RPCs of scoring with the engine; those with one message are :class:`Calls`.

    Args:
        engine: The engine.
        settings: The limits of calls.
        start_id: Another one after each start of the server.
    """

    def __init__(self, engine: Engine, settings: LimitSettings, start_id: str = "") -> None:
        super().__init__(engine, settings)
        self._start_id = start_id

    async def ScoreStream(
        self, request_iterator: AsyncIterable[pb.ScoreStreamRequest], context: Context
    ) -> AsyncGenerator[pb.ScoreStreamResponse, None]:
        """Score any number of items: receive a spec and then batches; send the report last."""
        requests = aiter(request_iterator)
        first = await first_of(requests)
        spec, session = await self.open(first.spec)
        # The first message's memory is free before the stream, which may last for hours.
        call_memory().answered()
        yield pb.ScoreStreamResponse(
            accepted=pb.StreamAccepted(statistic_names=session.statistic_names)
        )
        scored = self._scored(spec, session, requests, report=not first.results_only)
        # Progress every few seconds shows that a slow judge is still at work.
        responses = with_ticks(scored, TICK_SECONDS)
        async with aclosing(responses):
            memory = call_memory()
            async for response in responses:
                yield _progress(session) if response is None else response
                # A tick answers no message, so that it frees none.
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
        window = Window(self._limits.max_unread_bytes, self._limits.max_batch_items)
        groups = GroupLimit(self._limits.max_report_groups)

        async def work(one: tuple[pb.ScoreStreamRequest, Held]) -> pb.ScoreStreamResponse:
            request, batch = one
            response = await self._score_batch(spec, session, groups, request)
            # Once: protobuf encodes a message to know its size.
            size = response.ByteSize()
            call_memory().result(RESULT_FACTOR * size)
            window.made(batch, size)
            return response

        # Before the window, so that a repeated id is refused before its batch is scored.
        unique = distinct(requests, _ids, call_memory().keep)
        paced = window.paced(unique, _measured)
        # Results come in the order of the items, though later batches may be scored first.
        async with aclosing(ordered_map(paced, work, limit=MAX_CONCURRENCY)) as responses:
            async for response in responses:
                yield response
                # After the yield: gRPC has taken the batch when it asks for the next.
                window.sent()
        # Clients that tally the results themselves do without the report.
        if not report:
            return
        for piece in self.report_pieces(await session.make_report()):
            yield piece

    async def ListMetrics(
        self, request: pb.ListMetricsRequest, context: Context
    ) -> pb.ListMetricsResponse:
        """Return the metrics."""
        # The first call loads most of them, with the files of their papers.
        return pb.ListMetricsResponse(metrics=await asyncio.to_thread(_metrics))

    async def GetServerInfo(
        self, request: pb.GetServerInfoRequest, context: Context
    ) -> pb.GetServerInfoResponse:
        """Return the version and the limits."""
        return pb.GetServerInfoResponse(
            version=__version__,
            graphs=shipped_graphs(),
            max_message_bytes=self._limits.max_message_bytes,
            max_batch_items=self._limits.max_batch_items,
            start_id=self._start_id,
        )

    async def _score_batch(
        self,
        spec: ScoreSpec,
        session: ScoringSession,
        groups: GroupLimit,
        request: pb.ScoreStreamRequest,
    ) -> pb.ScoreStreamResponse:
        items = await self.stream_items(spec, request)
        # Before scoring, as a report of too many groups would be refused after all the work.
        groups.add(groups_of(items, spec.group_by, session.metric))
        # The client says that the server died of these items, so that they are not tried again.
        if died := died_of(request):
            session.add(results := session.unscored(items, died))
        else:
            results = await session.score(items)
        named = with_scores(session.metric, results, request)
        return await self.batch_response(named)


def metric_info(entry: MetricEntry) -> pb.MetricInfo:
    """Return a metric's declaration: papers, variants, options, statistics and scores."""
    metric = entry.metric
    return pb.MetricInfo(
        name=metric.name,
        summary=metric.summary,
        unit=metric.unit,
        papers=_messages(pb.MetricPaper, metric.papers),
        variants=_messages(pb.MetricVariant, metric.variants),
        options=[
            pb.MetricOption(
                name=option.name,
                default_value=option.default,
                choices=option.choices,
                meaning=option.sentence,
            )
            for option in entry.options
        ],
        statistics=_messages(pb.MetricStatistic, metric.columns),
        scores=_messages(pb.MetricScore, metric.score_definitions),
        ranked_by=metric.ranked_by,
        ranking_source=metric.ranking_source,
    )


def _messages(kind: type[_MessageT], values: Iterable[object]) -> list[_MessageT]:
    """Return values as messages whose fields have the names of theirs."""
    # By the message's fields: the values have more, such as what only this process needs.
    names = [field.name for field in kind.DESCRIPTOR.fields]
    return [kind(**{name: getattr(value, name) for name in names}) for value in values]


def _measured(request: pb.ScoreStreamRequest) -> tuple[int, int]:
    return len(request.batch.items), request.ByteSize()


def _ids(request: pb.ScoreStreamRequest) -> list[str]:
    return [item.id for item in request.batch.items]


def _progress(session: ScoringSession) -> pb.ScoreStreamResponse:
    progress = session.progress()
    # What this stream waits for goes first; a pause of the server concerns all.
    waiting = progress.waiting or stream_pause()
    return pb.ScoreStreamResponse(
        progress=pb.StreamProgress(
            answers=progress.answers, waiting=waiting, verdicts=progress.verdicts
        )
    )


async def first_of(requests: AsyncIterator[pb.ScoreStreamRequest]) -> pb.ScoreStreamRequest:
    """Return the first message of a scoring stream.

    Raises:
        InvalidInputError: It is not the spec.
    """
    first = await anext(requests, None)
    if first is None or first.WhichOneof("message") != "spec":
        raise InvalidInputError("the first message of a scoring stream must be the spec")
    return first


def _metrics() -> list[pb.MetricInfo]:
    return [metric_info(metric_entry(name)) for name in metric_names()]
