"""Conversion of values to messages and back; only the servicers and the client use it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2
from hallujudge.metrics import Evidence, Item, ItemResult, JsonValue, Report, Score
from hallujudge.metrics.answers.closed_questions import AnswersEvidence
from hallujudge.metrics.argus import ArgusEvidence
from hallujudge.metrics.tri_he import TriHeEvidence

from ..engine.found_claims import FoundClaim
from ..engine.spec import GraphLayout, GraphSource, InlineGraph, ScoreSpec, ShippedGraph
from ..errors import InvalidInputError
from . import evidence_types, item_types, tri_he
from .codec import Codecs
from .field_loops import inner_reader_of, inner_writer_of, writer_of
from .fields import Codec, Convert, Field, Fill, MalformedError, Rearranged, invalid, message_of

TASKS = item_types()
"""Task -> the type of its items."""
_TASK_OF = {item_type: task for task, item_type in TASKS.items()}
# Room for the note that `shrink` adds; a note has a few hundred bytes.
_NOTE_BYTES = 1024
MAX_ID_BYTES = 1 << 16
"""Maximum size of an item's id, in UTF-8."""


# Where values have another shape than their messages


_LAYOUTS: Mapping[str, GraphLayout] = {"": "auto", "auto": "auto", "json": "json", "table": "table"}


def _write_graph(source: GraphSource, message: Any) -> None:
    if isinstance(source, ShippedGraph):
        message.shipped = source.name
    else:
        inline = message.inline
        inline.name, inline.text, inline.layout = source.name, source.text, source.layout


def _read_graph(message: Any) -> GraphSource:
    kind = message.WhichOneof("source")
    if kind is None:
        raise MalformedError("needs a source; set 'shipped' or 'inline'")
    if kind == "shipped":
        return ShippedGraph(name=message.shipped)
    inline = message.inline
    if inline.layout not in _LAYOUTS:
        raise MalformedError(f"{inline.layout!r} is not one of json, table, auto", "inline.layout")
    return InlineGraph(name=inline.name, text=inline.text, layout=_LAYOUTS[inline.layout])


_GRAPH_TYPES: Mapping[tuple[Any, str], Codec] = {
    (GraphSource, "GraphSource"): Codec(_write_graph, _read_graph)
}
"""The name of a shipped graph is a string, while its value is a class of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declined:
    """Claims without a verdict, for one reason."""

    claims: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _JudgePart:
    """The work of one judge, with the fields of its JSON in evidence."""

    judge: str
    answered: int
    declined: Mapping[str, _Declined]
    calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    latency_seconds: float
    cost: float | None
    reused: int
    votes: tuple[str, ...] = ()
    dissents: int = 0
    choice_shares: tuple[float, ...] = ()


# What not every part has: members of a panel, and judges whose choices' share was measured.
_SOME = ("choice_shares", "votes", "dissents")
_EVERY = tuple(name for name in _JudgePart.__slots__ if name not in _SOME)


def _write_judging(judging: Any) -> tuple[_JudgePart, ...]:
    return tuple(
        _JudgePart(
            **part
            | {"declined": {name: _Declined(**row) for name, row in part["declined"].items()}}
            | {name: tuple(part.get(name, ())) for name in ("votes", "choice_shares")}
        )
        for part in judging
    )


def _read_judging(judging: Any) -> tuple[dict[str, JsonValue], ...]:
    return tuple(_judge_json(part) for part in judging)


def _judge_json(part: _JudgePart) -> dict[str, JsonValue]:
    shares: dict[str, JsonValue] = {"choice_shares": list(part.choice_shares)}
    votes: dict[str, JsonValue] = {"votes": list(part.votes), "dissents": part.dissents}
    return {
        **{name: getattr(part, name) for name in _EVERY},
        **(shares if part.choice_shares else {}),
        **(votes if part.votes else {}),
        "declined": {
            reason: {"claims": row.claims, "detail": row.detail}
            for reason, row in part.declined.items()
        },
    }


_PARTS = Rearranged(tuple[_JudgePart, ...], _write_judging, _read_judging)
_JUDGING: Mapping[tuple[Any, str], Rearranged] = {
    (evidence, "judging"): _PARTS for evidence in (TriHeEvidence, AnswersEvidence, ArgusEvidence)
}
"""Evidence holds the work of each judge as JSON; its message declares the fields."""


_Groups = Mapping[str, Mapping[str, Mapping[str, Score]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupScores:
    """The scores of the items that share a value of a field."""

    key: str
    value: str
    scores: Mapping[str, Score]


def _write_groups(groups: _Groups) -> tuple[_GroupScores, ...]:
    return tuple(
        _GroupScores(key=key, value=value, scores=scores)
        for key, values in groups.items()
        for value, scores in values.items()
    )


def _read_groups(rows: Iterable[_GroupScores]) -> _Groups:
    groups: dict[str, dict[str, Mapping[str, Score]]] = {}
    for row in rows:
        groups.setdefault(row.key, {})[row.value] = row.scores
    return groups


_GROUPS: Mapping[tuple[Any, str], Rearranged] = {
    (Report, "groups"): Rearranged(tuple[_GroupScores, ...], _write_groups, _read_groups)
}
"""Groups are sent as rows with their field and value."""


CODECS = Codecs(
    types={**tri_he.TYPES, **_GRAPH_TYPES},
    shapes=tri_he.SHAPES,
    rearranged={**_JUDGING, **_GROUPS},
    unions={Evidence: evidence_types()},
)

_ValueT = TypeVar("_ValueT")
_MessageT = TypeVar("_MessageT", bound=Message)


# Items


class _ItemCodec(NamedTuple):
    """The converter of one type of items: the common fields, and the task."""

    kind: str
    fields: tuple[Field, ...]
    task_fields: tuple[Field, ...]
    write: Fill
    read: Convert


@cache
def _item_codec(kind: str) -> _ItemCodec:
    item_type = TASKS[kind]
    fields = CODECS.fields(Item, pb.Item.DESCRIPTOR, without=TASKS)
    message = message_of(pb.Item.DESCRIPTOR.fields_by_name[kind])
    task = CODECS.fields(item_type, message, without=[field.name for field in fields])
    return _ItemCodec(
        kind,
        fields,
        task,
        inner_writer_of(fields, kind, task),
        inner_reader_of(item_type, fields, kind, task),
    )


def item_to_proto(item: Item) -> pb.Item:
    """Return an item as a message.

    Raises:
        InvalidInputError: A field can't be sent.
    """
    codec = _item_codec(_TASK_OF[type(item)])
    message = pb.Item()
    try:
        codec.write(item, message)
    except MalformedError as err:
        raise invalid(MalformedError(err.problem, f"item {item.id!r}, {err.place}")) from None
    except (TypeError, ValueError) as err:
        # protobuf's error does not name the field, so that each field is tried again on its own.
        raise _unsendable(item, codec) from err
    return message


def _unsendable(item: Item, codec: _ItemCodec) -> InvalidInputError:
    """Return the error of an item with a field that protobuf does not accept."""
    for within, fields in (("", codec.fields), (f"{codec.kind}.", codec.task_fields)):
        for field in fields:
            message = pb.Item()
            try:
                writer_of([field])(item, getattr(message, codec.kind) if within else message)
            except (TypeError, ValueError):
                problem = (
                    f"{getattr(item, field.name)!r:.80} is not a value that can be sent; check its "
                    "type"
                )
                return invalid(MalformedError(problem, f"item {item.id!r}, {within}{field.name}"))
    return InvalidInputError(f"item {item.id!r} can't be sent")


def item_from_proto(message: pb.Item) -> Item:
    """Return the item of a message.

    Raises:
        InvalidInputError: The message has no task, or a field without valid content.
    """
    try:
        return _item(message)
    except MalformedError as err:
        raise invalid(err, "item") from None


def items_from_proto(
    messages: Sequence[pb.Item], item_type: type[Item] = Item, *, within: str = "items"
) -> list[Item]:
    """Return the items of messages.

    Args:
        messages: The messages.
        item_type: The type of the metric's items.
        within: The field of the request that holds the messages.

    Raises:
        InvalidInputError: Some messages are not valid; each has a violation.
    """
    return items_of([read_item(message, item_type) for message in messages], within=within)


def read_item(message: pb.Item, item_type: type[Item]) -> Item | MalformedError:
    """Return the item of a message, or its error, for :func:`items_of`."""
    try:
        return _checked(_item(message), item_type)
    except MalformedError as err:
        return err


def items_of(read: Sequence[Item | MalformedError], *, within: str) -> list[Item]:
    """Return items that were read one by one.

    Raises:
        InvalidInputError: Some are not valid; each has a violation.
    """
    items = [item for item in read if isinstance(item, Item)]
    if len(items) < len(read):
        # All problems at once, so that a client can fix its items in one pass.
        problems = [
            problem.within(f"{within}[{index}]")
            for index, problem in enumerate(read)
            if isinstance(problem, MalformedError)
        ]
        raise _all_invalid(problems, len(read))
    return items


def check_unique(items: Sequence[Item]) -> None:
    """Refuse items of one message with equal ids.

    Raises:
        InvalidInputError: Two items have the same id.
    """
    first: dict[str, int] = {}
    for index, item in enumerate(items):
        known = first.setdefault(item.id, index)
        if known != index:
            problem = f"{item.id!r} is also the id of items[{known}]; ids must be unique"
            raise invalid(MalformedError(problem, f"items[{index}].id"))


def _item(message: pb.Item) -> Item:
    kind = message.WhichOneof("task") or ""
    if kind not in TASKS:
        raise MalformedError(f"is missing; set one of {', '.join(TASKS)}", "task")
    item: Item = _item_codec(kind).read(message)
    return item


def _checked(item: Item, item_type: type[Item]) -> Item:
    if not item.id:
        raise MalformedError("is empty; give each item an id", "id")
    # Ids are repeated in results and errors. A text of fewer characters may have more bytes.
    if len(item.id) * 4 > MAX_ID_BYTES and (size := len(item.id.encode())) > MAX_ID_BYTES:
        raise MalformedError(f"has {size} bytes; give an id of at most {MAX_ID_BYTES}", "id")
    if not isinstance(item, item_type):
        raise MalformedError(
            f"the metric needs a {_TASK_OF[item_type]!r} task", _TASK_OF[type(item)]
        )
    return item


def _all_invalid(problems: Sequence[MalformedError], count: int) -> InvalidInputError:
    errors = [invalid(problem) for problem in problems]
    more = f" ({len(errors)} of {count} items are not valid)" if len(errors) > 1 else ""
    return InvalidInputError(
        f"{errors[0].message}{more}",
        violations=tuple(violation for error in errors for violation in error.violations),
    )


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
    return cast(GraphSource, _read(cast(Any, GraphSource), message, "graph"))


# Results and reports


def result_to_proto(result: ItemResult) -> pb.ItemResult:
    """Return a result as a message."""
    return _written(ItemResult, result, pb.ItemResult())


def write_result(result: ItemResult, message: pb.ItemResult) -> None:
    """Write a result to an empty message, which a response may hold."""
    _written(ItemResult, result, message)


def result_from_proto(message: pb.ItemResult) -> ItemResult:
    """Return the result of a message."""
    return _read(ItemResult, message, "result")


def report_to_proto(report: Report) -> scoring_pb2.Report:
    """Return a report as a message."""
    return _written(Report, report, scoring_pb2.Report())


def write_report(report: Report, message: scoring_pb2.Report) -> None:
    """Write a report to an empty message, which a response may hold."""
    _written(Report, report, message)


def report_from_proto(message: scoring_pb2.Report) -> Report:
    """Return the report of a message."""
    return _read(Report, message, "report")


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
            f"have {max_bytes} (max_message_bytes). ScoreStream sends them in pieces."
        )


def _remove_groups(response: pb.ScoreResponse) -> None:
    response.report.ClearField("groups")


def _remove_evidence(response: pb.ScoreResponse) -> None:
    for result in response.results:
        if (kind := result.WhichOneof("evidence")) is not None:
            result.ClearField(kind)


def found_claim_to_proto(found: FoundClaim) -> pb.Claim:
    """Return a claim without a verdict as a message."""
    return _written(FoundClaim, found, pb.Claim())


def found_claim_from_proto(message: pb.Claim) -> FoundClaim:
    """Return the claim of a message."""
    return _read(FoundClaim, message, "claim")


@cache
def _codec(value_type: Any, descriptor: Descriptor) -> Codec:
    return CODECS.of(value_type, descriptor)


def _written(value_type: Any, value: object, message: _MessageT) -> _MessageT:
    """Write a value to an empty message, and return it."""
    _codec(value_type, message.DESCRIPTOR).write(value, message)
    return message


def _read(value_type: type[_ValueT], message: Any, within: str) -> _ValueT:
    hint: Any = value_type
    try:
        value: _ValueT = _codec(hint, message.DESCRIPTOR).read(message)
    except MalformedError as err:
        raise invalid(err, within) from None
    return value
