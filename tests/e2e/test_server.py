"""A real server: health, errors on the wire, admission, deadlines, drain."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from grpc_status import rpc_status
from support.running import ServerProcess, cli
from support.threads import PATIENCE, until

from hallujudge.judge.v1 import chair_pb2, scoring_pb2
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.engine import Engine, ScoreSpec, ScoringSession
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
from hallujudge.judge_service.settings.server import ServerSettings
from hallujudge.metrics import ChairItem, Item, ItemResult
from hallujudge.sdk import AsyncClient, Client

ITEM = pb.Item(
    id="1",
    chair=chair_pb2.ChairTask(
        response="A dog and a cat.", reference_objects=scoring_pb2.StringList(values=["dog"])
    ),
)
SPEC = scoring_pb2.ScoreSpec(metric="chair", interval=scoring_pb2.IntervalSpec(confidence=0.9))


@pytest.fixture
def stub(server: str) -> Iterator[pb_grpc.JudgeServiceStub]:
    with grpc.insecure_channel(server) as channel:
        yield pb_grpc.JudgeServiceStub(channel)


def refused(call: grpc.RpcError) -> tuple[grpc.StatusCode, str]:
    """The code, and the reason of the one ErrorInfo."""
    from google.rpc import error_details_pb2

    status = rpc_status.from_call(call)  # type: ignore[arg-type]  # every RpcError is a Call
    assert status is not None
    infos = [
        detail for detail in status.details if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR)
    ]
    assert len(infos) == 1
    info = error_details_pb2.ErrorInfo.FromString(infos[0].value)
    assert info.domain == "hallujudge"
    return call.code(), info.reason


def test_unary_score(stub: pb_grpc.JudgeServiceStub) -> None:
    response = stub.Score(pb.ScoreRequest(spec=SPEC, items=[ITEM]), timeout=PATIENCE)
    assert response.statistic_names[:2] == ["mentioned", "hallucinated"]
    assert list(response.results[0].statistics[:2]) == [2, 1]
    mention = response.results[0].chair.mentions[1]
    assert (mention.word, mention.object, mention.hallucinated) == ("cat", "cat", True)
    assert response.report.scores[0].value == 0.5


@pytest.mark.parametrize(
    ("request_", "code", "reason"),
    [
        (pb.ScoreRequest(), "INVALID_ARGUMENT", "INVALID_INPUT"),
        (
            pb.ScoreRequest(spec=scoring_pb2.ScoreSpec(metric="bleu")),
            "NOT_FOUND",
            "METRIC_UNKNOWN",
        ),
        (
            pb.ScoreRequest(
                spec=scoring_pb2.ScoreSpec(
                    metric="chair",
                    graphs={"objects": scoring_pb2.GraphSource(shipped="/etc/passwd")},
                )
            ),
            "NOT_FOUND",
            "GRAPH_UNKNOWN",
        ),
        (
            pb.ScoreRequest(
                spec=scoring_pb2.ScoreSpec(
                    metric="chair",
                    graphs={
                        "objects": scoring_pb2.GraphSource(
                            inline=scoring_pb2.InlineGraph(name="x", text="{", layout="json")
                        )
                    },
                )
            ),
            "INVALID_ARGUMENT",
            "GRAPH_INVALID",
        ),
        (
            pb.ScoreRequest(
                spec=scoring_pb2.ScoreSpec(
                    metric="chair", variant="best", options={"count": "x", "colour": "red"}
                )
            ),
            "INVALID_ARGUMENT",
            "INVALID_INPUT",
        ),
        (pb.ScoreRequest(spec=SPEC, items=[ITEM, ITEM]), "INVALID_ARGUMENT", "INVALID_INPUT"),
        (
            pb.ScoreRequest(spec=SPEC, items=[pb.Item(id="1")]),
            "INVALID_ARGUMENT",
            "INVALID_INPUT",
        ),
    ],
)
def test_refusals(
    stub: pb_grpc.JudgeServiceStub, request_: pb.ScoreRequest, code: str, reason: str
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        stub.Score(request_, timeout=PATIENCE)
    assert refused(caught.value) == (grpc.StatusCode[code], reason)


def test_every_violation_is_listed(stub: pb_grpc.JudgeServiceStub) -> None:
    from hallujudge.judge_service.wire.errors import error_from_rpc

    spec = scoring_pb2.ScoreSpec(metric="chair", variant="v", options={"count": "x", "hue": "red"})
    with pytest.raises(grpc.RpcError) as caught:
        stub.Score(pb.ScoreRequest(spec=spec), timeout=PATIENCE)
    error = error_from_rpc(caught.value, target="t")
    assert isinstance(error, InvalidInputError)
    assert {violation.field for violation in error.violations} == {
        "spec.variant",
        "spec.options['count']",
        "spec.options['hue']",
    }


def test_a_stream_must_begin_with_a_spec(stub: pb_grpc.JudgeServiceStub) -> None:
    batch = pb.ScoreStreamRequest(batch=pb.ItemBatch(items=[ITEM]))
    spec = pb.ScoreStreamRequest(spec=SPEC)
    for messages in ([], [batch], [spec, spec]):
        with pytest.raises(grpc.RpcError) as caught:
            list(stub.ScoreStream(iter(messages), timeout=PATIENCE))
        assert refused(caught.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")


def test_a_stream_answers_in_order_and_ends_with_the_report(
    stub: pb_grpc.JudgeServiceStub,
) -> None:
    messages = [pb.ScoreStreamRequest(spec=SPEC)] + [
        pb.ScoreStreamRequest(
            batch=pb.ItemBatch(items=[pb.Item(id=f"{b}-{i}", chair=ITEM.chair) for i in range(3)])
        )
        for b in range(40)
    ]
    answers = list(stub.ScoreStream(iter(messages), timeout=PATIENCE))
    assert answers[0].WhichOneof("message") == "accepted"
    ids = [result.id for answer in answers[1:-1] for result in answer.batch.results]
    assert ids == [f"{b}-{i}" for b in range(40) for i in range(3)]
    assert answers[-1].report.coverage.items == 120


def test_extract_normalize_and_list(stub: pb_grpc.JudgeServiceStub) -> None:
    claims = stub.Extract(pb.ExtractRequest(spec=SPEC, texts=["Two dogs."]), timeout=PATIENCE)
    found = claims.texts[0].claims[0]
    assert (found.mention.object, found.start, found.end) == ("dog", 4, 8)
    words = stub.Normalize(
        pb.NormalizeRequest(
            graph=scoring_pb2.GraphSource(shipped="coco"), words=["puppy", "nothing at all"]
        ),
        timeout=PATIENCE,
    )
    assert [list(word.roots) for word in words.words] == [["dog"], []]
    metrics = stub.ListMetrics(pb.ListMetricsRequest(), timeout=PATIENCE).metrics
    assert "chair" in {metric.name for metric in metrics}
    with pytest.raises(grpc.RpcError) as caught:
        stub.Judge(pb.JudgeRequest(spec=SPEC), timeout=PATIENCE)
    assert refused(caught.value)[0] is grpc.StatusCode.UNIMPLEMENTED


def test_health_and_reflection(server: str) -> None:
    with grpc.insecure_channel(server) as channel:
        health = health_stub(channel)
        for name in ("", "hallujudge.judge.v1.JudgeService"):
            answer = health.Check(health_pb2.HealthCheckRequest(service=name), timeout=PATIENCE)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        services = ProtoReflectionDescriptorDatabase(channel).get_services()
    assert "hallujudge.judge.v1.JudgeService" in services


def health_stub(channel: object) -> Any:
    """The health service's stub, which its types leave without methods."""
    return health_pb2_grpc.HealthStub(channel)  # type: ignore[arg-type]  # both kinds of channel


class GatedEngine(Engine):
    """An engine whose sessions score once the test lets them, or fail."""

    def __init__(self, *, let: bool = False, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error
        self.cancelled = 0
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
            return await inner(items)

        session.score = score  # type: ignore[method-assign]  # the point of the stand-in
        return session


async def running(engine: Engine, **settings: object) -> RunningServer:
    return await start(ServerSettings(port=0, **settings), engine)  # type: ignore[arg-type]  # by the tests


RESPONSES, REFERENCES = {"1": "A dog and a cat."}, {"1": ["dog"]}


async def patient(client: AsyncClient) -> str:
    """Return the server's release; a busy machine may need more than one round of retries."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return (await client.server_info()).version
            except OverloadedError:
                continue


async def test_a_full_server_says_when_to_come_back() -> None:
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
                    await pb_grpc.JudgeServiceStub(channel).GetServerInfo(
                        pb.GetServerInfoRequest(), timeout=PATIENCE
                    )
                assert refused(caught.value) == (
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    "SERVER_OVERLOADED",
                )
                trailers = dict(caught.value.trailing_metadata())
                assert trailers["grpc-retry-pushback-ms"] == "500"
                # Health answers whatever the load.
                health = health_stub(channel)
                answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
            # The SDK heeds the pushback: it asks again, and gets through once there is room.
            again = asyncio.ensure_future(patient(other))
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
        async with AsyncClient(server.address) as busy, AsyncClient(server.address) as other:
            await busy.server_info()
            work = asyncio.ensure_future(
                busy.score("chair", responses=RESPONSES, references=REFERENCES)
            )
            await engine.begun.wait()
            with pytest.raises(OverloadedError) as caught:
                await other.server_info()
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
            async with AsyncClient(server.address, stream_timeout=seconds) as client:
                with pytest.raises(DeadlineError):
                    await client.score("chair", responses=RESPONSES, references=REFERENCES)
            if engine.begun.is_set():
                break
        await until(lambda: engine.cancelled == 1)
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
    from hallujudge.judge_service.server import servicer

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


@pytest.mark.parametrize("name", ["x" * 50_000, "ä" * 5_000, "\N{SNOWMAN}" * 5_000])
def test_an_error_that_no_header_can_hold_is_shortened(
    stub: pb_grpc.JudgeServiceStub, name: str
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        stub.Score(pb.ScoreRequest(spec=scoring_pb2.ScoreSpec(metric=name)), timeout=10)
    assert refused(caught.value) == (grpc.StatusCode.NOT_FOUND, "METRIC_UNKNOWN")
    assert name[:100] in (caught.value.details() or "")
    assert (caught.value.details() or "").endswith("…")


def test_as_many_violations_are_listed_as_a_header_holds(stub: pb_grpc.JudgeServiceStub) -> None:
    from hallujudge.judge_service.wire.errors import error_from_rpc

    items = [pb.Item(id=f"{n}") for n in range(2_000)]
    with pytest.raises(grpc.RpcError) as caught:
        stub.Score(pb.ScoreRequest(spec=SPEC, items=items), timeout=10)
    assert refused(caught.value) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_INPUT")
    error = error_from_rpc(caught.value, target="t")
    assert [violation.field for violation in error.violations[:2]] == [
        "items[0].task",
        "items[1].task",
    ]
    assert "2000 of 2000 items" in error.message


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


def test_sigterm_lets_a_call_finish() -> None:
    running_server = ServerProcess("--drain-seconds", "600")
    working = threading.Event()

    def items() -> Iterator[ChairItem]:
        for n in range(400):
            time.sleep(0.005)
            yield ChairItem(id=str(n), response="A dog.", reference_objects=("dog",))

    reports: list[object] = []
    with Client(running_server.address) as client:
        thread = threading.Thread(
            target=lambda: reports.append(
                client.score_items(
                    ScoreSpec(metric="chair"), items(), on_batch=lambda _: working.set()
                )
            )
        )
        thread.start()
        assert working.wait(PATIENCE)
        running_server.process.send_signal(signal.SIGTERM)
        thread.join(PATIENCE)
    code, errors = running_server.stop()
    assert code == 0, errors
    assert len(reports) == 1
    assert "Traceback" not in errors


def test_a_taken_port_is_said_plainly(server: str) -> None:
    run = cli("serve", "--port", server.rpartition(":")[2])
    assert run.returncode == 2
    assert "can't listen at" in run.stderr
    assert "Traceback" not in run.stderr


def test_doctor_and_config(server: str) -> None:
    run = cli("doctor", "--server", server)
    assert run.returncode == 0, run.stdout + run.stderr
    # Every metric is tried here and there; those whose parts are not installed are absent.
    assert run.stdout.count("as it should be") >= 12
    assert "metric tri-he here" in run.stdout
    assert f"metric chair at {server}" in run.stdout
    down = cli("doctor", "--server", "127.0.0.1:1")
    assert down.returncode == 1
    assert "FAILED" in down.stdout
    shown = cli("config", "show")
    assert shown.returncode == 0
    assert "port = 50051  # default" in shown.stdout
    assert cli("--version").stdout.startswith("hallujudge ")
