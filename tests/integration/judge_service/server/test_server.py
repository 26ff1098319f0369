"""A server in this process: admission, deadlines, errors and early ends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from support.messages import expected_message
from support.rpc import health_stub, refused
from support.threads import PATIENCE, until

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.engine import Engine, ScoreSpec, ScoringSession
from hallujudge.judge_service.engine.streams import RunProgress
from hallujudge.judge_service.errors import (
    DeadlineError,
    HallujudgeError,
    InternalError,
    InvalidInputError,
    NotFoundError,
    OverloadedError,
    UnsupportedError,
    VersionMismatchError,
)
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings import from_names
from hallujudge.judge_service.settings.loading import names_of
from hallujudge.judge_service.settings.server_settings import ServerSettings
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics import ChairItem, Item, ItemResult
from hallujudge.sdk import AsyncClient, ScoreRun, Timeouts
from hallujudge.sdk.backends import remote
from hallujudge.sdk.backends.recovery import ProgressWatch
from hallujudge.sdk.runs.run_inputs import PreparedRun


class GatedEngine(Engine):
    """An engine whose sessions score once the test lets them, or fail."""

    def __init__(self, *, let: bool = False, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error
        self.waiting = ""
        self.cancelled = 0
        self.scored: list[str] = []
        self.begun, self.may_score = asyncio.Event(), asyncio.Event()
        if let or error is not None:
            self.may_score.set()

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        session = await super().open(spec)
        inner = session.score

        async def score(items: Sequence[Item]) -> list[ItemResult]:
            self.begun.set()
            try:
                await self.may_score.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            if self.error is not None:
                raise self.error
            self.scored += [item.id for item in items]
            return await inner(items)

        session.score = score  # type: ignore[method-assign]  # the point of the stand-in
        if self.waiting:
            told = RunProgress(answers=7, waiting=self.waiting)
            session.progress = lambda: told  # type: ignore[method-assign]  # the same
        return session


async def running(engine: Engine, **settings: object) -> RunningServer:
    return await start(from_names(ServerSettings, {"port": 0, **names_of(settings)}), engine)


RESPONSES = {"1": "A dog and a cat."}


REFERENCES = {"1": ["dog"]}


SPEC = spec_to_proto(ScoreSpec(metric="chair"))


async def test_a_full_server_gives_a_time_to_retry_after() -> None:
    engine = GatedEngine()
    server = await running(engine, max_running_calls=1, max_waiting_calls=0)
    try:
        async with AsyncClient(server.address) as busy, AsyncClient(server.address) as other:
            await busy.server_info()
            work = asyncio.ensure_future(
                busy.score("chair", responses=RESPONSES, references=REFERENCES)
            )
            await engine.begun.wait()
            async with grpc.aio.insecure_channel(
                server.address, options=[("grpc.enable_retries", 0)]
            ) as channel:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await pb_grpc.JudgeServiceStub(channel).Score(
                        pb.ScoreRequest(spec=SPEC), timeout=PATIENCE
                    )
                assert refused(caught.value) == (
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    "SERVER_OVERLOADED",
                )
                # Old releases of grpcio have keys() that are pairs.
                trailers = dict(list(caught.value.trailing_metadata()))
                assert trailers["grpc-retry-pushback-ms"] == "500"
                # Health and the server's own description answer whatever the load.
                assert (await other.server_info()).version
                health = health_stub(channel)
                answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
            # The SDK heeds the pushback: it asks again, and gets through once there is room.
            again = asyncio.ensure_future(other.extract("chair", ["A dog."]))
            await asyncio.sleep(0)
            assert not work.done()
            engine.may_score.set()
            assert (await work).chair_i == 0.5
            assert await again
    finally:
        await server.stop(0)


async def test_a_server_that_stays_full_is_an_overloaded_error() -> None:
    engine = GatedEngine()
    server = await running(engine, max_running_calls=1, max_waiting_calls=0)
    try:
        impatient = Timeouts(reconnect_timeout=0)
        async with (
            AsyncClient(server.address) as busy,
            AsyncClient(server.address, timeouts=impatient) as other,
        ):
            await busy.server_info()
            work = asyncio.ensure_future(
                busy.score("chair", responses=RESPONSES, references=REFERENCES)
            )
            await engine.begun.wait()
            with pytest.raises(OverloadedError) as caught:
                await other.extract("chair", ["A dog."])
            assert caught.value.retry_after == 0.5
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
    finally:
        await server.stop(0)


async def test_a_deadline_reaches_the_work() -> None:
    engine = GatedEngine()
    server = await running(engine)
    try:
        # A busy machine may pass a short deadline before the work begins.
        for seconds in (0.5, 5, 50):
            timeouts = Timeouts(stream_timeout=seconds)
            async with AsyncClient(server.address, timeouts=timeouts) as client:
                with pytest.raises(DeadlineError):
                    await client.score("chair", responses=RESPONSES, references=REFERENCES)
            if engine.begun.is_set():
                break
        await until(lambda: engine.cancelled == 1)
    finally:
        await server.stop(0)


def captions_of(*ids: str) -> pb.ScoreRequest:
    """A request to score a caption of each id."""
    items = [ChairItem(id=one, response="A dog.", reference_objects=("dog",)) for one in ids]
    return pb.ScoreRequest(spec=SPEC, items=map(item_to_proto, items))


async def test_a_call_whose_deadline_passes_in_the_queue_never_runs_and_frees_its_place(
    tmp_path: Path,
) -> None:
    engine, log = GatedEngine(), tmp_path / "access.jsonl"
    server = await running(engine, max_running_calls=1, max_waiting_calls=3, access_log=str(log))
    options = [("grpc.enable_retries", 0)]
    try:
        async with grpc.aio.insecure_channel(server.address, options=options) as channel:
            stub: Any = pb_grpc.JudgeServiceStub(channel)

            async def code_of(name: str, seconds: float) -> str:
                named = (("x-request-id", name),)
                call = stub.Score(captions_of(name), timeout=seconds, metadata=named)
                code: grpc.StatusCode = await call.code()
                return code.name

            first = asyncio.ensure_future(code_of("first", PATIENCE))
            await engine.begun.wait()
            # A busy machine may pass a short deadline before the calls are in the queue.
            for seconds in (0.5, 5, 50):
                late = [code_of(f"late-{seconds}-{number}", seconds) for number in range(4)]
                codes = sorted(await asyncio.gather(*late))
                if codes == [*["DEADLINE_EXCEEDED"] * 3, "RESOURCE_EXHAUSTED"]:
                    break
            else:
                pytest.fail(f"four calls never filled a queue of three: {codes}")
            ended = re.compile(rf'"late-{seconds}-.*CANCELLED')
            await until(lambda: len(ended.findall(log.read_text())) == 3)
            others = [asyncio.ensure_future(code_of(f"{number}", PATIENCE)) for number in range(4)]
            [refused_one], waiting = await asyncio.wait(others, return_when="FIRST_COMPLETED")
            assert refused_one.result() == "RESOURCE_EXHAUSTED"
            engine.may_score.set()
            assert {await call for call in (first, *waiting)} == {"OK"}
        assert len(engine.scored) == 4
        assert not [name for name in engine.scored if name.startswith("late")]
    finally:
        await server.stop(0)


async def test_a_defect_is_an_id_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    server = await running(GatedEngine(error=RuntimeError("secret text of a user")))
    try:
        async with AsyncClient(server.address) as client:
            with pytest.raises(InternalError) as caught:
                await client.score("chair", responses=RESPONSES, references=REFERENCES)
        assert "secret" not in str(caught.value)
        assert caught.value.metadata["error_id"] in str(caught.value)
        assert caught.value.metadata["error_id"] in caplog.text
    finally:
        await server.stop(0)


async def test_a_server_of_another_release_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from hallujudge.judge_service.server import judge_servicer as servicer

    monkeypatch.setattr(servicer, "__version__", "9.3.0")
    server = await running(Engine())
    try:
        async with AsyncClient(server.address) as client:
            with pytest.raises(VersionMismatchError, match=r"release 9\.3\.0, this client"):
                await client.score("chair", responses=RESPONSES, references=REFERENCES)
    finally:
        await server.stop(0)


async def test_a_message_over_the_limit_is_refused() -> None:
    server = await running(Engine(), max_message_bytes=1 << 16)
    try:
        async with AsyncClient(server.address) as client:
            with pytest.raises(InvalidInputError, match="max_message_bytes"):
                await client.score("chair", responses={"1": "dog " * 50_000}, references=REFERENCES)
    finally:
        await server.stop(0)


async def test_a_report_over_the_limit_is_sent_in_pieces() -> None:
    responses = [
        {"image_id": str(n), "response": "A dog and a cat.", "shop": f"shop {n}"}
        for n in range(400)
    ]
    references = {str(n): ["dog"] for n in range(400)}
    server = await running(Engine(), max_message_bytes=1 << 16)
    try:
        async with AsyncClient(server.address) as client, AsyncClient.embedded() as here:
            reports = [
                await one.score(
                    "chair", responses=responses, references=references, group_by=("shop",)
                )
                for one in (client, here)
            ]
    finally:
        await server.stop(0)
    assert len(reports[0].to_text()) > 1 << 16
    assert reports[0].to_text() == reports[1].to_text()


async def test_an_error_while_reading_items_is_not_a_network_error() -> None:
    def broken() -> Iterator[ChairItem]:
        yield ChairItem(id="1", response="A dog.", reference_objects=("dog",))
        raise InvalidInputError("the third line is odd")

    server = await running(Engine())
    try:
        async with AsyncClient(server.address) as client:
            with pytest.raises(InvalidInputError, match="third line"):
                await client.score_items(ScoreSpec(metric="chair"), broken())
    finally:
        await server.stop(0)


async def test_stopping_early_stops_the_server_side() -> None:
    engine = GatedEngine()
    server = await running(engine)
    items = (
        ChairItem(id=str(n), response="A dog.", reference_objects=("dog",)) for n in range(100_000)
    )
    try:
        async with AsyncClient(server.address) as client:
            work = asyncio.ensure_future(client.score_items(ScoreSpec(metric="chair"), items))
            await engine.begun.wait()
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
        await until(lambda: engine.cancelled > 0)
        # The reader was held back: nothing was scored, so few items were taken.
        assert int(next(items).id) < 2_000
    finally:
        await server.stop(0)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (NotFoundError("n", reason="GRAPH_UNKNOWN"), NotFoundError),
        (UnsupportedError("u"), UnsupportedError),
    ],
)
async def test_the_same_error_from_both_backends(
    error: HallujudgeError, kind: type[HallujudgeError]
) -> None:
    server = await running(GatedEngine(error=error))
    try:
        async with AsyncClient(server.address) as client:
            with pytest.raises(kind) as caught:
                await client.score("chair", responses=RESPONSES, references=REFERENCES)
        assert (caught.value.message, caught.value.reason) == (error.message, error.reason)
    finally:
        await server.stop(0)


async def test_what_a_server_waits_for_reaches_the_client() -> None:
    engine = GatedEngine()
    engine.waiting = "judge m: no answer for 9 s (HTTP 503: starting)"
    server = await running(engine)
    told: list[RunProgress] = []

    def note(progress: RunProgress) -> None:
        told.append(progress)
        engine.may_score.set()

    run = ScoreRun("chair", responses=RESPONSES, references=REFERENCES)
    try:
        async with AsyncClient(server.address) as client:
            report = await client.score_items(
                run.spec(), PreparedRun.of(run).items, on_progress=note
            )
    finally:
        await server.stop(0)
    assert told[0] == RunProgress(answers=7, waiting=engine.waiting)
    assert report.chair_i == 0.5


async def test_a_server_that_is_alive_without_progress_ends_the_run() -> None:
    server = await running(GatedEngine())
    try:
        async with AsyncClient(server.address, timeouts=Timeouts(progress_timeout=0.2)) as client:
            with pytest.raises(
                DeadlineError, match=expected_message("sdk.backends.recovery:made-no-progress-for")
            ):
                await client.score("chair", responses=RESPONSES, references=REFERENCES)
    finally:
        await server.stop(0)


class LateEngine(Engine):
    """An engine that scores one batch, and the others once the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go_on = asyncio.Event()

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        session = await super().open(spec)
        inner, begun = session.score, asyncio.Event()

        async def score(items: Sequence[Item]) -> list[ItemResult]:
            if begun.is_set():
                await self.may_go_on.wait()
            begun.set()
            return await inner(items)

        session.score = score  # type: ignore[method-assign]  # the point of the stand-in
        return session


async def test_a_slow_caller_is_not_a_server_without_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Time passes only while the caller handles a batch; the next batch comes after a tick."""
    engine, passed = LateEngine(), [0.0]

    class Watch(ProgressWatch):
        def check(self, response: pb.ScoreStreamResponse | None, *, outstanding: bool) -> None:
            super().check(response, outstanding=outstanding)
            if response is None and len(passed) > 1:
                engine.may_go_on.set()

    monkeypatch.setattr(remote, "ProgressWatch", partial(Watch, clock=lambda: passed[-1]))
    server = await running(engine)
    responses = {str(n): "A dog and a cat." for n in range(300)}
    try:
        async with AsyncClient(server.address, timeouts=Timeouts(progress_timeout=0.4)) as client:
            report = await client.score(
                "chair",
                responses=responses,
                references={key: ["dog"] for key in responses},
                on_batch=lambda _batch: passed.append(passed[-1] + 1000),
            )
    finally:
        await server.stop(0)
    assert report.chair_i == 0.5
    assert engine.may_go_on.is_set()


async def test_a_report_that_does_not_fit_discards_no_run() -> None:
    """Groups go first, then evidence; scores and results arrive."""
    server = await running(Engine(), max_message_bytes=1 << 16)
    run = ScoreRun(
        "chair",
        responses=[
            {"image_id": str(n), "caption": "A dog and a cat.", "model": f"m{n}"}
            for n in range(280)
        ],
        references={str(n): ["dog"] for n in range(280)},
        group_by=["model"],
    )
    items = [item_to_proto(item) for item in PreparedRun.of(run).items]
    try:
        async with grpc.aio.insecure_channel(server.address) as channel:
            stub = pb_grpc.JudgeServiceStub(channel)
            request = pb.ScoreRequest(spec=spec_to_proto(run.spec()), items=items)
            response = await stub.Score(request, timeout=PATIENCE)
    finally:
        await server.stop(0)
    assert len(response.results) == 280
    assert {score.name: score.value for score in response.report.scores}["chair_i"] == 0.5
    assert not response.report.groups
    assert "leaves out groups" in response.report.notes[-1]
    assert "max_message_bytes" in response.report.notes[-1]
