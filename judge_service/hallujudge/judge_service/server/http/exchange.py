"""One request and its response, without what they mean."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from google.rpc import status_pb2

from ..observed import REQUEST_ID, request_id
from ..peers import peer_of
from .context import HttpContext
from .statuses import error_body, error_headers, http_status

__all__ = ["JSON", "LINES", "PROTO", "Exchange", "Headers", "Scope", "Send"]

Scope: TypeAlias = "MutableMapping[str, Any]"
Send: TypeAlias = "Callable[[MutableMapping[str, Any]], Awaitable[None]]"
Headers: TypeAlias = "Sequence[tuple[str, str]]"

# The connection holds no more than about one part that the client has not read.
_PART_BYTES = 1 << 18

JSON = "application/json"
LINES = "application/x-ndjson"
PROTO = "application/proto"


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A request's headers, and its response."""

    context: HttpContext
    """The request as the door and the methods see it."""
    send: Send
    """Sends an event of the response."""
    begun: bool = False
    """Whether the head of the response is sent."""

    @classmethod
    def of(cls, scope: Scope, send: Send) -> Exchange:
        """Return the exchange of a request; its id is that of the request, or a new one."""
        headers = [
            (name.decode("latin-1"), text.decode("latin-1")) for name, text in scope["headers"]
        ]
        others = (pair for pair in headers if pair[0] != REQUEST_ID)
        context = HttpContext(
            metadata=(*others, (REQUEST_ID, request_id(headers))),
            address=peer_of(scope["client"]),
            certificate=scope.get("state", {}).get("certificate", {}),
        )
        return cls(context=context, send=send)

    def header(self, name: str) -> str:
        """Return a header of the request; empty: it has none."""
        return next((text for known, text in self.context.metadata if known == name), "")

    async def fail(
        self, status: status_pb2.Status, http: int | None = None, headers: Headers = ()
    ) -> None:
        """Tell of an error: by the HTTP status, or in the last line of a stream.

        Args:
            status: The error.
            http: The HTTP status; None: the one of the error.
            headers: Headers besides those of the error.
        """
        if self.begun:
            await self.part(b'{"error": ' + error_body(status) + b"}\n", more=False)
            return
        known = [*error_headers(status), *headers]
        await self.respond(http or http_status(status), JSON, error_body(status), known)

    async def respond(self, status: int, kind: str, body: bytes, headers: Headers = ()) -> None:
        """Send a whole response."""
        await self.begin(status, kind, [*headers, ("content-length", str(len(body)))])
        rest = memoryview(body)
        while len(rest) > _PART_BYTES:
            await self.part(bytes(rest[:_PART_BYTES]))
            rest = rest[_PART_BYTES:]
        await self.part(bytes(rest), more=False)

    async def begin(self, status: int, kind: str, headers: Headers = ()) -> None:
        """Send the head of a response."""
        self.begun = True
        head = [("content-type", kind), (REQUEST_ID, self.header(REQUEST_ID)), *headers]
        encoded = [(name.encode(), text.encode()) for name, text in head]
        await self.send({"type": "http.response.start", "status": status, "headers": encoded})

    async def part(self, data: bytes, *, more: bool = True) -> None:
        """Send a part of a response's body."""
        await self.send({"type": "http.response.body", "body": data, "more_body": more})
