"""The engine that the server and the embedded backend share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from hallujudge.metrics import Item, ItemResult, Metric, Report, Tally

from ..access.turns import check_wanted, in_thread, map_cpu
from ..errors import UnsupportedError
from ..imports import import_in_thread
from ..observe.recorder import record_items, recorder
from ..version import __version__
from .entry import Pipeline
from .kept import KeptPipelines
from .progress import RunProgress
from .registry import metric_entry, open_pipeline
from .resources import Resources, has_long_graph
from .spec import ScoreSpec

if TYPE_CHECKING:
    from ..llm.estimate import Estimate
    from .judge_factory import JudgeFactory

__all__ = ["Engine", "ScoringSession"]

_T = TypeVar("_T")

# Results that are added to a report in about half a millisecond.
_PART = 200
# Adding a result takes about as long as matching so many characters.
_RESULT_CHARS = 30
# Reports of so many items take about a millisecond, as changing to a thread and back does.
_SHORT_REPORT = 64
# Reports of fewer items take some milliseconds.
_LONG_REPORT = 2_000


class Engine:
    """Opens scoring sessions, which share graphs and models.

    Args:
        resources: The graphs and judges; None: those of the default settings.
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
        if kept is not None:  # pipelines with models are not kept
            return ScoringSession(spec, kept.pipeline, settings=kept.settings)
        entry = metric_entry(spec.metric)
        # Signatures need the version of a language model's server, which has to be requested.
        if entry.asks_llm(spec):
            factory = await asyncio.to_thread(lambda: self.resources.judges)
            await factory.prepare()
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
        settings: The pipeline's settings, sorted; None: they may still change.
    """

    def __init__(
        self,
        spec: ScoreSpec,
        pipeline: Pipeline,
        judges: JudgeFactory | None = None,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._judges = judges
        self._settings = settings
        self._spec = spec
        self._pipeline = pipeline
        self._tally = Tally(pipeline.metric, spec.group_by)
        self._added = 0

    @property
    def statistic_names(self) -> tuple[str, ...]:
        """The names of the statistics, in the order of an item's statistics."""
        return tuple([column.name for column in self._pipeline.metric.columns])

    @property
    def metric(self) -> Metric:
        """The metric, with everything that its signature names."""
        return self._pipeline.metric

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the signature in full, for the report."""
        if self._settings is not None:
            return dict(self._settings)
        return dict(sorted(self._pipeline.settings.items()))

    @property
    def notes(self) -> tuple[str, ...]:
        """What limits the use of the scores, whatever the items are."""
        return self._pipeline.notes

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order, for a report that is made elsewhere."""
        with recorder().span("evaluate", {"metric": self._spec.metric, "items": len(items)}):
            results = await self._pipeline.evaluate(items)
        record_items(self._spec.metric, results)
        return results

    @property
    def needs_models(self) -> bool:
        """Whether models are called or loaded."""
        return metric_entry(self._spec.metric).needs_models(self._spec)

    @property
    def calls_models(self) -> bool:
        """Whether language models judge or extract."""
        return self._judges is not None

    def progress(self) -> RunProgress:
        """Return what the run is doing while it has no results."""
        return self._judges.progress() if self._judges else RunProgress()

    async def score(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each item, in order, and add them to the report."""
        results = await self.evaluate(items)
        parts = [results[at : at + _PART] for at in range(0, len(results), _PART)]
        await map_cpu(self.add, parts, chars=lambda part: _RESULT_CHARS * len(part))
        return results

    def tally_of(self, results: Sequence[ItemResult]) -> bytes:
        """Return results as :meth:`merge` takes them, in this or another process."""
        tally = Tally(self._pipeline.metric, self._spec.group_by)
        tally.add_all(results)
        return tally.to_bytes()

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
        """Return the report; the end of the call ends a long one between two groups."""
        if self._added <= _SHORT_REPORT and not self._spec.group_by:
            return self.report()
        return await _in_some_thread(self.report, long=self._added > _LONG_REPORT)

    def report(self) -> Report:
        """Return the report over all items scored so far."""
        return self._tally.finish(
            self._spec.interval,
            version=__version__,
            settings=self.settings,
            notes=self.notes,
            check=check_wanted,
        )


async def _in_some_thread(work: Callable[[], _T], *, long: bool) -> _T:
    """Run work in a thread; work of some milliseconds does not queue behind longer work."""
    return await (in_thread(work) if long else asyncio.to_thread(work))
