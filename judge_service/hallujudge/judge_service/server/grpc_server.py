"""The server of gRPC itself: its limits, and its port."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import grpc

from ..errors import InvalidInputError
from ..settings.addresses import with_port

if TYPE_CHECKING:
    from ..settings.server import ServerSettings

__all__ = ["UnnamedMethods", "bind", "new_server"]


def new_server(
    settings: ServerSettings, interceptors: Sequence[grpc.aio.ServerInterceptor]
) -> grpc.aio.Server:
    """Return a server with the limits of the settings."""
    # gRPC cancels calls above its own limit without details, so admission must reject them first.
    pending = 4 * (settings.max_running_calls + settings.max_waiting_calls) + 1000
    return grpc.aio.server(
        interceptors=interceptors,
        options=[
            ("grpc.max_receive_message_length", settings.max_message_bytes),
            ("grpc.max_send_message_length", settings.max_message_bytes),
            ("grpc.server.max_pending_requests", pending),
            ("grpc.server.max_pending_requests_hard_limit", pending),
            ("grpc.so_reuseport", 0),
            # Clients ask a server at work whether it is alive; gRPC's default calls that abuse.
            ("grpc.http2.min_ping_interval_without_data_ms", 500),
            *_keepalive(settings),
        ],
    )


class UnnamedMethods:
    """Registers methods at a server that looks them up by the name of each call.

    For each method that is registered by its name, gRPC's server keeps a wait of its own, and takes
    up all of them again at every call: twenty took 20 microseconds. A method with its own wait is
    served before calls of others that came earlier.

    Args:
        server: The server.
        named: Methods that keep a wait of their own.
    """

    def __init__(self, server: grpc.aio.Server, *, named: Collection[str] = ()) -> None:
        self._server = server
        self._named = named

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Register methods."""
        self._server.add_generic_rpc_handlers(handlers)

    def add_registered_method_handlers(
        self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]
    ) -> None:
        """Register the methods that keep a wait of their own by their names too."""
        named = {name: handler for name, handler in handlers.items() if name in self._named}
        self._server.add_registered_method_handlers(service, named)


def _keepalive(settings: ServerSettings) -> tuple[tuple[str, int], ...]:
    """Return the options by which clients that vanished are noticed."""
    milliseconds = int(settings.keepalive_seconds * 1000)
    return (
        ("grpc.keepalive_time_ms", milliseconds),
        ("grpc.keepalive_timeout_ms", milliseconds),
        # The limit that holds while data waits to be sent.
        ("grpc.http2.ping_timeout_ms", milliseconds),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    )


def bind(
    server: grpc.aio.Server, settings: ServerSettings, credentials: grpc.ServerCredentials | None
) -> int:
    """Listen on the address of the settings; return the port.

    Raises:
        InvalidInputError: The address cannot be listened on.
    """
    address = with_port(settings.host, settings.port)
    try:
        port = (
            server.add_insecure_port(address)
            if credentials is None
            else server.add_secure_port(address, credentials)
        )
    except RuntimeError as err:
        raise _cannot_listen(address) from err
    if port == 0:
        raise _cannot_listen(address)
    return port


def _cannot_listen(address: str) -> InvalidInputError:
    return InvalidInputError(
        f"cannot listen on {address}: it is in use or not an address of this machine; "
        "set another host or port (port 0 chooses a free one)"
    )
