"""The ASGI application: finds the method of a request, calls it and sends the response.

Requests that are not calls are refused here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Coroutine,
    Mapping,
)
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, cast
from urllib.parse import unquote

import grpc
from google.rpc import error_details_pb2, status_pb2

from hallujudge.judge.v1 import jobs_pb2 as pb

from ... import __version__
from ...errors import DeadlineError, HallujudgeError
from ...settings.connection import OTHER_HOST, is_own_host, web_address
from ...stopping import begun, cancel_all
from ...wire.errors import status_of
from ..authentication import describes_itself
from ..interceptors import Handler, within
from ..logs import internal_error
from ..observation import REQUEST_ID, record_refused
from ..services import Methods, Services
from .compatible_calls import (
    CHAT,
    MODELS,
    OPENAI,
    OPENRLHF,
    ChatCall,
    RewardCall,
    models_body,
    openai_error,
)
from .exchange import (
    JSON,
    LINES,
    PROTO,
    Body,
    CallFailedError,
    Exchange,
    Headers,
    HttpContext,
    Receive,
    Scope,
    Send,
    detail_of,
    lines_of,
    name_of,
    unpacked,
    whole,
)
from .json_messages import JsonForm, to_json

DOCUMENT = "/openapi.json"
_SCORE = "/hallujudge.judge.v1.JudgeService/Score"
_LIST = "/hallujudge.judge.v1.JudgeService/ListMetrics"
# Calls of Score in the form of other programs.
_FOREIGN: Mapping[str, type[RewardCall] | type[ChatCall]] = {OPENRLHF: RewardCall, CHAT: ChatCall}
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


def routes_of(services: Services) -> Mapping[str, Route]:
    """Return the methods by path."""
    json, binary = services.interceptors(JsonForm), services.interceptors()
    routes, methods = {}, Methods()
    services.register(methods)
    for service, handlers in methods.by_service.items():
        for name, handler in handlers.items():
            path, many = f"/{service}/{name}", bool(handler.request_streaming)
            in_binary = within(binary, path, handler)
            routes[path] = Route(
                name=name,
                many=many,
                stream=bool(handler.response_streaming),
                json=_call_of(within(json, path, handler), many=many),
                binary=_call_of(in_binary, many=many),
                written=cast("Callable[[Any], bytes]", in_binary.response_serializer),
            )
    # The same methods, which the application calls with other requests.
    for path in _FOREIGN:
        routes[path] = replace(routes[_SCORE], name=path)
    routes[MODELS] = replace(routes[_LIST], name=MODELS)
    return routes


def _call_of(handler: Handler, *, many: bool) -> Callable[..., Any]:
    call = cast("Callable[..., Any]", handler.stream_stream or handler.stream_unary)
    # As with gRPC, a single message is read from the context of the call.
    return call if many else lambda raws, context: call(raws, context.reading(raws))


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
    reads = route is None or route.name == MODELS
    wanted = ("GET", "HEAD") if reads else ("POST",)
    if method not in wanted:
        return _refusal(405, f"send a {wanted[0]} request", ("allow", ", ".join(wanted)))
    if route is None or reads:
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


def foreign_host(exchange: Exchange, target: str, names: Collection[str]) -> Refusal | None:
    """Refuse a request whose host is not a name of this machine, or that does not have one host.

    Args:
        exchange: The request.
        target: The host in the request's target, which replaces the header's; empty if none.
        names: Further names of this machine.
    """
    headers = exchange.headers("host")
    host = (target or headers[0]) if len(headers) == 1 else ""
    if is_own_host(host, names):
        return None
    if len(headers) != 1:
        problem = f"the head has {len(headers)} Host headers; send one"
        return _refusal(400, problem, code=grpc.StatusCode.INVALID_ARGUMENT)
    problem = f"the host is {host!r:.80}; {OTHER_HOST}"
    return _refusal(403, problem, code=grpc.StatusCode.PERMISSION_DENIED)


def _kinds(route: Route) -> tuple[str, ...]:
    if route.many:
        return (LINES,)
    return (JSON,) if route.stream or route.name in _FOREIGN else (JSON, PROTO)


def _refusal(
    http: int,
    problem: str,
    *headers: tuple[str, str],
    code: grpc.StatusCode = grpc.StatusCode.UNIMPLEMENTED,
) -> Refusal:
    status = status_pb2.Status(code=code.value[0], message=problem)
    return Refusal(http=http, status=status, headers=headers)


_TIMEOUT = "connect-timeout-ms"
# As the Connect protocol defines it.
_MAX_TIMEOUT_DIGITS = 10


class HttpApp:
    """Serves the methods as an ASGI application.

    Args:
        routes: The methods by path.
        services: The settings, and what HTTP shares with gRPC.
    """

    def __init__(self, routes: Mapping[str, Route], services: Services) -> None:
        settings, authenticator = services.settings, services.authenticator
        self._routes = routes
        # Of refused requests; the interceptors record calls.
        self._recorder = services.recorder
        self._limit = settings.limits.max_message_bytes
        self._most = settings.limits.max_batch_items
        self._authenticator = authenticator
        self._open = describes_itself(settings, settings.http.host)
        # A web page can make its reader's browser call a server that needs no key. Over TLS, the
        # browser checks the server's name itself.
        self._checks_host = authenticator.serves_anyone and not settings.tls.cert
        self._names = settings.own_names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        exchange, (path, host) = Exchange.of(scope, send), target_of(scope)
        if path.startswith(OPENAI):
            exchange.write_error = openai_error
        # All checks come before the body is read.
        refusal = two_lengths(exchange)
        refusal = refusal or refusal_of(exchange, scope["method"], path, self._routes)
        if refusal is None and self._checks_host:
            refusal = foreign_host(exchange, host, self._names)
        if refusal is not None:
            await self._refuse(exchange, refusal.status, refusal.http, refusal.headers)
        elif (route := self._routes.get(path)) is None:
            await self._describe(exchange)
        else:
            body = Body(receive)
            await _while_followed(body, self._serve(route, exchange, body))

    async def _describe(self, exchange: Exchange) -> None:
        context: Any = exchange.context
        try:
            # As with reflection over gRPC, strangers get no description of the methods.
            if not self._open:
                self._authenticator.caller_of(context)
        except HallujudgeError as err:
            await self._refuse(exchange, status_of(err))
        else:
            await exchange.respond(200, JSON, openapi_document())

    async def _refuse(
        self,
        exchange: Exchange,
        status: status_pb2.Status,
        http: int | None = None,
        headers: Headers = (),
    ) -> None:
        record_refused(
            self._recorder,
            name_of(status),
            status.message,
            peer=exchange.context.address,
            request_id=exchange.header(REQUEST_ID),
        )
        await exchange.fail(status, http, headers)

    async def _serve(self, route: Route, exchange: Exchange, body: Body) -> None:
        try:
            async with asyncio.timeout(_timeout_of(exchange)):
                await self._answer(route, exchange, body)
        except CallFailedError as err:
            await exchange.fail(err.status)
        except TimeoutError:
            problem = f"the call did not end within its {_TIMEOUT}; give it more time"
            await exchange.fail(status_of(DeadlineError(problem)))
        except Exception as err:
            await exchange.fail(status_of(internal_error(err)))

    async def _answer(self, route: Route, exchange: Exchange, body: Body) -> None:
        parts = body.parts()
        if coding_of(exchange) == GZIP:
            parts = unpacked(parts)
        raws = (lines_of if route.many else whole)(parts, self._limit)
        context: Any = exchange.context
        if route.stream:
            await _streamed(route.json(raws, context), exchange)
        elif route.name == "ListJobResults" and LINES in exchange.header("accept"):
            await _streamed(all_results(route.json, raws, context), exchange)
        elif route.name == MODELS:
            await exchange.respond(200, JSON, models_body(await route.json(_once(b"{}"), context)))
        elif (form := _FOREIGN.get(route.name)) is not None:
            call = form(exchange.query, self._most)
            response = await route.json(call.requests(raws), context)
            await exchange.respond(200, call.kind, await call.answer(response))
        elif kind_of(exchange) == PROTO:
            response = await route.binary(raws, context)
            await exchange.respond(200, PROTO, route.written(response))
        else:
            response = await route.json(raws, context)
            await exchange.respond(200, JSON, await to_json(response))


async def _while_followed(body: Body, serving: Coroutine[Any, Any, None]) -> None:
    """Serve until the response is sent or the client has gone."""
    call = begun(serving)
    # ASGI reports that a client has gone only to an application that keeps reading.
    following = begun(body.follow())
    try:
        await asyncio.wait({call, following}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_all(call, following)


async def _streamed(responses: AsyncGenerator[Any, None], exchange: Exchange) -> None:
    """Send each message as a line. The head waits for the first message, which may fail."""
    async with aclosing(responses):
        async for response in responses:
            line = await to_json(response) + b"\n"
            if not exchange.begun:
                await exchange.begin(200, LINES)
            await exchange.part(line)
    if not exchange.begun:
        await exchange.begin(200, LINES)
    await exchange.part(b"", more=False)


def _timeout_of(exchange: Exchange) -> float | None:
    """Return the timeout that the client sets for the call, in seconds, or None."""
    text = exchange.header(_TIMEOUT)
    # Without it, digits of other scripts would pass, which int() reads too.
    if not text.isascii() or not text.isdigit() or len(text) > _MAX_TIMEOUT_DIGITS:
        return None
    return int(text) / 1000


def target_of(scope: Mapping[str, Any]) -> tuple[str, str]:
    """Return the path of a request, and the host in its target or an empty text.

    The target may be a whole URL, whose host then replaces the header's (RFC 9112, 3.2.2).
    """
    target = scope.get("raw_path", b"/").decode("ascii", "replace")
    parts = None if target.startswith("/") else web_address(target)
    if parts is None or "@" in parts.netloc:
        return scope["path"], ""
    return unquote(parts.path) or "/", parts.netloc


@cache
def openapi_document() -> bytes:
    """Return the OpenAPI document, which is generated from the .proto files, with the version."""
    text = resources.files("hallujudge.judge.v1").joinpath("openapi.json").read_text("utf-8")
    document = json.loads(text)
    document["info"]["version"] = __version__
    return json.dumps(document, ensure_ascii=False).encode()


async def all_results(
    call: Callable[..., Any], raws: AsyncGenerator[bytes, None], context: HttpContext
) -> AsyncGenerator[pb.JobResult | pb.ListJobResultsResponse, None]:
    """Yield all results from the requested position on, then the position after the last one.

    Each page is a call of its own, so that the server holds no more results than for gRPC clients.

    Args:
        call: Returns a page.
        raws: The request, in JSON.
        context: The call's context.
    """
    # The first request is kept: every further page repeats it with another position.
    seen: list[bytes] = []
    page = await call(_kept(raws, seen), context)
    while True:
        for result in page.results:
            yield result
        if page.last or not page.results:
            yield pb.ListJobResultsResponse(next_position=page.next_position, last=page.last)
            return
        request = json.loads(seen[0]) | {"position": page.next_position}
        page = await _patiently(call, json.dumps(request).encode(), context)


async def _patiently(call: Callable[..., Any], raw: bytes, context: HttpContext) -> Any:
    """Call again as often as a limit of the caller's key delays the call."""
    while True:
        try:
            return await call(_once(raw), context)
        except CallFailedError as err:
            retry = detail_of(err.status, error_details_pb2.RetryInfo())
            if not retry.HasField("retry_delay"):
                raise
        await asyncio.sleep(retry.retry_delay.ToNanoseconds() / 1e9)


async def _kept(
    raws: AsyncGenerator[bytes, None], seen: list[bytes]
) -> AsyncGenerator[bytes, None]:
    async for raw in raws:
        seen.append(raw)
        yield raw


async def _once(raw: bytes) -> AsyncGenerator[bytes, None]:
    yield raw
