"""The methods by path, each wrapped by the interceptors that wrap it for gRPC."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import grpc

__all__ = ["Handlers", "Route", "routes_of"]

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method."""

    many: bool
    """Whether clients send any number of messages."""
    call: Callable[..., Any]
    """Serves it: takes the messages' bytes and the context, and returns messages."""
    stream: bool
    """Whether it returns any number of messages."""


class Handlers:
    """Collects the methods that generated code registers at a server."""

    def __init__(self) -> None:
        self.by_path: dict[str, _Handler] = {}

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Take nothing: the same methods are registered by name."""

    def add_registered_method_handlers(
        self, service: str, handlers: Mapping[str, _Handler]
    ) -> None:
        """Take the methods of a service."""
        self.by_path |= {f"/{service}/{name}": handler for name, handler in handlers.items()}


class _Details(grpc.HandlerCallDetails):
    """Names a method to interceptors."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.invocation_metadata = ()


async def routes_of(
    handlers: Handlers, interceptors: Sequence[grpc.aio.ServerInterceptor]
) -> Mapping[str, Route]:
    """Return the methods by path.

    Args:
        handlers: The methods.
        interceptors: What wraps them, the outermost first.
    """
    return {
        path: await _route(path, handler, interceptors)
        for path, handler in handlers.by_path.items()
    }


async def _route(
    path: str, handler: _Handler, interceptors: Sequence[grpc.aio.ServerInterceptor]
) -> Route:
    async def found(_: grpc.HandlerCallDetails) -> _Handler:
        return handler

    inner: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler]] = found
    for interceptor in reversed(interceptors):
        inner = _within(interceptor, inner)
    wrapped = await inner(_Details(path))
    call = wrapped.stream_stream or wrapped.stream_unary
    return Route(
        many=bool(handler.request_streaming),
        stream=bool(handler.response_streaming),
        call=cast("Callable[..., Any]", call),
    )


def _within(
    interceptor: grpc.aio.ServerInterceptor,
    inner: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler]],
) -> Callable[[grpc.HandlerCallDetails], Awaitable[_Handler]]:
    async def wrapped(details: grpc.HandlerCallDetails) -> _Handler:
        found = await interceptor.intercept_service(inner, details)
        assert found is not None, "each of our methods has a handler"
        return found

    return wrapped
