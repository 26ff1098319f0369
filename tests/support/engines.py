"""Engines that tests watch and stop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from hallujudge.judge_service.access import Caller, current_caller
from hallujudge.judge_service.engine import Engine, ScoreSpec, ScoringSession
from hallujudge.judge_service.errors import HallujudgeError
from hallujudge.metrics import Item, ItemResult

__all__ = ["EndlessEngine", "NotingEngine", "WatchedEngine"]


class EndlessEngine(Engine):
    """An engine that never has a result, and notes whose work was cancelled."""

    begun = False
    cancelled = False

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        session = await super().open(spec)

        async def score(items: Sequence[Item]) -> list[ItemResult]:
            self.begun = True
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled = True
            raise AssertionError(len(items))

        session.score = score  # type: ignore[method-assign]  # the point of the stand-in
        return session


class NotingEngine(Engine):
    """An engine that notes for whom it works."""

    caller: Caller

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        self.caller = current_caller()
        return await super().open(spec)


class WatchedEngine(Engine):
    """An engine that counts evaluations, and can be made to wait or to fail before them."""

    def __init__(self) -> None:
        super().__init__()
        self.evaluated: Counter[str] = Counter()
        self.allowed: int | None = None
        """Batches that may still be evaluated; None: any number."""
        self.held = asyncio.Event()
        """Set when a batch waits."""
        self.failure: HallujudgeError | None = None
        self.sizes: list[int] = []
        """How many items each evaluation had."""
        self.callers: set[str] = set()
        """For whom items were evaluated."""

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        session = await super().open(spec)
        evaluate = session.evaluate

        async def watched(items: Sequence[Item]) -> list[ItemResult]:
            self.callers.add(current_caller().id)
            if self.failure is not None:
                raise self.failure
            if self.allowed is not None:
                if not self.allowed:
                    self.held.set()
                    await asyncio.Event().wait()
                self.allowed -= 1
            self.evaluated.update(item.id for item in items)
            self.sizes.append(len(items))
            return await evaluate(items)

        session.evaluate = watched  # type: ignore[method-assign]
        return session
