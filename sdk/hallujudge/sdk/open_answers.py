"""Free answers to questions, matched with accepted answers by a language model.

The judge is the one of the settings (``HALLUJUDGE_LLM_URL``, ``HALLUJUDGE_LLM_MODEL`` …), or of
the argument ``judges``, as for :class:`hallujudge.sdk.Client`. The procedure is that of
the POPE paper, section 5.4 and appendix E.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hallujudge.judge_service.engine.open_answers import OpenAnswer, OpenMatch

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.judge_factory import JudgeFactory

__all__ = ["OpenAnswer", "OpenMatch", "match_open_answers", "match_open_answers_async"]


def match_open_answers(
    rows: Sequence[OpenAnswer],
    *,
    judges: Mapping[str, object] | None = None,
    max_concurrency: int = 8,
) -> list[OpenMatch]:
    """Match free answers outside an event loop; see :func:`match_open_answers_async`."""
    return asyncio.run(
        match_open_answers_async(rows, judges=judges, max_concurrency=max_concurrency)
    )


async def match_open_answers_async(
    rows: Sequence[OpenAnswer],
    *,
    judges: Mapping[str, object] | None = None,
    max_concurrency: int = 8,
) -> list[OpenMatch]:
    """Return the accepted answer that each reply agrees with, and its VQA score.

    Args:
        rows: Replies with the answers that people gave.
        judges: Settings of the judge by name, over those of the environment.
        max_concurrency: Calls at the same time.

    Returns:
        One match for each row, in order; without a score where the judge's reply could not be
        read.

    Raises:
        InvalidInputError: No language model is set up.
    """
    from hallujudge.judge_service.engine.open_answers import match_open_answers as match

    factory = await asyncio.to_thread(_factory, judges or {})
    try:
        return await match(factory.llm().client, rows, max_concurrency=max_concurrency)
    finally:
        await factory.close()


def _factory(judges: Mapping[str, object]) -> JudgeFactory:
    from hallujudge.judge_service.engine.judge_factory import JudgeFactory
    from hallujudge.judge_service.settings.server_settings import load_settings

    resolved = load_settings(judges)
    return JudgeFactory(resolved.judges, resolved.keys)
