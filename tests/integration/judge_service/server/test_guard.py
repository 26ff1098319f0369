"""The place where every RPC is admitted: callers, bytes and memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc_health.v1 import health_pb2
from support.rpc import health_stub, raw_call, refused
from support.threads import PATIENCE

from hallujudge.judge.v1 import jobs_pb2, scoring_pb2
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.access.caller import Caller, current_caller
from hallujudge.judge_service.engine import Engine, ScoreSpec, ScoringSession
from hallujudge.judge_service.server.interceptors import METHODS
from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings.server_settings import ServerSettings

_METRICS = "/hallujudge.judge.v1.JudgeService/ListMetrics"
_STREAM = "/hallujudge.judge.v1.JudgeService/ScoreStream"


@asynccontextmanager
async def channel_to(
    engine: Engine | None = None, **settings: object
) -> AsyncIterator[grpc.aio.Channel]:
    server = await start(ServerSettings(port=0, **settings), engine)  # type: ignore[arg-type]  # by the tests
    try:
        options = [("grpc.enable_retries", 0)]
        async with grpc.aio.insecure_channel(server.address, options=options) as channel:
            yield channel
    finally:
        await server.stop(0)


def test_every_method_has_a_rule() -> None:
    files = (pb.DESCRIPTOR, jobs_pb2.DESCRIPTOR)
    services = [service for file in files for service in file.services_by_name.values()]
    names = {f"/{one.full_name}/{method.name}" for one in services for method in one.methods}
    assert names == set(METHODS)


async def test_malformed_bytes_are_an_error_of_the_caller(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with channel_to() as channel:
        for method in (_METRICS, "/grpc.health.v1.Health/Check"):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await raw_call(channel, method)(b"\x0a\xff\xff", timeout=PATIENCE)
            assert refused(caught.value) == (
                grpc.StatusCode.INVALID_ARGUMENT,
                "MALFORMED_MESSAGE",
            )
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in raw_call(channel, _STREAM, "stream_stream")(
                [b"\x0a\xff\xff"], timeout=PATIENCE
            ):
                pass
        assert refused(caught.value)[1] == "MALFORMED_MESSAGE"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await raw_call(channel, _METRICS, "stream_unary")(iter([]), timeout=PATIENCE)
        assert refused(caught.value)[1] == "MALFORMED_MESSAGE"
    assert caplog.text == ""


async def test_health_can_be_watched() -> None:
    async with channel_to() as channel:
        request = health_pb2.HealthCheckRequest()
        watch = health_stub(channel).Watch(request, timeout=PATIENCE)
        answer = await anext(aiter(watch))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        watch.cancel()


class NotingEngine(Engine):
    """An engine that notes for whom it works."""

    caller: Caller

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        self.caller = current_caller()
        return await super().open(spec)


async def test_the_work_knows_its_caller() -> None:
    engine = NotingEngine()
    async with channel_to(engine) as channel:
        stub = pb_grpc.JudgeServiceStub(channel)
        request = pb.ScoreRequest(spec=scoring_pb2.ScoreSpec(metric="chair"))
        await stub.Score(request, timeout=PATIENCE)
    assert engine.caller.id == "peer:ipv4:127.0.0.1"


async def test_a_message_without_room_is_refused_with_a_time() -> None:
    async with channel_to(max_memory_bytes=1 << 24, max_message_bytes=1 << 25) as channel:
        stub = pb_grpc.JudgeServiceStub(channel)
        words = ["word" * (1 << 20)] * 5
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Normalize(pb.NormalizeRequest(words=words), timeout=PATIENCE)
        assert refused(caught.value) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "MEMORY_FULL")
        assert (await stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=PATIENCE)).version
