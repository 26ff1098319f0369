"""Runs what asks a language model for parts of a benchmark, in a command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from hallujudge.sdk.cli.options import replies_of
from hallujudge.sdk.runs.progress_bar import Progress, shown_progress

from ..text_calls import TextModel, text_model

_T = TypeVar("_T")


def written(
    work: Callable[[TextModel], Awaitable[_T]],
    count: int,
    done_word: str,
    model: Mapping[str, object],
    out: Path,
    temperature: float = 0.0,
) -> _T:
    """Return what a language model writes, outside an event loop, and show its progress.

    Args:
        work: Asks the model.
        count: Number of things to make.
        done_word: What is done with them, as progress says it.
        model: The model's settings.
        out: The file that is written, next to which replies are kept.
        temperature: Temperature.
    """

    async def run(progress: Progress) -> _T:
        async with text_model(model, replies_of(out), temperature, progress=progress) as writer:
            return await work(writer)

    with shown_progress(count, done_word) as progress:
        return asyncio.run(run(progress))
