"""A server that freezes is noticed, although its connection stays open."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import pytest
from support.running import ServerProcess
from support.threads import until

from hallujudge.sdk import AsyncClient, BatchResult, RemoteBackend, Timeouts
from hallujudge.sdk.errors import UnavailableError

NOTICED_SECONDS = 30.0
"""When a run that went on is ended: far more than the two seconds that its keepalive needs."""


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    process = ServerProcess()
    yield process
    os.kill(process.process.pid, signal.SIGCONT)
    process.stop()


async def test_a_server_that_freezes_in_the_middle_of_a_run(server: ServerProcess) -> None:
    captions = {str(number): "A dog on a sofa." for number in range(5_000)}
    frozen = threading.Event()

    def freeze(_batch: BatchResult) -> None:
        os.kill(server.process.pid, signal.SIGSTOP)
        frozen.set()

    backend = RemoteBackend(server.address, keepalive=1.0, timeouts=Timeouts(reconnect_timeout=0))
    async with AsyncClient(backend) as client:
        scoring = asyncio.ensure_future(
            client.score(
                "chair",
                responses=captions,
                references={key: ["couch"] for key in captions},
                on_batch=freeze,
            )
        )
        await until(lambda: frozen.is_set() or scoring.done())
        # The stream itself may take a day; only the keepalive can end it.
        await asyncio.wait([scoring], timeout=NOTICED_SECONDS)
        scoring.cancel()
        [outcome] = await asyncio.gather(scoring, return_exceptions=True)
    assert isinstance(outcome, UnavailableError), "the run went on with a frozen server"


async def test_a_server_at_work_is_left_alone(server: ServerProcess) -> None:
    captions = {str(number): "A dog on a sofa." for number in range(500)}
    async with AsyncClient(RemoteBackend(server.address, keepalive=1.0)) as client:
        for _ in range(3):
            report = await client.score(
                "chair", responses=captions, references={key: ["couch"] for key in captions}
            )
            assert report.coverage.scored == 500
