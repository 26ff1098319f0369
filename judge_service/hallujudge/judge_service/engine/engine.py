"""The one engine behind the server and the embedded backend."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hallujudge.metrics import Item, ItemResult, Report, Tally

from ..errors import UnsupportedError
from ..imports import import_in_thread
from ..version import __version__
from .entry import Pipeline
from .registry import metric_entry, open_pipeline
from .resources import Resources
from .spec import ScoreSpec

if TYPE_CHECKING:
    from ..llm.estimate import Estimate

__all__ = ["Engine", "ScoringSession"]


class Engine:
    """Opens scoring sessions; what they share, graphs and models, lives here."""

    def __init__(self, resources: Resources | None = None) -> None:
        self.resources = resources or Resources()

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        """A session for one run.

        Raises:
            NotFoundError: The metric or a graph is unknown.
            InvalidInputError: Something else in the spec can't be used.
        """
        judged = metric_entry(spec.metric).judges
        # A language model's server tells its version, which signatures need, only when asked.
        if judged and spec.options.get("judge", "matcher") != "matcher":
            judges = await asyncio.to_thread(lambda: self.resources.judges)
            await judges.prepare()
        # Models, graphs and the libraries that read them may take seconds to load; the event loop
        # serves others meanwhile.
        pipeline = await asyncio.to_thread(open_pipeline, spec, self.resources)
        await import_in_thread("numpy")  # which the first batch needs
        return ScoringSession(spec, pipeline)

    async def judge(self, spec: ScoreSpec, items: Sequence[Item]) -> list[ItemResult]:
        """Verdicts on items' claims, without a report.

        Raises:
            UnsupportedError: No judge decides the metric's claims.
        """
        if not metric_entry(spec.metric).judges:
            raise UnsupportedError(
                f"metric {spec.metric!r} has no claims that a judge decides",
                metadata={"metric": spec.metric},
            )
        session = await self.open(spec)
        return await session.score(items)


class ScoringSession:
    """One run: batches of items in, their results out, the report at the end."""

    def __init__(self, spec: ScoreSpec, pipeline: Pipeline) -> None:
        self._spec = spec
        self._pipeline = pipeline
        self._tally = Tally(pipeline.metric, spec.group_by)

    @property
    def statistic_names(self) -> tuple[str, ...]:
        """Names of the statistics, in the order that results carry them."""
        return tuple(column.name for column in self._pipeline.metric.columns)

    async def score(self, items: Sequence[Item]) -> list[ItemResult]:
        """One result for each item, in order; they count in the report."""
        results = await self._pipeline.evaluate(items)
        self._tally.add_all(results)
        return results

    async def estimate(self, items: Sequence[Item]) -> list[Estimate]:
        """What judges that cost money would be asked, without asking them.

        Raises:
            UnsupportedError: The metric asks no such judge.
        """
        estimate = getattr(self._pipeline, "estimate", None)
        if estimate is None:
            raise UnsupportedError(
                f"metric {self._spec.metric!r} asks no judge that costs anything"
            )
        estimates: list[Estimate] = await estimate(items)
        return estimates

    def report(self) -> Report:
        """The report over everything scored so far."""
        report = self._tally.finish(self._spec.interval, version=__version__)
        return replace(
            report,
            settings=dict(sorted(self._pipeline.settings.items())),
            notes=(*self._pipeline.notes, *report.notes),
        )
