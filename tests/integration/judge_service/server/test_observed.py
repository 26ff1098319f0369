"""What a server shows of its work: metrics, health over HTTP, the access log."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from prometheus_client import CollectorRegistry, Counter
from support.observed_servers import ITEM, JUDGED, judging, page, running, samples
from support.rpc import health_stub, raw_call
from support.threads import PATIENCE

from hallujudge.judge.v1 import jobs_pb2, jobs_pb2_grpc
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key
from hallujudge.judge_service.engine import Engine, ScoreSpec, ScoringSession
from hallujudge.judge_service.errors import HallujudgeError, InvalidInputError
from hallujudge.judge_service.jobs.job_service import JobService
from hallujudge.judge_service.observe.prometheus import MetricsPage
from hallujudge.judge_service.server.logs import WritingHandler
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings.server_settings import MetricsSettings, ServerSettings
from hallujudge.judge_service.wire.convert import item_to_proto, spec_to_proto
from hallujudge.metrics import ChairItem, Item, ItemResult
from hallujudge.sdk import AsyncClient, Connection, Secret

_SCRAPE = "GET {} HTTP/1.0\r\nHost: localhost\r\n\r\n"
_HOSTILE = 'x{y="z"}\n# HELP evil' + "a" * 1000


async def test_calls_items_and_judge_calls_are_counted() -> None:
    request = pb.ScoreRequest(spec=spec_to_proto(JUDGED), items=[item_to_proto(ITEM)])
    async with (
        judging(metrics_port=0) as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        for _ in range(2):
            await pb_grpc.JudgeServiceStub(channel).Score(request, timeout=PATIENCE)
        found = await samples(server)
    assert found["hallujudge_calls_total", "Score/OK"] == 2
    assert found["hallujudge_items_total", "tri-he/scored"] == 2
    assert found["hallujudge_key_items_total", "anonymous"] == 2
    assert found["hallujudge_judge_calls_total", "judge-model/answered"] == 1
    assert found["hallujudge_judge_tokens_total", "prompt/judge-model"] == 100
    assert found["hallujudge_judge_cost_total", "judge-model"] > 0
    assert found["hallujudge_cache_lookups_total", "memory"] == 1
    assert found["hallujudge_cache_lookups_total", "nowhere"] == 1
    assert found["hallujudge_judge_running_calls", "judge-model"] == 0


async def test_nothing_that_callers_write_becomes_a_label() -> None:
    async with running(metrics_port=0) as server, AsyncClient(server.address) as client:
        for spec in (
            ScoreSpec(metric=_HOSTILE),
            ScoreSpec(metric="chair", variant=_HOSTILE),
            ScoreSpec(metric="tri-he", options={"matcher_model": _HOSTILE}),
        ):
            with pytest.raises(HallujudgeError):
                await client.score_items(spec, [])
        async with grpc.aio.insecure_channel(server.address) as channel:
            metadata = (("authorization", "Bearer evil"), ("x-request-id", "evil id"))
            stub = pb_grpc.JudgeServiceStub(channel)
            await stub.ListMetrics(pb.ListMetricsRequest(), metadata=metadata, timeout=PATIENCE)
            with pytest.raises(grpc.aio.AioRpcError):
                await raw_call(channel, "/hallujudge.judge.v1.JudgeService/evil")(b"")
        _, text = await page(server)
    assert "evil" not in text
    assert "aaaa" not in text


async def test_a_key_is_known_by_its_id_and_name(tmp_path: Path) -> None:
    log = tmp_path / "access.jsonl"
    key = create_key(tmp_path / "keys.json", "Ada", scopes=[Scope.SCORE])
    id, secret = key.split("_", 2)[1:]
    files: dict[str, Any] = {
        "access.keys_file": str(tmp_path / "keys.json"),
        "log.access": str(log),
    }
    async with running(metrics_port=0, **files) as server:
        for one in (key, f"hj_{id}_guessed"):
            connection = Connection(api_key=Secret(one))
            async with AsyncClient(server.address, connection=connection) as client:
                with pytest.raises(HallujudgeError):
                    await client.normalize(["dog"])
        found = await samples(server)
        _, text = await page(server)
    assert found["hallujudge_key_calls_total", f"{id}/OK"] == 1  # the release was asked for
    assert found["hallujudge_key_calls_total", f"{id}/PERMISSION_DENIED"] == 1
    assert found["hallujudge_key_calls_total", "unknown/UNAUTHENTICATED"] == 1
    lines = log.read_text(encoding="utf-8")
    assert f'"key": "{id}", "key_name": "Ada"' in lines
    assert found["hallujudge_key_info", f"{id}/Ada"] == 1
    for hidden in (secret, "guessed"):
        assert hidden not in text + lines


class SilentEngine(Engine):
    """An engine that opens no session until the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.may_open = asyncio.Event()

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        await self.may_open.wait()
        return await super().open(spec)


async def test_the_queue_is_seen() -> None:
    engine = SilentEngine()
    request = pb.ScoreRequest(spec=spec_to_proto(ScoreSpec(metric="chair")))
    async with (
        running(engine, metrics_port=0, max_running_calls=1) as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        score = pb_grpc.JudgeServiceStub(channel).Score
        calls = [asyncio.ensure_future(score(request, timeout=PATIENCE)) for _ in range(3)]

        async def waiting() -> float | None:
            return (await samples(server)).get(("hallujudge_waiting_calls", "anonymous"))

        async with asyncio.timeout(PATIENCE):
            while await waiting() != 2:
                await asyncio.sleep(0.01)
        assert (await samples(server))["hallujudge_running_calls", "Score"] == 1
        engine.may_open.set()
        await asyncio.gather(*calls)
        assert await waiting() == 0


class HangingEngine(Engine):
    """An engine whose sessions never give a result."""

    async def open(self, spec: ScoreSpec) -> ScoringSession:
        session = await super().open(spec)

        async def evaluate(items: Sequence[Item]) -> list[ItemResult]:
            await asyncio.Event().wait()
            return []

        session.evaluate = evaluate  # type: ignore[method-assign]  # the point of the stand-in
        return session


async def test_items_of_a_job_from_before_a_restart_are_counted(tmp_path: Path) -> None:
    @asynccontextmanager
    async def with_jobs(engine: Engine) -> AsyncIterator[RunningServer]:
        jobs = JobService(str(tmp_path / "jobs.sqlite"), engine)
        server = await start(ServerSettings(port=0, metrics=MetricsSettings(port=0)), engine, jobs)
        try:
            yield server
        finally:
            await server.stop(0)

    item = ChairItem(id="1", group_id="1", response="A dog.", reference_objects=("dog",))
    request = jobs_pb2.CreateJobRequest(
        spec=spec_to_proto(ScoreSpec(metric="chair")), items=[item_to_proto(item)], request_id="r"
    )
    async with (
        with_jobs(HangingEngine()) as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        stub: Any = jobs_pb2_grpc.ScoringJobServiceStub(channel)
        await stub.CreateJob(request, timeout=PATIENCE)
    async with with_jobs(Engine()) as server:

        async def counted() -> bool:
            found = await samples(server)
            return (
                ("hallujudge_items_total", "chair/scored") in found
                and found.get(("hallujudge_jobs", "done")) == 1
                and found["hallujudge_jobs", "running"] == found["hallujudge_jobs", "queued"] == 0
            )

        async with asyncio.timeout(PATIENCE):
            while not await counted():
                await asyncio.sleep(0.01)


async def test_health_follows_the_check() -> None:
    class LyingEngine(Engine):
        async def open(self, spec: ScoreSpec) -> ScoringSession:
            raise InvalidInputError("no")

    engine = LyingEngine()
    async with running(engine, metrics_port=0, self_check_seconds=0.01) as server:
        assert await page(server, "/readyz") == (200, "ok\n")
        assert (await page(server, "/nothing"))[0] == 404
        server.watch()
        async with grpc.aio.insecure_channel(server.address) as channel:
            watch = health_stub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
            async for answer in watch:
                if answer.status == health_pb2.HealthCheckResponse.NOT_SERVING:
                    break
            watch.cancel()
        status, text = await page(server, "/readyz")
        assert status == 503
        assert "InvalidInputError" in text


async def test_the_access_log_has_a_line_for_each_call(tmp_path: Path) -> None:
    log = tmp_path / "access.jsonl"
    items = [
        ChairItem(id=str(number), group_id="1", response=text, reference_objects=("dog",))
        for number, text in enumerate(["A secret dog.", None])
    ]
    spec = ScoreSpec(metric="chair")
    async with (
        running(access_log=str(log)) as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        score = pb_grpc.JudgeServiceStub(channel).Score
        messages = [item_to_proto(item) for item in items]
        await score(pb.ScoreRequest(spec=spec_to_proto(spec), items=messages), timeout=PATIENCE)
        spec = ScoreSpec(metric="chair", variant="A secret variant")
        with pytest.raises(grpc.aio.AioRpcError):
            await score(pb.ScoreRequest(spec=spec_to_proto(spec)), timeout=PATIENCE)
    text = log.read_text(encoding="utf-8")
    scored, failed = [json.loads(line) for line in text.splitlines()]
    assert (scored["metric"], scored["items"], scored["status"]) == ("chair", 2, "OK")
    assert (scored["scored"], scored["unscored"]) == (1, 1)
    assert (failed["status"], failed["key"]) == ("INVALID_ARGUMENT", "anonymous")
    assert "secret" not in text


async def test_the_metrics_page_answers_a_target_that_is_a_whole_url() -> None:
    async with running(metrics_port=0) as server:
        head = f"GET http://{server.metrics_address}/healthz HTTP/1.0\r\n\r\n"
        answer = await _sent(server.metrics_address, head)
    assert answer.startswith(b"HTTP/1.0 200 ")
    assert answer.endswith(b"ok\n")


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        ("/metrics", "evil.example:9464", 403),
        ("/healthz", "evil.example", 403),
        ("http://evil.example/metrics", "localhost", 403),
        ("/metrics", "127.0.0.1@evil.example", 403),
        ("/metrics", "localhost", 200),
        ("/metrics", "LOCALHOST.:9464", 200),
        ("/metrics", "[::1]:9464", 200),
        ("/metrics", "10.1.2.3:9464", 200),
        ("/metrics", "hallujudge:9464", 200),
        ("/metrics", "", 403),
    ],
)
async def test_the_metrics_page_answers_no_name_of_a_web_page(
    target: str, host: str, status: int
) -> None:
    async with running(metrics_port=0, host_names="hallujudge") as server:
        head = f"GET {target} HTTP/1.0\r\n" + (f"Host: {host}\r\n" if host else "") + "\r\n"
        answer = (await _sent(server.metrics_address, head)).decode()
    assert answer.startswith(f"HTTP/1.0 {status} ")
    assert ("hallujudge_calls" in answer) == (status == 200)


async def test_silent_connections_to_the_metrics_page_stop_no_scrape(
    capfd: pytest.CaptureFixture[str],
) -> None:
    registry = CollectorRegistry()
    registry.register(Counter("calls", "Calls.", registry=None))
    page = MetricsPage("127.0.0.1", 0, registry, alive=str, ready=str, idle_seconds=0.1)
    host, _, port = page.address.rpartition(":")
    silent = [await asyncio.open_connection(host, int(port)) for _ in range(200)]
    # They end one by one, during the scrape.
    assert b"calls_total" in await _sent(
        page.address, "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n"
    )
    for reader, writer in silent:
        assert await reader.read() == b""
        writer.close()
    await asyncio.to_thread(page.close)
    assert capfd.readouterr().err == ""


async def test_a_client_that_says_nothing_more_is_not_waited_for_among_many() -> None:
    """A full house of connections closes the oldest one, however long clients may be silent."""
    page = MetricsPage("127.0.0.1", 0, CollectorRegistry(), alive=str, ready=str, idle_seconds=1e6)
    host, _, port = page.address.rpartition(":")
    silent = [await asyncio.open_connection(host, int(port)) for _ in range(200)]
    async with asyncio.timeout(PATIENCE):
        assert await silent[0][0].read() == b""
    assert (await _sent(page.address, _SCRAPE.format("/healthz"))).endswith(b"ok\n")
    for _, writer in silent:
        writer.close()
    await asyncio.to_thread(page.close)


async def test_lines_that_a_full_pipe_does_not_take_are_counted() -> None:
    end, pipe = os.pipe()
    handler = WritingHandler(pipe)
    logging.getLogger().addHandler(handler)
    try:
        for number in range(25_000):  # the pipe has 64 KiB, and 10,000 lines wait
            handler.emit(logging.LogRecord("n", logging.ERROR, "p", 1, f"{number:99}", (), None))
        async with running(metrics_port=0) as server:
            found = await samples(server)
    finally:
        logging.getLogger().removeHandler(handler)
        os.close(end)  # what waits fails then
        handler.close()
    assert found["hallujudge_dropped_log_lines", "server"] > 0
    assert found["hallujudge_dropped_log_lines", "access"] == 0


async def _sent(address: str, head: str) -> bytes:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(head.encode())
    async with asyncio.timeout(PATIENCE):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize("host", ["::1", "[::1]"])
async def test_an_address_of_ipv6_to_listen_on_may_have_brackets(host: str) -> None:
    if not _has_ipv6():
        pytest.skip("no IPv6 on this machine")
    everywhere: dict[str, Any] = {"host": host, "http.host": host, "metrics.host": host}
    async with running(**everywhere, http_port=0, metrics_port=0) as server:
        places = (server.address, server.http_address, server.metrics_address)
        assert [place.rpartition(":")[0] for place in places] == ["[::1]"] * 3
        assert await page(server, "/readyz") == (200, "ok\n")
        async with AsyncClient(server.address) as client:
            assert (await client.server_info()).version


async def test_the_access_log_writes_an_address_of_ipv6_as_people_do(tmp_path: Path) -> None:
    if not _has_ipv6():
        pytest.skip("no IPv6 on this machine")
    log = tmp_path / "access.jsonl"
    async with (
        running(access_log=str(log), host="[::1]") as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        stub = pb_grpc.JudgeServiceStub(channel)
        await stub.ListMetrics(pb.ListMetricsRequest(), timeout=PATIENCE)
    assert json.loads(log.read_text(encoding="utf-8"))["peer"] == "ipv6:[::1]"


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True
