"""API keys: who may call, what for, and how often; over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from support.messages import expected_message
from support.rpc import health_stub, raw_call, refused
from support.threads import PATIENCE

from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key, edit_key, revoke_key, rotate_key
from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.engine.streams import RunProgress
from hallujudge.judge_service.jobs.job_service import JobService
from hallujudge.judge_service.server import judge_servicer
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings import from_names
from hallujudge.judge_service.settings.loading import names_of
from hallujudge.judge_service.settings.server_settings import ServerSettings
from hallujudge.judge_service.tenancy import Limits
from hallujudge.metrics.chair import ChairItem
from hallujudge.sdk import AsyncClient, Connection, ScoreSpec, Secret
from hallujudge.sdk.errors import InvalidInputError, PermissionDeniedError, UnauthenticatedError

RUN: dict[str, Any] = {"responses": {"1": "A dog and a cat."}, "references": {"1": ["dog"]}}
_SCORE = "/hallujudge.judge.v1.JudgeService/Score"
_REFLECT = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


@asynccontextmanager
async def serving(
    keys: Path | None = None, jobs: Path | None = None, **more: object
) -> AsyncIterator[RunningServer]:
    file, engine = str(keys) if keys else "", Engine()
    service = JobService(str(jobs), engine) if jobs else None
    settings = from_names(ServerSettings, {"port": 0, "access.keys_file": file, **names_of(more)})
    server = await start(settings, engine, service)
    try:
        yield server
    finally:
        await server.stop(0)


def client_with(server: RunningServer, key: str) -> AsyncClient:
    return AsyncClient(server.address, connection=Connection(api_key=Secret(key)))


async def test_a_key_opens_what_its_scopes_say(keys: Path) -> None:
    key = create_key(keys, "ana", scopes=[Scope.SCORE])
    async with serving(keys) as server, client_with(server, key) as client:
        assert (await client.score("chair", **RUN)).chair_i == 0.5
        with pytest.raises(
            PermissionDeniedError,
            match=expected_message("judge_service.access:ana-does-not-have-the-scope-extract"),
        ):
            await client.normalize(["dog"])


async def test_a_language_model_needs_the_scope_judge(keys: Path) -> None:
    key = create_key(keys, "ana", scopes=[Scope.SCORE, Scope.EXTRACT])
    async with serving(keys) as server, client_with(server, key) as client:
        for options in ({"judge": "llm"}, {"extractor": "llm"}):
            with pytest.raises(PermissionDeniedError, match="the scope judge"):
                await client.score_items(ScoreSpec(metric="tri-he", options=options), [])
        with pytest.raises(PermissionDeniedError, match="the scope judge"):
            await client.extract("tri-he", ["A dog."], options={"extractor": "llm"})


async def test_an_administrators_key_opens_everything(keys: Path) -> None:
    key = create_key(keys, "root", scopes=[Scope.ADMIN])
    async with serving(keys) as server, client_with(server, key) as client:
        assert (await client.normalize(["dog"]))["dog"] == ("dog",)


async def test_wrong_unknown_and_missing_keys_are_refused(keys: Path) -> None:
    key = create_key(keys, "ana", scopes=[Scope.SCORE])
    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")
    unknown = "hj_aaaaaaaa_" + key[12:]
    said = set()
    async with serving(keys) as server:
        for text in (wrong, unknown, "guess", "x" * 5000):
            async with client_with(server, text) as client:
                with pytest.raises(UnauthenticatedError) as caught:
                    await client.server_info()
            said.add((str(caught.value), caught.value.reason, str(caught.value.metadata)))
        async with AsyncClient(server.address) as client:
            with pytest.raises(
                UnauthenticatedError,
                match=expected_message(
                    "judge_service.server.authentication:send-it-as-from-hallujudge-api-key"
                ),
            ):
                await client.server_info()
    assert len(said) == 1


async def test_health_needs_no_key(keys: Path) -> None:
    create_key(keys, "ana", scopes=[Scope.SCORE])
    async with (
        serving(keys) as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        request = health_pb2.HealthCheckRequest()
        answer = await health_stub(channel).Check(request, timeout=PATIENCE)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_a_caller_without_a_key_is_refused_before_its_message_is_read(keys: Path) -> None:
    create_key(keys, "ana", scopes=[Scope.SCORE])
    async with (
        serving(keys) as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        # The request never ends: only a server that does not wait for it can answer.
        call = raw_call(channel, _SCORE, "stream_unary")(timeout=PATIENCE)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert refused(caught.value) == (grpc.StatusCode.UNAUTHENTICATED, "KEY_MISSING")


async def test_calls_in_a_minute_are_limited(keys: Path) -> None:
    key = create_key(keys, "ana", scopes=[Scope.SCORE], limits=Limits(calls_per_minute=2))
    metadata = (("authorization", f"Bearer {key}"),)
    async with (
        serving(keys) as server,
        grpc.aio.insecure_channel(server.address, [("grpc.enable_retries", 0)]) as channel,
    ):
        call = raw_call(channel, "/hallujudge.judge.v1.JudgeService/GetServerInfo")
        for _ in range(2):
            await call(b"", metadata=metadata, timeout=PATIENCE)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(b"", metadata=metadata, timeout=PATIENCE)
        assert refused(caught.value) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "KEY_RATE_LIMIT")
        assert int(dict(caught.value.trailing_metadata())["grpc-retry-pushback-ms"]) > 0


async def test_a_stream_that_waits_for_the_quota_of_its_key_says_so(
    keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_servicer, "TICK_SECONDS", 0.01)
    key = create_key(keys, "ana", scopes=[Scope.SCORE], limits=Limits(calls_per_minute=7))
    items = [
        ChairItem(id=str(number), response="A dog.", reference_objects=("dog",))
        for number in range(1000)
    ]
    said: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def progressed(progress: RunProgress) -> None:
        if progress.waiting and not said.done():
            said.set_result(progress.waiting)

    async with serving(keys) as server, client_with(server, key) as client:
        work = asyncio.ensure_future(
            client.score_items(ScoreSpec(metric="chair"), items, on_progress=progressed)
        )
        async with asyncio.timeout(PATIENCE):
            assert await said == "key ana, 7 calls a minute"
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def test_a_running_server_takes_over_edits_and_rotations(keys: Path) -> None:
    """Jobs stay with the key, and both secrets work until the old one ends."""
    old = create_key(keys, "ana", scopes=[Scope.SCORE])
    async with serving(keys, keys.parent / "jobs.sqlite") as server:
        async with client_with(server, old) as client:
            job = await client.submit("chair", **RUN)
            with pytest.raises(PermissionDeniedError):
                await client.normalize(["dog"])
            edit_key(keys, old[3:11], scopes=(Scope.SCORE, Scope.EXTRACT))
            assert await _succeeds(lambda: client.normalize(["dog"]))
        new = rotate_key(keys, old[3:11], old_until="2999-01-01T00:00:00Z")
        async with client_with(server, new) as client, client_with(server, old) as before:
            assert await _succeeds(client.server_info)
            assert [one.id for one in await client.jobs()] == [job.id]
            assert await before.server_info()
            rotate_key(keys, old[3:11])
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(UnauthenticatedError):
                    await _until_refused(before)


async def _until_refused(client: AsyncClient) -> None:
    while True:  # the server looks at the file of keys every half second
        await client.server_info()


async def _succeeds(call: Callable[[], Awaitable[Any]]) -> bool:
    """Return whether a call succeeds once the server has read its file of keys again."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(PermissionDeniedError, UnauthenticatedError):
                await call()
                return True


async def test_calls_at_the_same_time_are_limited(keys: Path) -> None:
    key = create_key(keys, "ana", scopes=[Scope.SCORE], limits=Limits(max_concurrency=1))
    metadata = (("authorization", f"Bearer {key}"),)
    async with (
        serving(keys) as server,
        grpc.aio.insecure_channel(server.address, [("grpc.enable_retries", 0)]) as channel,
    ):
        stream = raw_call(channel, "/hallujudge.judge.v1.JudgeService/ScoreStream", "stream_stream")
        idle = stream(metadata=metadata, timeout=PATIENCE)
        await idle.write(b"\x0a\x07\x0a\x05chair")
        await idle.read()
        call = raw_call(channel, "/hallujudge.judge.v1.JudgeService/GetServerInfo")
        with pytest.raises(grpc.aio.AioRpcError, match="and may have 1") as caught:
            await call(b"", metadata=metadata, timeout=PATIENCE)
        assert refused(caught.value)[1] == "KEY_CONCURRENCY_LIMIT"
        idle.cancel()


async def _sent_until_refused(stream: Any) -> None:
    while True:  # the server looks at the file of keys once a second
        await stream.write(b"\x12\x00")
        await stream.read()


@pytest.mark.parametrize("ended", ["revoked", "deleted"])
async def test_a_stream_ends_when_its_key_does(keys: Path, ended: str) -> None:
    key = create_key(keys, "ana", scopes=[Scope.SCORE])
    create_key(keys, "bob", scopes=[Scope.SCORE])
    metadata = (("authorization", f"Bearer {key}"),)
    async with (
        serving(keys) as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        call = raw_call(channel, "/hallujudge.judge.v1.JudgeService/ScoreStream", "stream_stream")
        stream = call(metadata=metadata, timeout=PATIENCE)
        await stream.write(b"\x0a\x07\x0a\x05chair")
        await stream.read()
        if ended == "revoked":
            revoke_key(keys, key[3:11])
        else:
            kept = json.loads(keys.read_text())
            kept["keys"] = kept["keys"][1:]
            keys.write_text(json.dumps(kept))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await _sent_until_refused(stream)
        assert refused(caught.value) == (grpc.StatusCode.UNAUTHENTICATED, "KEY_INVALID")


@pytest.mark.parametrize("on", ["auto", "on", "off"])
async def test_reflection_is_on_where_the_setting_says(on: str) -> None:
    async with (
        serving(reflection=on, host="127.0.0.1") as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        call = raw_call(channel, _REFLECT, "stream_stream")(timeout=PATIENCE)
        if on == "off":
            # Nothing is written: gRPC may report a write that fails in place of the status.
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call.read()
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        else:
            await call.write(b"\x3a\x00")
            assert b"hallujudge.judge.v1.JudgeService" in await call.read()


async def test_beyond_loopback_somebody_must_be_known(keys: Path) -> None:
    with pytest.raises(
        InvalidInputError,
        match=expected_message(
            "judge_service.server.authentication:would-serve-anybody-who-reaches"
        ),
    ):
        async with serving(host="0.0.0.0"):
            pass
    async with (
        serving(host="0.0.0.0", allow_anonymous=1) as server,
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        # Nothing is written: see above.
        call = raw_call(channel, _REFLECT, "stream_stream")(timeout=PATIENCE)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_client_sends_no_key_that_others_could_read(keys: Path) -> None:
    key = create_key(keys, "ana", scopes=[Scope.SCORE])
    connection = Connection(api_key=Secret(key))
    assert key not in repr(connection)
    async with AsyncClient("lab.example:50051", connection=connection) as client:
        with pytest.raises(
            InvalidInputError,
            match=expected_message("sdk.backends.channel:would-be-readable-on-its-way"),
        ) as caught:
            await client.server_info()
    assert key not in str(caught.value)
