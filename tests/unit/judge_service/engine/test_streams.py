"""Ticks between the results of slow work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from hallujudge.judge_service.engine.streams import with_ticks

SOON = 0.01


async def test_slow_values_come_with_ticks_and_quick_ones_without() -> None:
    gate = asyncio.Event()

    async def source() -> AsyncGenerator[int, None]:
        yield 1
        await gate.wait()
        yield 2

    seen: list[int | None] = []
    async for value in with_ticks(source(), SOON):
        seen.append(value)
        if seen.count(None) == 2:
            gate.set()
    assert seen[:3] == [1, None, None]
    assert [value for value in seen if value is not None] == [1, 2]


async def test_closing_it_early_cancels_and_closes_the_source() -> None:
    ended: list[str] = []

    async def source() -> AsyncGenerator[int, None]:
        try:
            await asyncio.Event().wait()
            yield 1
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        finally:
            ended.append("closed")

    async with aclosing(with_ticks(source(), SOON)) as ticks:
        assert await anext(ticks) is None
    assert ended == ["cancelled", "closed"]


async def test_an_error_of_the_source_is_raised() -> None:
    async def source() -> AsyncGenerator[int, None]:
        yield 1
        raise ValueError("broken")

    ticks = with_ticks(source(), SOON)
    assert await anext(ticks) == 1
    with pytest.raises(ValueError, match="broken"):
        await anext(ticks)
