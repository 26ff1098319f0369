"""Traces of calls, from the client to the judge."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.sdk.trace import TracerProvider
from support.observed_servers import ITEM, JUDGED, judging
from support.threads import PATIENCE

from hallujudge.judge.v1 import jobs_pb2, jobs_pb2_grpc
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.jobs.job_service import JobService
from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings.server_settings import ServerSettings, TraceSettings
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics import ChairItem
from hallujudge.sdk import AsyncClient
from hallujudge.sdk.backends.channel import trace_headers


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """A collector of OpenTelemetry that keeps what it receives."""

    def __init__(self) -> None:
        self.spans: list[Any] = []

    def Export(self, request: Any, context: Any) -> Any:
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)
        return trace_service_pb2.ExportTraceServiceResponse()


@contextmanager
def collecting() -> Iterator[tuple[Collector, str]]:
    """A collector, and its address."""
    collector = Collector()
    receiver = grpc.server(futures.ThreadPoolExecutor(1))
    add = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
    add(collector, receiver)  # type: ignore[no-untyped-call]  # OpenTelemetry's
    port = receiver.add_insecure_port("127.0.0.1:0")
    receiver.start()
    yield collector, f"http://127.0.0.1:{port}"
    receiver.stop(None)


async def test_a_trace_goes_from_the_client_to_the_judge() -> None:
    tracer = TracerProvider().get_tracer("a program")
    with collecting() as (collector, endpoint):
        async with (
            judging(trace_endpoint=endpoint, trace_ratio=0) as server,
            AsyncClient(server.address) as client,
        ):
            with tracer.start_as_current_span("its work") as span:
                await client.score_items(JUDGED, [ITEM])
            # Without a client's decision the ratio decides: this call is not traced.
            await client.server_info()
    trace = span.get_span_context().trace_id.to_bytes(16)
    assert {one.trace_id for one in collector.spans} == {trace}
    names = {one.span_id: one.name for one in collector.spans}
    names[span.get_span_context().span_id.to_bytes(8)] = "its work"
    parents = {(one.name, names[one.parent_span_id]) for one in collector.spans}
    scored = "hallujudge.judge.v1.JudgeService/ScoreStream"
    assert (scored, "its work") in parents
    assert ("evaluate", scored) in parents
    assert ("chat judge-model", "evaluate") in parents


async def test_jobs_are_not_in_the_trace_of_the_call_that_created_the_first(
    tmp_path: Path,
) -> None:
    item = ChairItem(id="1", group_id="1", response="A dog.", reference_objects=("dog",))
    spec = spec_to_proto(ScoreSpec(metric="chair"))
    engine = Engine()
    with collecting() as (collector, endpoint):
        jobs = JobService(str(tmp_path / "jobs.sqlite"), engine)
        server = await start(
            ServerSettings(port=0, trace=TraceSettings(endpoint=endpoint)), engine, jobs
        )
        async with grpc.aio.insecure_channel(server.address) as channel:
            stub: Any = jobs_pb2_grpc.ScoringJobServiceStub(channel)
            for name in ("first", "second"):
                request = jobs_pb2.CreateJobRequest(
                    request_id=name, spec=spec, items=[item_to_proto(item)]
                )
                job = (await stub.CreateJob(request, timeout=PATIENCE)).job
                async for _ in stub.WatchJob(jobs_pb2.WatchJobRequest(job_id=job.id)):
                    pass
        await server.stop(0)
    calls = {one.trace_id for one in collector.spans if "/" in one.name}
    scored = [one.trace_id for one in collector.spans if one.name == "evaluate"]
    assert len(scored) == 2
    assert not calls & set(scored)


async def test_spans_have_the_attributes_of_the_conventions() -> None:
    item = ChairItem(id="1", group_id="1", response="A dog.", reference_objects=("dog",))
    with collecting() as (collector, endpoint):
        async with (
            judging(trace_endpoint=endpoint) as server,
            grpc.aio.insecure_channel(server.address) as channel,
        ):
            judge_service, jobs = (
                pb_grpc.JudgeServiceStub(channel),
                jobs_pb2_grpc.ScoringJobServiceStub(channel),
            )
            request = pb.ScoreRequest(spec=spec_to_proto(JUDGED), items=[item_to_proto(ITEM)])
            await judge_service.Score(request, timeout=PATIENCE)
            wrong = ScoreSpec(metric="chair", variant="none")
            request = pb.ScoreRequest(spec=spec_to_proto(wrong), items=[item_to_proto(item)])
            with pytest.raises(grpc.aio.AioRpcError):
                await judge_service.Score(request, timeout=PATIENCE)
            with pytest.raises(grpc.aio.AioRpcError):
                await jobs.GetJob(jobs_pb2.GetJobRequest(job_id="none"), timeout=PATIENCE)
    calls = [
        (one.name, values["rpc.service"], values["rpc.method"], values["rpc.grpc.status_code"])
        for one in collector.spans
        if "rpc.service" in (values := _values(one))
    ]
    ours = "hallujudge.judge.v1.JudgeService"
    bad = grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert calls[:2] == [
        (f"{ours}/Score", ours, "Score", 0),
        (f"{ours}/Score", ours, "Score", bad),
    ]
    assert calls[2][:3] == (
        "hallujudge.judge.v1.ScoringJobService/GetJob",
        "hallujudge.judge.v1.ScoringJobService",
        "GetJob",
    )
    chat = next(one for one in collector.spans if one.name == "chat judge-model")
    values = _values(chat)
    assert values["server.address"] == "127.0.0.1"
    assert values["server.port"] > 0


def _values(span: Any) -> dict[str, Any]:
    """Return the attributes of a span."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


@pytest.mark.parametrize(
    "endpoint", ["foo", "localhost:4317", "ftp://host", "http://", "http://[::1", "http://h:99999"]
)
async def test_an_address_that_takes_no_traces_is_refused(endpoint: str) -> None:
    with pytest.raises(
        InvalidInputError, match=re.escape(f"trace.endpoint is '{endpoint}'; write")
    ):
        await start(ServerSettings(port=0, trace=TraceSettings(endpoint=endpoint)))


async def test_a_password_in_the_address_for_traces_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidInputError, match=r"trace\.endpoint is 'http://") as caught:
        await start(
            ServerSettings(port=0, trace=TraceSettings(endpoint="http://ana:secret@host:4317"))
        )
    assert "secret" not in str(caught.value)


async def test_a_program_without_traces_sends_no_headers() -> None:
    assert trace_headers() == ()
