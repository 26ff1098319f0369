"""The base class of pipelines that score each item by its response alone, and their results."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import ClassVar, Generic, Protocol, TypeVar

from msgspec import structs
from msgspec.json import Encoder

from hallujudge.metrics import Item, ItemResult, Outcome
from hallujudge.metrics.framework.metric import Metric
from hallujudge.metrics.framework.results import (
    CanonicalRecord,
    Evidence,
    ScoredItem,
    UnscoredReason,
)

from ..errors import InvalidInputError, Violation
from ..threads import map_cpu, of_each
from .responses import Problem, ResponseCheck

_ItemT = TypeVar("_ItemT", bound=Item)
MetricT = TypeVar("MetricT", bound=Metric)


class Pipeline(Protocol):
    """A metric with the graphs, extractors and judges that it needs to score items."""

    @property
    def metric(self) -> Metric:
        """What items are scored by, in the variant of the run."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of the signature in full, for the report."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the report about what limits the use of its numbers."""

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order; an item that fails is unscored."""


class TextPipeline(ABC, Generic[_ItemT, MetricT]):
    """Scores each item separately, by its response alone.

    A family's subclass sets the item type, extends the checks (:meth:`problem`) and scores an item
    (:meth:`score`).

    Args:
        metric: The metric.
        responses: Recognises missing responses.
        notes: Sentences for the report.
    """

    item_type: ClassVar[type[Item]]
    response_name: ClassVar[str] = "the response"
    counts_unread: ClassVar[bool] = False
    """Whether results of unparsed responses carry statistics, for a score that counts them."""

    def __init__(
        self, metric: MetricT, responses: ResponseCheck, notes: tuple[str, ...] = ()
    ) -> None:
        self.metric = metric
        self.notes = notes
        self.responses = responses

    @property
    def settings(self) -> Mapping[str, str]:
        """The metric's options and the settings of the response check."""
        own = {option.name: getattr(self.metric, option.name) for option in self.metric.options}
        return {**own, **self.responses.settings()}

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order."""
        mine: list[_ItemT] = checked_items(items, self.item_type)  # type: ignore[arg-type]  # a family's own type
        return await map_cpu(of_each(self.result), mine, chars=self.size)

    def result(self, item: _ItemT) -> ItemResult:
        """Return the result of one item."""
        if (problem := self.problem(item)) is not None:
            return self.unscored(item, *problem)
        made = self.score(item)
        return scored_result(item, made) if made.readable else self.unread_result(item, made)

    def unscored(self, item: _ItemT, reason: UnscoredReason, detail: str) -> ItemResult:
        """Return the result of an item that can't be scored."""
        return unscored_result(item, reason, detail)

    def unread_result(self, item: _ItemT, made: ScoredItem[Evidence]) -> ItemResult:
        """Return the result of an item whose response could not be parsed."""
        result = unscored_result(item, *self.unread(item), made.evidence)
        return structs.replace(result, statistics=made.statistics) if self.counts_unread else result

    def size(self, item: _ItemT) -> int:
        """Return the number of characters that scoring an item reads."""
        return len(getattr(item, "response", None) or "")

    def problem(self, item: _ItemT) -> Problem | None:
        """Return why an item cannot be scored, or None."""
        return self.responses.problem(getattr(item, "response", None), self.response_name)

    @abstractmethod
    def score(self, item: _ItemT) -> ScoredItem[Evidence]:
        """Return the statistics of an item without a problem."""

    def unread(self, item: _ItemT) -> Problem:
        """Return why an item whose response could not be parsed is unscored."""
        shown = (getattr(item, "response", None) or "")[:80]
        return UnscoredReason.ANSWER_UNPARSED, f"{shown!r} has no single answer"


def checked_items(items: Sequence[Item], item_type: type[_ItemT]) -> list[_ItemT]:
    """Return the items if all have a family's type and an id.

    Raises:
        InvalidInputError: Items have another type or no id.
    """
    valid = [item for item in items if isinstance(item, item_type) and item.id]
    if len(valid) == len(items):
        return valid
    violations = tuple(
        _item_violation(index, item, item_type)
        for index, item in enumerate(items)
        if not isinstance(item, item_type) or not item.id
    )
    raise InvalidInputError(
        f"{len(violations)} of {len(items)} items cannot be scored: "
        f"{violations[0].field} {violations[0].description}",
        violations=violations[:100],
    )


def _item_violation(index: int, item: Item, item_type: type[Item]) -> Violation:
    if isinstance(item, item_type):
        return Violation(field=f"items[{index}].id", description="is empty; give each item an id")
    return Violation(
        field=f"items[{index}]",
        description=f"is a {type(item).__name__}; this metric scores {item_type.__name__} values",
    )


# Two records have equal hashes by chance once in 2^64 times.
_NOTHING_HASHED = blake2b(digest_size=8)
# Questions and labels repeat; longer records would only fill the memory.
_REPEATING_BYTES, _MOST_REPEATING = 160, 4096
_hashes: dict[bytes, str] = {}
_encode = Encoder().encode


def scored_result(
    item: Item,
    made: ScoredItem[Evidence | None],
    place: tuple[str, Mapping[str, str]] | None = None,
    unscored: tuple[Outcome, str, str] = (Outcome.SCORED, "", ""),
) -> ItemResult:
    """Return the result of a scored item; :func:`unscored_result` gives ``unscored``.

    Args:
        item: The item.
        made: What was made of it.
        place: Another cluster and other fields than the item has.
        unscored: Outcome, reason and detail.
    """
    asked, reference = item.records()
    group, fields = place or (item.group_id, item.fields)
    outcome, reason, detail = unscored
    return ItemResult(
        id=item.id,
        group_id=group or item.id,
        outcome=outcome,
        reason=reason,
        detail=detail,
        statistics=made.statistics,
        scores=made.scores,
        evidence=made.evidence,
        fields=fields,
        question_hash=record_hash(asked) if asked else "",
        reference_hash=record_hash(reference),
    )


def unscored_result(
    item: Item, reason: UnscoredReason, detail: str, evidence: Evidence | None = None
) -> ItemResult:
    """Return the result of an unscored item, with its reason."""
    nothing = ScoredItem[Evidence | None]((), {}, evidence)
    return scored_result(item, nothing, unscored=(Outcome.UNSCORED, reason, detail))


def record_hash(record: CanonicalRecord) -> str:
    """Return the hash of a record as 16 hexadecimal digits, the same on every machine."""
    try:
        text = _encode(record)
    except UnicodeEncodeError:  # half a surrogate pair, which the standard library escapes
        text = json.dumps(record).encode()
    if (known := _hashes.get(text)) is not None:
        return known
    # A copy is made in half the time of a new one.
    found = _NOTHING_HASHED.copy()
    found.update(text)
    digest = found.hexdigest()
    if len(text) <= _REPEATING_BYTES:
        if len(_hashes) >= _MOST_REPEATING:
            _hashes.clear()
        _hashes[text] = digest
    return digest
