"""One request: its method, its call, and its response, as an ASGI application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeAlias

from google.rpc import code_pb2, status_pb2

from ...wire.errors import status_of
from ..failures import internal_error
from ..observed import REQUEST_ID, request_id
from .bodies import Body, Receive, lines_of, whole
from .context import CallFailedError, HttpContext, peer_of
from .json_form import to_json
from .routes import Route
from .statuses import error_body, error_headers, http_status

__all__ = ["HttpApp"]

_Scope: TypeAlias = "MutableMapping[str, Any]"
_Send: TypeAlias = "Callable[[MutableMapping[str, Any]], Awaitable[None]]"
_Headers: TypeAlias = "list[tuple[str, str]]"

JSON = "application/json"
LINES = "application/x-ndjson"


class HttpApp:
    """Serves the methods.

    Args:
        routes: The methods by path.
        max_message_bytes: The maximum size of a message.
    """

    def __init__(self, routes: Mapping[str, Route], max_message_bytes: int) -> None:
        self._routes = routes
        self._limit = max_message_bytes

    async def __call__(self, scope: _Scope, receive: Receive, send: _Send) -> None:
        """Serve one request."""
        exchange = _Exchange.of(scope, send)
        route = self._routes.get(scope["path"])
        if (refusal := _refusal(scope, exchange, route)) is not None:
            await exchange.refuse(*refusal)
            return
        assert route is not None, "a path without a method is refused"
        body = Body(receive)
        await _while_followed(body, self._serve(route, exchange, body))

    async def _serve(self, route: Route, exchange: _Exchange, body: Body) -> None:
        raws = (lines_of if route.many else whole)(body, self._limit)
        try:
            if route.stream:
                await _streamed(route.call(raws, exchange.context), exchange)
            else:
                response = await route.call(raws, exchange.context)
                await exchange.respond(200, JSON, await to_json(response))
        except CallFailedError as err:
            await exchange.fail(err.status)
        except Exception as err:
            await exchange.fail(status_of(internal_error(err)))


async def _while_followed(body: Body, serving: Any) -> None:
    """Serve until the response is sent or the client has gone."""
    call = asyncio.ensure_future(serving)
    following = asyncio.ensure_future(body.follow())
    try:
        await asyncio.wait({call, following}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (call, following):
            task.cancel()
        await asyncio.gather(call, following, return_exceptions=True)


async def _streamed(responses: AsyncGenerator[Any, None], exchange: _Exchange) -> None:
    """Send each message as a line. What fails after the first line is told in the last one."""
    async with aclosing(responses):
        async for response in responses:
            line = await to_json(response) + b"\n"
            if not exchange.begun:
                await exchange.begin(200, LINES)
            await exchange.part(line)
    if not exchange.begun:
        await exchange.begin(200, LINES)
    await exchange.part(b"", more=False)


def _refusal(
    scope: _Scope, exchange: _Exchange, route: Route | None
) -> tuple[int, int, str, _Headers] | None:
    """Return why a request is not a call: HTTP status, code, message, headers."""
    if route is None:
        text = "there is no such method; /openapi.json lists them"
        return 404, code_pb2.UNIMPLEMENTED, text, []
    if scope["method"] != "POST":
        return 405, code_pb2.UNIMPLEMENTED, "send a POST request", [("allow", "POST")]
    wanted = LINES if route.many else JSON
    kind = exchange.header("content-type").partition(";")[0].strip().lower()
    if kind != wanted:
        text = f"the content type is {kind!r:.80}; send {wanted}"
        return 415, code_pb2.INVALID_ARGUMENT, text, [("accept-post", wanted)]
    if (coding := exchange.header("content-encoding").strip().lower()) not in ("", "identity"):
        text = f"the content encoding is {coding!r:.80}; send the body as it is"
        return 415, code_pb2.UNIMPLEMENTED, text, [("accept-encoding", "identity")]
    return None


@dataclass(slots=True, kw_only=True)
class _Exchange:
    """A request's context, and its response."""

    context: HttpContext
    send: _Send
    begun: bool = False

    @classmethod
    def of(cls, scope: _Scope, send: _Send) -> _Exchange:
        headers = [
            (name.decode("latin-1"), text.decode("latin-1")) for name, text in scope["headers"]
        ]
        given = request_id(headers)
        metadata = [(name, text) for name, text in headers if name != REQUEST_ID]
        context = HttpContext(
            metadata=(*metadata, (REQUEST_ID, given)),
            address=peer_of(scope["client"]),
            certificate=scope.get("state", {}).get("certificate", {}),
        )
        return cls(context=context, send=send)

    def header(self, name: str) -> str:
        """Return a header of the request; empty: it has none."""
        return next((text for known, text in self.context.metadata if known == name), "")

    async def refuse(self, http: int, code: int, message: str, headers: _Headers) -> None:
        """Answer what is not a call."""
        status = status_pb2.Status(code=code, message=message)
        await self.respond(http, JSON, error_body(status), headers)

    async def fail(self, status: status_pb2.Status) -> None:
        """Tell of an error: by the HTTP status, or in the last line of a stream."""
        if not self.begun:
            headers = error_headers(status)
            await self.respond(http_status(status), JSON, error_body(status), headers)
            return
        await self.part(b'{"error": ' + error_body(status) + b"}\n", more=False)

    async def respond(
        self, status: int, kind: str, body: bytes, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Send a whole response."""
        await self.begin(status, kind, [*headers, ("content-length", str(len(body)))])
        await self.part(body, more=False)

    async def begin(self, status: int, kind: str, headers: Sequence[tuple[str, str]] = ()) -> None:
        """Send the head of a response."""
        self.begun = True
        head = [("content-type", kind), (REQUEST_ID, self.header(REQUEST_ID)), *headers]
        encoded = [(name.encode(), text.encode()) for name, text in head]
        await self.send({"type": "http.response.start", "status": status, "headers": encoded})

    async def part(self, data: bytes, *, more: bool = True) -> None:
        """Send a part of a response's body."""
        await self.send({"type": "http.response.body", "body": data, "more_body": more})
