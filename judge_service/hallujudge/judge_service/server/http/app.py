"""One request: its method, its call, and its response, as an ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from ...errors import DeadlineError, HallujudgeError
from ...wire.errors import status_of
from ..door import describes_itself, is_loopback
from ..failures import internal_error
from ..observed import REQUEST_ID, record_refused
from .bodies import Body, Receive, lines_of, unpacked, whole
from .context import CallFailedError
from .document import openapi_document
from .exchange import JSON, LINES, PROTO, Exchange, Headers, Scope, Send
from .job_results import all_results
from .json_form import to_json
from .refusals import (
    GZIP,
    coding_of,
    crowded,
    foreign_host,
    kind_of,
    refusal_of,
    two_lengths,
)
from .statuses import name_of
from .targets import target_of

if TYPE_CHECKING:
    from google.rpc import status_pb2

    from ...observe.recorder import Recorder
    from ...settings.server import ServerSettings
    from ..door import Door
    from .routes import Route

__all__ = ["HttpApp"]

_TIMEOUT = "connect-timeout-ms"
_MAX_TIMEOUT_DIGITS = 10
# Clients keep connections open between calls, so that there are more of them than calls.
_CONNECTIONS_BY_CALL, _MORE_CONNECTIONS = 4, 1000


class HttpApp:
    """Serves the methods.

    Args:
        routes: The methods by path.
        settings: The settings of the server.
        door: Tells who calls.
        recorder: Where refused requests are recorded; the methods record their calls.
    """

    def __init__(
        self,
        routes: Mapping[str, Route],
        settings: ServerSettings,
        door: Door,
        recorder: Recorder,
    ) -> None:
        self._routes = routes
        self._recorder = recorder
        self._limit = settings.max_message_bytes
        most = settings.max_running_calls + settings.max_waiting_calls
        self._most_connections = _CONNECTIONS_BY_CALL * most + _MORE_CONNECTIONS
        self._door = door
        self._open = describes_itself(settings, settings.http_host)
        # Callers without a key are trusted because they are on this machine.
        self._local = is_loopback(settings.http_host) and not settings.keys_file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        exchange, (path, host) = Exchange.of(scope, send), target_of(scope)
        refusal = crowded(len(scope["state"]["connections"]), self._most_connections)
        refusal = refusal or two_lengths(exchange)
        refusal = refusal or refusal_of(exchange, scope["method"], path, self._routes)
        if refusal is None and self._local:
            refusal = foreign_host(host or exchange.header("host"))
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
            if not self._open:
                self._door.caller_of(context)
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
    call = asyncio.create_task(serving)
    following = asyncio.create_task(body.follow())
    try:
        await asyncio.wait({call, following}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (call, following):
            task.cancel()
        await asyncio.gather(call, following, return_exceptions=True)


async def _streamed(responses: AsyncGenerator[Any, None], exchange: Exchange) -> None:
    """Send each message as a line; the head waits for the first, which may fail."""
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
    """Return the seconds that the client gives the call; None: it says nothing."""
    text = exchange.header(_TIMEOUT)
    if not text.isascii() or not text.isdigit() or len(text) > _MAX_TIMEOUT_DIGITS:
        return None
    return int(text) / 1000
