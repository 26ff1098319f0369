"""An HTTP request and its response: headers, context for the methods, body, and errors.

Errors are a status, headers, and JSON in the form of the Connect protocol.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import zlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import aclosing
from typing import Any, NoReturn, TypeAlias

import grpc
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from msgspec import Struct, structs

from ...errors import InvalidInputError
from ..authentication import peer_of
from ..observation import REQUEST_ID, request_id
from ..request_reader import malformed

HTTP_STATUSES: Mapping[str, int] = {
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DATA_LOSS": 500,
    "UNAUTHENTICATED": 401,
}
"""gRPC status -> HTTP status, as the Connect protocol defines it."""
# HTTP has a status of its own for this INVALID_ARGUMENT.
_BY_REASON: Mapping[str, int] = {"MESSAGE_TOO_LARGE": 413}
_NAMES = {code.value[0]: code.name for code in grpc.StatusCode}
_DETAIL_TYPES: tuple[type[Message], ...] = (
    error_details_pb2.ErrorInfo,
    error_details_pb2.BadRequest,
    error_details_pb2.RetryInfo,
)


def http_status(status: status_pb2.Status) -> int:
    """Return the HTTP status of an error."""
    info = detail_of(status, error_details_pb2.ErrorInfo())
    return _BY_REASON.get(info.reason) or HTTP_STATUSES[name_of(status)]


def error_headers(status: status_pb2.Status) -> list[tuple[str, str]]:
    """Return the headers by which clients know when to retry or how to authenticate."""
    headers = []
    retry = detail_of(status, error_details_pb2.RetryInfo())
    if retry.HasField("retry_delay"):
        seconds = math.ceil(retry.retry_delay.ToNanoseconds() / 1e9)
        headers.append(("retry-after", str(seconds)))
    if name_of(status) == "UNAUTHENTICATED":
        # HTTP requires this header with 401 (RFC 9110, section 11.6.1).
        headers.append(("www-authenticate", "Bearer"))
    return headers


def error_body(status: status_pb2.Status) -> bytes:
    """Return an error as JSON. Each detail is packed, and readable under ``debug``."""
    body: dict[str, Any] = {"code": _connect_name(status), "message": status.message}
    if status.details:
        body["details"] = [_shown(detail) for detail in status.details]
    return json.dumps(body, ensure_ascii=False).encode()


def _shown(detail: Packed) -> dict[str, Any]:
    # The Connect protocol uses base64 without padding.
    value = base64.b64encode(detail.value).decode().rstrip("=")
    shown: dict[str, Any] = {"type": detail.type_url.rpartition("/")[2], "value": value}
    for kind in _DETAIL_TYPES:
        if shown["type"] == kind.DESCRIPTOR.full_name:
            shown["debug"] = json_format.MessageToDict(kind.FromString(detail.value))
    return shown


def detail_of(status: status_pb2.Status, message: Any) -> Any:
    """Return a detail of an error; the message as it is given if the error has none."""
    for detail in status.details:
        if detail.Unpack(message):
            break
    return message


def name_of(status: status_pb2.Status) -> str:
    """Return the name of an error's status code."""
    return _NAMES.get(status.code, "UNKNOWN")


def _connect_name(status: status_pb2.Status) -> str:
    name = name_of(status)
    # The Connect protocol spells this code with one l.
    return "canceled" if name == "CANCELLED" else name.lower()


class CallFailedError(Exception):
    """A call ended with a status that is not OK.

    Args:
        status: The status.
    """

    def __init__(self, status: status_pb2.Status) -> None:
        super().__init__(status.message)
        self.status = status


Scope: TypeAlias = "MutableMapping[str, Any]"
Send: TypeAlias = "Callable[[MutableMapping[str, Any]], Awaitable[None]]"
Headers: TypeAlias = "Sequence[tuple[str, str]]"
Receive: TypeAlias = "Callable[[], Awaitable[MutableMapping[str, Any]]]"
_Metadata: TypeAlias = "tuple[tuple[str, str | bytes], ...]"

# Responses are sent in parts: a connection buffers about one part that the client has not read.
_PART_BYTES = 1 << 18

JSON = "application/json"
# Not Connect's own streams: curl and jq can't read their binary envelopes.
LINES = "application/x-ndjson"
PROTO = "application/proto"

# A byte of gzip can become a thousand, so that the size is checked after each piece.
_PIECE = 1 << 16
# zlib's window size for gzip with its header.
_GZIP = 31

# The trailer that carries the packed status.
_DETAILS = "grpc-status-details-bin"


class Exchange(Struct, kw_only=True):
    """A request's headers, and its response."""

    context: HttpContext
    """The request as the authenticator and the methods see it."""
    send: Send
    """Sends an ASGI event of the response."""
    query: str = ""
    """The query of the address."""
    begun: bool = False
    """Whether the head of the response is sent."""
    write_error: Callable[[status_pb2.Status], bytes] = error_body
    """Returns an error as the body of a response."""

    @classmethod
    def of(cls, scope: Scope, send: Send) -> Exchange:
        """Return the exchange of a request, with the request's id or a new one."""
        headers = [
            (name.decode("latin-1"), text.decode("latin-1")) for name, text in scope["headers"]
        ]
        others = (pair for pair in headers if pair[0] != REQUEST_ID)
        context = HttpContext(
            metadata=(*others, (REQUEST_ID, request_id(headers))),
            address=peer_of(scope["client"]),
            certificate=scope.get("state", {}).get("certificate", {}),
        )
        query = scope.get("query_string", b"").decode("latin-1")
        return cls(context=context, send=send, query=query)

    def header(self, name: str) -> str:
        """Return a header of the request, or an empty text."""
        return next((text for known, text in self.context.metadata if known == name), "")

    def headers(self, name: str) -> list[str]:
        """Return all headers of the request with a name."""
        return [text for known, text in self.context.metadata if known == name]

    async def fail(
        self, status: status_pb2.Status, http: int | None = None, headers: Headers = ()
    ) -> None:
        """Send an error, as the HTTP status or as the last line of a stream.

        Args:
            status: The error.
            http: The HTTP status; by default the one of the error.
            headers: Additional headers.
        """
        if self.begun:
            await self.part(b'{"error": ' + self.write_error(status) + b"}\n", more=False)
            return
        known = [*error_headers(status), *headers]
        await self.respond(http or http_status(status), JSON, self.write_error(status), known)

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


class HttpContext(Struct, frozen=True, kw_only=True):
    """The context of an HTTP request.

    It has the methods of ``grpc.aio.ServicerContext`` that this server uses, so that interceptors
    and servicers need not know which protocol a call came over.
    """

    metadata: Sequence[tuple[str, str]]
    """The request's headers."""
    address: str
    """The client's address, in gRPC's notation."""
    certificate: Mapping[str, Sequence[bytes]] = {}
    """The names in the client's certificate."""
    raws: AsyncGenerator[bytes, None] | None = None
    """The body, for a method with a single message."""

    def reading(self, raws: AsyncGenerator[bytes, None]) -> HttpContext:
        """Return the context of a call with a single message."""
        return structs.replace(self, raws=raws)

    async def read(self) -> Any:
        """Return the call's message as bytes, or gRPC's end-of-stream mark."""
        assert self.raws is not None, "the messages of this call are read elsewhere"
        async with aclosing(self.raws) as raws:
            return await anext(raws, grpc.aio.EOF)

    def invocation_metadata(self) -> Sequence[tuple[str, str]]:
        """Return the request's headers."""
        return self.metadata

    def peer(self) -> str:
        """Return the client's address."""
        return self.address

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        """Return the names in the client's certificate."""
        return self.certificate

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: _Metadata = ()
    ) -> NoReturn:
        """End the call.

        Raises:
            CallFailedError: Always.
        """
        packed = dict(trailing_metadata).get(_DETAILS, b"")
        if isinstance(packed, bytes) and packed:
            raise CallFailedError(status_pb2.Status.FromString(packed))
        raise CallFailedError(status_pb2.Status(code=code.value[0], message=details))


class Body:
    """The body of one request.

    Args:
        receive: The next event of the connection.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        # One part is kept here; the connection stops reading when it holds 64 KiB more.
        self._parts: asyncio.Queue[bytes] = asyncio.Queue(1)

    async def follow(self) -> None:
        """Read parts as the method takes them, until the exchange ends or the client has gone."""
        more = True
        while True:
            event = await self._receive()
            if event["type"] == "http.disconnect":
                return
            if part := event.get("body", b""):
                await self._parts.put(part)
            if more and not event.get("more_body", False):
                more = False
                # Empty parts of clients are left out above, so that an empty one can mean the end.
                await self._parts.put(b"")

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the parts of the body as they arrive."""
        while part := await self._parts.get():
            yield part


async def unpacked(parts: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Decompress gzip in small pieces, so that other requests are served in between.

    Raises:
        InvalidInputError: The body is not gzip, or its end is missing.
    """
    unpacker = zlib.decompressobj(_GZIP)
    async for part in parts:
        rest, full = part, True
        while rest or full:
            try:
                piece = unpacker.decompress(rest, _PIECE)
            except zlib.error:
                raise malformed("the body is not gzip, as its content encoding says") from None
            rest, full = unpacker.unconsumed_tail, len(piece) == _PIECE
            yield piece
            await asyncio.sleep(0)
    if not unpacker.eof or unpacker.unused_data:
        raise malformed("the body is not one whole gzip file")


async def whole(parts: AsyncIterable[bytes], limit: int) -> AsyncGenerator[bytes, None]:
    """Yield the body as a single message.

    Raises:
        InvalidInputError: It is larger than the limit.
    """
    data = bytearray()
    async for part in parts:
        data += part
        _check(len(data), limit)
    yield bytes(data)


async def lines_of(parts: AsyncIterable[bytes], limit: int) -> AsyncGenerator[bytes, None]:
    """Yield each non-empty line of the body as soon as it is complete.

    Raises:
        InvalidInputError: A line is larger than the limit.
    """
    rest = bytearray()
    async for part in parts:
        *ends, last = part.split(b"\n")
        for end in ends:
            # Before they are joined: a line without an end must not fill the memory.
            _check(len(rest) + len(end), limit)
            if line := bytes(rest + end).strip():
                yield line
            rest.clear()
        rest += last
        _check(len(rest), limit)
    if line := bytes(rest).strip():
        yield line


def _check(size: int, limit: int) -> None:
    if size > limit:
        raise InvalidInputError(
            f"the message is larger than {limit:,} bytes; send fewer or shorter items in one "
            "message, or raise the server's setting limits.max_message_bytes",
            reason="MESSAGE_TOO_LARGE",
            metadata={"limit": str(limit)},
        )
