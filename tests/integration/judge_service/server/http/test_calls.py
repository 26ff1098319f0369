"""Calls over HTTP: the same scores, callers, limits and errors as over gRPC."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import urllib.request
from pathlib import Path

import grpc
import pytest
from google.protobuf import json_format
from support.engines import EndlessEngine
from support.http_calls import (
    JUDGE,
    Answer,
    chair_request,
    connected,
    head_of,
    post,
    request,
    serving,
)
from support.messages import expected_message
from support.threads import PATIENCE, until

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1 import judge_service_pb2_grpc as pb_grpc
from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key
from hallujudge.judge_service.errors import InvalidInputError, MissingExtraError
from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings.server_settings import HttpSettings, ServerSettings
from hallujudge.judge_service.tenancy import Limits

_SCORE = JUDGE + "Score"
_INFO = JUDGE + "GetServerInfo"
_JSON = {"content-type": "application/json"}


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def refused(answer: Answer) -> tuple[int, str, str]:
    return answer.status, answer.json["code"], answer.reason


async def test_scores_are_those_of_grpc_to_the_byte() -> None:
    given = chair_request("A dog and a cat on a couch.", "Zwei Hunde: \u00fc\u2028 \U0001f600.", "")
    async with serving() as server:
        over_http = await post(server, _SCORE, given)
        async with grpc.aio.insecure_channel(server.address) as channel:
            stub = pb_grpc.JudgeServiceStub(channel)
            message = json_format.ParseDict(given, pb.ScoreRequest())
            response = await stub.Score(message)
    expected = json_format.MessageToJson(response, indent=None, sort_keys=True, ensure_ascii=False)
    assert (over_http.status, over_http.headers["content-type"]) == (200, "application/json")
    assert over_http.body.decode() == expected


async def test_a_server_listens_for_http_only_if_told_to() -> None:
    server = await start(ServerSettings(port=0))
    assert server.http_address == ""
    await server.stop(0)


async def test_without_its_extra_a_server_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    package = "hallujudge.judge_service.server.http"
    for name in [name for name in sys.modules if name.startswith(package)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(
        MissingExtraError,
        match=expected_message("judge_service.errors:http-needs-the-extra-http-pip-install"),
    ):
        await start(ServerSettings(port=0, http=HttpSettings(port=0)))


async def test_an_address_in_use_is_refused() -> None:
    async with serving() as server:
        taken = int(server.http_address.rpartition(":")[2])
        with pytest.raises(
            InvalidInputError,
            match=expected_message(
                "judge_service.server.http:http-cannot-listen-on-address-already-in"
            ),
        ):
            await start(ServerSettings(port=0, http=HttpSettings(port=taken)))


async def test_only_callers_with_a_key_may_call_from_other_machines() -> None:
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.server.authentication:serve-anybody-who-reaches-set"),
    ):
        await start(ServerSettings(port=0, http=HttpSettings(port=0, host="0.0.0.0")))


async def test_keys_and_scopes_are_those_of_grpc(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    key = create_key(keys, "ana", scopes=[Scope.SCORE])
    async with serving(keys_file=str(keys)) as server:
        score = await post(server, _SCORE, chair_request("A dog."), **bearer(key))
        missing = await post(server, _SCORE, chair_request("A dog."))
        wrong = await post(server, _SCORE, chair_request("A dog."), **bearer(key[:-1]))
        scope = await post(server, JUDGE + "Normalize", {"words": ["dog"]}, **bearer(key))
    assert score.status == 200
    assert refused(missing) == (401, "unauthenticated", "KEY_MISSING")
    assert (
        expected_message("judge_service.server.authentication:send-it-as-authorization-bearer-key")
        in missing.json["message"]
    )
    assert refused(wrong) == (401, "unauthenticated", "KEY_INVALID")
    assert missing.headers["www-authenticate"] == "Bearer"
    assert refused(scope) == (403, "permission_denied", "SCOPE_MISSING")


async def test_rates_of_keys_say_when_to_try_again(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    limits = Limits(calls_per_minute=1)
    key = create_key(keys, "ana", scopes=[Scope.SCORE], limits=limits)
    async with serving(keys_file=str(keys)) as server:
        assert (await post(server, _INFO, {}, **bearer(key))).status == 200
        refusal = await post(server, _INFO, {}, **bearer(key))
    assert refused(refusal) == (429, "resource_exhausted", "KEY_RATE_LIMIT")
    assert int(refusal.headers["retry-after"]) > 0


async def test_a_caller_without_a_key_is_refused_before_its_message_is_read(
    tmp_path: Path,
) -> None:
    keys = tmp_path / "keys.json"
    create_key(keys, "ana", scopes=[Scope.SCORE])
    async with serving(keys_file=str(keys)) as server:
        reader, writer = await connected(server)
        # The body never comes: only a server that does not wait for it can answer.
        writer.write(head_of(_SCORE, 1000))
        assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
        writer.close()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"spec": {"metric": 5}}, "spec.metric"),
        ({"items": [{}, {"id": "1", "chair": {"bogus": 1}}]}, "items[1].chair.bogus"),
        ({"items": {}}, "items"),
        ({"more": 1}, "more"),
        ({"spec": {"options": {"seed": 5}}}, "spec.options[seed]"),
        ({"spec": {"interval": {"confidence": "much"}}}, "spec.interval.confidence"),
        ({"items": [{"answers": {}, "chair": {}}]}, "items[0].chair"),
        ({"spec": {"group_by": [None]}}, "spec.group_by[0]"),
    ],
)
async def test_an_invalid_field_is_named(body: object, field: str) -> None:
    async with serving() as server:
        answer = await post(server, _SCORE, body)
    assert refused(answer) == (400, "invalid_argument", "MALFORMED_MESSAGE")
    assert answer.json["details"][1]["debug"]["fieldViolations"][0]["field"] == field
    assert answer.json["message"].startswith(f"{field} ")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"\xff\xfe",
        b'{"spec": {"metric": "\\ud800"}}',
        b'{"spec": NaN}',
        b'{"a": 1, "a": 1}',
        b"9" * 10_000,
        b"[" * 100_000,
        b'{"items":' * 20_000,
    ],
)
async def test_what_is_not_a_message_is_refused(body: bytes) -> None:
    async with serving() as server:
        answer = await post(server, _SCORE, body)
    assert refused(answer) == (400, "invalid_argument", "MALFORMED_MESSAGE")
    assert len(answer.body) < 4000
    # One sentence of what is wrong, not the parser's steps to it.
    assert "Failed to" not in answer.json["message"]
    assert ".;" not in answer.json["message"]


async def test_a_large_message_is_refused_while_it_comes() -> None:
    async with serving(max_message_bytes=1 << 16) as server:
        reader, writer = await connected(server)
        writer.write(head_of(_SCORE, 1_000_000_000) + b" " * 70_000)
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
        writer.close()


async def test_many_tiny_values_are_refused_before_they_are_parsed() -> None:
    async with serving() as server:
        answer = await post(server, _SCORE, b'{"items":[' + b"{}," * 1_000_000 + b"{}]}")
    assert refused(answer) == (400, "invalid_argument", "MALFORMED_MESSAGE")
    assert "more than 1,000,000 values" in answer.json["message"]


async def test_what_is_not_a_call_is_refused() -> None:
    async with serving() as server:
        unknown = await post(server, "/hallujudge.judge.v1.JudgeService/None", {})
        got = await request(server, "GET", _SCORE, b"", {})
        form = await request(server, "POST", _SCORE, b"", {"content-type": "text/plain"})
        packed = await post(server, _SCORE, {}, **{"content-encoding": "br"})
    assert [unknown.status, got.status, form.status, packed.status] == [404, 405, 415, 415]
    assert got.headers["allow"] == "POST"
    assert form.headers["accept-post"] == "application/json, application/proto"
    assert {"content-type": unknown.headers["content-type"]} == _JSON


async def test_calls_are_logged_and_counted(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    async with serving(access_log=str(log), metrics_port=0) as server:
        await post(server, _SCORE, chair_request("A dog.", ""), **{"x-request-id": "run-7"})
        await post(server, _SCORE, {"more": 1})
        page = await asyncio.to_thread(_page, f"http://{server.metrics_address}/metrics")
    good, bad = (json.loads(line) for line in log.read_text().splitlines())
    told = {name: good[name] for name in ("request_id", "peer", "method", "scored", "unscored")}
    assert told == {
        "request_id": "run-7", "peer": "ipv4:127.0.0.1", "method": "Score", "scored": 1,
        "unscored": 1,
    }  # fmt: skip
    assert (good["status"], bad["status"]) == ("OK", "INVALID_ARGUMENT")
    assert 'hallujudge_calls_total{method="Score",status="OK"} 1.0' in page


async def test_requests_that_are_no_calls_are_logged_and_counted(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    async with serving(access_log=str(log), access_log_errors=1, metrics_port=0) as server:
        await post(server, JUDGE + "None", {}, **{"x-request-id": "run-8"})
        await post(server, _SCORE, {}, host="example.org")
        for sent in (b"this is not HTTP\r\n\r\n", b"a" * 100_000):
            reader, writer = await connected(server)
            writer.write(sent)
            async with asyncio.timeout(PATIENCE):
                assert (await reader.readline()).startswith(b"HTTP/1.1 400")
            writer.close()
        await post(server, _INFO, {})
        page = await asyncio.to_thread(_page, f"http://{server.metrics_address}/metrics")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["method"], line["status"]) for line in lines] == [
        ("HTTP", "UNIMPLEMENTED"),
        ("HTTP", "PERMISSION_DENIED"),
        ("HTTP", "INVALID_ARGUMENT"),
        ("HTTP", "INVALID_ARGUMENT"),
        ("GetServerInfo", "OK"),
    ]
    assert {line["peer"] for line in lines} == {"ipv4:127.0.0.1"}
    assert lines[0]["request_id"] == "run-8"
    assert "example.org" in lines[1]["error"]
    assert 'hallujudge_calls_total{method="HTTP",status="INVALID_ARGUMENT"} 2.0' in page


def _page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return str(answer.read().decode())


async def test_a_call_keeps_its_id() -> None:
    async with serving() as server:
        chosen = await post(server, _INFO, {}, **{"x-request-id": "run-7"})
        forged = await post(server, _INFO, {}, **{"x-request-id": "x y"})
    assert chosen.headers["x-request-id"] == "run-7"
    assert len(forged.headers["x-request-id"]) == 32


async def test_a_call_ends_when_the_client_says() -> None:
    engine = EndlessEngine()
    async with serving(engine) as server:
        answer = await post(
            server, _SCORE, chair_request("A dog."), **{"connect-timeout-ms": "200"}
        )
        # On a busy machine the call ends before it is scored.
        await until(lambda: engine.cancelled or not engine.begun)
    assert refused(answer) == (504, "deadline_exceeded", "DEADLINE_EXCEEDED")


async def test_messages_may_be_in_protobufs_own_form() -> None:
    message = json_format.ParseDict(chair_request("A dog and a cat."), pb.ScoreRequest())
    binary = {"content-type": "application/proto"}
    async with serving() as server:
        answer = await post(server, _SCORE, message.SerializeToString(), **binary)
        in_json = await post(server, _SCORE, chair_request("A dog and a cat."))
        bad = await post(server, _SCORE, b"\xff\xff", **binary)
    assert answer.headers["content-type"] == "application/proto"
    response = pb.ScoreResponse.FromString(answer.body)
    assert json_format.ParseDict(in_json.json, pb.ScoreResponse()) == response
    assert refused(bad) == (400, "invalid_argument", "MALFORMED_MESSAGE")


async def test_web_pages_cannot_call_a_server_without_keys() -> None:
    async with serving() as server:
        page = await post(server, _INFO, {}, host="evil.example")
        socket = await post(server, _INFO, {}, host="unix:evil")
        port = server.http_address.rpartition(":")[2]
        mine = [
            await post(server, _INFO, {}, host=host)
            for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "Localhost")
        ]
    assert (page.status, page.json["code"]) == (403, "permission_denied")
    assert (socket.status, socket.json["code"]) == (403, "permission_denied")
    assert [answer.status for answer in mine] == [200] * 4
    assert not any(name.startswith("access-control") for name in mine[0].headers)


async def test_a_server_for_everyone_answers_to_its_listed_names_only() -> None:
    names = "judge.lab, other"
    async with serving(http_host="0.0.0.0", allow_anonymous=1, host_names=names) as server:
        page, listed, address = [
            await post(server, _INFO, {}, host=host)
            for host in ("evil.example", "Judge.lab:8080", "10.1.2.3:8080")
        ]
    assert [one.status for one in (page, listed, address)] == [403, 200, 200]
    assert "host_names" in page.json["message"]


@pytest.mark.parametrize("hosts", ["", "host: localhost\r\nhost: evil.example\r\n"])
async def test_a_request_without_one_host_is_refused(hosts: str) -> None:
    async with serving() as server:
        reader, writer = await connected(server)
        head = f"POST {_INFO} HTTP/1.0\r\n{hosts}content-type: application/json\r\n"
        writer.write(f"{head}content-length: 2\r\n\r\n{{}}".encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.split(b" ", 2)[1] == b"400"


async def test_a_target_may_be_a_whole_url() -> None:
    async with serving() as server:
        at = f"http://{server.http_address}"
        info = await post(server, f"{at}{_INFO}", {}, host="ignored.example")
        loud = await post(server, f"HTTP://LOCALHOST{_INFO}?connect=v1", {})
        document = await request(server, "GET", f"{at}/openapi.json", b"", {})
        quoted = await post(server, f"{at}{_INFO.replace('Get', '%47et')}", {})
        missing = await request(server, "GET", at, b"", {})
    assert [one.status for one in (info, loud, document, quoted, missing)] == [200] * 4 + [404]


async def test_the_host_of_a_whole_url_is_checked_as_the_header_is() -> None:
    async with serving() as server:
        page = await post(server, f"http://evil.example{_INFO}", {}, host="localhost")
        named = await post(server, f"http://localhost@evil.example{_INFO}", {}, host="localhost")
        other = await post(server, f"ftp://localhost{_INFO}", {})
        half = await post(server, f"http://localhost:99999{_INFO}", {})
    assert (page.status, page.json["code"]) == (403, "permission_denied")
    assert "'evil.example'" in page.json["message"]
    assert [one.status for one in (named, other, half)] == [404] * 3


async def test_bodies_may_be_packed_with_gzip() -> None:
    packed = {"content-encoding": "gzip"}
    body = gzip.compress(json.dumps(chair_request("A dog and a cat.")).encode())
    async with serving() as server:
        plain = await post(server, _SCORE, chair_request("A dog and a cat."))
        score = await post(server, _SCORE, body, **packed)
        broken = [
            await post(server, _SCORE, data, **packed)
            for data in (b"", b"{}", body[:-9], body + b"more", body[:20] + b"x" * 20)
        ]
    assert score.body == plain.body
    assert [refused(answer)[2] for answer in broken] == ["MALFORMED_MESSAGE"] * 5


async def test_a_packed_body_is_bounded_by_what_it_becomes() -> None:
    bomb = gzip.compress(b" " * (1 << 26))
    async with serving(max_message_bytes=1 << 16) as server:
        answer = await post(server, _SCORE, bomb, **{"content-encoding": "gzip"})
    assert refused(answer) == (413, "resource_exhausted", "MESSAGE_TOO_LARGE")
