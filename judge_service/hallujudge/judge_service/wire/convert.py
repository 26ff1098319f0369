"""Conversion of values to messages and back, and to the bytes that the job database stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast

from google.protobuf.message import DecodeError, Message
from msgspec import structs

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2
from hallujudge.metrics import Evidence, Item, ItemResult, JsonValue, Report, Score
from hallujudge.metrics.framework.claims import ClaimParts, Sentence, Triplet, WrittenTriplet
from hallujudge.metrics.tri_he import TriHeEvidence, TriHeItem, checked_against_all

from ..engine.found_claims import FoundClaim
from ..engine.spec import GraphSource, ScoreSpec
from . import evidence_types, item_types
from .codec import Codecs
from .fields import Codec, Fill, MalformedError, invalid, located, reader_of, writer_of

TASKS = item_types()
"""Task -> the type of its items."""
TASK_OF = {item_type: task for task, item_type in TASKS.items()}
"""Type of items -> its task."""


# Where values have another shape than their messages


def _write_triplet(triplet: Any, message: Any) -> None:
    message.subject, message.relation, message.object = triplet
    if isinstance(triplet, WrittenTriplet):
        # It was read from a file, and keeps the text that it had there.
        message.written = triplet.written


def _write_given(claim: Any, message: Any) -> None:
    if isinstance(claim, Sentence):
        raise MalformedError("given claims must be triplets, not sentences")
    _write_triplet(claim, message)


def _read_triplet(message: Any) -> Triplet:
    parts = (message.subject, message.relation, message.object)
    return WrittenTriplet(*parts, written=message.written) if message.written else Triplet(*parts)


# Evidence holds the work of each judge as JSON. Not every part has these: members of a panel, and
# judges whose choices' share was measured.
_VOTES, _SHARES = ("votes", "dissents"), ("choice_shares",)
_OF_PARTS = scoring_pb2.JudgePart.DESCRIPTOR.fields_by_name
_PART = [name for name in _OF_PARTS if name not in (*_VOTES, *_SHARES)]


def _write_part(part: Mapping[str, Any], message: Any) -> None:
    rows = [{"reason": reason, **row} for reason, row in part["declined"].items()]
    message.MergeFrom(scoring_pb2.JudgePart(**{**part, "declined": rows}))


def _judge_json(part: Any) -> dict[str, JsonValue]:
    names = (*_PART, *(_SHARES if part.choice_shares else ()), *(_VOTES if part.votes else ()))
    line = {name: getattr(part, name) for name in names}
    line |= {name: list(line[name]) for name in ("choice_shares", "votes") if name in line}
    line["cost"] = part.cost if part.HasField("cost") else None
    line["declined"] = {
        row.reason: {"claims": row.claims, "detail": row.detail} for row in part.declined
    }
    return line


_Scores: TypeAlias = Mapping[str, Score]
_Groups: TypeAlias = Mapping[str, Mapping[str, _Scores]]


@cache
# When it is asked for, as CODECS has this function in it.
def _scores() -> Codec:
    """Return the converter of a group's scores."""
    return CODECS.many(_Scores, scoring_pb2.GroupScores.DESCRIPTOR.fields_by_name["scores"])


def _write_groups(groups: _Groups, message: Any) -> None:
    for key, values in groups.items():
        for value, scores in values.items():
            _scores().write(scores, message.groups.add(key=key, value=value))


def _read_groups(message: Any) -> _Groups:
    groups: dict[str, dict[str, _Scores]] = {}
    for row in message.groups:
        groups.setdefault(row.key, {})[row.value] = _scores().read(row)
    return groups


CODECS = Codecs(
    types={
        (Triplet, "Triplet"): Codec(_write_triplet, _read_triplet),
        (ClaimParts, "Triplet"): Codec(_write_given, _read_triplet),
        (dict[str, JsonValue], "JudgePart"): Codec(_write_part, _judge_json),
        (_Groups, "GroupScores"): Codec(_write_groups, _read_groups),
    },
    unions={Evidence: evidence_types()},
    needs={
        "hallujudge.judge.v1.GraphSource.source": "needs a source; set 'shipped' or 'inline'",
        "hallujudge.judge.v1.ClaimVerdict.claim": "needs a triplet or a sentence",
        "hallujudge.judge.v1.SeenClaim.claim": "needs a triplet or a sentence",
    },
)

_ValueT = TypeVar("_ValueT")
_MessageT = TypeVar("_MessageT", bound=Message)


# Items


@cache
def _item_codec(kind: str) -> Codec:
    """Return the converter of a task's items, whose message holds the task's within it."""
    item_type, theirs = TASKS[kind], pb.Item.DESCRIPTOR
    fields = CODECS.fields(Item, theirs, without=TASKS)
    task_message: Any = theirs.fields_by_name[kind].message_type
    names = [field.name for field in fields]
    task_fields = CODECS.fields(item_type, task_message, without=names)
    write, write_task = writer_of(fields), writer_of(task_fields)
    read, read_task = reader_of(fields), reader_of(task_fields)

    def write_item(item: Item, message: Any) -> None:
        # The task's fields are in a message of their own, so that items of all tasks share the
        # others.
        write(item, message)
        task = getattr(message, kind)
        task.SetInParent()
        try:
            write_task(item, task)
        except MalformedError as err:
            raise err.within(kind) from None

    def read_item(message: Any) -> Item:
        return item_type(**located(read_task, getattr(message, kind), kind), **read(message))

    return Codec(write_item, read_item)


def item_to_proto(item: Item) -> pb.Item:
    """Return an item as a message.

    Raises:
        InvalidInputError: A field can't be sent.
    """
    message = pb.Item()
    try:
        _item_codec(TASK_OF[type(item)]).write(item, message)
    # The id goes first: a caller knows the item by it, and not by its place in a batch.
    except MalformedError as err:
        raise invalid(MalformedError(err.problem, f"item {item.id!r}, {err.place}")) from None
    return message


def item_from_proto(message: pb.Item) -> Item:
    """Return the item of a message.

    Raises:
        InvalidInputError: The message has no task, or a field without valid content.
    """
    try:
        return read_item(message)
    except MalformedError as err:
        raise invalid(err, "item") from None


def read_item(message: pb.Item) -> Item:
    """Return the item of a message.

    Raises:
        MalformedError: The message has no task, or a field without valid content.
    """
    kind = message.WhichOneof("task")
    if kind is None:
        raise MalformedError(f"is missing; set one of {', '.join(TASKS)}", "task")
    return _item_codec(kind).read(message)  # type: ignore[no-any-return]  # of the task's type


# Specs


def spec_to_proto(spec: ScoreSpec) -> scoring_pb2.ScoreSpec:
    """Return a spec as a message."""
    return _written(ScoreSpec, spec, scoring_pb2.ScoreSpec())


def spec_from_proto(message: scoring_pb2.ScoreSpec) -> ScoreSpec:
    """Return the spec of a message.

    Raises:
        InvalidInputError: The metric is not named, or a field has no valid content.
    """
    if not message.metric:
        raise invalid(MalformedError("is empty; name a metric, such as 'chair'", "spec.metric"))
    return _read(ScoreSpec, message, "spec")


def graph_to_proto(source: GraphSource) -> scoring_pb2.GraphSource:
    """Return a graph source as a message."""
    return _written(GraphSource, source, scoring_pb2.GraphSource())


def graph_from_proto(message: scoring_pb2.GraphSource) -> GraphSource:
    """Return the graph source of a message.

    Raises:
        InvalidInputError: The message names no source.
    """
    return cast("GraphSource", _read(cast("Any", GraphSource), message, "graph"))


# Results and reports


def result_to_proto(result: ItemResult) -> pb.ItemResult:
    """Return a result as a message."""
    return _written(ItemResult, result, pb.ItemResult())


@cache
def writer_to(message: Any, value_type: Any) -> Fill:
    """Return a function that writes values to empty messages of a type, as responses hold them."""
    return CODECS.of(value_type, message.DESCRIPTOR).write


def result_from_proto(message: pb.ItemResult) -> ItemResult:
    """Return the result of a message."""
    return _read(ItemResult, message, "result")


def report_to_proto(report: Report) -> scoring_pb2.Report:
    """Return a report as a message."""
    return _written(Report, report, scoring_pb2.Report())


def report_from_proto(message: scoring_pb2.Report) -> Report:
    """Return the report of a message."""
    return _read(Report, message, "report")


def found_claim_to_proto(found: FoundClaim) -> pb.Claim:
    """Return a claim without a verdict as a message."""
    return _written(FoundClaim, found, pb.Claim())


def found_claim_from_proto(message: pb.Claim) -> FoundClaim:
    """Return the claim of a message."""
    return _read(FoundClaim, message, "claim")


def _written(value_type: Any, value: object, message: _MessageT) -> _MessageT:
    """Write a value to an empty message, and return it."""
    descriptor: Any = message.DESCRIPTOR  # the stubs know it as one of two classes
    CODECS.of(value_type, descriptor).write(value, message)
    return message


def _read(value_type: type[_ValueT], message: Any, within: str) -> _ValueT:
    try:
        return CODECS.of(value_type, message.DESCRIPTOR).read(message)  # type: ignore[no-any-return]  # of its type
    except MalformedError as err:
        raise invalid(err, within) from None


# Scene graphs, which results are sent without: the client's items have them


def without_graphs(results: Sequence[ItemResult]) -> list[ItemResult]:
    """Return the results to send, without scene graphs."""
    return [
        # A scene graph would be sent back to who sent it, with every result of its picture.
        structs.replace(result, evidence=structs.replace(result.evidence, scene_graph=()))
        if isinstance(result.evidence, TriHeEvidence) and result.evidence.scene_graph
        else result
        for result in results
    ]


def with_graphs(items: Sequence[Item], results: Sequence[ItemResult]) -> list[ItemResult]:
    """Return the results as they were before :func:`without_graphs`.

    Args:
        items: The items that were sent.
        results: The results that were received, in order.
    """
    return [_with_graph(*pair) for pair in zip(items, results, strict=True)]


def _with_graph(item: Item, result: ItemResult) -> ItemResult:
    evidence = result.evidence
    if not isinstance(item, TriHeItem) or not isinstance(evidence, TriHeEvidence):
        return result
    if not any(map(checked_against_all, evidence.claims)):
        return result
    return structs.replace(
        result, evidence=structs.replace(evidence, scene_graph=item.reference_triplets or ())
    )


# What the job database stores: the bytes of messages


def spec_of(content: bytes) -> ScoreSpec:
    """Return a spec."""
    return spec_from_proto(scoring_pb2.ScoreSpec.FromString(content))


def items_of(contents: Sequence[bytes]) -> list[Item]:
    """Return items."""
    return [item_from_proto(pb.Item.FromString(content)) for content in contents]


def result_of(content: bytes) -> ItemResult:
    """Return a result."""
    return result_from_proto(pb.ItemResult.FromString(content))


def result_bytes(result: ItemResult) -> bytes:
    """Return a result as bytes."""
    # The stored item has the scene graph.
    (kept,) = without_graphs([result])
    return result_to_proto(kept).SerializeToString()


def report_of(content: bytes) -> Report:
    """Return a report."""
    return report_from_proto(scoring_pb2.Report.FromString(content))


def report_bytes(report: Report) -> bytes:
    """Return a report as bytes."""
    return report_to_proto(report).SerializeToString()


# Length of the first message, before it: messages do not say where they end.
_SIZE_BYTES = 4


def scored_bytes(pairs: Sequence[tuple[Item, ItemResult]]) -> bytes:
    """Return items and their results as two messages, which keep every field of both."""
    batch = pb.ItemBatch(items=[item_to_proto(item) for item, _ in pairs])
    outcomes = pb.ResultBatch(results=[result_to_proto(result) for _, result in pairs])
    # Without this, the order of maps differs between processes.
    items = batch.SerializeToString(deterministic=True)
    results = outcomes.SerializeToString(deterministic=True)
    return len(items).to_bytes(_SIZE_BYTES, "little") + items + results


def scored_of(content: bytes) -> Iterator[tuple[Item, ItemResult]]:
    """Yield the items and results of :func:`scored_bytes`.

    Raises:
        ValueError: The content is damaged.
    """
    end = _SIZE_BYTES + int.from_bytes(content[:_SIZE_BYTES], "little")
    try:
        items = pb.ItemBatch.FromString(content[_SIZE_BYTES:end]).items
        results = pb.ResultBatch.FromString(content[end:]).results
    except DecodeError as err:
        raise ValueError(str(err)) from err
    for item, result in zip(items, results, strict=True):
        yield item_from_proto(item), result_from_proto(result)
