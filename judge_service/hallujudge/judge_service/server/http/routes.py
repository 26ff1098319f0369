"""The methods by path, each wrapped by the interceptors that wrap it for gRPC."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import grpc

__all__ = ["Handlers", "Route", "routes_of"]

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Interceptors: TypeAlias = "Sequence[grpc.aio.ServerInterceptor]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method. Its calls take an iterator of messages as bytes, and the context."""

    name: str
    """The method's name."""
    many: bool
    """Whether clients send any number of messages."""
    stream: bool
    """Whether it returns any number of messages."""
    json: Callable[..., Any]
    """Serves messages in JSON; returns messages."""
    binary: Callable[..., Any]
    """Serves messages in the binary form of protobuf; returns what ``written`` takes."""
    written: Callable[[Any], bytes]
    """Returns the binary form of what ``binary`` returned."""


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
    handlers: Handlers, *, json: _Interceptors, binary: _Interceptors
) -> Mapping[str, Route]:
    """Return the methods by path.

    Args:
        handlers: The methods.
        json: What wraps them for messages in JSON, the outermost first.
        binary: The same for messages in the binary form.
    """
    routes = {}
    for path, handler in handlers.by_path.items():
        in_json = await _wrapped(path, handler, json)
        in_binary = await _wrapped(path, handler, binary)
        routes[path] = Route(
            name=path.rpartition("/")[2],
            many=bool(handler.request_streaming),
            stream=bool(handler.response_streaming),
            json=_call_of(in_json, many=handler.request_streaming),
            binary=_call_of(in_binary, many=handler.request_streaming),
            written=cast("Callable[[Any], bytes]", in_binary.response_serializer),
        )
    return routes


def _call_of(handler: _Handler, *, many: bool) -> Callable[..., Any]:
    call = cast("Callable[..., Any]", handler.stream_stream or handler.stream_unary)
    # As with gRPC: the one message of a call is read from its context.
    return call if many else lambda raws, context: call(raws, context.reading(raws))


async def _wrapped(path: str, handler: _Handler, interceptors: _Interceptors) -> _Handler:
    async def found(_: grpc.HandlerCallDetails) -> _Handler:
        return handler

    inner: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler]] = found
    for interceptor in reversed(interceptors):
        inner = _within(interceptor, inner)
    return await inner(_Details(path))


def _within(
    interceptor: grpc.aio.ServerInterceptor,
    inner: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler]],
) -> Callable[[grpc.HandlerCallDetails], Awaitable[_Handler]]:
    async def wrapped(details: grpc.HandlerCallDetails) -> _Handler:
        found = await interceptor.intercept_service(inner, details)
        assert found is not None, "each of our methods has a handler"
        return found

    return wrapped
