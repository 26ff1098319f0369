"""HTTP with JSON: the same methods, callers, limits and errors as over gRPC."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...errors import InvalidInputError, MissingExtraError
from ...observe import Recorder
from ...settings.connection import is_ipv6, plain_host, with_port
from ...stopping import Grace, begun
from ..authentication import peer_of, server_context
from ..connections import ConnectionGuard
from ..observation import record_refused, request_id
from .asgi_app import HttpApp, routes_of

try:
    import uvicorn
    from h11 import LocalProtocolError
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ModuleNotFoundError as err:
    raise MissingExtraError.of("HTTP", "http") from err

from ...settings.server_settings import ServerSettings
from ..services import Services

# A probe or two may get lost on the way without the client being gone.
_KEEPALIVE_PROBES = 3
# uvicorn checks ten times a second whether it has to stop.
_END_SECONDS = 4.0


class HttpListener:
    """Serves the methods over HTTP/1.1.

    Args:
        services: The settings, and what HTTP shares with gRPC.

    Raises:
        InvalidInputError: The address cannot be listened on.
    """

    def __init__(self, services: Services) -> None:
        settings, self._calls = services.settings, services.calls
        tls = server_context(settings.tls)
        self._socket = _Listening(_listening(settings), services.connections)
        self.port = self._socket.getsockname()[1]
        self.address = with_port(settings.http.host, self.port)
        config = uvicorn.Config(
            HttpApp(routes_of(services), services),
            http=_protocol(settings.limits.first_message_seconds, services.recorder),
            ws="none",
            lifespan="off",
            # The server logs calls itself, and clients could fill uvicorn's log.
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            # Headers of clients must not change their address.
            proxy_headers=False,
            timeout_keep_alive=max(1, int(settings.limits.keepalive_seconds)),
            ssl_context_factory=(lambda *_: tls) if tls is not None else None,
        )
        self._server = _Server(config)
        self._serving: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Serve."""
        self._serving = begun(self._server.serve([self._socket]))

    async def stop(self, period: Grace) -> None:
        """Stop accepting connections, and wait for running requests to finish.

        Args:
            period: How long they may take.
        """
        if self._serving is None:
            self._socket.close()
            return
        self._server.should_exit = True
        await period.wait(self._serving)
        if not self._serving.done():
            self._calls.stop()
            await asyncio.wait({self._serving}, timeout=_END_SECONDS)
        self._server.force_exit = True
        for connection in tuple(self._server.server_state.connections):
            connection.transport.abort()
        await asyncio.wait({self._serving}, timeout=_END_SECONDS)
        self._serving.cancel()
        await asyncio.gather(self._serving, return_exceptions=True)


class _Listening(socket.socket):
    """A listening socket whose connections leave the process its last files.

    Args:
        found: The socket, which this one replaces.
        connections: Chooses connections.
    """

    def __init__(self, found: socket.socket, connections: ConnectionGuard) -> None:
        super().__init__(found.family, found.type, found.proto, found.detach())
        self._connections = connections

    def accept(self) -> Any:
        """Return the next connection, if there is one that may stay."""
        return self._connections.accept(super().accept)


class _Server(uvicorn.Server):
    """A server that does not handle signals, which the process does."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing."""
        yield


def _protocol(seconds: float, recorder: Recorder) -> type[H11Protocol]:
    """Return the protocol class of connections.

    Args:
        seconds: How long the head of a request may take.
        recorder: Records requests that are not valid HTTP.
    """

    class Protocol(H11Protocol):
        """Closes a connection whose client does not send the head of a request in time.

        uvicorn has no limit for that.
        """

        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.app_state = {"certificate": _certificate_of(transport)}
            self._expect()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            self._expect()
            super().on_response_complete()

        def handle_events(self) -> None:
            super().handle_events()
            if self.cycle is not None and not self.cycle.response_complete:
                self._forget()

        def send_400_response(self, msg: str) -> None:
            if self.cycle is None or self.cycle.response_complete:  # a running call is recorded
                record_refused(
                    recorder,
                    "INVALID_ARGUMENT",
                    msg,
                    peer=peer_of(self.client),
                    request_id=request_id(()),
                )
            try:
                super().send_400_response(msg)
            except LocalProtocolError:  # a response has begun, so that no other can be sent
                self.transport.abort()

        def _expect(self) -> None:
            self._forget()
            self._timer = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

        def _forget(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Protocol


def _certificate_of(transport: asyncio.Transport) -> dict[str, list[bytes]]:
    """Return the names in a client's certificate, as gRPC calls them."""
    shown = transport.get_extra_info("peercert") or {}
    names = [
        value.encode()
        for part in shown.get("subject", ())
        for name, value in part
        if name == "commonName"
    ]
    return {"x509_common_name": names} if names else {}


def _listening(settings: ServerSettings) -> socket.socket:
    place = with_port(settings.http.host, settings.http.port)
    family = socket.AF_INET6 if is_ipv6(settings.http.host) else socket.AF_INET
    try:
        found = socket.create_server(
            (plain_host(settings.http.host), settings.http.port), family=family, backlog=1024
        )
    except OSError as err:
        raise InvalidInputError(
            f"HTTP cannot listen on {place}: {_why(err)}; set another http.host or "
            "http.port (port 0 chooses a free one)"
        ) from err
    found.setblocking(False)
    # Connections inherit this option. asyncio sets it only for sockets that name their protocol.
    # Without it the body of a response is sent 40 ms after its head.
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _notice_vanished(found, settings.limits.keepalive_seconds)
    return found


def _notice_vanished(listening: socket.socket, seconds: float) -> None:
    """Let the system probe idle clients; connections inherit the options."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    whole = max(1, round(seconds))
    for name, value in (
        ("TCP_KEEPIDLE", whole),
        ("TCP_KEEPINTVL", max(1, whole // _KEEPALIVE_PROBES)),
        ("TCP_KEEPCNT", _KEEPALIVE_PROBES),
        ("TCP_USER_TIMEOUT", 2000 * whole),
    ):
        if (option := getattr(socket, name, None)) is not None:
            listening.setsockopt(socket.IPPROTO_TCP, option, value)


def _why(error: OSError) -> str:
    """Return only the system's message, to which asyncio adds the address."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)
