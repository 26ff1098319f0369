"""What a backend does. Every feature lands in both, with a test that runs on both."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from hallujudge.metrics import Item, ItemResult, Report

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.entry import FoundClaim
    from hallujudge.judge_service.engine.spec import GraphSource, ScoreSpec

__all__ = ["Batch", "BatchResult", "ScoringBackend", "ServerInfo"]

Batch: TypeAlias = "Sequence[Item]"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """Items that travelled together, with their results."""

    items: Batch
    """The items."""
    results: Sequence[ItemResult]
    """One result for each, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """Who scores."""

    version: str
    """Its release."""
    graphs: tuple[str, ...]
    """Graphs that ship with it."""


class ScoringBackend(Protocol):
    """Where scores are made."""

    def score_stream(
        self, spec: ScoreSpec, batches: AsyncIterable[Batch]
    ) -> AsyncGenerator[BatchResult | Report, None]:
        """Results of batches, in the order of the batches; the report comes last.

        Whoever stops early closes it, which stops the work.
        """
        ...

    async def extract(self, spec: ScoreSpec, texts: Sequence[str]) -> list[list[FoundClaim]]:
        """Claims of each text, without verdicts."""
        ...

    async def judge(self, spec: ScoreSpec, items: Sequence[Item]) -> list[ItemResult]:
        """Verdicts on each item's claims, without a report."""
        ...

    async def normalize(
        self, source: GraphSource, words: Sequence[str]
    ) -> dict[str, tuple[str, ...]]:
        """Words -> roots in a graph."""
        ...

    async def server_info(self) -> ServerInfo:
        """Who scores."""
        ...

    async def close(self) -> None:
        """Lets go of connections."""
        ...
