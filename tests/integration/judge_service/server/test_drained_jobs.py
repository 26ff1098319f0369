"""Judge calls of jobs while their server drains: none is sent twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
from support import scripted_llm as llm
from support.jobs import states
from support.threads import PATIENCE, until

from hallujudge.judge.v1 import jobs_pb2, jobs_pb2_grpc
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.engine import Engine, ScoreSpec
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.jobs.job_service import JobService
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings.judge_settings import JudgeSettings, LlmSettings
from hallujudge.judge_service.settings.server_settings import ServerSettings
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.tri_he import TriHeItem

_CALLS = 6
_AT_ONCE = 2


def items() -> list[pb.Item]:
    """Items that need one call each."""
    scene = tuple(Triplet("man", "riding", f"horse {number}") for number in range(_CALLS))
    return [
        item_to_proto(
            TriHeItem(
                id=str(number),
                group_id="a",
                question="What?",
                claims=(claim,),
                reference_triplets=scene,
            )
        )
        for number, claim in enumerate(scene)
    ]


class HeldJudge:
    """A judge whose replies wait until a test lets them go."""

    def __init__(self) -> None:
        self.server = llm.ScriptedLlm(self._step, model="m")
        self.released = asyncio.Event()

    def _step(self, number: int, body: llm.Body) -> llm.Reply:
        return replace(llm.by_scene_graph(number, body), hold=self.released)


@asynccontextmanager
async def serving(folder: Path, judge: HeldJudge) -> AsyncIterator[tuple[RunningServer, Any]]:
    """A server with jobs and a verdict cache; another one in the same folder goes on with both."""
    settings = JudgeSettings(
        llm=LlmSettings(url=judge.server.url, model="m", max_concurrency=_AT_ONCE),
        verdict_cache=str(folder / "verdicts.sqlite"),
    )
    resources = Resources(lambda: JudgeFactory(settings))
    engine = Engine(resources)
    running = await start(
        ServerSettings(port=0),
        engine,
        JobService(str(folder / "jobs.sqlite"), engine),
    )
    try:
        async with grpc.aio.insecure_channel(running.address) as channel:
            yield running, jobs_pb2_grpc.ScoringJobServiceStub(channel)
    finally:
        await running.stop(0)
        await resources.close()


async def test_a_drain_awaits_calls_under_way_and_sends_no_further_one(tmp_path: Path) -> None:
    judge, spec = HeldJudge(), spec_to_proto(ScoreSpec(metric="tri-he", options={"judge": "llm"}))
    async with asyncio.timeout(PATIENCE), judge.server:
        async with serving(tmp_path, judge) as (running, jobs):
            request = jobs_pb2.CreateJobRequest(spec=spec, items=items(), request_id="r")
            job = (await jobs.CreateJob(request)).job
            await until(lambda: judge.server.in_flight == _AT_ONCE)
            stopping = asyncio.create_task(running.stop(PATIENCE))
            await asyncio.sleep(0)
            judge.released.set()
            await stopping
        assert judge.server.chats == _AT_ONCE
        # A job that runs in the database is one whose server died.
        path = str(tmp_path / "jobs.sqlite")
        assert await asyncio.to_thread(states, path) == {"queued": 1}
        async with serving(tmp_path, judge) as (_, jobs):
            seen = jobs.WatchJob(jobs_pb2.WatchJobRequest(job_id=job.id))
            last = [response.job async for response in seen][-1]
    assert (last.state, last.scored) == (jobs_pb2.JobState.JOB_STATE_DONE, _CALLS)
    assert judge.server.chats == _CALLS
