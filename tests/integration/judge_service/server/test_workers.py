"""Worker processes: what they return, and what follows their death."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence, Set
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from msgspec import structs
from support.dying_worker import dying_python
from support.messages import expected_message
from support.rpc import refused
from support.threads import PATIENCE, until
from support.worker_tasks import (
    batch,
    captions,
    in_process,
    score_request,
    stream_in_process,
    worker_settings,
)

from hallujudge.judge.v1 import chair_pb2, scoring_pb2
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.access import CallMemory
from hallujudge.judge_service.engine import Engine, InlineGraph, ScoreSpec, ScoringSession
from hallujudge.judge_service.engine.session import extract
from hallujudge.judge_service.errors import InternalError, InvalidInputError, OverloadedError
from hallujudge.judge_service.flights import FlightLog, Flights
from hallujudge.judge_service.server.jobs_servicer import WorkersOfJob
from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.server.worker_tasks import Task
from hallujudge.judge_service.server.workers import Workers
from hallujudge.judge_service.settings.server_settings import ServerSettings
from hallujudge.judge_service.tenancy import MemoryBudget
from hallujudge.judge_service.wire.convert import (
    item_to_proto,
    report_bytes,
    report_of,
    result_bytes,
    result_of,
    spec_to_proto,
)
from hallujudge.metrics import ChairItem

pytestmark = pytest.mark.asyncio(loop_scope="module")

SPEC = ScoreSpec(metric="chair")
REQUEST = score_request(SPEC, captions(100))
TASK = Task(kind="score", parts=(REQUEST.SerializeToString(),))


class NoEngine(Engine):
    """An engine that scores nothing: workers have to."""

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        raise AssertionError("this process scores")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[Workers]:
    async with running(Workers(2, worker_settings())) as made:
        yield made


@asynccontextmanager
async def running(pool: Workers) -> AsyncIterator[Workers]:
    pool.processes.start()
    try:
        yield pool
    finally:
        await pool.processes.close()


async def idle_worker(pool: Workers) -> int:
    """Let the pool start a worker; return its process."""
    await pool.run(TASK)
    return pool.processes.idle[-1]


def parsed(raw: bytes) -> pb.ScoreResponse:
    return pb.ScoreResponse.FromString(raw)


async def test_a_server_with_workers_responds_as_one_without(pool: Workers) -> None:
    server = await start(ServerSettings(port=0), NoEngine(), workers=pool)
    spec = ScoreSpec(metric="chair", group_by=("split",))
    batches = [batch(captions(20)), batch(captions(20, first=20))]

    async def requests() -> AsyncIterator[pb.ScoreStreamRequest]:
        yield pb.ScoreStreamRequest(spec=spec_to_proto(spec))
        for one in batches:
            yield one

    async with grpc.aio.insecure_channel(server.address) as channel:
        stub = pb_grpc.JudgeServiceStub(channel)
        assert await stub.Score(REQUEST, timeout=PATIENCE) == await in_process(REQUEST)
        responses = [one async for one in stub.ScoreStream(requests(), timeout=PATIENCE)]
        assert responses == await stream_in_process(spec, batches)
        texts = [f"A dog on sofa {number}." for number in range(200)]
        request = pb.ExtractRequest(spec=spec_to_proto(SPEC), texts=texts)
        found = await stub.Extract(request, timeout=PATIENCE)
        expected = await extract(SPEC, texts, Engine().resources)
        assert [len(one.claims) for one in found.texts] == list(map(len, expected))
    await server.stop(0)


async def test_errors_of_workers_are_those_of_a_server_without(pool: Workers) -> None:
    graph = InlineGraph(name="mine", text="{" + " " * 5_000)
    broken = [
        score_request(SPEC, captions(60) * 2),
        score_request(ScoreSpec(metric="chair", graphs={"objects": graph}), captions(1)),
        score_request(ScoreSpec(metric="chair", variant="x" * 50), captions(100)),
    ]
    with_workers = await start(ServerSettings(port=0), NoEngine(), workers=pool)
    without = await start(ServerSettings(port=0))
    for request in broken:
        failures = []
        for server in (with_workers, without):
            async with grpc.aio.insecure_channel(server.address) as channel:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await pb_grpc.JudgeServiceStub(channel).Score(request, timeout=PATIENCE)
            failures.append((*refused(caught.value), caught.value.details()))
        assert failures[0] == failures[1]
    await with_workers.stop(0)
    await without.stop(0)


async def test_equal_ids_in_two_messages_of_a_stream_are_refused(pool: Workers) -> None:
    batches = [batch(captions(5)), batch(captions(5, first=5)), batch(captions(2, first=3))]

    async def requests(count: int) -> AsyncIterator[pb.ScoreStreamRequest]:
        yield pb.ScoreStreamRequest(spec=spec_to_proto(SPEC))
        for one in batches[:count]:
            yield one

    failures = []
    for workers in (pool, None):
        server = await start(ServerSettings(port=0), workers=workers)
        async with grpc.aio.insecure_channel(server.address) as channel:
            stub: Any = pb_grpc.JudgeServiceStub(channel)
            call = stub.ScoreStream(requests(3), timeout=PATIENCE)
            read = [await call.read() for _ in range(3)]
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call.read()
            scored = sum(len(response.batch.results) for response in read)
            failures.append((*refused(caught.value), caught.value.details(), scored))
            # What is sent again in a new stream is no repetition.
            again = [one async for one in stub.ScoreStream(requests(2), timeout=PATIENCE)]
            assert again[-1].report.coverage.items == 10
        await server.stop(0)
    assert failures[0] == failures[1]
    code, reason, words, scored = failures[0]
    assert (code, reason, scored) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT", 10)
    assert str(words).startswith("items[10].id: '3'")


async def test_the_task_of_a_killed_worker_is_done_again(pool: Workers) -> None:
    worker = await idle_worker(pool)
    os.kill(worker, signal.SIGSTOP)
    work = asyncio.ensure_future(pool.run(TASK))
    await until(lambda: pool.processes.busy == (worker,))
    os.kill(worker, signal.SIGKILL)
    reply = await work
    assert parsed(reply.parts[0]) == await in_process(REQUEST)
    assert worker not in pool.processes.idle
    assert pool.state.deaths > 0


async def test_a_worker_that_died_while_idle_is_replaced(pool: Workers) -> None:
    worker = await idle_worker(pool)
    os.kill(worker, signal.SIGKILL)
    assert (await pool.run(TASK)).outcomes == {"": 100}


async def test_a_task_that_kills_two_workers_is_refused(pool: Workers) -> None:
    await asyncio.gather(pool.run(TASK), pool.run(TASK))
    workers = set(pool.processes.idle)
    assert len(workers) == 2
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    work = asyncio.ensure_future(pool.run(TASK))
    for _ in range(2):
        await until(lambda: bool(workers.intersection(pool.processes.busy)))
        [worker] = workers.intersection(pool.processes.busy)
        workers.remove(worker)
        os.kill(worker, signal.SIGKILL)
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.server.workers:worker-processes-ended-or-hung"),
    ) as caught:
        await work
    assert caught.value.reason == "TOO_COSTLY"
    assert (await pool.run(TASK)).outcomes == {"": 100}


@pytest.fixture
def dying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workers:
    """A pool whose workers end when they score a certain item."""
    monkeypatch.setattr(sys, "executable", dying_python(tmp_path))
    return Workers(2, worker_settings())


FATAL = ChairItem(
    id="fatal", fields={"split": "0"}, response="A cat.", reference_objects=("couch", "dog")
)


async def test_an_item_of_a_stream_that_ends_its_workers_is_unscored(dying: Workers) -> None:
    spec = ScoreSpec(metric="chair", group_by=("split",))
    first, second = captions(3), captions(3, first=3)
    batches = [batch([*first, FATAL]), batch(second), batch([structs.replace(FATAL, id="1")])]

    async def requests(count: int) -> AsyncIterator[pb.ScoreStreamRequest]:
        yield pb.ScoreStreamRequest(spec=spec_to_proto(spec))
        for one in batches[:count]:
            yield one

    async with running(dying) as pool:
        server = await start(ServerSettings(port=0), NoEngine(), workers=pool)
        async with grpc.aio.insecure_channel(server.address) as channel:
            stub: Any = pb_grpc.JudgeServiceStub(channel)
            responses = [one async for one in stub.ScoreStream(requests(2), timeout=PATIENCE)]
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                async for _ in stub.ScoreStream(requests(3), timeout=PATIENCE):
                    pass
        await server.stop(0)
        assert pool.state.deaths >= 4  # with the others, and alone, twice each
    assert str(caught.value.details()).startswith("items[7].id: '1'")
    results = [result for one in responses for result in one.batch.results]
    expected = await stream_in_process(spec, [batch([*first, *second])])
    scored = [result for one in expected for result in one.batch.results]
    assert results[:3] + results[4:] == scored
    assert (results[3].id, results[3].reason) == ("fatal", "PROCESS_DIED")
    coverage = responses[-1].report.coverage
    assert (coverage.items, coverage.scored, coverage.unscored) == (7, 6, 1)


def flights_of(contents: Sequence[bytes]) -> Flights:
    """Return items that are written down nowhere."""

    async def write(_added: Set[int], _left: Set[int]) -> None:
        return

    return Flights(FlightLog(write), range(len(contents)))


async def test_an_item_of_a_job_that_ends_its_workers_is_unscored(dying: Workers) -> None:
    async with running(dying) as pool:
        work = WorkersOfJob(pool, spec_to_proto(SPEC).SerializeToString(), SPEC.metric)
        for items, reasons in (
            ([*captions(2), FATAL, *captions(1, first=2)], ["", "", "PROCESS_DIED", ""]),
            ([FATAL], ["PROCESS_DIED"]),
        ):
            contents = [item_to_proto(item).SerializeToString() for item in items]
            scored = await work.score(contents, flights_of(contents))
            assert list(scored.reasons) == reasons
            assert [result_of(one).id for one in scored.results] == [one.id for one in items]
            await work.add(scored.share)
        coverage = report_of(await work.report()).coverage
    assert (coverage.items, coverage.scored) == (5, 3)


async def test_a_task_that_takes_too_long_is_refused_and_the_next_one_done() -> None:
    large = score_request(SPEC, captions(5_000)).SerializeToString()
    async with running(Workers(1, worker_settings(max_work_seconds=0.05))) as pool:
        with pytest.raises(InvalidInputError, match="of processor time"):
            await pool.run(Task(kind="score", parts=(large,)))
        small = score_request(SPEC, captions(1))
        reply = await pool.run(Task(kind="score", parts=(small.SerializeToString(),)))
        assert parsed(reply.parts[0]) == await in_process(small)


async def test_a_worker_that_hangs_is_ended() -> None:
    large = score_request(SPEC, captions(5_000)).SerializeToString()
    async with running(Workers(1, worker_settings(), reply_seconds=0.001)) as pool:
        with pytest.raises(InvalidInputError, match="ended or hung"):
            await pool.run(Task(kind="score", parts=(large,)))
        assert not pool.processes.busy
        assert pool.state.deaths == 2


async def test_a_worker_that_does_not_start_in_time_holds_no_call() -> None:
    settings = worker_settings()
    async with running(Workers(1, settings, start_seconds=0.001, retry_seconds=60)) as pool:
        reply = await pool.run(TASK)
        assert parsed(reply.parts[0]) == await in_process(REQUEST)
        assert not pool.processes.idle


async def test_the_log_has_the_defects_of_workers(capfd: pytest.CaptureFixture[str]) -> None:
    async with running(Workers(1, worker_settings())) as pool:
        with pytest.raises(InternalError) as caught:
            await pool.run(Task(kind="no such kind", parts=()))
        logged: list[str] = []

        def is_logged() -> bool:
            logged.append(capfd.readouterr().err)
            return caught.value.metadata["error_id"] in "".join(logged)

        await until(is_logged)


async def test_workers_whose_log_is_not_read_work_on_and_end() -> None:
    """Workers have the server's standard error, here a pipe that is full."""
    ends, own = os.pipe(), os.dup(2)
    os.set_blocking(ends[1], False)
    with suppress(BlockingIOError):
        while True:
            os.write(ends[1], b"." * 4096)
    os.set_blocking(ends[1], True)
    pool = Workers(1, worker_settings())
    os.dup2(ends[1], 2)
    try:
        pool.processes.start()
    finally:
        os.dup2(own, 2)
    async with asyncio.timeout(PATIENCE):
        for _ in range(100):
            with pytest.raises(InternalError):
                await pool.run(Task(kind="no such kind", parts=()))
        assert (await pool.run(TASK)).parts
        await pool.processes.close()
    for end in (*ends, own):
        os.close(end)


async def test_where_no_worker_starts_the_server_scores_until_one_does(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    async with running(Workers(1, worker_settings(), retry_seconds=0.01)) as pool:
        expected = await in_process(REQUEST)
        for _ in range(2):
            assert parsed((await pool.run(TASK)).parts[0]) == expected
        broken = Task(kind="score", parts=(b"\xff",))
        with pytest.raises(InvalidInputError):
            await pool.run(broken)
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert (
            expected_message("judge_service.process_pool:no-worker-process-starts") in caplog.text
        )
        monkeypatch.undo()
        await until(lambda: bool(pool.processes.idle))
        [worker] = pool.processes.idle
        await pool.run(TASK)
        assert pool.processes.idle == (worker,)


async def test_the_worker_of_a_call_that_ended_gets_free(pool: Workers) -> None:
    worker = await idle_worker(pool)
    os.kill(worker, signal.SIGSTOP)
    work = asyncio.ensure_future(pool.run(TASK))
    await until(lambda: pool.processes.busy == (worker,))
    work.cancel()
    await until(lambda: not pool.processes.busy)
    assert (await pool.run(TASK)).outcomes == {"": 100}


async def test_a_server_with_a_busy_worker_ends() -> None:
    pool = Workers(1, worker_settings())
    pool.processes.start()
    server = await start(ServerSettings(port=0), NoEngine(), workers=pool)
    worker = await idle_worker(pool)
    os.kill(worker, signal.SIGSTOP)
    async with grpc.aio.insecure_channel(server.address) as channel:
        call = pb_grpc.JudgeServiceStub(channel).Score(REQUEST, timeout=PATIENCE)
        call.add_done_callback(lambda _: None)
        await until(lambda: pool.processes.busy == (worker,))
        async with asyncio.timeout(PATIENCE):
            await server.stop(0.1)
            await pool.processes.close()
        with pytest.raises(grpc.aio.AioRpcError):
            await call


async def test_workers_score_items_of_jobs(pool: Workers) -> None:
    items = [*captions(3), ChairItem(id="x", response=None, reference_objects=())]
    contents = [item_to_proto(item).SerializeToString() for item in items]
    work = WorkersOfJob(pool, spec_to_proto(SPEC).SerializeToString(), SPEC.metric)
    scored = await work.score(contents, flights_of(contents))
    session = await Engine().open(SPEC)
    expected = await session.evaluate(items)
    assert list(scored.reasons) == [result.reason for result in expected]
    assert [result_of(content) for content in scored.results] == [
        result_of(result_bytes(result)) for result in expected
    ]
    await work.add(scored.share)
    session.add(expected)
    report = report_bytes(session.report())
    assert report_of(await work.report()) == report_of(report)


async def test_workers_make_the_report_of_a_job(pool: Workers) -> None:
    session = await Engine().open(SPEC)
    results = await session.evaluate(captions(7))
    session.add(results)
    work = WorkersOfJob(pool, spec_to_proto(SPEC).SerializeToString(), SPEC.metric)
    for at in (0, 4):
        kept = [result_bytes(result) for result in results[at : at + 4]]
        await work.add(await work.share_of(kept))
    report = await work.report()
    assert report_of(report) == report_of(report_bytes(session.report()))


async def test_a_dense_message_takes_the_memory_that_it_needs(pool: Workers) -> None:
    # Two bytes for each field, and above the size from which fields are counted.
    many = scoring_pb2.StringList(values=[""] * 40_000)
    item = pb.Item(id="1", chair=chair_pb2.ChairTask(reference_objects=many))
    raw = pb.ScoreRequest(spec=spec_to_proto(SPEC), items=[item]).SerializeToString()
    budget = MemoryBudget()
    memory = CallMemory(budget)
    memory.take(len(raw))
    await pool.run(Task(kind="score", parts=(raw,), memory=8 * len(raw)), memory)
    assert budget.held > 100 * 40_000
    full = CallMemory(MemoryBudget(1_000_000))
    full.take(len(raw))
    with pytest.raises(OverloadedError, match="memory budget"):
        await pool.run(Task(kind="score", parts=(raw,), memory=8 * len(raw)), full)


async def test_bytes_with_two_specs_load_no_model_in_a_worker(pool: Workers) -> None:
    other = scoring_pb2.ScoreSpec(metric="tri-he")
    raw = REQUEST.SerializeToString() + pb.ScoreRequest(spec=other).SerializeToString()
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.server.worker_tasks:more-than-one-spec"),
    ):
        await pool.run(Task(kind="score", parts=(raw,)))
