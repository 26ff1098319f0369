"""Channels to a server: TLS, metadata, stream calls, and why a server can't be reached."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.settings.connection import SYSTEM, Connection, host_of, is_here

from ..errors import InvalidInputError, UnsupportedError, VersionMismatchError

# Certificates and keys have a few kilobytes; a device named by mistake is not read without end.
_MAX_FILE_BYTES = 1 << 20
# Above the usual limit of a server, 16 MiB, which decides; gRPC's own limit would be 4 MiB.
_MAX_MESSAGE_BYTES = 64 << 20

# gRPC repeats only calls that the server has not begun. A refused call is repeated here: gRPC gives
# up after a few times, repeats no message of more than 256 KiB, and says nothing of it.
_SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": [
                {"service": "hallujudge.judge.v1.JudgeService"},
                {"service": "hallujudge.judge.v1.ScoringJobService"},
            ],
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.2s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}

# gRPC's message for a write to a call that has ended, and how long the server's own status may
# take to arrive after it.
_WRITE_FAILED = "Internal error from Core"
_STATUS_SECONDS = 2.0
_LOOK_SECONDS = 0.02

# How long a connection for a diagnosis may take.
_DIAGNOSIS_SECONDS = 2.0
# The first bytes of every HTTP/2 connection, with an empty SETTINGS frame.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
# The type of the frame that every HTTP/2 server answers it with (RFC 9113, 6.5).
_SETTINGS_FRAME = 4


# The process that first opened a channel.
_opened_by: int | None = None


def check_not_forked() -> None:
    """Refuse calls in a process that was forked after gRPC was used.

    gRPC's asyncio interface has a thread for the whole process, which a fork does not copy. Calls
    then wait for ever or crash, with ``GRPC_ENABLE_FORK_SUPPORT`` as well.

    Raises:
        UnsupportedError: This process was forked from one that had opened a channel.
    """
    global _opened_by
    _opened_by = _opened_by or os.getpid()
    if _opened_by != os.getpid():
        raise UnsupportedError(
            f"this process was forked from process {_opened_by}, which had called a server, and "
            "gRPC does not work after that; start processes with spawn, such as "
            'multiprocessing.get_context("spawn") or DataLoader(multiprocessing_context="spawn"), '
            "and open the client in them"
        )


def channel_options(keepalive_ms: int) -> tuple[tuple[str, object], ...]:
    """Return the options of a channel.

    Args:
        keepalive_ms: Time between keepalive pings, and until one times out.
    """
    return (
        ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
        ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
        # Reconnect within seconds after a server restart; gRPC's default backs off to two minutes.
        ("grpc.max_reconnect_backoff_ms", 1000),
        # How long one attempt to connect may take, despite the name.
        ("grpc.min_reconnect_backoff_ms", 5000),
        # Without limit: a judge may think for minutes, in which no data is sent.
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.keepalive_time_ms", keepalive_ms),
        ("grpc.keepalive_timeout_ms", keepalive_ms),
        # Applies while data is waiting to be sent; its default is a minute.
        ("grpc.http2.ping_timeout_ms", keepalive_ms),
    )


def open_channel(
    target: str, connection: Connection, options: Sequence[tuple[str, object]]
) -> grpc.aio.Channel:
    """Return a channel to a server.

    Raises:
        InvalidInputError: A file of certificates can't be read.
        UnsupportedError: This process was forked after gRPC was used.
    """
    check_not_forked()
    if not connection.is_tls:
        return grpc.aio.insecure_channel(target, options=options)
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_authorities(connection),
        private_key=_read("tls_key", connection.tls_key),
        certificate_chain=_read("tls_cert", connection.tls_cert),
    )
    return grpc.aio.secure_channel(target, credentials, options=options)


def _authorities(connection: Connection) -> bytes | None:
    return None if connection.tls_ca in ("", SYSTEM) else _read("tls_ca", connection.tls_ca)


def _read(name: str, path: str) -> bytes | None:
    if not path:
        return None
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(_MAX_FILE_BYTES)
    except OSError as err:
        raise InvalidInputError(
            f"{name} {path!r} can't be read: {err.strerror or err}; check its path"
        ) from err
    if b"-----BEGIN " not in data:
        raise InvalidInputError(f"{name} {path!r} is not a PEM file; convert it to PEM")
    return data


def call_metadata(connection: Connection) -> tuple[tuple[str, str], ...]:
    """Return the metadata that calls carry: the API key, if there is one."""
    if not connection.api_key:
        return ()
    return (("authorization", f"Bearer {connection.api_key.reveal()}"),)


def trace_headers() -> tuple[tuple[str, str], ...]:
    """Return the W3C headers of the active span, if the program records traces.

    This never loads OpenTelemetry: a program with an active span has loaded it already.
    """
    if "opentelemetry.trace" not in sys.modules:
        return ()
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return tuple(headers.items())


def check_key(target: str, connection: Connection) -> None:
    """Refuse to send an API key that others could read on the network.

    Raises:
        InvalidInputError: The server is on another machine, and the connection is plain text, or
            the key has characters that can't be sent.
    """
    if not connection.api_key:
        return
    # gRPC would end the call with an error of its internals, which names no cause.
    if not connection.api_key.reveal().isascii() or not connection.api_key.reveal().isprintable():
        raise InvalidInputError("the API key has characters that no key has; check where it is set")
    if not connection.is_tls and not is_here(target):
        raise InvalidInputError(
            f"the API key would be readable on its way to {target!r}; connect over TLS: set "
            "Connection(tls_ca=…) to the authority of the server's certificate, or to system",
            metadata={"target": target},
        )


async def responses_of(call: Any) -> AsyncGenerator[pb.ScoreStreamResponse, None]:
    """Yield the messages of a stream; if it fails, raise the error that the server sent.

    A server may end a stream while the client is writing to it. gRPC then reports a failed write
    instead of the server's status, or before it.
    """
    status = _ServerStatus(call)
    try:
        async for response in call:
            yield response
    except grpc.aio.AioRpcError as err:
        if err.details() != _WRITE_FAILED:
            raise
        raise (await status.arrived() or err) from err
    finally:
        # The caller may stop early, and the server would go on judging in vain.
        call.cancel()


class _ServerStatus:
    """The status that a server sent for a call, even if gRPC reports a different one."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._error: grpc.aio.AioRpcError | None = None
        call.add_done_callback(self._note)

    async def arrived(self) -> grpc.aio.AioRpcError | None:
        """Return the status as an error, or None if it does not arrive in time."""
        left = _STATUS_SECONDS
        # gRPC calls back for the first status alone, which a later one overwrites.
        while self._error is None and left > 0:
            await asyncio.sleep(_LOOK_SECONDS)
            left -= _LOOK_SECONDS
            self._note(self._call)
        return self._error

    def _note(self, call: Any) -> None:
        details = _now(call.details())
        if details != _WRITE_FAILED:
            self._error = grpc.aio.AioRpcError(
                _now(call.code()),
                grpc.aio.Metadata(),
                _now(call.trailing_metadata()),
                details=details,
            )


def _now(answer: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine that never suspends."""
    try:
        answer.send(None)
    except StopIteration as done:
        return done.value
    answer.close()
    raise AssertionError("a call that is done keeps its status waiting")


def diagnose(target: str, connection: Connection) -> str:
    """Connect again without gRPC, and return what is wrong with TLS or an empty text.

    gRPC's own error does not say whether the other side speaks TLS or rejects a certificate.

    Args:
        target: The server's address.
        connection: How the client connects.
    """
    host, _, port = target.rpartition(":")
    if not host or not port.isdigit():
        return ""
    # A server that is away by now has nothing wrong with TLS: gRPC's error is shown as it is.
    with suppress(OSError):
        if connection.is_tls:
            return _over_tls((host_of(target), int(port)), connection)
        return _in_plain_text((host_of(target), int(port)))
    return ""


def _over_tls(address: tuple[str, int], connection: Connection) -> str:
    try:
        context = _context(connection)
    except ssl.SSLError as err:
        return f"the TLS files of this client can't be used ({_reason(err)}); check them"
    with socket.create_connection(address, _DIAGNOSIS_SECONDS) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=address[0]) as secure:
                # With TLS 1.3 a server checks the client's certificate after the handshake, and
                # gRPC's servers then close the connection without an alert.
                secure.sendall(_PREFACE)
                return "" if _answers(secure) else _refused(connection, "it hangs up")
        except ssl.SSLCertVerificationError as err:
            return _certificate(err, address[0])
        except ssl.SSLError as err:
            return _handshake(err, connection)


def _answers(secure: ssl.SSLSocket) -> bool:
    try:
        return bool(secure.recv(1))
    except TimeoutError:
        return True  # slow, but it did not hang up
    except ConnectionError:
        return False


def _context(connection: Connection) -> ssl.SSLContext:
    file = None if connection.tls_ca in ("", SYSTEM) else connection.tls_ca
    context = ssl.create_default_context(cafile=file)
    # gRPC's servers end a handshake without HTTP/2.
    context.set_alpn_protocols(["h2"])
    if connection.tls_cert:
        # Without one, OpenSSL would ask for it on the terminal.
        context.load_cert_chain(connection.tls_cert, connection.tls_key, password="")
    return context


def _certificate(err: ssl.SSLCertVerificationError, host: str) -> str:
    advice = "set Connection(tls_ca=…) to the authority that it is from"
    if "expired" in err.verify_message:
        advice = "have it renewed"
    elif "mismatch" in err.verify_message.lower() or "not valid for" in err.verify_message:
        advice = f"use a name that the certificate has, not {host}"
    return f"the server's certificate is not accepted: {err.verify_message}; {advice}"


def _handshake(err: ssl.SSLError, connection: Connection) -> str:
    reason = _reason(err)
    if "wrong version number" in reason or "record layer" in reason or "http request" in reason:
        return "the server speaks plain text, not TLS; leave out tls_ca, or start it with tls.cert"
    if "alert" in reason:
        return _refused(connection, reason)
    return f"the TLS handshake failed: {reason}"


def _refused(connection: Connection, reason: str) -> str:
    what = "wants a certificate of the client"
    if connection.tls_cert:
        what = "does not accept the client's certificate"
    return (
        f"the server {what} ({reason}); set Connection(tls_cert=…) and Connection(tls_key=…) to a "
        "certificate from its authority"
    )


def _in_plain_text(address: tuple[str, int]) -> str:
    with socket.create_connection(address, _DIAGNOSIS_SECONDS) as plain:
        plain.sendall(_PREFACE)
        answer = b""
        # A server that speaks TLS hangs up on the preface.
        with suppress(OSError):
            answer = plain.recv(9)
    if len(answer) > 3 and answer[3] == _SETTINGS_FRAME:
        return ""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    # Nothing is sent here; this only tests whether the server speaks TLS.
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(address, _DIAGNOSIS_SECONDS) as plain:
        try:
            with context.wrap_socket(plain):
                pass
        except ssl.SSLError as err:
            # An alert is an answer in TLS, from a server that refuses this handshake.
            if "alert" not in _reason(err):
                return ""
    return (
        "the server speaks TLS, not plain text; set Connection(tls_ca=…) to the authority of its "
        "certificate, or to system"
    )


def _reason(err: ssl.SSLError) -> str:
    return (err.reason or str(err)).replace("_", " ").lower()


def check_versions(client: str, server: str, target: str) -> None:
    """Refuse a server with an incompatible release.

    Before 1.0 every minor release may change the protocol; from 1.0 on only a major one may.

    Raises:
        VersionMismatchError: The releases are not compatible.
    """
    if _series(client) == _series(server):
        return
    raise VersionMismatchError(
        f"the server at {target!r} is release {server or 'unknown'}, this client is {client}; "
        "install the same release on both sides",
        metadata={"client": client, "server": server, "target": target},
    )


def _series(version: str) -> list[str]:
    parts = version.split(".")
    return parts[:2] if parts[0] == "0" else parts[:1]


class Feed:
    """An async iterator that remembers the error it ended with.

    gRPC swallows what a request iterator raises and reports a cancelled call instead.
    """

    def __init__(self, source: AsyncIterator[pb.ScoreStreamRequest]) -> None:
        self._source = source
        self.error: Exception | None = None

    def __aiter__(self) -> Feed:
        return self

    async def __anext__(self) -> pb.ScoreStreamRequest:
        try:
            return await anext(self._source)
        except StopAsyncIteration:
            raise
        except Exception as err:
            self.error = err
            raise
