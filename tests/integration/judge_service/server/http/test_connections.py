"""Connections: TLS, clients that say nothing, and the self-description."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import ssl
import urllib.request
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from support.certificates import Certificates, make_certificates
from support.engines import EndlessEngine, NotingEngine
from support.http_calls import (
    JUDGE,
    LINES,
    chair_request,
    connected,
    head_of,
    post,
    request,
    serving,
)
from support.loop_audit import io_audit
from support.threads import PATIENCE, until

from hallujudge.judge.v1 import jobs_pb2, judge_service_pb2
from hallujudge.judge_service import __version__
from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key

_SCORE = JUDGE + "Score"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


async def over_tls(address: str, context: ssl.SSLContext) -> int:
    def call() -> int:
        body = json.dumps(chair_request("A dog.")).encode()
        asked = urllib.request.Request(f"https://{address}{_SCORE}", body)
        asked.add_header("content-type", "application/json")
        with urllib.request.urlopen(asked, timeout=PATIENCE, context=context) as answer:
            return int(answer.status)

    return await asyncio.to_thread(call)


async def test_tls_is_that_of_grpc(certificates: Certificates) -> None:
    cert, key = certificates.server
    trusting = ssl.create_default_context(cafile=certificates.ca)
    async with serving(tls_cert=cert, tls_key=key) as server:
        assert await over_tls(server.http_address, trusting) == 200
        plain = await _answer(server.http_address, head_of(_SCORE, 0))
    assert not plain.startswith(b"HTTP")


async def test_a_certificate_names_its_caller(certificates: Certificates) -> None:
    (cert, key), engine = certificates.server, NotingEngine()
    trusting = ssl.create_default_context(cafile=certificates.ca)
    shown = ssl.create_default_context(cafile=certificates.ca)
    shown.load_cert_chain(*certificates.client)
    settings = {"tls_cert": cert, "tls_key": key, "tls_ca": certificates.ca}
    async with serving(engine, **settings) as server:  # type: ignore[arg-type]  # settings
        assert await over_tls(server.http_address, shown) == 200
        with pytest.raises(OSError):  # noqa: PT011 - what it is depends on the moment
            await over_tls(server.http_address, trusting)
    assert engine.caller.id == "certificate:ana"


async def eventually_over_tls(address: str, trusting: ssl.SSLContext) -> int:
    """Return the status of the first response over a connection that is trusted."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(URLError):
                return await over_tls(address, trusting)


async def test_new_connections_get_a_renewed_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make_certificates(tmp_path / "1"), make_certificates(tmp_path / "2")
    cert, key = tmp_path / "now.pem", tmp_path / "now.key"

    def install(pair: tuple[str, str]) -> None:
        cert.write_bytes(Path(pair[0]).read_bytes())
        key.write_bytes(Path(pair[1]).read_bytes())

    install(first.server)
    async with serving(tls_cert=str(cert), tls_key=str(key)) as server:
        trusting = ssl.create_default_context(cafile=first.ca)
        assert await over_tls(server.http_address, trusting) == 200
        install(second.server)
        trusting = ssl.create_default_context(cafile=second.ca)
        with io_audit(monkeypatch) as audit:
            assert await eventually_over_tls(server.http_address, trusting) == 200
        assert any(str(cert) in what for what in audit.elsewhere), "the files are looked at"
        assert audit.in_loop == []


@pytest.mark.parametrize("sent", [b"", b"POST / HTTP/1.1\r\nhost: loc"])
async def test_a_connection_without_a_request_is_closed(sent: bytes) -> None:
    async with serving(first_message_seconds=0.2) as server:
        assert await _answer(server.http_address, sent) == b""


async def test_a_body_that_does_not_come_ends_its_call() -> None:
    async with serving(first_message_seconds=0.2) as server:
        answer = await _answer(server.http_address, head_of(_SCORE, 1000) + b"{")
    assert answer.startswith(b"HTTP/1.1 504 ")
    assert b"STREAM_IDLE" in answer


async def test_a_response_does_not_wait_for_the_client_to_confirm_its_head() -> None:
    async with serving() as server:
        _, writer = await connected(server)
        client = writer.get_extra_info("sockname")
        await until(lambda: bool(_options_of(client)))
        assert _options_of(client) == [1]
        writer.close()


def _options_of(client: object) -> list[int]:
    """Return TCP_NODELAY of this process's connections that a client opened."""
    found = []
    for path in [path for path in Path("/proc/self/fd").iterdir() if path.is_socket()]:
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(path.name))) as one:
            if one.getpeername() == client:
                found.append(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) and 1)
    return found


async def test_a_call_may_take_longer_than_its_head() -> None:
    engine = EndlessEngine()
    body = json.dumps(chair_request("A dog.")).encode()
    async with serving(engine, first_message_seconds=0.2) as server:
        reader, writer = await connected(server)
        writer.write(head_of(_SCORE, len(body)) + body)
        await until(lambda: engine.begun)
        await asyncio.sleep(0.4)
        assert not reader.at_eof()
        writer.transport.abort()


async def test_bytes_that_are_not_http_are_refused() -> None:
    async with serving() as server:
        answers = [
            await _answer(server.http_address, sent)
            for sent in (b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"a" * 100_000)
        ]
        fine = await post(server, JUDGE + "GetServerInfo", {})
    assert all(answer.startswith(b"HTTP/1.1 4") or not answer for answer in answers)
    assert fine.status == 200


async def test_a_request_with_two_lengths_is_refused_and_nothing_behind_it_is_read() -> None:
    body = json.dumps(chair_request("A dog.")).encode()
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    head = head_of(_SCORE, 4).removesuffix(b"\r\n") + b"transfer-encoding: chunked\r\n\r\n"
    smuggled = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"
    async with serving() as server:
        answer = await _answer(server.http_address, head + chunks + smuggled)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"the head has Content-Length and Transfer-Encoding" in answer
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_body_that_breaks_off_in_a_stream_leaves_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    line = b'{"spec": {"metric": "chair"}}\n'
    async with serving() as server:
        reader, writer = await connected(server)
        writer.write(head_of(JUDGE + "ScoreStream", None, LINES))
        writer.write(b"%x\r\n%s\r\n" % (len(line), line))
        async with asyncio.timeout(PATIENCE):
            await reader.readuntil(b'"accepted"')
            writer.write(b"this is not a chunk\r\n")
            with contextlib.suppress(ConnectionResetError):
                await reader.read()
        writer.close()
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []


async def _answer(address: str, sent: bytes) -> bytes:
    """Send bytes, and return all that comes until the server closes."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    async with asyncio.timeout(PATIENCE):
        try:
            answer = await reader.read()
        except ConnectionResetError:
            answer = b""
    writer.close()
    return answer


async def test_the_document_is_valid_and_has_every_method() -> None:
    async with serving() as server:
        answer = await request(server, "GET", "/openapi.json", b"", {})
    document = answer.json
    validate(document, cls=OpenAPIV31SpecValidator)
    methods = [
        f"/{service.full_name}/{method.name}"
        for file in (judge_service_pb2.DESCRIPTOR, jobs_pb2.DESCRIPTOR)
        for service in file.services_by_name.values()
        for method in service.methods
    ]
    assert document["openapi"].startswith("3.1")
    assert document["info"]["version"] == __version__
    assert sorted(document["paths"]) == sorted(methods)
    schemas = document["components"]["schemas"]
    assert all(schema["description"] for schema in schemas.values())
    parts = [part for schema in schemas.values() for part in schema.get("properties", {}).values()]
    assert all(part.get("description") for part in parts)


async def test_beyond_this_machine_the_document_needs_a_key(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    key = create_key(keys, "ana", scopes=[Scope.SCORE])
    async with serving(keys_file=str(keys), reflection="off") as server:
        without = await request(server, "GET", "/openapi.json", b"", {})
        bearer = {"authorization": f"Bearer {key}"}
        allowed = await request(server, "GET", "/openapi.json", b"", bearer)
    assert (without.status, without.reason, allowed.status) == (401, "KEY_MISSING", 200)
