"""Messages <-> values. Only the servicer and the client use messages elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

from google.protobuf.descriptor import Descriptor

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2
from hallujudge.metrics import Evidence, Item, ItemResult, Report

from ..engine.registry import FoundClaim
from ..engine.spec import GraphSource, ScoreSpec
from ..errors import InvalidInputError
from . import judging, reports, specs, tri_he
from .codec import Codecs
from .fields import Codec, Convert, Field, Fill
from .hints import message_of
from .kinds import EVIDENCE, KINDS, TASKS
from .places import MalformedError, invalid
from .tables import inner_reader_of, inner_writer_of, writer_of

__all__ = [
    "CODECS",
    "check_unique",
    "found_claim_from_proto",
    "found_claim_to_proto",
    "graph_from_proto",
    "graph_to_proto",
    "item_from_proto",
    "item_to_proto",
    "items_from_proto",
    "items_of",
    "report_from_proto",
    "report_to_proto",
    "result_from_proto",
    "result_to_proto",
    "spec_from_proto",
    "spec_to_proto",
    "write_report",
    "write_result",
]

CODECS = Codecs(
    types={**tri_he.TYPES, **specs.TYPES},
    shapes=tri_he.SHAPES,
    rearranged={**judging.REARRANGED, **reports.REARRANGED},
    unions={Evidence: EVIDENCE},
)

_ValueT = TypeVar("_ValueT")


# Items


class _ItemCodec(NamedTuple):
    """The converter of one type of items: what all items have, and the task."""

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
    codec = _item_codec(KINDS[type(item)])
    message = pb.Item()
    try:
        codec.write(item, message)
    except MalformedError as err:
        raise invalid(MalformedError(err.problem, f"item {item.id!r}, {err.place}")) from None
    except (TypeError, ValueError) as err:
        raise _unsendable(item, codec) from err
    return message


def _unsendable(item: Item, codec: _ItemCodec) -> InvalidInputError:
    """Return the error of an item with a field that protobuf does not take."""
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
    """Return the item of a message, or what is wrong with it, for :func:`items_of`."""
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
        problems = [
            problem.within(f"{within}[{index}]")
            for index, problem in enumerate(read)
            if isinstance(problem, MalformedError)
        ]
        raise _all_invalid(problems, len(read))
    return items


def check_unique(items: Sequence[Item], *, within: str = "items") -> None:
    """Refuse items with equal ids.

    Args:
        items: The items.
        within: The field of the request that holds them.

    Raises:
        InvalidInputError: Two items have the same id.
    """
    first: dict[str, int] = {}
    for index, item in enumerate(items):
        known = first.setdefault(item.id, index)
        if known != index:
            problem = f"{item.id!r} is also the id of {within}[{known}]; ids must be unique"
            raise invalid(MalformedError(problem, f"{within}[{index}].id"))


def _item(message: pb.Item) -> Item:
    kind = message.WhichOneof("task") or ""
    if kind not in TASKS:
        raise MalformedError(f"is missing; set one of {', '.join(TASKS)}", "task")
    item: Item = _item_codec(kind).read(message)
    return item


def _checked(item: Item, item_type: type[Item]) -> Item:
    if not item.id:
        raise MalformedError("is empty; give each item an id", "id")
    if not isinstance(item, item_type):
        raise MalformedError(f"the metric needs a {KINDS[item_type]!r} task", KINDS[type(item)])
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
    message = scoring_pb2.ScoreSpec()
    _codec(ScoreSpec, scoring_pb2.ScoreSpec.DESCRIPTOR).write(spec, message)
    return message


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
    message = scoring_pb2.GraphSource()
    _codec(GraphSource, scoring_pb2.GraphSource.DESCRIPTOR).write(source, message)
    return message


def graph_from_proto(message: scoring_pb2.GraphSource) -> GraphSource:
    """Return the graph source of a message.

    Raises:
        InvalidInputError: The message names no source.
    """
    return cast(GraphSource, _read(cast(Any, GraphSource), message, "graph"))


# Results and reports


def result_to_proto(result: ItemResult) -> pb.ItemResult:
    """Return a result as a message."""
    message = pb.ItemResult()
    write_result(result, message)
    return message


def write_result(result: ItemResult, message: pb.ItemResult) -> None:
    """Write a result to an empty message, which a response may hold."""
    _codec(ItemResult, pb.ItemResult.DESCRIPTOR).write(result, message)


def result_from_proto(message: pb.ItemResult) -> ItemResult:
    """Return the result of a message."""
    return _read(ItemResult, message, "result")


def report_to_proto(report: Report) -> scoring_pb2.Report:
    """Return a report as a message."""
    message = scoring_pb2.Report()
    write_report(report, message)
    return message


def write_report(report: Report, message: scoring_pb2.Report) -> None:
    """Write a report to an empty message, which a response may hold."""
    _codec(Report, scoring_pb2.Report.DESCRIPTOR).write(report, message)


def report_from_proto(message: scoring_pb2.Report) -> Report:
    """Return the report of a message."""
    return _read(Report, message, "report")


def found_claim_to_proto(found: FoundClaim) -> pb.Claim:
    """Return a claim without a verdict as a message."""
    message = pb.Claim()
    _codec(FoundClaim, pb.Claim.DESCRIPTOR).write(found, message)
    return message


def found_claim_from_proto(message: pb.Claim) -> FoundClaim:
    """Return the claim of a message."""
    return _read(FoundClaim, message, "claim")


@cache
def _codec(value_type: Any, descriptor: Descriptor) -> Codec:
    return CODECS.of(value_type, descriptor)


def _read(value_type: type[_ValueT], message: Any, within: str) -> _ValueT:
    hint: Any = value_type
    try:
        value: _ValueT = _codec(hint, message.DESCRIPTOR).read(message)
    except MalformedError as err:
        raise invalid(err, within) from None
    return value
