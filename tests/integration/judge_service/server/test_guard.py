"""The place where every RPC is admitted: callers, bytes and memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc_health.v1 import health_pb2
from support.engines import NotingEngine
from support.rpc import health_stub, raw_call, refused
from support.threads import PATIENCE, until

from hallujudge.judge.v1 import jobs_pb2, scoring_pb2
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.server.interceptors import METHODS
from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings import from_names
from hallujudge.judge_service.settings.loading import names_of
from hallujudge.judge_service.settings.server_settings import ServerSettings
from hallujudge.judge_service.tenancy import MemoryBudget

_METRICS = "/hallujudge.judge.v1.JudgeService/ListMetrics"
_STREAM = "/hallujudge.judge.v1.JudgeService/ScoreStream"


@asynccontextmanager
async def channel_to(
    engine: Engine | None = None, **settings: object
) -> AsyncIterator[grpc.aio.Channel]:
    server = await start(from_names(ServerSettings, {"port": 0, **names_of(settings)}), engine)
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


async def test_watching_health_without_a_key_is_bounded_and_gives_its_memory_back() -> None:
    engine = Engine(Resources(memory=MemoryBudget(1 << 30)))
    memory, request = engine.resources.memory, health_pb2.HealthCheckRequest()
    async with channel_to(engine, max_running_calls=8, max_waiting_calls=8) as channel:
        stub = health_stub(channel)
        watches = [stub.Watch(request, timeout=PATIENCE) for _ in range(40)]
        answers = await asyncio.gather(*(watch.read() for watch in watches), return_exceptions=True)
        refusals = [one for one in answers if isinstance(one, grpc.aio.AioRpcError)]
        # One connection has three quarters of what one address has, which is three quarters of all.
        assert len(refusals) == 40 - 10
        codes = {refused(one) for one in refusals}
        assert codes == {(grpc.StatusCode.RESOURCE_EXHAUSTED, "SERVER_OVERLOADED")}
        assert memory.held >= 10 * (10 << 10)
        await stub.Check(request, timeout=PATIENCE)
        metrics = raw_call(channel, _METRICS)
        assert await metrics(b"", timeout=PATIENCE)
        for watch in watches:
            watch.cancel()
        await until(lambda: memory.held == 0)
        assert (await anext(aiter(stub.Watch(request, timeout=PATIENCE)))).status


async def test_health_answers_beside_checks_whose_message_does_not_come() -> None:
    async with channel_to() as channel:
        check = raw_call(channel, "/grpc.health.v1.Health/Check", "stream_unary")
        silent = [check(timeout=PATIENCE) for _ in range(600)]
        await until(lambda: sum(call.done() for call in silent) >= 100)
        ended = [call for call in silent if call.done()]
        codes = {await call.code() for call in ended}
        assert (len(ended), codes) == (100, {grpc.StatusCode.RESOURCE_EXHAUSTED})
        await health_stub(channel).Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
        for call in silent:
            call.cancel()


async def test_one_connection_without_a_key_does_not_have_all_places_of_its_machine() -> None:
    spec = pb.ScoreStreamRequest(spec=scoring_pb2.ScoreSpec(metric="chair"))
    options = [("grpc.use_local_subchannel_pool", 1)]
    server = await start(ServerSettings(port=0))
    try:
        async with (
            grpc.aio.insecure_channel(server.address, options=options) as greedy,
            grpc.aio.insecure_channel(server.address, options=options) as other,
        ):
            streams = [pb_grpc.JudgeServiceStub(greedy).ScoreStream() for _ in range(64)]
            for stream in streams:
                await stream.write(spec)
            reads = [asyncio.ensure_future(stream.read()) for stream in streams]
            await until(lambda: sum(one.done() for one in reads) >= 36)
            # All others of the greedy one wait; the machine has twelve more places.
            request = pb.ScoreRequest(spec=scoring_pb2.ScoreSpec(metric="chair"))
            await pb_grpc.JudgeServiceStub(other).Score(request, timeout=PATIENCE)
            assert sum(one.done() for one in reads) == 36
            for stream in streams:
                stream.cancel()
            await asyncio.gather(*reads, return_exceptions=True)
    finally:
        await server.stop(0)


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
