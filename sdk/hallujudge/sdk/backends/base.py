"""Interface of the backends. Both implement every method, and contract tests run on both."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from hallujudge.metrics import IntervalSettings, Item, ItemResult, Metric, Report, Tally

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.registry import FoundClaim
    from hallujudge.judge_service.engine.spec import GraphSource, ScoreSpec
    from hallujudge.judge_service.engine.streams import RunProgress
    from hallujudge.judge_service.llm.estimate import Estimate

__all__ = ["Batch", "BatchResult", "RunHeader", "ScoringBackend", "ServerInfo"]

Batch: TypeAlias = "Sequence[Item]"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """Items of one batch with their results."""

    items: Batch
    """The items."""
    results: Sequence[ItemResult]
    """One result for each, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """Release of the scoring engine, and its graphs."""

    version: str
    """Release of Hallujudge."""
    graphs: tuple[str, ...]
    """Names of the shipped graphs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeader:
    """What is known of a run before its first item."""

    metric: Metric
    """The metric; at a server without what only the signature holds."""
    signature: str
    """The signature up to what depends on the items."""
    settings: Mapping[str, str]
    """The settings behind the signature, in full."""
    notes: tuple[str, ...]
    """What limits the use of the scores, whatever the items are."""
    release: str
    """The release that scores."""

    def report(self, tally: Tally, interval: IntervalSettings) -> Report:
        """Return the report over all items of a tally.

        Args:
            tally: The statistics of the items.
            interval: How intervals are made.
        """
        made = tally.finish(
            interval, version=self.release, settings=dict(self.settings), notes=self.notes
        )
        # At a server the metric lacks fields of the signature; those of the items come last.
        own = str(self.metric.signature)
        return replace(made, signature=self.signature + made.signature.removeprefix(own))


class ScoringBackend(Protocol):
    """Scores items, in this process or at a server."""

    async def header(self, spec: ScoreSpec) -> RunHeader:
        """Return what is known of a run before its first item."""
        ...

    def score_stream(
        self, spec: ScoreSpec, batches: AsyncIterable[Batch], *, report: bool = True
    ) -> AsyncGenerator[BatchResult | RunProgress | Report, None]:
        """Yield the results of each batch in input order, then the report if it is wanted.

        Every few seconds without results, progress is yielded. Closing the generator early cancels
        the work.
        """
        ...

    async def extract(self, spec: ScoreSpec, texts: Sequence[str]) -> list[list[FoundClaim]]:
        """Return the claims of each text, without verdicts."""
        ...

    async def judge(self, spec: ScoreSpec, items: Sequence[Item]) -> list[ItemResult]:
        """Return verdicts on each item's claims, without a report."""
        ...

    async def normalize(
        self, source: GraphSource, words: Sequence[str]
    ) -> dict[str, tuple[str, ...]]:
        """Map each word to its roots in a graph."""
        ...

    async def server_info(self) -> ServerInfo:
        """Return the release and the shipped graphs."""
        ...

    async def estimate(self, spec: ScoreSpec, items: Sequence[Item]) -> list[Estimate]:
        """Return how many judge calls and tokens a run needs, without calling a judge.

        Raises:
            UnsupportedError: The metric calls no paid judge, or a server scores.
        """
        ...

    async def close(self) -> None:
        """Close connections; the next call opens new ones."""
        ...
