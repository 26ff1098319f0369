"""Keys that share one judge: each waits for its own budget, its own failures and no other's."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from support import scripted_llm as llm
from support.sizes import further, sized
from support.threads import PATIENCE, until

from hallujudge.judge.v1 import jobs_pb2, jobs_pb2_grpc
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key, revoke_key
from hallujudge.judge_service.access.spending import Ledger
from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.judge_factory import JudgeFactory
from hallujudge.judge_service.engine.resources import Resources
from hallujudge.judge_service.jobs.job_service import JobService
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings import from_names
from hallujudge.judge_service.settings.judge_settings import JudgeSettings
from hallujudge.judge_service.settings.server_settings import AccessSettings, ServerSettings
from hallujudge.judge_service.tenancy import Limits
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics import ChairItem, Item
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.tri_he import TriHeItem
from hallujudge.sdk import AsyncClient, Connection, ScoreSpec, Secret

SPEC = ScoreSpec(metric="tri-he", options={"judge": "llm", "extractor": "given"})
SCENE = (Triplet("man", "riding", "horse"),)
SCOPES = [Scope.SCORE, Scope.JUDGE]


def items_of(said: str, count: int, first: int = 0) -> list[TriHeItem]:
    """Return items of one claim each; the same words make the same calls."""
    return [
        TriHeItem(id=str(n), claims=(Triplet("man", said, f"horse {n}"),), reference_triplets=SCENE)
        for n in range(first, first + count)
    ]


@asynccontextmanager
async def serving(
    folder: Path, judge: llm.ScriptedLlm, places: int = 64, **settings: Any
) -> AsyncIterator[RunningServer]:
    """Run a server with keys, jobs and an LLM judge, as ``serve`` builds it."""
    async with serving_judge(folder, judge, places, **settings) as (server, _):
        yield server


@asynccontextmanager
async def serving_judge(
    folder: Path, judge: llm.ScriptedLlm, places: int, cache: str = "", **settings: Any
) -> AsyncIterator[tuple[RunningServer, JudgeFactory]]:
    """Run the same server with the factory of its judge, whose calls have so many places."""
    ledger = Ledger(folder / "spending.sqlite")
    judges = from_names(
        JudgeSettings,
        {
            "llm.url": judge.url,
            "llm.model": "tiny",
            "llm.max_concurrency": places,
            "verdict_cache": cache,
            **settings,
        },
    )
    factory = JudgeFactory(judges, ledger=ledger)
    engine = Engine(Resources(lambda: factory))
    jobs = JobService(str(folder / "jobs.sqlite"), engine)
    served = ServerSettings(port=0, access=AccessSettings(keys_file=str(folder / "keys.json")))
    server = await start(served, engine, jobs)
    try:
        yield server, factory
    finally:
        await server.stop(0)
        await factory.close()
        ledger.close()


def key_of(folder: Path, name: str, **limits: int) -> str:
    return create_key(folder / "keys.json", name, scopes=SCOPES, limits=Limits(**limits))


async def reasons(server: RunningServer, key: str, items: list[TriHeItem]) -> list[str]:
    """Stream items and return the reason for no score of each, empty for those scored."""
    found: list[str] = []
    async with AsyncClient(server.address, connection=Connection(api_key=Secret(key))) as client:
        await client.score_items(
            SPEC, items, on_batch=lambda batch: found.extend(one.reason for one in batch.results)
        )
    return found


async def unary_reason(server: RunningServer, key: str, item: TriHeItem) -> str:
    (reason,) = await reasons(server, key, [item])
    return reason


async def watched_job(
    server: RunningServer,
    key: str,
    items: Sequence[Item],
    until: Callable[[jobs_pb2.Job], bool] = lambda _job: False,
    *,
    spec: ScoreSpec = SPEC,
    request_id: str = "r",
) -> jobs_pb2.Job:
    """Create a job, or find it again, and watch it to its end or until a condition holds."""
    metadata = (("authorization", f"Bearer {key}"),)
    async with grpc.aio.insecure_channel(server.address) as channel:
        stub = jobs_pb2_grpc.ScoringJobServiceStub(channel)
        request = jobs_pb2.CreateJobRequest(
            spec=spec_to_proto(spec), items=map(item_to_proto, items), request_id=request_id
        )
        job = (await stub.CreateJob(request, metadata=metadata)).job
        watch = jobs_pb2.WatchJobRequest(job_id=job.id)
        async for response in stub.WatchJob(watch, metadata=metadata):
            job = response.job
            if until(job):
                break
    return job


async def test_a_key_without_budget_takes_no_verdict_from_a_key_that_pays(tmp_path: Path) -> None:
    poor, rich = key_of(tmp_path, "poor", judge_calls_per_day=1), key_of(tmp_path, "rich")
    count = sized(60, 200)
    items = items_of("riding", count)
    async with llm.ScriptedLlm(llm.by_scene_graph) as judge, serving(tmp_path, judge) as server:
        _, paid = await asyncio.gather(reasons(server, poor, items), reasons(server, rich, items))
        assert paid == [""] * count
        pairs = await asyncio.gather(
            *(
                unary_reason(server, key, one)
                for one in items_of("near", 20)
                for key in (poor, rich)
            )
        )
        assert pairs[1::2] == [""] * 20
        assert judge.chats == count + 20, "no call is paid twice"


@pytest.mark.parametrize("kind", ["job", "stream"])
async def test_rejections_after_an_answer_are_waited_for(tmp_path: Path, kind: str) -> None:
    """One 404, a reply of another model, and 401s while the judge's key is exchanged."""
    odd = {
        10: llm.error(404, "no route"),
        20: llm.completion("supported", model="another"),
        **dict.fromkeys(range(30, 39), llm.error(401, "key is being exchanged")),
    }

    def step(number: int, body: llm.Body) -> llm.Reply:
        return odd.get(number) or llm.by_scene_graph(number, body)

    key, items = key_of(tmp_path, "ana"), items_of("riding", 60)
    async with llm.ScriptedLlm(step) as judge, serving(tmp_path, judge) as server:
        if kind == "job":
            job = await watched_job(server, key, items)
            assert job.state == jobs_pb2.JobState.JOB_STATE_DONE, job
            assert (job.scored, job.unscored) == (60, 0)
        else:
            assert await reasons(server, key, items) == [""] * 60
        assert judge.chats == 60 + len(odd)


@pytest.mark.parametrize("kind", ["job", "stream"])
async def test_what_a_proxy_sends_while_the_judge_restarts_is_waited_for(
    tmp_path: Path, kind: str
) -> None:
    """A redirect to another page, or a page that is there for browsers only."""
    # Eight failures open the circuit. On a busy machine, probes find the others one by one.
    restarting = dict(zip(range(10, 20), itertools.cycle((204, 302, 405, 410)), strict=False))

    def step(number: int, body: llm.Body) -> llm.Reply:
        if not (status := restarting.get(number)):
            return llm.by_scene_graph(number, body)
        return llm.Reply(status, b"" if status == 204 else b"<html>restarting</html>")

    key, items = key_of(tmp_path, "ana"), items_of("riding", 60)
    async with llm.ScriptedLlm(step) as judge, serving(tmp_path, judge) as server:
        if kind == "job":
            job = await watched_job(server, key, items)
            assert (job.scored, job.unscored) == (60, 0)
        else:
            assert await reasons(server, key, items) == [""] * 60
        assert judge.chats == 60 + len(restarting)


@pytest.mark.parametrize("kind", ["job", "stream"])
async def test_refused_prompts_cost_their_own_claims_only(tmp_path: Path, kind: str) -> None:
    """Every third prompt of one key gets 403, the first one of all included."""

    def step(number: int, body: llm.Body) -> llm.Reply:
        if llm.is_own_question(body):
            return llm.completion("yes")
        _, said, thing = llm.claims_of(body)[0][-3:]
        odd = said == "riding" and int(thing.split()[-1]) % 3 == 0
        return llm.error(403, "not this one") if odd else llm.by_scene_graph(number, body)

    ana, ben = key_of(tmp_path, "ana"), key_of(tmp_path, "ben")
    async with llm.ScriptedLlm(step) as judge, serving(tmp_path, judge) as server:
        others = asyncio.ensure_future(reasons(server, ben, items_of("near", 60)))
        if kind == "job":
            job = await watched_job(server, ana, items_of("riding", 60))
            assert job.state == jobs_pb2.JobState.JOB_STATE_DONE, job
            assert (job.scored, job.unscored) == (40, 20)
        else:
            found = await reasons(server, ana, items_of("riding", 60))
            assert found == ["NO_VERDICTS", "", ""] * 20
        assert await others == [""] * 60
        own = sum(map(llm.is_own_question, judge.requests))
        assert judge.chats - own == 120


RESTARTED = "test_a_job_with_scores_waits_for_the_judge_after_a_restart"
EARLIER = "test_a_judge_that_answered_an_earlier_server_is_waited_for"


@pytest.mark.parametrize(
    ("status", "problem", "cache"),
    [
        # A judge refuses prompts with 403 as well; the cache says that it answered before.
        (403, "JUDGE_NO_PROGRESS", "verdicts.sqlite"),
        (404, "JUDGE_MODEL_UNKNOWN", ""),
        further(RESTARTED, 401, "JUDGE_AUTH_FAILED", ""),
    ],
)
async def test_a_job_with_scores_waits_for_the_judge_after_a_restart(
    tmp_path: Path, status: int, problem: str, cache: str
) -> None:
    replies, stopped = {"now": "answer"}, asyncio.Event()

    def step(number: int, body: llm.Body) -> llm.Reply:
        if replies["now"] == "reject":
            return llm.error(status, "key is being exchanged")
        # The first chunk of 64 items is answered before the server stops.
        held = replies["now"] == "answer" and int(llm.claims_of(body)[0][-1].split()[-1]) >= 64
        return replace(llm.by_scene_graph(number, body), hold=stopped if held else None)

    key, items = key_of(tmp_path, "ana"), items_of("riding", 84)
    cache = cache and str(tmp_path / cache)
    async with llm.ScriptedLlm(step) as judge:
        async with serving(tmp_path, judge, cache=cache) as server:
            await watched_job(server, key, items, lambda job: job.scored > 0)
        replies["now"] = "reject"
        stopped.set()
        async with serving(tmp_path, judge, cache=cache, give_up_after=1.0) as server:
            job = await watched_job(server, key, items, lambda job: bool(job.problem))
            assert (job.state, job.problem) == (
                jobs_pb2.JobState.JOB_STATE_QUEUED, problem
            )  # fmt: skip
            assert "key is being exchanged" in job.problem_detail
        replies["now"] = "well"
        async with serving(tmp_path, judge, cache=cache) as server:
            job = await watched_job(server, key, items)
    assert (job.state, job.scored) == (jobs_pb2.JobState.JOB_STATE_DONE, 84)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (403, "job"),
        (401, "stream"),
        *(further(EARLIER, status, "job") for status in (401, 404)),
        *(further(EARLIER, status, "stream") for status in (403, 404)),
    ],
)
async def test_a_judge_that_answered_an_earlier_server_is_waited_for(
    tmp_path: Path, kind: str, status: int
) -> None:
    rejected: list[int] = []

    def step(number: int, body: llm.Body) -> llm.Reply:
        if number == 1 or len(rejected) >= 3:
            return llm.by_scene_graph(number, body)
        rejected.append(number)
        return llm.error(status, "key is being exchanged")

    key, cache = key_of(tmp_path, "ana"), str(tmp_path / "verdicts.sqlite")
    async with llm.ScriptedLlm(step) as judge:
        async with serving(tmp_path, judge, cache=cache) as server:
            assert await unary_reason(server, key, items_of("near", 1)[0]) == ""
        async with serving(tmp_path, judge, cache=cache) as server:
            if kind == "job":
                job = await watched_job(server, key, items_of("riding", 20))
                assert (job.scored, job.unscored, job.problem) == (20, 0, "")
            else:
                assert await reasons(server, key, items_of("riding", 20)) == [""] * 20
    assert len(rejected) == 3


async def test_a_prompt_that_is_refused_first_after_a_restart_fails_alone(tmp_path: Path) -> None:
    def step(number: int, body: llm.Body) -> llm.Reply:
        odd = llm.claims_of(body)[0][-1] == "horse 0"
        return llm.error(403, "not this one") if odd else llm.by_scene_graph(number, body)

    key, cache = key_of(tmp_path, "ana"), str(tmp_path / "verdicts.sqlite")
    async with llm.ScriptedLlm(step) as judge:
        async with serving(tmp_path, judge, cache=cache) as server:
            assert await unary_reason(server, key, items_of("near", 2)[1]) == ""
        async with serving(tmp_path, judge, cache=cache) as server:
            assert await reasons(server, key, items_of("riding", 20)) == ["NO_VERDICTS"] + 19 * [""]


async def status_of_ending(
    server: RunningServer, key: str, item: TriHeItem, *, deadline: float | None
) -> str:
    """Stream an item, then more messages; return the status that ends the call."""
    return await asyncio.to_thread(_status_of_ending, server.address, key, item, deadline)


# In a thread: with gRPC's asyncio, a message that is written into a call at the moment of its end
# replaces the status that the server has sent by INTERNAL.
def _status_of_ending(address: str, key: str, item: TriHeItem, deadline: float | None) -> str:
    replies: SimpleQueue[bool] = SimpleQueue()

    def requests() -> Iterator[pb.ScoreStreamRequest]:
        yield pb.ScoreStreamRequest(spec=spec_to_proto(SPEC))
        yield pb.ScoreStreamRequest(batch=pb.ItemBatch(items=[item_to_proto(item)]))
        while replies.get():  # the server looks at the file of keys once a second
            yield pb.ScoreStreamRequest(batch=pb.ItemBatch())

    with grpc.insecure_channel(address) as channel:
        call = pb_grpc.JudgeServiceStub(channel).ScoreStream(
            requests(),
            metadata=(("authorization", f"Bearer {key}"),),
            timeout=deadline or PATIENCE,
        )
        try:
            for _ in call:
                replies.put(True)
        except grpc.RpcError:
            return str(call.code().name)
        finally:
            replies.put(False)
    raise AssertionError("the call ended without an error")


@pytest.mark.parametrize(
    ("ends", "sent"),
    [("DEADLINE_EXCEEDED", False), ("DEADLINE_EXCEEDED", True), ("UNAUTHENTICATED", True)],
)
async def test_the_next_key_has_the_verdict_when_the_call_of_the_first_one_ends(
    tmp_path: Path, ends: str, sent: bool
) -> None:
    """The next one sends and pays what was not sent; what was sent, the first one has paid."""
    hold = asyncio.Event()
    first_key, busy_key, next_key = (key_of(tmp_path, name) for name in ("first", "busy", "next"))

    def step(number: int, body: llm.Body) -> llm.Reply:
        return replace(llm.by_scene_graph(number, body), hold=hold)

    (busy,), (shared,) = items_of("near", 1), items_of("riding", 1)
    async with (
        llm.ScriptedLlm(step) as judge,
        serving_judge(tmp_path, judge, 2 if sent else 1) as (server, factory),
    ):
        others = [asyncio.ensure_future(unary_reason(server, busy_key, busy))]
        await until(lambda: judge.chats == 1)
        # A busy machine needs a moment to send the first call.
        deadline = (3 if sent else 1) if ends == "DEADLINE_EXCEEDED" else None
        first = asyncio.ensure_future(
            status_of_ending(server, first_key, shared, deadline=deadline)
        )
        if sent:
            await until(lambda: judge.chats == 2)
        others.append(asyncio.ensure_future(unary_reason(server, next_key, shared)))
        if deadline:
            await first
        else:
            revoke_key(tmp_path / "keys.json", first_key[3:11])
        if not sent:  # the client ends its call a moment before the server does
            await until(lambda: factory.states()[0].waiting == 1)
        hold.set()
        assert await first == ends
        assert await asyncio.gather(*others) == ["", ""]
    assert judge.chats == 2, "no call is paid twice"
    ledger = Ledger(tmp_path / "spending.sqlite")
    paid = [ledger.spent(key[3:11]).calls for key in (first_key, next_key)]
    ledger.close()
    assert paid == ([1, 0] if sent else [0, 1])


async def test_six_slow_jobs_of_a_key_hold_back_no_job_of_another(tmp_path: Path) -> None:
    """Their judge never answers, and the other key's jobs end, with a judge and without."""
    released, count = asyncio.Event(), 70

    def step(number: int, body: llm.Body) -> llm.Reply:
        held = "riding" in llm.claims_of(body)[0]
        return replace(llm.by_scene_graph(number, body), hold=released if held else None)

    ana, ben = key_of(tmp_path, "ana"), key_of(tmp_path, "ben")
    caption = ChairItem(id="1", response="A dog.", reference_objects=("dog",))
    async with (
        llm.ScriptedLlm(step) as judge,
        serving(tmp_path, judge, 1000) as server,
    ):
        slow = [
            asyncio.create_task(
                watched_job(server, ana, items_of("riding", count, first), request_id=str(first))
            )
            for first in range(0, 6 * count, count)
        ]
        await until(lambda: judge.in_flight >= 4 * 64)
        async with asyncio.timeout(PATIENCE):
            quick = [
                await watched_job(server, ben, [caption], spec=ScoreSpec(metric="chair")),
                await watched_job(server, ben, items_of("near", count), request_id="judged"),
                # Jobs that need no judge have places of their own.
                await watched_job(
                    server, ana, [caption], spec=ScoreSpec(metric="chair"), request_id="own"
                ),
            ]
        assert [(job.state, job.scored) for job in quick] == [
            (jobs_pb2.JobState.JOB_STATE_DONE, scored) for scored in (1, count, 1)
        ]
        assert not any(task.done() for task in slow)
        released.set()
        done = await asyncio.gather(*slow)
        assert [job.scored for job in done] == [count] * 6
        assert judge.chats == 7 * count, "no call is paid twice"
