"""The reader of responses before every pipeline: thoughts are left out, and scored if asked for.

Every door leads here: archives, clients, servers, rewards and harnesses all score with a session,
whose pipeline is this one. The metric's own pipeline sees answers only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import structs

from hallujudge.metrics import Answer, AnswersItem, Item, ItemResult, Metric, Outcome
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.metrics.framework.thought_scores import (
    scores_texts,
    with_thought,
    with_thought_scores,
)
from hallujudge.metrics.framework.trait_sums import SCORED
from hallujudge.metrics.responses.reader import (
    READER_OPTIONS,
    Reading,
    ResponseReader,
    is_plain,
)
from hallujudge.metrics.responses.thoughts import Division
from hallujudge.metrics.responses.thoughts import with_thought as joined

from ..errors import InvalidInputError, Violation
from .pipelines import Pipeline, unscored_result

if TYPE_CHECKING:
    from ..llm.estimate import Estimate

# Short answers repeat, and reading one takes as long as scoring it.
_REPEATING_CHARS = 60
_MOST_REPEATING = 1 << 14
_READER_NAMES = tuple(option.name for option in READER_OPTIONS)


class ReadItem(NamedTuple):
    """An item whose responses were read."""

    item: Item
    """The item with answers in place of responses."""
    readings: tuple[Reading, ...]
    """Its responses; empty for an item whose responses are plain answers."""

    @property
    def traits(self) -> Mapping[str, int]:
        """The traits of all its responses, added up."""
        if len(self.readings) == 1:
            return self.readings[0].traits
        names = dict.fromkeys(name for reading in self.readings for name in reading.traits)
        return {name: sum(each.traits.get(name, 0) for each in self.readings) for name in names}

    def with_texts(self, texts: Iterable[str | None]) -> Item:
        """Return the item with other texts in place of its responses."""
        return _with_responses(self.item, list(texts))


class ItemReader:
    """Reads the responses of items.

    Args:
        metric: The metric.
        options: The spec's options.

    Raises:
        InvalidInputError: An option is invalid.
    """

    def __init__(self, metric: Metric, options: Mapping[str, str]) -> None:
        try:
            reader = ResponseReader.of(options)
        except ValueError as err:
            problem = f"the option thought_marks has a line that can't be used: {err}"
            field = "spec.options['thought_marks']"
            violation = Violation(field=field, description=problem)
            raise InvalidInputError(problem, violations=(violation,)) from err
        self._metric = metric
        closed = structs.replace(reader, division=cast("Division | None", metric.division))
        self._readers = {False: closed, True: structs.replace(closed, is_open=True)}
        # No response has no marks.
        self._plain: set[str | None] = {None}
        self._has_own_marks = bool(reader.own)

    def is_open(self, item: Item) -> bool:
        """Return whether an item's response is a text of sentences."""
        return self._metric.is_open(item)

    def marked(self, items: Sequence[Item]) -> dict[int, ReadItem]:
        """Return position -> item, of the items with more than plain answers."""
        found: dict[int, ReadItem] = {}
        known, has_own_marks = self._plain, self._has_own_marks
        for at, item in enumerate(items):
            # Most answers are a few short texts, and most captions are sentences without marks.
            answers: Sequence[Answer] = getattr(item, "answers", ())
            text = answers[0].response if answers else getattr(item, "response", None)
            alone = not item.thought and len(answers) < 2
            if text in known and alone:
                continue
            if not (alone and not has_own_marks and is_plain(text or "")):
                read = self.read(item)
                if read.readings:
                    found[at] = read
                    continue
            if alone and answers and len(text or "") <= _REPEATING_CHARS:
                if len(known) >= _MOST_REPEATING:
                    known.intersection_update({None})
                known.add(text)
        return found

    def read(self, item: Item) -> ReadItem:
        """Return an item with its answers in place of its responses."""
        is_open = self._metric.is_open(item)
        if not isinstance(item, AnswersItem) or len(item.answers) == 1:
            text = getattr(item, "response", None)
            if item.thought:
                text = joined(item.thought, text, "thought")
            reading = self._reading(text, is_open=is_open)
            if reading is None:
                return ReadItem(item, ())
            return ReadItem(_with_responses(item, [reading.answer], reading.thought), (reading,))
        found = [self._reading(answer.response, is_open=is_open) for answer in item.answers]
        if not any(found):
            return ReadItem(item, ())
        texts = [answer.response for answer in item.answers]
        readings = [each or Reading(text) for each, text in zip(found, texts, strict=True)]
        answers = [each.answer for each in readings]
        pairs = zip(item.answers, readings, strict=True)
        thoughts = [f"{answer.name}: {each.thought}" for answer, each in pairs if each.thought]
        return ReadItem(_with_responses(item, answers, "\n".join(thoughts)), tuple(readings))

    def _reading(self, text: str | None, *, is_open: bool) -> Reading | None:
        """Return the reading of a response; None for a plain answer."""
        if text is None:
            return None
        found = self._readers[is_open].read(text)
        return found if found.traits else None


def _with_responses(item: Item, texts: Sequence[str | None], thought: str = "") -> Item:
    if isinstance(item, AnswersItem):
        pairs = zip(item.answers, texts, strict=True)
        answers = tuple([structs.replace(answer, response=text) for answer, text in pairs])
        return structs.replace(item, answers=answers, thought=thought)
    changes: dict[str, Any] = {"response": texts[0], "thought": thought}
    return structs.replace(item, **changes)


def read_items(
    metric: Metric,
    options: Mapping[str, str],
    items: Sequence[Item],
    results: Sequence[ItemResult],
) -> Sequence[Item]:
    """Return scored items as they were read: with answers in place of responses, thoughts apart.

    Args:
        metric: The metric.
        options: The options, or the settings, of the run.
        items: The items.
        results: Their results; items whose result has no traits are plain answers.
    """
    if not any(result.traits for result in results):
        return items
    reader = ItemReader(metric, options)
    return [
        reader.read(item).item if result.traits else item
        for item, result in zip(items, results, strict=True)
    ]


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
        answers = [marked[at].item if at in marked else item for at, item in enumerate(items)]
        results = await self.inner.evaluate(answers)
        kept = await self._kept(marked)
        for at, read in marked.items():
            result = self._finished(read, results[at])
            results[at] = structs.replace(result, traits=read.traits, kept=kept.get(at, ()))
        return await self._with_thoughts(marked, results) if self._scores else results

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
        missing = result.reason == UnscoredReason.RESPONSE_MISSING
        # A variant that counts missing answers as wrong counts no answer that was cut off.
        counts = isinstance(read.item, AnswersItem) and self._counts_missing(read.item)
        if not missing and not (counts and result.outcome is Outcome.SCORED):
            return result
        shown = cut[0].thought[-60:]
        detail = f"the thought has no end: …{shown!r}" if shown else "the thought has no end"
        return self.unscored(read.item, UnscoredReason.THOUGHT_UNFINISHED, detail)

    def _counts_missing(self, item: AnswersItem) -> bool:
        counts: Callable[[AnswersItem], bool] | None = getattr(self.metric, "counts_missing", None)
        return counts is not None and counts(item)

    def unscored(self, item: Item, reason: UnscoredReason, detail: str) -> ItemResult:
        """Return the result of an item that can't be scored."""
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
            answers = [self._reader.read(item).item for item in items]
            found: list[Estimate] = await estimate(answers)
            return found

        return read_first
