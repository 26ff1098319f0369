"""Routes of HTTP requests to methods, and refusals of requests that are not calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import grpc
from google.rpc import status_pb2

from ...settings.connection import OTHER_HOST, is_own_host
from ..interceptors import Handler
from .exchange import JSON, LINES, PROTO, Exchange, Headers

_Interceptors: TypeAlias = "Sequence[grpc.aio.ServerInterceptor]"

DOCUMENT = "/openapi.json"
GZIP = "gzip"
_CODINGS = ("", "identity", GZIP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A method. Its calls take an iterator of encoded messages, and the context."""

    name: str
    """The method's name."""
    many: bool
    """Whether clients stream messages."""
    stream: bool
    """Whether it returns a stream of messages."""
    json: Callable[..., Any]
    """Takes messages in JSON and returns messages."""
    binary: Callable[..., Any]
    """Takes messages in binary form and returns what ``written`` takes."""
    written: Callable[[Any], bytes]
    """Encodes what ``binary`` returned."""


class Handlers:
    """Collects the methods that generated code registers at a server."""

    def __init__(self) -> None:
        self.by_path: dict[str, Handler] = {}

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Ignore them: the same methods are registered by name as well."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Add the methods of a service."""
        self.by_path |= {f"/{service}/{name}": handler for name, handler in handlers.items()}


class _Details(grpc.HandlerCallDetails):
    """The details of a call as interceptors read them."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.invocation_metadata = ()


async def routes_of(
    handlers: Handlers, *, json: _Interceptors, binary: _Interceptors
) -> Mapping[str, Route]:
    """Return the methods by path.

    Args:
        handlers: The methods.
        json: Their interceptors for messages in JSON, the outermost first.
        binary: Their interceptors for messages in binary form.
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


def _call_of(handler: Handler, *, many: bool) -> Callable[..., Any]:
    call = cast("Callable[..., Any]", handler.stream_stream or handler.stream_unary)
    # As with gRPC, a single message is read from the context of the call.
    return call if many else lambda raws, context: call(raws, context.reading(raws))


async def _wrapped(path: str, handler: Handler, interceptors: _Interceptors) -> Handler:
    async def found(_: grpc.HandlerCallDetails) -> Handler:
        return handler

    inner: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]] = found
    for interceptor in reversed(interceptors):
        inner = _within(interceptor, inner)
    return await inner(_Details(path))


def _within(
    interceptor: grpc.aio.ServerInterceptor,
    inner: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
) -> Callable[[grpc.HandlerCallDetails], Awaitable[Handler]]:
    async def wrapped(details: grpc.HandlerCallDetails) -> Handler:
        found = await interceptor.intercept_service(inner, details)
        assert found is not None, "each of our methods has a handler"
        return found

    return wrapped


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request is not a call."""

    http: int
    """The HTTP status."""
    status: status_pb2.Status
    """The error."""
    headers: Headers = ()
    """Headers that name what would be accepted."""


def kind_of(exchange: Exchange) -> str:
    """Return the content type of a request, without parameters."""
    return exchange.header("content-type").partition(";")[0].strip().lower()


def coding_of(exchange: Exchange) -> str:
    """Return the compression of a request's body, or an empty text."""
    return exchange.header("content-encoding").strip().lower()


def refusal_of(
    exchange: Exchange, method: str, path: str, routes: Mapping[str, Route]
) -> Refusal | None:
    """Return why a request is not a call, or None if it is one."""
    route = routes.get(path)
    if route is None and path != DOCUMENT:
        return _refusal(404, f"there is no such method; {DOCUMENT} lists them")
    wanted = ("GET", "HEAD") if route is None else ("POST",)
    if method not in wanted:
        return _refusal(405, f"send a {wanted[0]} request", ("allow", ", ".join(wanted)))
    if route is None:
        return None
    kinds = _kinds(route)
    if (kind := kind_of(exchange)) not in kinds:
        problem = f"the content type is {kind!r:.80}; send {' or '.join(kinds)}"
        return _refusal(415, problem, ("accept-post", ", ".join(kinds)))
    if (coding := coding_of(exchange)) not in _CODINGS:
        problem = f"the content encoding is {coding!r:.80}; send {GZIP}, or the body as it is"
        return _refusal(415, problem, ("accept-encoding", GZIP))
    return None


def two_lengths(exchange: Exchange) -> Refusal | None:
    """Refuse a request with two lengths of its body, and close its connection.

    A proxy that trusts the other length would treat a part of the body as the next request, which
    may be another caller's (request smuggling).
    """
    if not (exchange.header("content-length") and exchange.header("transfer-encoding")):
        return None
    problem = "the head has Content-Length and Transfer-Encoding; send one of them"
    return _refusal(400, problem, ("connection", "close"), code=grpc.StatusCode.INVALID_ARGUMENT)


def foreign_host(host: str, names: Collection[str]) -> Refusal | None:
    """Refuse a request whose host is not a name of this machine.

    Args:
        host: The host.
        names: Further names of this machine.
    """
    if is_own_host(host, names):
        return None
    problem = f"the host is {host!r:.80}; {OTHER_HOST}"
    return _refusal(403, problem, code=grpc.StatusCode.PERMISSION_DENIED)


def _kinds(route: Route) -> tuple[str, ...]:
    if route.many:
        return (LINES,)
    return (JSON,) if route.stream else (JSON, PROTO)


def _refusal(
    http: int,
    problem: str,
    *headers: tuple[str, str],
    code: grpc.StatusCode = grpc.StatusCode.UNIMPLEMENTED,
) -> Refusal:
    status = status_pb2.Status(code=code.value[0], message=problem)
    return Refusal(http=http, status=status, headers=headers)
