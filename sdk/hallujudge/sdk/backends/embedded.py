"""Scoring in this process, with the engine that the server uses."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallujudge.judge_service import __version__
from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.engine.session import extract, normalize
from hallujudge.judge_service.engine.spec import RunHeader, read_items
from hallujudge.judge_service.engine.streams import (
    TICK_SECONDS,
    RunProgress,
    ordered_map,
    with_ticks,
)
from hallujudge.judge_service.settings.loading import chosen_judges, load_settings
from hallujudge.judge_service.threads import leave_to_parent, renew_after_fork

from . import Batch, BatchResult, ServerInfo

if TYPE_CHECKING:
    from hallujudge.judge_service.engine import ScoringSession
    from hallujudge.judge_service.engine.found_claims import FoundClaim
    from hallujudge.judge_service.engine.judge_factory import JudgeFactory
    from hallujudge.judge_service.engine.spec import GraphSource, ScoreSpec
    from hallujudge.judge_service.llm.budget import SharedCalls
    from hallujudge.judge_service.llm.estimate import Estimate
    from hallujudge.metrics import Item, ItemResult

# The server scores the same number of batches of one stream at a time.
_MAX_CONCURRENCY = 8
# Each file is looked up for each reply that is not known yet.
_MOST_RUNS = 20


def _own_since(file: Path) -> int:
    """Return when a file was changed; 0 if others may write it, who could make verdicts up."""
    try:
        status = file.lstat()
    except OSError:
        return 0
    is_mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    # 0o022: the write permissions of the group and of other users.
    is_closed = stat.S_ISREG(status.st_mode) and not status.st_mode & 0o022
    return status.st_mtime_ns if is_mine and is_closed else 0


class EmbeddedBackend:
    """Scores in this process with its own engine.

    Args:
        settings: Settings of the judges by name, such as ``llm.url``, over the environment's.
        shared: Verdict store and budgets of another process, if this one has none of its own.

    Raises:
        InvalidInputError: A setting is unknown or invalid.
    """

    def __init__(
        self, settings: Mapping[str, object] | None = None, shared: SharedCalls | None = None
    ) -> None:
        self.worker_settings = dict(settings or {})
        """The settings of the judges that were passed in."""
        if self.worker_settings:
            # A run that asks no judge would never read them, and would hide a mistaken name.
            load_settings(self.worker_settings)
        self._shared = shared
        self._engine = self._new_engine()
        renew_after_fork(self._renew)

    def _renew(self) -> None:
        """Score with an engine of this process: the parent's has its connections and locks."""
        leave_to_parent(self._engine)
        self._engine = self._new_engine()

    def _new_engine(self) -> Engine:
        return Engine(Resources(lambda: _judges(self.worker_settings, self._shared)))

    def origin(self) -> dict[str, Any]:
        """Return the settings of the judges that are not at their defaults, without API keys."""
        chosen = chosen_judges(load_settings(self.worker_settings).judges)
        return {
            "judges": {
                name: value
                for name, value in chosen.items()
                # Where a reply was found does not change a score.
                if name != "known_verdicts"
                # A URL may contain a password.
                and not (name.endswith("url") and "@" in str(value))
            }
        }

    def with_cache(self, path: Path) -> EmbeddedBackend | None:
        """Return a backend that also caches verdicts in a file, or None if one is configured.

        Verdicts of other runs next to the file's folder are used too, so that a second run repeats
        the first one without a call.
        """
        # The user's own file keeps the verdicts already.
        if load_settings(self.worker_settings).judges.verdict_cache:
            return None
        found = (other for other in path.parent.parent.glob(f"*/{path.name}") if other != path)
        dated = ((_own_since(other), other) for other in found)
        known = [other for since, other in sorted(dated, reverse=True) if since]
        kept = {"known_verdicts": os.pathsep.join(map(str, known[:_MOST_RUNS]))} if known else {}
        return EmbeddedBackend({**kept, **self.worker_settings, "verdict_cache": str(path)})

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
        self,
        spec: ScoreSpec,
        header: RunHeader,  # noqa: ARG002 - only a server could change during the run
        batches: AsyncIterable[Batch],
        scores: Sequence[str] = (),  # noqa: ARG002 - the statistics of all are there
    ) -> AsyncGenerator[BatchResult | RunProgress, None]:
        """Yield the results of each batch in input order, and progress in between."""
        session = await self._engine.open(spec)

        async def work(batch: Batch) -> BatchResult:
            results = await session.evaluate(batch)
            read = read_items(session.metric, spec.options, batch, results)
            return BatchResult(items=read, results=results)

        # Without models, threads would only share the interpreter lock, and load a lexicon each.
        results = ordered_map(batches, work, limit=_MAX_CONCURRENCY if session.needs_models else 1)
        async with aclosing(with_ticks(results, TICK_SECONDS)) as parts:
            async for part in parts:
                yield session.progress() if part is None else part
                # The number of answers has changed with the batch.
                if session.calls_models and part is not None:
                    yield session.progress()

    async def evaluate(
        self,
        spec: ScoreSpec,
        header: RunHeader,  # noqa: ARG002 - as above
        batch: Batch,
        scores: Sequence[str] = (),  # noqa: ARG002 - all are there anyway
    ) -> Sequence[ItemResult]:
        """Return the result of each item of one batch, in order."""
        session = await self._engine.open(spec)
        return await session.evaluate(batch)

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
        return await self._engine.estimate(spec, items)

    async def close(self) -> None:
        """Close the judges."""
        await self._engine.resources.close()


def _judges(arguments: Mapping[str, object], shared: SharedCalls | None) -> JudgeFactory:
    from hallujudge.judge_service.engine.judge_factory import JudgeFactory

    resolved = load_settings(arguments)
    return JudgeFactory(resolved.judges, resolved.keys, shared=shared)
