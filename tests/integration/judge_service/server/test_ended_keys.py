"""Keys that end while their work runs: no further judge call is sent for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from support import scripted_llm as llm
from support.rpc import refused
from support.threads import PATIENCE, until

from hallujudge.judge.v1 import jobs_pb2, jobs_pb2_grpc
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1.judge_service_pb2_grpc import JudgeServiceStub
from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key, edit_key, revoke_key
from hallujudge.judge_service.access.spending import Ledger
from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.jobs.job_service import JobService
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings.judge_settings import JudgeSettings, LlmSettings
from hallujudge.judge_service.settings.server_settings import AccessSettings, ServerSettings
from hallujudge.judge_service.tenancy import Limits
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.tri_he import TriHeItem
from hallujudge.sdk import ScoreSpec

SPEC = spec_to_proto(ScoreSpec(metric="tri-he", options={"judge": "llm", "extractor": "given"}))
SCENE = (Triplet("man", "riding", "horse"),)
ITEMS = 40
AT_ONCE = 2
STATE = jobs_pb2.JobState


def items(count: int = ITEMS) -> list[pb.Item]:
    """Items that need one call each."""
    return [
        item_to_proto(
            TriHeItem(
                id=str(n),
                claims=(Triplet("man", "riding", f"horse {n}"),),
                reference_triplets=SCENE,
            )
        )
        for n in range(count)
    ]


class HeldJudge(llm.ScriptedLlm):
    """A judge whose first replies wait until a test lets them go."""

    def __init__(self) -> None:
        super().__init__(self._step)
        self.released = asyncio.Event()

    def _step(self, number: int, body: llm.Body) -> llm.Reply:
        return replace(llm.by_scene_graph(number, body), hold=self.released)


class Server:
    """A running server with jobs and budgets, and calls with a key."""

    def __init__(self, running: RunningServer, channel: grpc.aio.Channel) -> None:
        self.running = running
        self.jobs: Any = jobs_pb2_grpc.ScoringJobServiceStub(channel)
        self.judge: Any = JudgeServiceStub(channel)


@asynccontextmanager
async def serving(folder: Path, judge: llm.ScriptedLlm) -> AsyncIterator[Server]:
    """Serve as ``serve`` does; another server in the same folder goes on with its jobs."""
    ledger = Ledger(folder / "spending.sqlite")
    settings = JudgeSettings(
        llm=LlmSettings(url=judge.url, model="m", max_concurrency=AT_ONCE),
        verdict_cache=str(folder / "verdicts.sqlite"),
    )
    factory = JudgeFactory(settings, ledger=ledger)
    engine = Engine(Resources(lambda: factory))
    running = await start(
        ServerSettings(port=0, access=AccessSettings(keys_file=str(folder / "keys.json"))),
        engine,
        JobService(str(folder / "jobs.sqlite"), engine),
    )
    try:
        async with grpc.aio.insecure_channel(running.address) as channel:
            yield Server(running, channel)
    finally:
        await running.stop(0)
        await factory.close()
        ledger.close()


def metadata(key: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {key}"),)


def key_id(key: str) -> str:
    return key.split("_")[1]


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def key_of(keys: Path, name: str = "ana", limits: Limits | None = None) -> str:
    return create_key(keys, name, scopes=[Scope.SCORE, Scope.JUDGE], limits=limits)


async def created(server: Server, key: str, request_id: str = "r") -> jobs_pb2.Job:
    request = jobs_pb2.CreateJobRequest(spec=SPEC, items=items(), request_id=request_id)
    job: jobs_pb2.Job = (await server.jobs.CreateJob(request, metadata=metadata(key))).job
    return job


async def known_to(server: Server, key: str, *, ended: bool) -> None:
    """Wait until a server has read its file of keys again."""
    while True:
        try:
            await server.judge.GetServerInfo(pb.GetServerInfoRequest(), metadata=metadata(key))
            found = False
        except grpc.aio.AioRpcError:
            found = True
        if found is ended:
            return
        await asyncio.sleep(0.02)


async def all_jobs(server: Server, root: str) -> dict[str, jobs_pb2.Job]:
    """Return the jobs of all callers by their ids, as an administrator lists them."""
    listed = jobs_pb2.ListJobsRequest(all=True)
    response = await server.jobs.ListJobs(listed, metadata=metadata(root))
    return {job.id: job for job in response.jobs}


async def test_a_job_of_a_revoked_key_sends_no_further_call(keys: Path, tmp_path: Path) -> None:
    key, root = key_of(keys), create_key(keys, "root", scopes=[Scope.ADMIN])
    judge = HeldJudge()
    async with asyncio.timeout(PATIENCE), judge, serving(tmp_path, judge) as server:
        job = await created(server, key)
        await until(lambda: judge.chats == AT_ONCE)
        await asyncio.to_thread(revoke_key, keys, key_id(key))
        await known_to(server, key, ended=True)
        judge.released.set()
        while (now := (await all_jobs(server, root))[job.id]).state != STATE.JOB_STATE_FAILED:
            await asyncio.sleep(0.02)
    assert judge.chats == AT_ONCE
    assert now.problem == "KEY_INVALID"
    assert now.problem_detail.startswith(f"the API key {key_id(key)} is revoked")
    assert now.owner == f"key:{key_id(key)}"


async def test_a_job_of_a_revoked_key_sends_no_call_after_a_restart(
    keys: Path, tmp_path: Path
) -> None:
    key, root = key_of(keys), create_key(keys, "root", scopes=[Scope.ADMIN])
    judge = HeldJudge()
    async with asyncio.timeout(PATIENCE), judge:
        async with serving(tmp_path, judge) as server:
            job = await created(server, key)
            await until(lambda: judge.chats == AT_ONCE)
        await asyncio.to_thread(revoke_key, keys, key_id(key))
        async with serving(tmp_path, judge) as server:
            while (now := (await all_jobs(server, root))[job.id]).state != STATE.JOB_STATE_FAILED:
                await asyncio.sleep(0.02)
    assert (judge.chats, now.problem) == (AT_ONCE, "KEY_INVALID")


async def unary(server: Server, key: str) -> None:
    await server.judge.Score(pb.ScoreRequest(spec=SPEC, items=items()), metadata=metadata(key))


async def stream(server: Server, key: str) -> None:
    async def requests() -> AsyncIterator[pb.ScoreStreamRequest]:
        yield pb.ScoreStreamRequest(spec=SPEC)
        yield pb.ScoreStreamRequest(batch=pb.ItemBatch(items=items()))

    async for _ in server.judge.ScoreStream(requests(), metadata=metadata(key)):
        pass


@pytest.mark.parametrize("call", [unary, stream])
async def test_a_call_of_a_revoked_key_sends_no_further_judge_call(
    keys: Path, tmp_path: Path, call: Callable[[Server, str], Any]
) -> None:
    key, judge = key_of(keys), HeldJudge()
    async with asyncio.timeout(PATIENCE), judge, serving(tmp_path, judge) as server:
        calling = asyncio.create_task(call(server, key))
        await until(lambda: judge.chats == AT_ONCE)
        await asyncio.to_thread(revoke_key, keys, key_id(key))
        await known_to(server, key, ended=True)
        judge.released.set()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await calling
    assert refused(caught.value) == (grpc.StatusCode.UNAUTHENTICATED, "KEY_INVALID")
    assert judge.chats == AT_ONCE


async def test_a_lowered_budget_holds_for_a_job_that_runs(keys: Path, tmp_path: Path) -> None:
    key, judge = key_of(keys, limits=Limits(judge_calls_per_day=ITEMS)), HeldJudge()
    other = key_of(keys, "ben")
    async with asyncio.timeout(PATIENCE), judge, serving(tmp_path, judge) as server:
        job = await created(server, key)
        await until(lambda: judge.chats == AT_ONCE)
        await asyncio.to_thread(
            edit_key, keys, key_id(key), limits={"judge_calls_per_day": AT_ONCE + 1}
        )
        # The file is read as a whole: with the other key's end the new limit is known.
        await asyncio.to_thread(revoke_key, keys, key_id(other))
        await known_to(server, other, ended=True)
        judge.released.set()
        watch = jobs_pb2.WatchJobRequest(job_id=job.id)
        seen = [one.job async for one in server.jobs.WatchJob(watch, metadata=metadata(key))]
    assert (seen[-1].state, seen[-1].scored) == (STATE.JOB_STATE_DONE, AT_ONCE + 1)
    assert seen[-1].unscored == ITEMS - AT_ONCE - 1
    assert judge.chats == AT_ONCE + 1


async def test_a_key_that_may_no_longer_ask_judges_sends_no_further_call(
    keys: Path, tmp_path: Path
) -> None:
    key, other, judge = key_of(keys), key_of(keys, "ben"), HeldJudge()
    async with asyncio.timeout(PATIENCE), judge, serving(tmp_path, judge) as server:
        calling = asyncio.create_task(unary(server, key))
        await until(lambda: judge.chats == AT_ONCE)
        await asyncio.to_thread(edit_key, keys, key_id(key), scopes=(Scope.SCORE,))
        await asyncio.to_thread(revoke_key, keys, key_id(other))
        await known_to(server, other, ended=True)
        judge.released.set()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await calling
    assert refused(caught.value) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")
    assert judge.chats == AT_ONCE


async def test_an_administrator_lists_and_cancels_the_jobs_of_all_keys(
    keys: Path, tmp_path: Path
) -> None:
    ana, ben = key_of(keys), key_of(keys, "ben")
    root, judge = create_key(keys, "root", scopes=[Scope.ADMIN]), HeldJudge()
    async with asyncio.timeout(PATIENCE), judge, serving(tmp_path, judge) as server:
        jobs = {name: await created(server, key) for name, key in (("ana", ana), ("ben", ben))}
        everyone = jobs_pb2.ListJobsRequest(all=True)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await server.jobs.ListJobs(everyone, metadata=metadata(ana))
        assert refused(caught.value) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")
        cancel = jobs_pb2.CancelJobRequest(job_id=jobs["ben"].id)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await server.jobs.CancelJob(cancel, metadata=metadata(ana))
        assert refused(caught.value) == (grpc.StatusCode.NOT_FOUND, "JOB_UNKNOWN")
        listed = await all_jobs(server, root)
        assert {job.owner for job in listed.values()} == {f"key:{key_id(k)}" for k in (ana, ben)}
        cancelled = (await server.jobs.CancelJob(cancel, metadata=metadata(root))).job
        assert cancelled.state == STATE.JOB_STATE_CANCELLED
        get = jobs_pb2.GetJobRequest(job_id=jobs["ana"].id)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await server.jobs.GetJob(get, metadata=metadata(root))
        assert refused(caught.value) == (grpc.StatusCode.NOT_FOUND, "JOB_UNKNOWN")
        judge.released.set()
