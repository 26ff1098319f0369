"""Scoring sessions, and extraction of claims without scoring.

The server and the embedded backend share the engine. It keeps the pipelines of recent specs for the
next session.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec import structs

from hallujudge.metrics import Item, ItemResult, Metric, Outcome, Report, Tally
from hallujudge.metrics.framework.report import OneItemReport
from hallujudge.metrics.framework.results import UnscoredReason

from .. import __version__
from ..errors import UnsupportedError
from ..judges import counting_verdicts
from ..tenancy import Attributes, EvaluatedItem, tenancy
from ..threads import check_wanted, import_in_thread, in_thread, map_cpu, of_each
from .pipelines import unscored_result
from .registry import Pipeline, checked_entry, metric_entry, open_pipeline
from .resources import Resources, has_long_graph
from .spec import GraphSource, InlineGraph, ScoreSpec, read_items
from .streams import RunProgress

if TYPE_CHECKING:
    from ..llm.estimate import Estimate
    from .found_claims import FoundClaim
    from .judge_factory import JudgeFactory


_T = TypeVar("_T")
# Results that are added to a report in about half a millisecond.
_PART = 200
# Adding a result takes about as long as matching so many characters.
_RESULT_CHARS = 30
# Reports of so many items take about a millisecond, as changing to a thread and back does.
_SHORT_REPORT = 64
# Reports of fewer items take some milliseconds.
_LONG_REPORT = 2_000
# Callers choose specs, so both the number of pipelines and their texts are bounded.
_MOST_PIPELINES = 64
_MOST_GRAPH_CHARS = 4 << 20


class Engine:
    """Opens scoring sessions, which share graphs and models.

    Args:
        resources: The graphs and judges; by default, those of the default settings.
        keep_graphs: Whether pipelines with graphs of callers are kept too, for the next run.
    """

    def __init__(self, resources: Resources | None = None, *, keep_graphs: bool = False) -> None:
        self.resources = resources or Resources()
        self._kept = KeptPipelines(keep_graphs=keep_graphs)

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        """Return a session for one run.

        Raises:
            NotFoundError: The metric or a graph is unknown.
            InvalidInputError: Another part of the spec is invalid.
        """
        kept = self._kept.get(spec)
        if kept is not None:  # only pipelines without models are kept
            return ScoringSession(spec, kept.pipeline, one_item=kept.one_item)
        return await self._opened(spec, asks=True)

    async def estimate(self, spec: ScoreSpec, items: Sequence[Item]) -> list[Estimate]:
        """Return how many judge calls and tokens a run needs, without calling a judge."""
        session = await self._opened(spec, asks=False)
        return await session.estimate(items)

    async def _opened(self, spec: ScoreSpec, *, asks: bool) -> ScoringSession:
        entry = metric_entry(spec.metric)
        # Signatures need the version of a language model's server, which has to be requested.
        if entry.asks_llm(spec):
            factory = await asyncio.to_thread(lambda: self.resources.judges)
            await factory.prepare(asks=asks)
        # Models, graphs and their libraries may take seconds to load; the event loop serves other
        # calls meanwhile.
        pipeline = await _in_some_thread(
            partial(open_pipeline, spec, self.resources),
            long=has_long_graph(*spec.graphs.values()),
        )
        await import_in_thread("numpy")  # needed by the first batch
        self._kept.add(spec, pipeline)
        judges = self.resources.judges if entry.calls_models(spec) else None
        return ScoringSession(spec, pipeline, judges)

    async def judge(self, spec: ScoreSpec, items: Sequence[Item]) -> list[ItemResult]:
        """Return the verdicts on items' claims, without a report.

        Raises:
            UnsupportedError: The metric has no judge.
        """
        if not metric_entry(spec.metric).judges:
            raise UnsupportedError(
                f"metric {spec.metric!r} has no judge; use score",
                metadata={"metric": spec.metric},
            )
        session = await self.open(spec)
        return await session.score(items)


class ScoringSession:
    """A scoring run: scores batches of items, and makes the report at the end.

    Args:
        spec: The specification of the run.
        pipeline: The metric with its graphs, extractors and judges.
        judges: The judges, if language models judge or extract.
        one_item: Makes the report of a single item, if it is kept for the spec.
    """

    def __init__(
        self,
        spec: ScoreSpec,
        pipeline: Pipeline,
        judges: JudgeFactory | None = None,
        *,
        one_item: OneItemReport | None = None,
    ) -> None:
        self._judges = judges
        self._one_item = one_item
        self._spec = spec
        self._pipeline = pipeline
        self._tally = Tally(pipeline.metric, spec.group_by)
        self._added = 0
        self._verdicts: dict[str, int] = {}

    @property
    def statistic_names(self) -> tuple[str, ...]:
        """The names of the statistics, in the order of an item's statistics."""
        return tuple(map(attrgetter("name"), self._pipeline.metric.columns))

    @property
    def metric(self) -> Metric:
        """The metric, with everything that its signature names."""
        return self._pipeline.metric

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the signature in full, for the report."""
        return dict(sorted(self._pipeline.settings.items()))

    @property
    def notes(self) -> tuple[str, ...]:
        """What limits the use of the scores, whatever the items are."""
        return self._pipeline.notes

    def read(self, items: Sequence[Item], results: Sequence[ItemResult]) -> Sequence[Item]:
        """Return scored items as they were read: with answers in place of responses."""
        return read_items(self._pipeline.metric, self._spec.options, items, results)

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order, for a report that is made elsewhere."""
        attributes: Attributes = {"metric": self._spec.metric, "items": len(items)}
        judges = bool(self._pipeline.metric.judge_option)
        with tenancy().recorder.span("evaluate", attributes):
            results = await (self._judged(items) if judges else self._pipeline.evaluate(items))
        _record(self._spec.metric, results)
        return results

    async def _judged(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return results of items while the verdicts of judges are counted as they are given."""
        with counting_verdicts(self._verdicts):
            return await self._pipeline.evaluate(items)

    @property
    def needs_models(self) -> bool:
        """Whether models are called or loaded."""
        return metric_entry(self._spec.metric).needs_models(self._spec)

    @property
    def calls_models(self) -> bool:
        """Whether language models judge or extract."""
        return self._judges is not None

    def progress(self) -> RunProgress:
        """Return the progress of the run while it has no results."""
        now = self._judges.progress() if self._judges else RunProgress()
        return structs.replace(
            now, verdicts={judge: n for judge, n in self._verdicts.items() if n > 0}
        )

    def unscored(self, items: Sequence[Item], detail: str) -> list[ItemResult]:
        """Return results of items that are not scored, because doing so ends the process.

        Args:
            items: The items.
            detail: What happened, in words.
        """
        unscored = getattr(self._pipeline, "unscored", unscored_result)
        results = [unscored(item, UnscoredReason.PROCESS_DIED, detail) for item in items]
        _record(self._spec.metric, results)
        return results

    async def score(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order, and add them to the report."""
        results = await self.evaluate(items)
        if len(results) <= _SHORT_REPORT:
            self.add(results)
        else:
            parts = [results[at : at + _PART] for at in range(0, len(results), _PART)]
            await map_cpu(of_each(self.add), parts, chars=lambda part: _RESULT_CHARS * len(part))
        return results

    def tally_of(self, results: Sequence[ItemResult]) -> bytes:
        """Return results as :meth:`merge` takes them, in this or another process."""
        return Tally.of(self._pipeline.metric, results, self._spec.group_by).to_bytes()

    def merge(self, tally: bytes) -> None:
        """Add results of :meth:`tally_of` or :meth:`merged` to the report."""
        self._tally.merge_bytes(tally)

    def merged(self) -> bytes:
        """Return all results so far as :meth:`merge` takes them."""
        return self._tally.to_bytes()

    def add(self, results: Sequence[ItemResult]) -> None:
        """Add results that were evaluated before to the report."""
        self._tally.add_all(results)
        self._added += len(results)

    async def estimate(self, items: Sequence[Item]) -> list[Estimate]:
        """Return the calls that language models would get, with tokens and cost, without calling.

        Raises:
            UnsupportedError: The metric calls no language model.
        """
        estimate = getattr(self._pipeline, "estimate", None)
        if estimate is None:
            raise UnsupportedError(
                f"metric {self._spec.metric!r} calls no language model, so it costs nothing"
            )
        estimates: list[Estimate] = await estimate(items)
        return estimates

    async def make_report(self) -> Report:
        """Return the report; a long one stops between two groups when the call ends."""
        if self._added <= _SHORT_REPORT and not self._spec.group_by:
            return self.report()
        return await _in_some_thread(self.report, long=self._added > _LONG_REPORT)

    def report(self) -> Report:
        """Return the report over all items scored so far."""
        one_item = self._one_item
        if one_item is not None and (report := one_item.of(self._tally.only)) is not None:
            return report
        return self._tally.finish(
            self._spec.interval,
            version=__version__,
            settings=self.settings,
            notes=self.notes,
            check=check_wanted,
        )


async def _in_some_thread(work: Callable[[], _T], *, long: bool) -> _T:
    """Run work in a thread; only long work queues for the threads that callers share."""
    return await (in_thread(work) if long else asyncio.to_thread(work))


class KeptPipeline(NamedTuple):
    """A pipeline, and what else stays the same for a spec."""

    pipeline: Pipeline
    one_item: OneItemReport | None
    """Makes the report of a single item; None if the spec asks for groups."""
    chars: int
    """The characters of its spec."""


class KeptPipelines:
    """The pipelines of the last specs that need no models. They keep no data of a run.

    Without them a call with one caption takes 1.5 times as long (docs/decisions/one-item.md).

    Args:
        keep_graphs: Whether pipelines with graphs of callers are kept. Their graphs stay in memory
            with them, which :class:`Resources` does not count.
    """

    def __init__(self, *, keep_graphs: bool = False) -> None:
        self._keep_graphs = keep_graphs
        self._pipelines: OrderedDict[Hashable, KeptPipeline] = OrderedDict()
        self._chars = 0

    def get(self, spec: ScoreSpec) -> KeptPipeline | None:
        """Return the pipeline of a spec, or None if it is not kept."""
        found = self._pipelines.get(key := _key_of_spec(spec))
        if found is None:
            return None
        self._pipelines.move_to_end(key)
        return found

    def add(self, spec: ScoreSpec, pipeline: Pipeline) -> None:
        """Keep a pipeline if it may be kept; the least recently used ones are dropped."""
        inline = [graph for graph in spec.graphs.values() if isinstance(graph, InlineGraph)]
        if metric_entry(spec.metric).needs_models(spec) or (inline and not self._keep_graphs):
            return
        chars = sum(map(len, [*spec.options.values(), *(graph.text for graph in inline)]))
        kept = KeptPipeline(pipeline, _one_item(spec, pipeline), chars)
        self._pipelines[_key_of_spec(spec)] = kept
        self._chars += chars
        while len(self._pipelines) > _MOST_PIPELINES or self._chars > _MOST_GRAPH_CHARS:
            _, dropped = self._pipelines.popitem(last=False)
            self._chars -= dropped.chars


def _one_item(spec: ScoreSpec, pipeline: Pipeline) -> OneItemReport | None:
    if spec.group_by:
        return None
    settings = dict(sorted(pipeline.settings.items()))
    metric, notes = pipeline.metric, pipeline.notes
    return OneItemReport(metric, spec.interval, version=__version__, settings=settings, notes=notes)


def _key_of_spec(spec: ScoreSpec) -> Hashable:
    """Return the fields of a spec that its pipeline depends on."""
    # Not the number of claims, on which only pipelines with judges depend; they are not kept.
    return (
        spec.metric,
        spec.variant,
        tuple(spec.graphs.items()),
        tuple(spec.options.items()),
        spec.group_by,
        spec.interval,
    )


async def extract(
    spec: ScoreSpec, texts: Sequence[str], resources: Resources
) -> list[list[FoundClaim]]:
    """Return the claims of texts, as the metric extracts them.

    Raises:
        UnsupportedError: The metric does not extract claims.
        NotFoundError: The metric or the graph is unknown.
        InvalidInputError: The variant, a graph role or an option is invalid.
    """
    entry = metric_entry(spec.metric)
    if entry.extract is None:
        raise UnsupportedError(f"metric {entry.name!r} does not extract claims; use another metric")
    checked_entry(spec)
    return await entry.extract(spec, texts, resources)


async def normalize(
    source: GraphSource, words: Sequence[str], resources: Resources
) -> tuple[str, list[tuple[str, ...]]]:
    """Return the graph's label, and the roots of each word (empty for an unknown word)."""

    def look_up() -> tuple[str, list[tuple[str, ...]]]:
        graph = resources.graph(source)
        return graph.label, [graph.roots_of(word) for word in words]

    if has_long_graph(source):
        return await in_thread(look_up)
    return await asyncio.to_thread(look_up)


def _record(metric: str, results: Sequence[ItemResult]) -> None:
    """Record the outcomes of items, and their scores where the recorder wants them."""
    outcomes: dict[str, int] = {}
    for one in results:
        reason = "" if one.outcome is Outcome.SCORED else str(one.reason) or "other"
        outcomes[reason] = outcomes.get(reason, 0) + 1
    now = tenancy()
    now.record_outcomes(metric, outcomes, _evaluated(results) if now.recorder.wants_items else ())


def _evaluated(results: Sequence[ItemResult]) -> Sequence[EvaluatedItem]:
    return [
        EvaluatedItem(
            id=one.id,
            scores={name: value for name, value in one.scores.items() if value is not None},
            reason="" if one.outcome is Outcome.SCORED else str(one.reason),
        )
        for one in results
    ]
