"""TLS and mutual TLS: what connects, and what a client is told if it does not."""

from __future__ import annotations

import asyncio
import datetime
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.certificates import Certificates, make_certificates, make_server_certificate
from support.engines import NotingEngine
from support.messages import expected_message
from support.threads import until

from hallujudge.judge_service.engine import Engine
from hallujudge.judge_service.errors import InvalidInputError, UnavailableError
from hallujudge.judge_service.server.server import RunningServer, start
from hallujudge.judge_service.settings.server_settings import ServerSettings, TlsSettings
from hallujudge.sdk import AsyncClient, Connection
from hallujudge.sdk.backends.channel import diagnose

RUN: dict[str, Any] = {"responses": {"1": "A dog and a cat."}, "references": {"1": ["dog"]}}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@asynccontextmanager
async def serving(
    pair: tuple[str, str] = ("", ""), ca: str = "", engine: Engine | None = None
) -> AsyncIterator[RunningServer]:
    settings = ServerSettings(port=0, tls=TlsSettings(cert=pair[0], key=pair[1], ca=ca))
    server = await start(settings, engine)
    try:
        yield server
    finally:
        await server.stop(0)


async def test_a_client_that_trusts_the_authority_scores(certificates: Certificates) -> None:
    connection = Connection(tls_ca=certificates.ca)
    async with (
        serving(certificates.server) as server,
        AsyncClient(server.address, connection=connection) as client,
    ):
        assert (await client.score("chair", **RUN)).chair_i == 0.5


async def test_a_certificate_names_the_caller(certificates: Certificates) -> None:
    engine = NotingEngine()
    cert, key = certificates.client
    connection = Connection(tls_ca=certificates.ca, tls_cert=cert, tls_key=key)
    async with (
        serving(certificates.server, certificates.ca, engine) as server,
        AsyncClient(server.address, connection=connection) as client,
    ):
        assert (await client.score("chair", **RUN)).chair_i == 0.5
    assert engine.caller.id == "certificate:ana"


async def said(server: RunningServer, connection: Connection) -> str:
    return await asyncio.to_thread(diagnose, server.address, connection)


async def test_a_client_is_told_what_is_wrong(certificates: Certificates, tmp_path: Path) -> None:
    trusting = Connection(tls_ca=certificates.ca)
    stranger = make_certificates(tmp_path / "stranger")
    async with serving(certificates.server) as server:
        text = await said(server, Connection(tls_ca=stranger.ca))
        assert expected_message("sdk.backends.channel:certificate-is-not-accepted") in text
        assert await said(server, trusting) == ""
    async with serving(certificates.foreign) as server:
        assert expected_message(
            "sdk.backends.channel:certificate-is-not-accepted-ip-address-mismatch"
        ) in await said(server, trusting)
    async with serving(certificates.server, certificates.ca) as server:
        assert expected_message(
            "sdk.backends.channel:wants-certificate-of-the-client"
        ) in await said(server, trusting)
        other = Connection(
            tls_ca=certificates.ca, tls_cert=stranger.client[0], tls_key=stranger.client[1]
        )
        assert expected_message(
            "sdk.backends.channel:does-not-accept-the-clients-certificate"
        ) in await said(server, other)
    async with serving() as server:
        assert expected_message("sdk.backends.channel:speaks-plain-text-not-tls") in await said(
            server, trusting
        )
        assert await said(server, Connection()) == ""


async def test_a_client_without_tls_gets_an_error_that_names_tls(
    certificates: Certificates,
) -> None:
    async with serving(certificates.server) as server, AsyncClient(server.address) as client:
        with pytest.raises(
            UnavailableError,
            match=expected_message("sdk.backends.channel:speaks-tls-set-connectiontls-ca"),
        ):
            await client.server_info()


@pytest.mark.parametrize(
    ("pair", "problem"),
    [
        ("expired", "certificate has expired; renew it"),
        ("mixed", "can't be used together (key values mismatch)"),
        ("no_key", "set both"),
        ("missing", "No such file or directory; check its path, and that"),
        ("text", "can't be used together"),
    ],
)
async def test_a_server_with_bad_files_does_not_start(
    certificates: Certificates, pair: str, problem: str, tmp_path: Path
) -> None:
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    pairs = {
        "expired": certificates.expired,
        "mixed": (certificates.server[0], certificates.client[1]),
        "no_key": (certificates.server[0], ""),
        "missing": ("/no/cert.pem", "/no/key.pem"),
        "text": (str(text), certificates.server[1]),
    }
    with pytest.raises(InvalidInputError) as caught:
        async with serving(pairs[pair]):
            pass
    assert problem in str(caught.value)


async def test_a_replaced_certificate_is_used_without_a_restart(
    certificates: Certificates, tmp_path: Path
) -> None:
    fresh = make_certificates(tmp_path / "fresh")
    pair = (tmp_path / "server.pem", tmp_path / "server.key")
    for path, source in zip(pair, certificates.server, strict=True):
        path.write_bytes(Path(source).read_bytes())
    async with serving((str(pair[0]), str(pair[1]))) as server:
        for path, source in zip(pair, fresh.server, strict=True):
            path.write_bytes(Path(source).read_bytes())
        async with AsyncClient(server.address, connection=Connection(tls_ca=fresh.ca)) as client:
            assert (await client.server_info()).version


async def test_a_certificate_that_ends_soon_is_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3)
    pair = make_server_certificate(tmp_path / "soon", ends=soon)
    with caplog.at_level(logging.WARNING):
        async with serving(pair):
            words = expected_message("judge_service.server.authentication:ends-in-days")
            await until(lambda: words in caplog.text)


async def test_a_certificate_that_ends_while_the_server_runs_is_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=10)
    pair = make_server_certificate(tmp_path / "soon", ends=soon)
    with caplog.at_level(logging.WARNING):
        async with serving(pair):
            await until(lambda: "certificate has expired" in caplog.text)


async def test_a_pair_that_does_not_fit_is_named_in_the_log_and_not_used(
    certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pair = (tmp_path / "server.pem", tmp_path / "server.key")
    for path, source in zip(pair, certificates.server, strict=True):
        path.write_bytes(Path(source).read_bytes())
    with caplog.at_level(logging.WARNING):
        async with serving((str(pair[0]), str(pair[1]))) as server:
            pair[1].write_bytes(Path(certificates.client[1]).read_bytes())
            await until(lambda: "key values mismatch" in caplog.text)
            connection = Connection(tls_ca=certificates.ca)
            async with AsyncClient(server.address, connection=connection) as client:
                assert (await client.server_info()).version
