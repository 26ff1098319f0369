"""The reader of responses before every pipeline: thoughts are left out, and scored if asked for.

Every door leads here: archives, clients, servers, rewards and harnesses all score with a session,
whose pipeline is this one. The metric's own pipeline sees answers only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import structs

from hallujudge.metrics import AnswersItem, Item, ItemResult, Outcome
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.metrics.framework.thought_scores import (
    scores_texts,
    with_thought,
    with_thought_scores,
)
from hallujudge.metrics.framework.trait_sums import SCORED
from hallujudge.metrics.responses.reader import READER_OPTIONS

from .pipelines import Pipeline, unscored_result
from .read_responses import ItemReader, ReadItem

if TYPE_CHECKING:
    from ..llm.estimate import Estimate

_READER_NAMES = tuple(option.name for option in READER_OPTIONS)


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
