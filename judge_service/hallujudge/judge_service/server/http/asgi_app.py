"""The ASGI application: finds the method of a request, calls it and sends the response."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from google.rpc import error_details_pb2

from hallujudge.judge.v1 import jobs_pb2 as pb

from ...errors import DeadlineError, HallujudgeError
from ...installation import __version__
from ...settings.connection import web_address
from ...stopping import begun, cancel_all
from ...wire.errors import status_of
from ..authentication import describes_itself
from ..logs import internal_error
from ..observation import REQUEST_ID, record_refused
from .exchange import (
    JSON,
    LINES,
    PROTO,
    Body,
    Exchange,
    Headers,
    HttpContext,
    Receive,
    Scope,
    Send,
    lines_of,
    unpacked,
    whole,
)
from .http_errors import CallFailedError, name_of
from .json_messages import to_json
from .routes import GZIP, coding_of, foreign_host, kind_of, refusal_of, two_lengths

if TYPE_CHECKING:
    from google.rpc import status_pb2

    from ...observe.recorder import Recorder
    from ...settings.server_settings import ServerSettings
    from ..authentication import Authenticator
    from .routes import Route

_TIMEOUT = "connect-timeout-ms"
_MAX_TIMEOUT_DIGITS = 10


class HttpApp:
    """Serves the methods as an ASGI application.

    Args:
        routes: The methods by path.
        settings: The settings of the server.
        authenticator: Identifies callers.
        recorder: Records refused requests; the interceptors record calls.
    """

    def __init__(
        self,
        routes: Mapping[str, Route],
        settings: ServerSettings,
        authenticator: Authenticator,
        recorder: Recorder,
    ) -> None:
        self._routes = routes
        self._recorder = recorder
        self._limit = settings.max_message_bytes
        self._authenticator = authenticator
        self._open = describes_itself(settings, settings.http_host)
        # A web page can make its reader's browser call a server that needs no key. Over TLS, the
        # browser checks the server's name itself.
        self._checks_host = authenticator.serves_anyone and not settings.tls_cert
        self._names = settings.own_names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        exchange, (path, host) = Exchange.of(scope, send), target_of(scope)
        # All checks come before the body is read.
        refusal = two_lengths(exchange)
        refusal = refusal or refusal_of(exchange, scope["method"], path, self._routes)
        if refusal is None and self._checks_host:
            refusal = foreign_host(host or exchange.header("host"), self._names)
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
            if (seconds := _retry_after(err)) is None:
                raise
        await asyncio.sleep(seconds)


def _retry_after(error: CallFailedError) -> float | None:
    retry = error_details_pb2.RetryInfo()
    if not any(detail.Unpack(retry) for detail in error.status.details):
        return None
    return float(retry.retry_delay.ToNanoseconds() / 1e9)


async def _kept(
    raws: AsyncGenerator[bytes, None], seen: list[bytes]
) -> AsyncGenerator[bytes, None]:
    async for raw in raws:
        seen.append(raw)
        yield raw


async def _once(raw: bytes) -> AsyncGenerator[bytes, None]:
    yield raw
