"""The services of a server: nothing that they do waits for a disk in the event loop's thread."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from grpc_health.v1 import health_pb2
from support import scripted_llm as llm
from support.http_calls import JUDGE, chair_request, post
from support.loop_audit import io_audit
from support.rpc import health_stub
from support.threads import PATIENCE

from hallujudge.judge.v1 import (
    chair_pb2,
    jobs_pb2,
    jobs_pb2_grpc,
    judge_service_pb2_grpc,
    scoring_pb2,
)
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key
from hallujudge.judge_service.access.spending import Ledger
from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.jobs.job_service import JobService
from hallujudge.judge_service.server.logs import WritingHandler
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings.judge_settings import (
    JudgeSettings,
    LlmSettings,
    load_judge_keys,
)
from hallujudge.judge_service.settings.server_settings import (
    AccessSettings,
    HttpSettings,
    LogSettings,
    MetricsSettings,
    ServerSettings,
)
from hallujudge.judge_service.tenancy import Limits
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics.families import families
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.tri_he import TriHeItem
from hallujudge.sdk import ScoreSpec

SPEC = spec_to_proto(ScoreSpec(metric="tri-he", options={"judge": "llm", "extractor": "given"}))
CHAIR = scoring_pb2.ScoreSpec(metric="chair")
DOG = pb.Item(
    id="1",
    chair=chair_pb2.ChairTask(
        response="A dog.", reference_objects=scoring_pb2.StringList(values=["dog"])
    ),
)
COCO = scoring_pb2.GraphSource(shipped="coco")
# What must have been seen in other threads, so that the test can fail: every kind of file.
SEAMS = ("spending", "answers", "claims", "hallujudge_jobs", "keys.json", "key.txt", "os.write")


def items_of(said: str, count: int) -> list[pb.Item]:
    return [
        item_to_proto(
            TriHeItem(
                id=str(n),
                claims=(Triplet("man", said, f"horse {n}"),),
                reference_triplets=(Triplet("man", "riding", "horse"),),
            )
        )
        for n in range(count)
    ]


@asynccontextmanager
async def serving(folder: Path, judge: llm.ScriptedLlm) -> AsyncIterator[RunningServer]:
    """Run a server with every kind of file: keys, budgets, jobs, verdicts, logs."""
    # The server's command settles which benchmarks there are before it serves.
    families()
    ledger = Ledger(folder / "spending.sqlite")
    settings = JudgeSettings(
        llm=LlmSettings(url=judge.url.replace("127.0.0.1", "localhost"), model="tiny"),
        verdict_cache=str(folder / "verdicts.sqlite"),
    )
    keys = load_judge_keys({"HALLUJUDGE_LLM_API_KEY_FILE": str(folder / "key.txt")})
    factory = JudgeFactory(settings, keys, ledger=ledger)
    engine = Engine(Resources(lambda: factory))
    jobs = JobService(str(folder / "jobs.sqlite"), engine)
    server = await start(
        ServerSettings(
            port=0,
            http=HttpSettings(port=0),
            metrics=MetricsSettings(port=0),
            access=AccessSettings(keys_file=str(folder / "keys.json")),
            log=LogSettings(access=str(folder / "access.jsonl")),
            reflection="on",
        ),
        engine,
        jobs,
    )
    try:
        yield server
    finally:
        await server.stop(0)
        await factory.close()
        ledger.close()


class Caller:
    """The methods of a server, called with a key."""

    def __init__(self, channel: grpc.aio.Channel, key: str) -> None:
        self._stubs = (
            judge_service_pb2_grpc.JudgeServiceStub(channel),
            jobs_pb2_grpc.ScoringJobServiceStub(channel),
        )
        self._metadata = (("authorization", f"Bearer {key}"),)
        self.called: set[str] = set()

    def __call__(self, method: str, request: object) -> Any:
        self.called.add(method)
        stub = next(stub for stub in self._stubs if hasattr(stub, method))
        return getattr(stub, method)(request, metadata=self._metadata)


async def call_every_method(call: Caller) -> None:
    """Call every method of scoring and jobs, also with what the judge has to be asked for."""
    texts = {"texts": ["A man rides a horse."]}
    for spec, items in ((SPEC, items_of("riding", 4)), (CHAIR, [DOG])):
        await call("Score", pb.ScoreRequest(spec=spec, items=items))
        stream = call("ScoreStream", _stream(spec, items))
        assert [one async for one in stream]
    await call("Judge", pb.JudgeRequest(spec=SPEC, items=items_of("near", 4)))
    await call("Extract", pb.ExtractRequest(spec=CHAIR, **texts))
    await call("Normalize", pb.NormalizeRequest(graph=COCO, words=["puppies"]))
    await call("ListMetrics", pb.ListMetricsRequest())
    await call("GetServerInfo", pb.GetServerInfoRequest())
    # A model, which may be on this machine or not, and a pipeline that may not be installed.
    for option in ({"matcher_model": "minilm", "judge": "matcher"}, {"matcher_model": "other"}):
        spec = scoring_pb2.ScoreSpec(metric="tri-he", options={"extractor": "given"} | option)
        with suppress(grpc.aio.AioRpcError):
            await call("Score", pb.ScoreRequest(spec=spec, items=items_of("with", 1)))
    await _call_jobs(call)


async def _stream(
    spec: scoring_pb2.ScoreSpec, items: list[pb.Item]
) -> AsyncIterator[pb.ScoreStreamRequest]:
    yield pb.ScoreStreamRequest(spec=spec)
    yield pb.ScoreStreamRequest(batch=pb.ItemBatch(items=items))


async def _call_jobs(call: Caller) -> None:
    create = jobs_pb2.CreateJobRequest(
        spec=SPEC, items=items_of("beside", 4), request_id="r", more=True
    )
    name = (await call("CreateJob", create)).job.id
    more = items_of("beside", 8)[4:]
    await call("AddJobItems", jobs_pb2.AddJobItemsRequest(job_id=name, position=4, items=more))
    changes = [one async for one in call("WatchJob", jobs_pb2.WatchJobRequest(job_id=name))]
    assert changes[-1].job.scored == 8
    await call("GetJob", jobs_pb2.GetJobRequest(job_id=name))
    await call("ListJobs", jobs_pb2.ListJobsRequest())
    await call("ListJobResults", jobs_pb2.ListJobResultsRequest(job_id=name))
    await call("GetJobReport", jobs_pb2.GetJobReportRequest(job_id=name))
    await call("CancelJob", jobs_pb2.CancelJobRequest(job_id=name))
    await call("DeleteJob", jobs_pb2.DeleteJobRequest(job_id=name))


@pytest.fixture
def blocked_log(tmp_path: Path) -> Any:
    """Log everything as ``serve`` does, to a file."""
    handler = WritingHandler(os.open(tmp_path / "log.txt", os.O_WRONLY | os.O_CREAT))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.setLevel(level)
    root.removeHandler(handler)
    handler.close()


def key_checker(judge: llm.ScriptedLlm, key: str) -> llm.Step:
    """Return the step of a judge that takes one key only."""

    def step(number: int, body: llm.Body) -> llm.Reply:
        known = judge.headers[-1].get("authorization") == f"Bearer {key}"
        return llm.by_scene_graph(number, body) if known else llm.error(401, "no such key")

    return step


async def exercised(
    server: RunningServer, judge: llm.ScriptedLlm, folder: Path, key: str
) -> set[str]:
    """Use a server in every way; return the methods that were called."""
    async with grpc.aio.insecure_channel(server.address) as channel:
        call = Caller(channel, key)
        await call_every_method(call)
        await health_stub(channel).Check(health_pb2.HealthCheckRequest())
        await _use_http(server, key)
        # The file of keys is read again, and so is that of the judge's key.
        second = await asyncio.to_thread(
            create_key, folder / "keys.json", "ben", scopes=list(Scope)
        )
        await until_known(Caller(channel, second))
        await asyncio.to_thread((folder / "key.txt").write_text, "second")
        judge.steps = [key_checker(judge, "second")]
        await call("Score", pb.ScoreRequest(spec=SPEC, items=items_of("behind", 4)))
    return call.called


async def until_known(call: Caller) -> None:
    """Call until a new key is known."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(grpc.aio.AioRpcError):
                await call("GetServerInfo", pb.GetServerInfoRequest())
                return


async def _use_http(server: RunningServer, key: str) -> None:
    request = pb.ScoreRequest(spec=SPEC, items=items_of("under", 4))
    for body in (json_format.MessageToDict(request), chair_request("A dog.")):
        answer = await post(server, JUDGE + "Score", body, authorization=f"Bearer {key}")
        assert answer.status == 200, answer.body


async def test_no_file_database_name_or_log_is_waited_for_in_the_loops_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocked_log: object
) -> None:
    (tmp_path / "key.txt").write_text("first")
    limits = Limits(judge_calls_per_day=1000)
    key = create_key(tmp_path / "keys.json", "ana", scopes=list(Scope), limits=limits)
    judging = llm.ScriptedLlm(llm.by_scene_graph)
    with io_audit(monkeypatch) as audit:
        async with judging as judge, serving(tmp_path, judge) as server:
            audit.in_loop.clear()  # nothing waits for a server that starts
            called = await exercised(server, judge, tmp_path, key)
            in_loop = list(audit.in_loop)
    services = (pb.DESCRIPTOR, jobs_pb2.DESCRIPTOR)
    methods = {
        method.name
        for file in services
        for service in file.services_by_name.values()
        for method in service.methods
    }
    assert called == methods, "a method is not tried"
    unseen = [seam for seam in SEAMS if not any(seam in what for what in audit.elsewhere)]
    assert not unseen, "the audit sees no access of these files"
    assert in_loop == []
    # A prompt or a list that comes with the code is read once, as the code is.
    assert set(audit.package.values()) <= {1}, audit.package
    assert not any("lexicon" in what for what in audit.package), "it takes long to load"
