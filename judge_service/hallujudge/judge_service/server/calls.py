"""The work of each call, without its transport; the server and its worker processes share it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
from msgspec import structs

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2
from hallujudge.metrics import Item, ItemResult, Metric, Outcome, Report
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.framework.columns_and_scores import ScoreDefinition

from ..engine import Engine, ScoringSession
from ..engine.found_claims import FoundClaim
from ..engine.registry import metric_entry
from ..engine.session import extract, normalize
from ..engine.spec import ScoreSpec
from ..errors import InvalidInputError, Violation
from ..settings.server_settings import LimitSettings
from ..threads import map_cpu, of_each
from ..wire.convert import (
    found_claim_to_proto,
    graph_from_proto,
    report_to_proto,
    without_graphs,
    writer_to,
)
from .request_checks import (
    GroupLimit,
    admitted_spec,
    check_count,
    check_graph,
    check_texts,
    check_unique,
    groups_of,
    item_of,
    items_of,
)

# Room for the note that `shrink` adds; a note has a few hundred bytes.
_NOTE_BYTES = 1024
# Larger reports are sent in pieces that fit the default limits of every gRPC client (4 MiB).
_REPORT_BYTES = 1 << 20
# A detail is one sentence.
_DIED_CHARS = 500
# Converting a claim takes about as long as matching this many characters.
_CLAIM_CHARS = 100


def pieces_of(report: scoring_pb2.Report, max_bytes: int) -> Iterator[pb.ScoreStreamResponse]:
    """Yield the messages that carry a report: batches of its groups, then the report.

    Only the groups can make a report large: there is one for each value of a field.

    Args:
        report: The report; its groups are removed if they are sent separately.
        max_bytes: Size from which groups are sent separately, and size of their batches.
    """
    if report.ByteSize() > max_bytes:
        batch, size = pb.GroupBatch(), 0
        for group in report.groups:
            # A group that is larger than a piece goes alone.
            if batch.groups and size + group.ByteSize() > max_bytes:
                yield pb.ScoreStreamResponse(groups=batch)
                batch, size = pb.GroupBatch(), 0
            batch.groups.append(group)
            size += group.ByteSize()
        yield pb.ScoreStreamResponse(groups=batch)
        report.ClearField("groups")
    yield pb.ScoreStreamResponse(report=report)


def shrink(response: pb.ScoreResponse, max_bytes: int) -> None:
    """Remove what does not fit into one message, and add a note to the report.

    The report's groups are removed first, then the items' evidence; scores are kept.

    Args:
        response: The response; it is changed.
        max_bytes: The largest message.
    """
    for name, remove in (("groups", _remove_groups), ("the evidence of items", _remove_evidence)):
        if (size := response.ByteSize()) <= max_bytes - _NOTE_BYTES:
            return
        remove(response)
        response.report.notes.append(
            f"This response leaves out {name}: with them it has {size} bytes, and a message may "
            f"have {max_bytes} (limits.max_message_bytes). ScoreStream sends them in pieces."
        )


def _remove_groups(response: pb.ScoreResponse) -> None:
    response.report.ClearField("groups")


def _remove_evidence(response: pb.ScoreResponse) -> None:
    for result in response.results:
        if (kind := result.WhichOneof("evidence")) is not None:
            result.ClearField(kind)


class Calls:
    """Answers requests with the engine.

    The calls with one message have the names and arguments of gRPC's servicers; they leave the
    context out of account, which worker processes do not have.

    Args:
        engine: The engine.
        limits: The limits of messages.
    """

    def __init__(self, engine: Engine, limits: LimitSettings) -> None:
        self.engine = engine
        self._limits = limits

    async def open(self, message: scoring_pb2.ScoreSpec) -> tuple[ScoreSpec, ScoringSession]:
        """Return the spec of a message, and a session to score with it."""
        spec = await admitted_spec(message)
        return spec, await self.engine.open(spec)

    async def Score(self, request: pb.ScoreRequest, _context: object = None) -> pb.ScoreResponse:
        """Score a small batch in one call."""
        spec, session = await self.open(request.spec)
        items = await self.items(spec, request.items, "items")
        check_unique(items)
        if request.scores:
            return await _score_columns(session, items, request.scores)
        if spec.group_by:
            GroupLimit(self._limits.max_report_groups).add(
                groups_of(items, spec.group_by, session.metric)
            )
        response = pb.ScoreResponse(statistic_names=session.statistic_names)
        await _write_all(await session.score(items), response.results)
        writer_to(scoring_pb2.Report, Report)(await session.make_report(), response.report)
        # Unlike a stream, a unary response has no second message for the rest.
        shrink(response, self._limits.max_message_bytes)
        return response

    async def stream_items(self, spec: ScoreSpec, request: pb.ScoreStreamRequest) -> list[Item]:
        """Return the items of a batch of a stream.

        Raises:
            InvalidInputError: The message is not a batch, or has invalid items.
        """
        if request.WhichOneof("message") != "batch":
            raise InvalidInputError("after the spec, every message of a stream must be a batch")
        return await self.items(spec, request.batch.items, "batch.items")

    async def batch_response(self, results: Sequence[ItemResult]) -> pb.ScoreStreamResponse:
        """Return the message with the results of a batch of a stream."""
        response = pb.ScoreStreamResponse(batch=pb.ResultBatch())
        await _write_all(results, response.batch.results)
        return response

    def report_pieces(self, report: Report) -> Iterable[pb.ScoreStreamResponse]:
        """Return the messages that carry the report of a stream."""
        size = min(_REPORT_BYTES, self._limits.max_message_bytes // 2)
        return pieces_of(report_to_proto(report), size)

    async def Extract(
        self, request: pb.ExtractRequest, _context: object = None
    ) -> pb.ExtractResponse:
        """Extract claims from texts."""
        check_count(self._limits.max_batch_items, len(request.texts), "texts")
        check_texts(request.texts)
        spec = await admitted_spec(request.spec)
        texts = await extract(spec, request.texts, self.engine.resources)
        claims = await map_cpu(
            of_each(_text_claims), texts, chars=lambda found: _CLAIM_CHARS * len(found)
        )
        return pb.ExtractResponse(texts=claims)

    async def Judge(self, request: pb.JudgeRequest, _context: object = None) -> pb.JudgeResponse:
        """Judge claims without aggregating."""
        spec = await admitted_spec(request.spec)
        items = await self.items(spec, request.items, "items")
        check_unique(items)
        response = pb.JudgeResponse()
        await _write_all(await self.engine.judge(spec, items), response.results)
        return response

    async def Normalize(
        self, request: pb.NormalizeRequest, _context: object = None
    ) -> pb.NormalizeResponse:
        """Return the roots of words."""
        check_count(self._limits.max_batch_items, len(request.words), "words")
        check_graph(request.graph)
        graph = graph_from_proto(request.graph)
        label, roots = await normalize(graph, request.words, self.engine.resources)
        return pb.NormalizeResponse(
            words=[
                pb.NormalizedWord(word=word, roots=found)
                for word, found in zip(request.words, roots, strict=True)
            ],
            graph_label=label,
        )

    async def items(self, spec: ScoreSpec, messages: Sequence[pb.Item], within: str) -> list[Item]:
        """Return the items of a request for the metric of its spec.

        Args:
            spec: The spec.
            messages: The items' messages.
            within: The field of the request that holds them.
        """
        check_count(self._limits.max_batch_items, len(messages), within)
        read = partial(item_of, item_type=metric_entry(spec.metric).item_type)
        # In slices, so that calls of other callers are served in between.
        found = await map_cpu(of_each(read), messages, chars=pb.Item.ByteSize)
        return items_of(found, within=within)


def died_of(request: pb.ScoreStreamRequest) -> str:
    """Return why a batch is not scored; empty if it is."""
    return request.batch.died[:_DIED_CHARS]


def _definitions(metric: Metric, names: Sequence[str], field: str) -> list[ScoreDefinition]:
    """Return scores by name.

    Raises:
        InvalidInputError: The metric has no such score.
    """
    known = {score.name: score for score in metric.scores}
    if unknown := [name for name in names if name not in known]:
        problem = f"{unknown[0]!r:.80} is unknown; {choose_from(unknown[0], known)}"
        raise InvalidInputError(
            f"{field}: {problem}", violations=(Violation(field=field, description=problem),)
        )
    return [known[name] for name in names]


def with_scores(
    metric: Metric, results: Sequence[ItemResult], request: pb.ScoreStreamRequest
) -> Sequence[ItemResult]:
    """Return the results of a batch with the scores that it asks for besides the metric's own.

    Raises:
        InvalidInputError: The metric has no such score.
    """
    if not (names := request.batch.scores):
        return results
    definitions = _definitions(metric, names, "batch.scores")
    columns = [metric.item_values(definition, results) for definition in definitions]
    return [
        structs.replace(result, scores={**result.scores, **dict(zip(names, values, strict=True))})
        for result, values in zip(results, zip(*columns, strict=True), strict=True)
    ]


async def _score_columns(
    session: ScoringSession, items: Sequence[Item], names: Sequence[str]
) -> pb.ScoreResponse:
    """Return some scores of each item, without results and report."""
    definitions = _definitions(session.metric, names, "scores")
    results = await session.evaluate(items)
    response = pb.ScoreResponse()
    for definition in definitions:
        values = session.metric.item_values(definition, results)
        # A column of numbers has no null.
        values = [math.nan if v is None else v for v in values]
        response.columns.add(name=definition.name, values=values)
    for at, result in enumerate(results):
        if result.outcome is Outcome.UNSCORED:
            response.unscored.add(position=at, reason=result.reason, detail=result.detail)
    return response


async def _write_all(
    results: Sequence[ItemResult], to: RepeatedCompositeFieldContainer[pb.ItemResult]
) -> None:
    """Write results to a response, without scene graphs, which the client has."""
    write = writer_to(pb.ItemResult, ItemResult)
    # Without a size, so that a block ends by its number of results and a slice by the clock.
    await map_cpu(
        lambda some: map(write, some, iter(to.add, None)),
        without_graphs(results),
        chars=lambda _: 0,
    )


def _text_claims(claims: Sequence[FoundClaim]) -> pb.TextClaims:
    return pb.TextClaims(claims=[found_claim_to_proto(claim) for claim in claims])
