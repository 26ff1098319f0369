"""Scoring in this process, with the engine that the server uses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.engine.session import extract, normalize
from hallujudge.judge_service.engine.streams import (
    TICK_SECONDS,
    RunProgress,
    ordered_map,
    with_ticks,
)
from hallujudge.judge_service.installation import __version__
from hallujudge.metrics import Report

from .base import Batch, BatchResult, RunHeader, ServerInfo

if TYPE_CHECKING:
    from hallujudge.judge_service.engine import ScoringSession
    from hallujudge.judge_service.engine.judge_factory import JudgeFactory
    from hallujudge.judge_service.engine.registry import FoundClaim
    from hallujudge.judge_service.engine.spec import GraphSource, ScoreSpec
    from hallujudge.judge_service.llm.budget import SharedCalls
    from hallujudge.judge_service.llm.estimate import Estimate
    from hallujudge.metrics import Item, ItemResult

__all__ = ["EmbeddedBackend"]

# The server scores as many batches of one stream at the same time.
_MAX_CONCURRENCY = 8


class EmbeddedBackend:
    """Scores in this process with its own engine.

    Args:
        settings: Settings of the judges by name; they override the environment.
        shared: Verdict store and budgets of another process, if this one has none of its own.
    """

    def __init__(
        self, settings: Mapping[str, object] | None = None, shared: SharedCalls | None = None
    ) -> None:
        self.settings = dict(settings or {})
        """The settings of the judges that were given."""
        self._engine = Engine(Resources(lambda: _judges(self.settings, shared)))

    def judge_settings(self) -> dict[str, object]:
        """Return the settings of the judges that are not at their defaults; no keys are in it."""
        from hallujudge.judge_service.settings.judge_settings import JudgeSettings
        from hallujudge.judge_service.settings.server_settings import load_settings

        settings, default = load_settings(self.settings).judges, JudgeSettings()
        values = {entry.name: getattr(settings, entry.name) for entry in fields(settings)}
        return {
            name: value
            for name, value in values.items()
            # An address may hold a password.
            if value != getattr(default, name) and not (name.endswith("url") and "@" in str(value))
        }

    def with_cache(self, path: Path) -> EmbeddedBackend | None:
        """Return a backend that keeps verdicts in a file; None: the settings name one already."""
        from hallujudge.judge_service.settings.server_settings import load_settings

        if load_settings(self.settings).judges.verdict_cache:
            return None
        return EmbeddedBackend({**self.settings, "verdict_cache": str(path)})

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        """Return a session of the engine."""
        return await self._engine.open(spec)

    async def header(self, spec: ScoreSpec) -> RunHeader:
        """Return what is known of a run before its first item."""
        session = await self.open(spec)
        return RunHeader(
            metric=session.metric,
            signature=str(session.metric.signature),
            settings=session.settings,
            notes=session.notes,
            release=__version__,
        )

    async def score_stream(
        self, spec: ScoreSpec, batches: AsyncIterable[Batch], *, report: bool = True
    ) -> AsyncGenerator[BatchResult | RunProgress | Report, None]:
        """Yield the results of each batch in input order, then the report if it is wanted."""
        session = await self._engine.open(spec)
        parts = with_ticks(self._scored(session, batches, report=report), TICK_SECONDS)
        async with aclosing(parts):
            async for part in parts:
                yield session.progress() if part is None else part
                if session.calls_models and isinstance(part, BatchResult):
                    yield session.progress()

    async def _scored(
        self, session: ScoringSession, batches: AsyncIterable[Batch], *, report: bool
    ) -> AsyncGenerator[BatchResult | Report, None]:
        score = session.score if report else session.evaluate

        async def work(batch: Batch) -> BatchResult:
            return BatchResult(items=batch, results=await score(batch))

        async with aclosing(ordered_map(batches, work, limit=_MAX_CONCURRENCY)) as results:
            async for done in results:
                yield done
        if report:
            # Intervals of many items take seconds; a thread keeps the caller's event loop free.
            yield await asyncio.to_thread(session.report)

    async def extract(self, spec: ScoreSpec, texts: Sequence[str]) -> list[list[FoundClaim]]:
        """Return the claims of each text, without verdicts."""
        return await extract(spec, texts, self._engine.resources)

    async def judge(self, spec: ScoreSpec, items: Sequence[Item]) -> list[ItemResult]:
        """Return verdicts on each item's claims, without a report."""
        return await self._engine.judge(spec, items)

    async def normalize(
        self, source: GraphSource, words: Sequence[str]
    ) -> dict[str, tuple[str, ...]]:
        """Map each word to its roots in a graph."""
        _, roots = await normalize(source, words, self._engine.resources)
        return dict(zip(words, roots, strict=True))

    async def server_info(self) -> ServerInfo:
        """Return the release of this process and the shipped graphs."""
        from hallujudge.synonym_graphs import shipped_graphs

        return ServerInfo(version=__version__, graphs=shipped_graphs())

    async def estimate(self, spec: ScoreSpec, items: Sequence[Item]) -> list[Estimate]:
        """Return how many judge calls and tokens a run needs, without calling a judge."""
        session = await self._engine.open(spec)
        return await session.estimate(items)

    async def close(self) -> None:
        """Close the judges."""
        await self._engine.resources.close()


def _judges(arguments: Mapping[str, object], shared: SharedCalls | None) -> JudgeFactory:
    from hallujudge.judge_service.engine.judge_factory import JudgeFactory
    from hallujudge.judge_service.settings.server_settings import load_settings

    resolved = load_settings(arguments)
    return JudgeFactory(resolved.judges, resolved.keys, shared=shared)
