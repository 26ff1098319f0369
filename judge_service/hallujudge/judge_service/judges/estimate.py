"""The calls that a run would make to a judge, before anything is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from ..llm.budget import Prices
from ..llm.estimate import Estimate, PlannedCall, TokenCounter, estimate_calls
from .llm import LlmJudge
from .values import JudgeRequestItem

__all__ = ["estimate"]


async def estimate(
    judge: LlmJudge,
    items: Iterable[JudgeRequestItem],
    counter: TokenCounter | None = None,
    prices: Prices | None = None,
) -> Estimate:
    """Counts what a run would send. No chat call is made.

    Args:
        judge: The judge, with its cache.
        items: The run's items.
        counter: Counts prompts; None: the best that there is, see :func:`counter_of`.
        prices: What tokens cost; None: what the judge's budget knows.
    """
    await judge.identify()

    async def calls() -> AsyncIterator[PlannedCall]:
        for item in items:
            for question in judge.questions(item):
                yield PlannedCall(
                    key=judge.key_of(question),
                    cached=await judge.is_cached(question, item),
                    request=judge.request_of(question),
                )

    return await estimate_calls(judge.name, judge.client, calls(), counter, prices)
