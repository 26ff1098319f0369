"""A run whose server goes away and comes back, in this process."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from msgspec import structs
from support.cables import Cable
from support.engines import WatchedEngine
from support.messages import expected_message

from hallujudge.judge_service.engine import Engine, ScoreSpec, ScoringSession
from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings.server_settings import ServerSettings
from hallujudge.sdk import AsyncClient, Timeouts
from hallujudge.sdk.errors import UnavailableError, VersionMismatchError

COUNT = 640
RUN: dict[str, Any] = {
    "metric": "chair",
    "responses": [
        {"id": str(n), "caption": "A dog and a cat." if n % 3 else "", "model": "ab"[n % 2]}
        for n in range(COUNT)
    ],
    "references": {str(n): ["dog"] for n in range(COUNT)},
    "group_by": ["model"],
}


async def lost_in_the_middle(client: AsyncClient, engine: WatchedEngine, server: Any) -> Any:
    """Begin a run, and stop its server when three batches are scored and others wait."""
    engine.allowed = 3
    run = asyncio.ensure_future(client.score(**RUN))
    await engine.held.wait()
    await server.stop(0)
    return run


async def test_a_report_covers_what_was_scored_before_and_after() -> None:
    first, second = WatchedEngine(), WatchedEngine()
    server = await start(ServerSettings(port=0), first)
    async with AsyncClient(server.address) as client:
        run = await lost_in_the_middle(client, first, server)
        back = await start(ServerSettings(port=server.port), second)
        try:
            report = await run
        finally:
            await back.stop(0)
    async with AsyncClient.embedded() as client:
        undisturbed = await client.score(**RUN)
    assert report.to_json() == undisturbed.to_json()
    assert [item.result for item in report.items] == [item.result for item in undisturbed.items]
    # Batches whose results were lost on the way are scored again, and no others.
    twice = first.evaluated & second.evaluated
    assert set(first.evaluated | second.evaluated) == {str(n) for n in range(COUNT)}
    assert sum(twice.values()) <= sum(first.evaluated.values()) == 3 * 64
    assert max(second.evaluated.values()) == 1


async def test_batches_are_sent_as_they_were_where_only_the_connection_broke() -> None:
    engine = WatchedEngine()
    engine.allowed = 3
    server = await start(ServerSettings(port=0), engine)
    try:
        async with Cable(server.port) as cable, AsyncClient(cable.address) as client:
            run = asyncio.ensure_future(client.score(**RUN))
            await engine.held.wait()
            engine.allowed = None
            cable.cut()
            report = await run
    finally:
        await server.stop(0)
    assert report.coverage.items == COUNT
    assert set(engine.sizes) == {64}, "no item is sent alone"


class OtherEngine(Engine):
    """An engine that scores by another variant than it is asked for."""

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        return await super().open(structs.replace(spec, variant="corrected"))


async def test_a_server_that_comes_back_as_another_one_is_refused() -> None:
    engine = WatchedEngine()
    server = await start(ServerSettings(port=0), engine)
    async with AsyncClient(server.address) as client:
        run = await lost_in_the_middle(client, engine, server)
        back = await start(ServerSettings(port=server.port), OtherEngine())
        try:
            with pytest.raises(
                VersionMismatchError,
                match=expected_message("sdk.backends.remote:came-back-with-other-judges"),
            ):
                await run
        finally:
            await back.stop(0)


async def test_a_run_may_end_with_its_connection() -> None:
    engine = WatchedEngine()
    server = await start(ServerSettings(port=0), engine)
    async with AsyncClient(server.address, timeouts=Timeouts(reconnect_timeout=0)) as client:
        run = await lost_in_the_middle(client, engine, server)
        with pytest.raises(UnavailableError):
            await run
    assert Counter(engine.evaluated.values()) == {1: 3 * 64}
