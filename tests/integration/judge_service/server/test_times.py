"""Calls that last too long, clients that vanish, and work whose client is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest
from support import scripted_llm as llm
from support.engines import EndlessEngine
from support.rpc import refused
from support.threads import PATIENCE, until

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge.v1 import scoring_pb2
from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings import from_names
from hallujudge.judge_service.settings.judge_settings import JudgeSettings, LlmSettings
from hallujudge.judge_service.settings.loading import names_of
from hallujudge.judge_service.settings.server_settings import LimitSettings, ServerSettings
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics import ChairItem
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.tri_he import TriHeItem

SPEC = spec_to_proto(ScoreSpec(metric="chair"))
ITEM = item_to_proto(ChairItem(id="1", response="A dog.", reference_objects=("dog",)))
DEADLINE = grpc.StatusCode.DEADLINE_EXCEEDED


@asynccontextmanager
async def stub_of(
    engine: Engine | None = None, **settings: object
) -> AsyncIterator[pb_grpc.JudgeServiceAsyncStub]:
    server = await start(from_names(ServerSettings, {"port": 0, **names_of(settings)}), engine)
    try:
        options = [("grpc.enable_retries", 0)]
        async with grpc.aio.insecure_channel(server.address, options=options) as channel:
            yield pb_grpc.JudgeServiceStub(channel)
    finally:
        await server.stop(0)


async def ended(call: Any) -> tuple[grpc.StatusCode, str]:
    """Read a stream to its end; return the error that it ends with."""
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError as err:
        return refused(err)
    raise AssertionError("the stream ended without an error")


async def test_an_idle_stream_ends_and_frees_its_place() -> None:
    async with stub_of(max_running_calls=1, max_waiting_calls=1, idle_seconds=0.3) as stub:
        idle = stub.ScoreStream(timeout=PATIENCE)
        await idle.write(pb.ScoreStreamRequest(spec=SPEC))
        # There is one place, for which this call waits.
        done = stub.Score(pb.ScoreRequest(spec=SPEC, items=[ITEM]), timeout=PATIENCE)
        assert len((await done).results) == 1
        assert await ended(idle) == (DEADLINE, "STREAM_IDLE")


async def test_a_stream_that_says_nothing_ends() -> None:
    async with stub_of(first_message_seconds=0.1) as stub:
        assert await ended(stub.ScoreStream(timeout=PATIENCE)) == (DEADLINE, "STREAM_IDLE")


async def test_a_call_that_takes_too_long_ends_and_its_work_too() -> None:
    engine = EndlessEngine()
    async with stub_of(engine, max_call_seconds=0.3) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Score(pb.ScoreRequest(spec=SPEC, items=[ITEM]), timeout=PATIENCE)
        assert refused(caught.value) == (DEADLINE, "CALL_TOO_LONG")
    assert engine.cancelled


async def test_a_client_that_vanished_is_disconnected() -> None:
    server = await start(ServerSettings(port=0, limits=LimitSettings(keepalive_seconds=1)))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        # An HTTP/2 client that never answers a ping.
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
        async with asyncio.timeout(PATIENCE):
            while await reader.read(4096):
                pass
        writer.close()
    finally:
        await server.stop(0)


@pytest.mark.parametrize("by", ["client", "deadline"])
async def test_the_end_of_a_call_ends_its_requests_to_a_judge(by: str) -> None:
    slow = llm.always(replace(llm.completion("ok"), delay=PATIENCE))
    item = TriHeItem(
        id="1",
        claims=(Triplet("man", "riding", "horse"),),
        reference_triplets=(Triplet("dog", "is", "brown"),),
    )
    spec = spec_to_proto(ScoreSpec(metric="tri-he", options={"extractor": "given", "judge": "llm"}))
    async with llm.ScriptedLlm(slow, model="judge-model") as at:
        settings = JudgeSettings(llm=LlmSettings(url=at.url, model="judge-model"))
        resources = Resources(lambda: JudgeFactory(settings))
        async with stub_of(Engine(resources)) as stub:
            request = pb.ScoreRequest(spec=spec, items=[item_to_proto(item)])
            # A busy machine may pass a short deadline before the judge is called.
            for seconds in (PATIENCE,) if by == "client" else (3, 30):
                call = stub.Score(request, timeout=seconds)
                while not at.requests and not call.done():
                    await asyncio.sleep(0.01)
                if at.requests:
                    break
            if by == "client":
                call.cancel()
            await until(lambda: at.abandoned == 1)
            await until(call.done)
        await resources.close()


async def test_work_that_would_take_too_long_is_refused() -> None:
    from hallujudge.judge_service.server import request_checks as specs

    graph = scoring_pb2.InlineGraph(name="x", text=" " * (specs.MAX_GRAPH + 1), layout="json")
    large = scoring_pb2.GraphSource(inline=graph)
    spec = scoring_pb2.ScoreSpec(metric="chair", group_by=["shop"])
    items = [pb.Item(id=str(n), chair=ITEM.chair, fields={"shop": str(n)}) for n in range(4)]
    async with stub_of(max_report_groups=3) as stub:
        for call, reason in (
            (stub.Score(pb.ScoreRequest(spec=spec, items=items)), "TOO_COSTLY"),
            (stub.Extract(pb.ExtractRequest(spec=SPEC, texts=["a" * 500_001])), "TOO_COSTLY"),
            (stub.Normalize(pb.NormalizeRequest(graph=large, words=["a"])), "INVALID_INPUT"),
            (
                stub.Score(
                    pb.ScoreRequest(
                        spec=scoring_pb2.ScoreSpec(metric="chair", graphs={"objects": large})
                    )
                ),
                "INVALID_INPUT",
            ),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert refused(caught.value) == (grpc.StatusCode.INVALID_ARGUMENT, reason)
        fewer = pb.ScoreRequest(spec=spec, items=items[:3])
        assert (await stub.Score(fewer, timeout=PATIENCE)).report.groups
