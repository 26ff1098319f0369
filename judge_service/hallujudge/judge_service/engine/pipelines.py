"""Pipelines: their interface, their base classes and results, and the reader before each of them.

Every door leads to the reader: archives, clients, servers, rewards and harnesses all score with a
session, whose pipeline it is. The metric's own pipeline sees answers only.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from msgspec import structs
from msgspec.json import Encoder

from hallujudge.metrics import AnswersItem, Item, ItemResult, Outcome
from hallujudge.metrics.framework.metric import Metric
from hallujudge.metrics.framework.response_traits import (
    SCORED,
    scores_texts,
    with_thought,
    with_thought_scores,
)
from hallujudge.metrics.framework.results import (
    CanonicalRecord,
    Evidence,
    ScoredItem,
    UnscoredReason,
)
from hallujudge.metrics.responses import READER_OPTIONS

from ..errors import InvalidInputError, Violation
from ..threads import map_cpu, of_each
from .responses import Problem, ResponseCheck
from .spec import ItemReader, ReadItem

if TYPE_CHECKING:
    from ..judges.choice_judge import ChoiceJudge, Chosen
    from ..judges.questions import Question
    from ..llm.estimate import Estimate

ItemT = TypeVar("ItemT", bound=Item)
MetricT = TypeVar("MetricT", bound=Metric)
_READER_NAMES = tuple(option.name for option in READER_OPTIONS)


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


class TextPipeline(ABC, Generic[ItemT, MetricT]):
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
        mine: list[ItemT] = checked_items(items, self.item_type)  # type: ignore[arg-type]  # a family's own type
        return await map_cpu(of_each(self.result), mine, chars=self.size)

    def result(self, item: ItemT) -> ItemResult:
        """Return the result of one item."""
        if (problem := self.problem(item)) is not None:
            return self.unscored(item, *problem)
        made = self.score(item)
        return scored_result(item, made) if made.readable else self.unread_result(item, made)

    def unscored(self, item: ItemT, reason: UnscoredReason, detail: str) -> ItemResult:
        """Return the result of an item that can't be scored."""
        return unscored_result(item, reason, detail)

    def unread_result(self, item: ItemT, made: ScoredItem[Evidence]) -> ItemResult:
        """Return the result of an item whose response could not be parsed."""
        result = unscored_result(item, *self.unread(item), made.evidence)
        return structs.replace(result, statistics=made.statistics) if self.counts_unread else result

    def size(self, item: ItemT) -> int:
        """Return the number of characters that scoring an item reads."""
        return len(getattr(item, "response", None) or "")

    def problem(self, item: ItemT) -> Problem | None:
        """Return why an item cannot be scored, or None."""
        return self.responses.problem(getattr(item, "response", None), self.response_name)

    @abstractmethod
    def score(self, item: ItemT) -> ScoredItem[Evidence]:
        """Return the statistics of an item without a problem."""

    def unread(self, item: ItemT) -> Problem:
        """Return why an item whose response could not be parsed is unscored."""
        shown = (getattr(item, "response", None) or "")[:80]
        return UnscoredReason.ANSWER_UNPARSED, f"{shown!r} has no single answer"


class AskingPipeline(TextPipeline[ItemT, MetricT]):
    """Has language models choose answers to questions about items, if any are to be asked.

    A family's subclass says what is asked about an item, and what is made of the answers. It comes
    before the family's other base classes, which score where nothing is asked.
    """

    judge: ChoiceJudge | None
    """The language models, or None if no judge is called."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of all text pipelines, and the judge with its prompts and parameters."""
        known = super().settings
        return known if self.judge is None else {**known, **self.judge.identity.settings()}

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order; a batch's questions are asked together."""
        if self.judge is None:
            return await super().evaluate(items)
        mine: list[ItemT] = checked_items(items, self.item_type)  # type: ignore[arg-type]  # a family's own type
        asked = list(map(self.questions, mine))
        found = iter(await self.judge.choose([each for part in asked for each in part.values()]))
        chosen = [{place: next(found) for place in part} for part in asked]
        return await map_cpu(
            of_each(lambda index: self.judged(mine[index], chosen[index])),
            range(len(mine)),
            chars=lambda index: self.size(mine[index]),
        )

    async def estimate(self, items: Sequence[Item]) -> list[Estimate]:
        """Return the calls that each language model would get, without calling it."""
        if self.judge is None:
            return []
        mine: list[ItemT] = checked_items(items, self.item_type)  # type: ignore[arg-type]  # the same
        asked = map(self.questions, mine)
        return await self.judge.estimates(each for part in asked for each in part.values())

    @abstractmethod
    def questions(self, item: ItemT) -> dict[int, Question]:
        """Return place in the item -> question about it; none for an item with a problem."""

    @abstractmethod
    def judged(self, item: ItemT, found: Mapping[int, Chosen]) -> ItemResult:
        """Return the result of an item, given the choices by place."""


class ReadingPipeline:
    """Reads the responses of items before the metric's own pipeline.

    Args:
        inner: The metric's pipeline.
        options: The spec's options.
        keeps: Whether the whole responses are evaluated too, for a note on what their thoughts
            change; only where that is cheap.

    Raises:
        InvalidInputError: An option is invalid.
    """

    def __init__(self, inner: Pipeline, options: Mapping[str, str], *, keeps: bool) -> None:
        self.inner = inner
        self.notes = inner.notes
        self._reader = ItemReader(inner.metric, options)
        self._scores = options.get("thoughts") == SCORED
        self.metric = with_thought_scores(inner.metric) if self._scores else inner.metric
        self._keeps = keeps and not options.get("thoughts")
        self._options = {name: options[name] for name in _READER_NAMES if options.get(name)}

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of the metric's pipeline, and how responses are read if not by default."""
        return {**self.inner.settings, **self._options}

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order."""
        marked = self._reader.marked(items)
        if not marked and not self._scores:
            return await self.inner.evaluate(items)
        answers = [
            self._answered(marked[at]) if at in marked else item for at, item in enumerate(items)
        ]
        results = await self.inner.evaluate(answers)
        kept = await self._kept(marked)
        for at, read in marked.items():
            result = self._finished(read, results[at])
            results[at] = structs.replace(result, traits=read.traits, kept=kept.get(at, ()))
        return await self._with_thoughts(marked, results) if self._scores else results

    def _answered(self, read: ReadItem) -> Item:
        """Return an item as it was read, without what was made of responses that were cut off.

        Verdicts, claims and keywords that came with such a response are of a text that is no
        answer. They would be scored, or judges asked about them.
        """
        cut = [at for at, reading in enumerate(read.readings) if not reading.finished]
        unanswered: Callable[[Item, Collection[int]], Item] | None
        unanswered = getattr(self.inner, "unanswered", None) if cut else None
        return read.item if unanswered is None else unanswered(read.item, cut)

    async def _with_thoughts(
        self, marked: Mapping[int, ReadItem], results: Sequence[ItemResult]
    ) -> list[ItemResult]:
        """Return results with the scores of thoughts."""
        thinks = {at: read for at, read in marked.items() if read.item.thought}
        texts = {
            at: read.with_texts([read.item.thought])
            for at, read in thinks.items()
            if scores_texts(self.metric) and self._reader.is_open(read.item)
        }
        scored = await self.inner.evaluate(list(texts.values())) if texts else []
        found = dict(zip(texts, scored, strict=True))
        disagrees = {
            at: self.metric.disagrees(read.item, read.item.thought) for at, read in thinks.items()
        }
        return [
            with_thought(self.metric, result, found.get(at), disagrees.get(at))
            for at, result in enumerate(results)
        ]

    async def _kept(self, marked: Mapping[int, ReadItem]) -> dict[int, tuple[float, ...]]:
        """Return the statistics of whole responses, for items with a thought."""
        whole = {
            at: read.with_texts(r.answer if r.whole is None else r.whole for r in read.readings)
            for at, read in marked.items()
            if self._keeps and any(r.whole not in (None, r.answer) for r in read.readings)
        }
        if not whole:
            return {}
        results = await self.inner.evaluate(list(whole.values()))
        return {at: result.statistics for at, result in zip(whole, results, strict=True)}

    def _finished(self, read: ReadItem, result: ItemResult) -> ItemResult:
        """Return a result whose reason names a thought without an end."""
        cut = [reading for reading in read.readings if not reading.finished]
        if not cut:
            return result
        shown = cut[0].thought[-60:]
        detail = f"the thought has no end: …{shown!r}" if shown else "the thought has no end"
        reason = UnscoredReason.THOUGHT_UNFINISHED
        if result.outcome is Outcome.UNSCORED and all(not r.answer for r in read.readings):
            # Nothing was answered, whatever else a pipeline misses. Some count such items.
            return structs.replace(result, reason=reason, detail=detail)
        missing = result.reason == UnscoredReason.RESPONSE_MISSING
        # A variant that counts missing answers as wrong counts no answer that was cut off.
        counts = isinstance(read.item, AnswersItem) and self._counts_missing(read.item)
        if not missing and not (counts and result.outcome is Outcome.SCORED):
            return result
        return self.unscored(read.item, reason, detail)

    def _counts_missing(self, item: AnswersItem) -> bool:
        counts: Callable[[AnswersItem], bool] | None = getattr(self.metric, "counts_missing", None)
        return counts is not None and counts(item)

    def unscored(self, item: Item, reason: UnscoredReason, detail: str) -> ItemResult:
        """Return the result of an item that can't be scored."""
        # Some metrics have statistics of unscored items, which their own pipeline makes.
        unscored = getattr(self.inner, "unscored", unscored_result)
        result: ItemResult = unscored(item, reason, detail)
        return result

    @property
    def estimate(self) -> Callable[[Sequence[Item]], Awaitable[list[Estimate]]] | None:
        """Return what estimates the calls of language models; None if the metric calls none."""
        estimate: Any = getattr(self.inner, "estimate", None)
        if estimate is None:
            return None

        async def read_first(items: Sequence[Item]) -> list[Estimate]:
            answers = [self._answered(self._reader.read(item)) for item in items]
            found: list[Estimate] = await estimate(answers)
            return found

        return read_first


def checked_items(items: Sequence[Item], item_type: type[ItemT]) -> list[ItemT]:
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
