"""The end of a server: nothing holds it up."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2
from support import http2
from support.messages import expected_message
from support.rpc import health_stub
from support.threads import PATIENCE

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.engine import Engine, ScoreSpec, ScoringSession
from hallujudge.judge_service.jobs.job_service import JobService
from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings.server_settings import (
    LogSettings,
    ServerSettings,
    TraceSettings,
)
from hallujudge.judge_service.stopping import Grace
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics import ChairItem, Item, ItemResult

REQUEST = pb.ScoreRequest(
    spec=spec_to_proto(ScoreSpec(metric="chair")),
    items=[item_to_proto(ChairItem(id="1", response="A dog.", reference_objects=("dog",)))],
)
_INITIAL_WINDOW_SIZE = 4


def watcher_that_never_reads(address: str) -> socket.socket:
    """Return a connection that watches health and leaves no room for any response."""
    connection = http2.connected(address)
    window = struct.pack(">HI", _INITIAL_WINDOW_SIZE, 0)
    connection.sendall(
        http2.frame(http2.SETTINGS, 0, 0, window)
        + http2.frame(
            http2.HEADERS, http2.END_HEADERS, 1, http2.headers("/grpc.health.v1.Health/Watch")
        )
        + http2.frame(http2.DATA, http2.END_STREAM, 1, bytes(5))
    )
    while http2.read_frame(connection)[0] != http2.HEADERS:
        pass  # the response has begun once its headers are there
    return connection


async def test_a_watcher_that_never_reads_does_not_delay_the_stop() -> None:
    server = await start(ServerSettings(port=0))
    hurry = asyncio.Event()
    async with asyncio.timeout(PATIENCE), grpc.aio.insecure_channel(server.address) as channel:
        silent = await asyncio.to_thread(watcher_that_never_reads, server.address)
        watch = health_stub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
        answers = aiter(watch)
        assert (await anext(answers)).status == health_pb2.HealthCheckResponse.SERVING
        stopping = asyncio.create_task(server.stop(PATIENCE, hurry))
        assert [answer.status async for answer in answers] == [
            health_pb2.HealthCheckResponse.NOT_SERVING
        ]
        hurry.set()
        await stopping
    silent.close()


class StubbornEngine(Engine):
    """An engine whose work goes on although its call was cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        session = await super().open(spec)
        inner = session.score

        async def score(items: Sequence[Item]) -> list[ItemResult]:
            self.begun.set()
            while not self.may_end.is_set():
                try:
                    await self.may_end.wait()
                except asyncio.CancelledError:
                    continue
            return await inner(items)

        session.score = score  # type: ignore[method-assign]  # the point of the stand-in
        return session


async def test_a_call_that_does_not_end_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    engine = StubbornEngine()
    server = await start(ServerSettings(port=0), engine)
    async with asyncio.timeout(PATIENCE), grpc.aio.insecure_channel(server.address) as channel:
        call = pb_grpc.JudgeServiceStub(channel).Score(REQUEST, timeout=PATIENCE)
        call.add_done_callback(lambda _: None)
        await engine.begun.wait()
        await server.stop(0, margin=0.01)
        assert (
            expected_message("judge_service.stopping:grpc-did-not-end-within-after-the")
            in caplog.text
        )
        engine.may_end.set()
        await call.code()


async def test_a_collector_that_is_not_reached_is_named_and_the_access_log_is_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "access.jsonl"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings = ServerSettings(
            port=0, trace=TraceSettings(endpoint=endpoint), log=LogSettings(access=str(log))
        )
        server = await start(settings)
        async with asyncio.timeout(PATIENCE), grpc.aio.insecure_channel(server.address) as channel:
            await pb_grpc.JudgeServiceStub(channel).Score(REQUEST, timeout=PATIENCE)
            await server.stop(0, margin=0.5)
    assert f"sending traces to {endpoint} did not end within 0.5 s after the drain" in caplog.text
    assert "the access log" not in caplog.text
    assert '"status": "OK"' in log.read_text()


class StuckJobs(JobService):
    """Jobs whose database does not close."""

    async def close(self, period: Grace | None = None) -> None:
        await asyncio.Event().wait()


async def test_jobs_that_do_not_end_are_left_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine()
    jobs = StuckJobs(str(tmp_path / "jobs"), engine)
    server = await start(ServerSettings(port=0), engine, jobs)
    async with asyncio.timeout(PATIENCE):
        await server.stop(0, margin=0.01)
    assert (
        expected_message("judge_service.server.server:the-runner-of-jobs-did-not-end")
        in caplog.text
    )
