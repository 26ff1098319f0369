"""A server that freezes is noticed, although its connection stays open."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest
from support.running import ServerProcess
from support.threads import PATIENCE

from hallujudge.sdk import AsyncClient, BatchResult, RemoteBackend
from hallujudge.sdk.errors import UnavailableError


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    process = ServerProcess()
    yield process
    os.kill(process.process.pid, signal.SIGCONT)
    process.stop()


async def test_a_server_that_freezes_in_the_middle_of_a_run(server: ServerProcess) -> None:
    captions = {str(number): "A dog on a sofa." for number in range(5_000)}

    def freeze(_batch: BatchResult) -> None:
        os.kill(server.process.pid, signal.SIGSTOP)

    # The stream itself may take a day; only the keepalive can end it.
    backend = RemoteBackend(server.address, keepalive=1.0, reconnect_timeout=0)
    async with AsyncClient(backend) as client:
        with pytest.raises(UnavailableError):
            # Without the keepalive the call would go on for a day: fail instead.
            async with asyncio.timeout(PATIENCE):
                await client.score(
                    "chair",
                    responses=captions,
                    references={key: ["couch"] for key in captions},
                    on_batch=freeze,
                )


async def test_a_server_at_work_is_left_alone(server: ServerProcess) -> None:
    captions = {str(number): "A dog on a sofa." for number in range(500)}
    async with AsyncClient(RemoteBackend(server.address, keepalive=1.0)) as client:
        for _ in range(3):
            report = await client.score(
                "chair", responses=captions, references={key: ["couch"] for key in captions}
            )
            assert report.coverage.scored == 500
