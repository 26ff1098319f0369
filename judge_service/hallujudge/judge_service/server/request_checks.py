"""Checks of requests: items, number of elements, cost, and specs that the caller's key allows."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import scoring_pb2
from hallujudge.metrics import Item, Metric

from ..access import Scope, current_caller
from ..engine.registry import MetricEntry, metric_entry
from ..engine.responses import MAX_RESPONSE_CHARS
from ..engine.spec import ScoreSpec
from ..errors import InvalidInputError, Violation
from ..wire.convert import TASK_OF, read_item, spec_from_proto
from ..wire.fields import MalformedError, invalid

# Far above every option of a metric; longer values would only fill logs and error messages.
_MAX_NAME = 200
# Prompts and cards are options too, so that values may be longer than names.
_MAX_VALUE = 1 << 16
_MAX_ENTRIES = 64
# Most calls repeat the spec of an earlier call, so that parsed specs are cached. Specs with graphs
# of their own are larger, and are not cached.
_KEPT_BYTES = 1 << 12
_KEPT_SPECS = 256
# Shipped graphs have 30 KB; reading a graph of this size takes seconds.
MAX_GRAPH = 2 << 20
# Of an id in UTF-8, which results and errors repeat.
_MAX_ID_BYTES = 1 << 16


def check_count(limit: int, count: int, field: str) -> None:
    """Refuse a message with too many elements.

    Args:
        limit: The setting ``limits.max_batch_items``.
        count: Number of elements.
        field: The field that holds them.

    Raises:
        InvalidInputError: There are more elements than the limit.
    """
    if count > limit:
        problem = f"has {count} elements; send at most {limit} in one message"
        raise InvalidInputError(
            f"{field}: {problem}",
            metadata={"count": str(count), "limit": str(limit)},
            violations=(Violation(field=field, description=problem),),
        )


class GroupLimit:
    """Limits the groups of a report, because each takes time over all clusters.

    Args:
        limit: Maximum number of groups over all fields.
    """

    def __init__(self, limit: int) -> None:
        self._groups: dict[str, set[str]] = {}
        self._limit = limit

    def add(self, groups: Mapping[str, Iterable[str]]) -> None:
        """Add the groups of items, as :func:`groups_of` returns them.

        Raises:
            InvalidInputError: There are too many groups.
        """
        for key, values in groups.items():
            self._groups.setdefault(key, set()).update(values)
        counts = {key: len(values) for key, values in self._groups.items()}
        if sum(counts.values()) > self._limit:
            key = max(counts, key=counts.__getitem__)
            raise _too_costly(
                "spec.group_by",
                f"the report would have more than {self._limit} groups over all fields (setting "
                f"limits.max_report_groups), {counts[key]} of the field {key[:80]!r}; group by "
                "fields with fewer values",
            )


def groups_of(
    items: Iterable[Item], group_by: Iterable[str], metric: Metric
) -> Mapping[str, Collection[str]]:
    """Return the groups of items: field -> values.

    Args:
        items: The items.
        group_by: The fields to report groups by.
        metric: The metric.
    """
    groups: dict[str, set[str]] = {key: set() for key in group_by}
    if groups:
        split: frozenset[str] = getattr(metric, "split_fields", frozenset())
        for item in items:
            for key, values in groups.items():
                value = item.fields.get(key, "")
                values.update(value.split(",") if key in split else (value,))
    return groups


def check_texts(texts: Iterable[str]) -> None:
    """Refuse texts that are too long for extractors.

    Raises:
        InvalidInputError: A text is too long.
    """
    for index, text in enumerate(texts):
        if len(text) > MAX_RESPONSE_CHARS:
            raise _too_costly(
                f"texts[{index}]",
                f"has {len(text)} characters; at most {MAX_RESPONSE_CHARS} are read, so divide it",
            )


def _too_costly(field: str, problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"{field}: {problem}",
        reason="TOO_COSTLY",
        violations=(Violation(field=field, description=problem),),
    )


async def admitted_spec(message: scoring_pb2.ScoreSpec) -> ScoreSpec:
    """Return the spec of a message, if the current caller may use it.

    Raises:
        InvalidInputError: A value is too long, or a field has no valid content.
        NotFoundError: The metric is unknown.
        PermissionDeniedError: The spec calls a language model, and the caller lacks that scope.
    """
    if message.ByteSize() <= _KEPT_BYTES:
        return await admitted_bytes(message.SerializeToString())
    return await _allowed(_known(message))


async def admitted_bytes(raw: bytes) -> ScoreSpec:
    """Return the spec of an encoded message, if the current caller may use it.

    Raises:
        DecodeError: The bytes are not a message.
        HallujudgeError: See :func:`admitted_spec`.
    """
    return await _allowed(_kept(raw) if len(raw) <= _KEPT_BYTES else _parsed(raw))


async def loaded_metric(name: str) -> MetricEntry:
    """Return the entry of a metric, whose modules are loaded in a thread at their first use.

    Loading takes up to half a second, for which the event loop would serve no other call.

    Raises:
        NotFoundError: No metric has this name.
    """
    if name not in _loaded:
        await asyncio.to_thread(metric_entry, name)
        _loaded.add(name)
    return metric_entry(name)


_loaded: set[str] = set()


@dataclass(slots=True)
class _Known:
    """A valid spec."""

    spec: ScoreSpec
    calls_models: bool | None = None
    """Whether language models judge or extract; None until the metric is loaded."""


async def _allowed(known: _Known) -> ScoreSpec:
    if known.calls_models is None:
        entry = await loaded_metric(known.spec.metric)
        known.calls_models = entry.calls_models(known.spec)
    # Outside of what is cached, because it depends on who calls.
    if known.calls_models:
        current_caller().require(Scope.JUDGE)
    return known.spec


def _known(message: scoring_pb2.ScoreSpec) -> _Known:
    if violations := tuple(_too_long(message)):
        raise InvalidInputError(violations[0].description, violations=violations)
    return _Known(spec_from_proto(message))


def _parsed(raw: bytes) -> _Known:
    return _known(scoring_pb2.ScoreSpec.FromString(raw))


_kept = lru_cache(_KEPT_SPECS)(_parsed)


def check_graph(source: scoring_pb2.GraphSource) -> None:
    """Refuse a graph that is too large to read quickly.

    Raises:
        InvalidInputError: It is too large.
    """
    if violations := tuple(_too_large(source, "graph")):
        raise InvalidInputError(violations[0].description, violations=violations)


def _too_large(source: scoring_pb2.GraphSource, field: str) -> Iterator[Violation]:
    if (size := len(source.inline.text)) > MAX_GRAPH:
        problem = f"has {size} characters; send a synonym graph of at most {MAX_GRAPH}"
        yield _violation(field, problem)


def _too_long(message: scoring_pb2.ScoreSpec) -> Iterator[Violation]:
    for field, count in (
        ("spec.options", len(message.options)),
        ("spec.group_by", len(message.group_by)),
        ("spec.graphs", len(message.graphs)),
    ):
        if count > _MAX_ENTRIES:
            yield _violation(field, f"has {count} entries; send at most {_MAX_ENTRIES}")
    names = [
        ("spec.metric", message.metric),
        ("spec.variant", message.variant),
        *(("the name of an option", name) for name in message.options),
        *(("the name of a group", name) for name in message.group_by),
        *(("the role of a graph", name) for name in message.graphs),
        *(("the name of a graph", source.inline.name) for source in message.graphs.values()),
        *(("the name of a graph", source.shipped) for source in message.graphs.values()),
    ]
    for field, text in names:
        if len(text) > _MAX_NAME:
            yield _violation(field, f"has {len(text)} characters; send at most {_MAX_NAME}")
    for role, source in message.graphs.items():
        yield from _too_large(source, f"spec.graphs[{role[:_MAX_NAME]!r}]")
    for name, value in message.options.items():
        if len(value) > _MAX_VALUE:
            yield _violation(
                f"spec.options[{name[:_MAX_NAME]!r}]",
                f"has {len(value)} characters; send at most {_MAX_VALUE}",
            )


def _violation(field: str, problem: str) -> Violation:
    return Violation(field=field, description=f"{field} {problem}")


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
    return items_of([item_of(message, item_type) for message in messages], within=within)


def item_of(message: pb.Item, item_type: type[Item]) -> Item | MalformedError:
    """Return the item of a message, or its error, for :func:`items_of`."""
    try:
        return _checked(read_item(message), item_type)
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


def _checked(item: Item, item_type: type[Item]) -> Item:
    if not item.id:
        raise MalformedError("is empty; give each item an id", "id")
    # Ids are repeated in results and errors. A text of fewer characters may have more bytes.
    if len(item.id) * 4 > _MAX_ID_BYTES and (size := len(item.id.encode())) > _MAX_ID_BYTES:
        raise MalformedError(f"has {size} bytes; give an id of at most {_MAX_ID_BYTES}", "id")
    if not isinstance(item, item_type):
        raise MalformedError(f"the metric needs a {TASK_OF[item_type]!r} task", TASK_OF[type(item)])
    return item


def _all_invalid(problems: Sequence[MalformedError], count: int) -> InvalidInputError:
    errors = [invalid(problem) for problem in problems]
    more = f" ({len(errors)} of {count} items are not valid)" if len(errors) > 1 else ""
    return InvalidInputError(
        f"{errors[0].message}{more}",
        violations=tuple(violation for error in errors for violation in error.violations),
    )
