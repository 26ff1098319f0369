"""The body of a request: bounded, read as the method asks for it, and watched for its end."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    MutableMapping,
)
from typing import Any, TypeAlias

from ...errors import InvalidInputError
from ..requests import malformed

__all__ = ["Body", "Receive", "lines_of", "unpacked", "whole"]

Receive: TypeAlias = "Callable[[], Awaitable[MutableMapping[str, Any]]]"

# A byte of gzip can become a thousand: so much is unpacked before its size is looked at.
_PIECE = 1 << 16
_GZIP = 31
"""zlib's number for gzip with its header."""


class Body:
    """The body of one request.

    Args:
        receive: The next event of the connection.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        # One part is held beside those of the connection, which stops reading after 64 KiB.
        self._parts: asyncio.Queue[bytes] = asyncio.Queue(1)

    async def follow(self) -> None:
        """Read as the method asks for it, until the client has gone or has the response."""
        more = True
        while True:
            event = await self._receive()
            if event["type"] == "http.disconnect":
                return
            if part := event.get("body", b""):
                await self._parts.put(part)
            if more and not event.get("more_body", False):
                more = False
                await self._parts.put(b"")

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the parts of the body, as they come."""
        while part := await self._parts.get():
            yield part


async def unpacked(parts: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield what gzip packed, in small pieces; other requests are served between them.

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
    """Yield the body as the one message of a call.

    Raises:
        InvalidInputError: It is larger than the limit.
    """
    data = bytearray()
    async for part in parts:
        data += part
        _check(len(data), limit)
    yield bytes(data)


async def lines_of(parts: AsyncIterable[bytes], limit: int) -> AsyncGenerator[bytes, None]:
    """Yield each line of the body, without empty ones, as soon as it is there.

    Raises:
        InvalidInputError: A line is larger than the limit.
    """
    rest = bytearray()
    async for part in parts:
        *ends, last = part.split(b"\n")
        for end in ends:
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
            "message, or raise the server's setting max_message_bytes",
            reason="MESSAGE_TOO_LARGE",
            metadata={"limit": str(limit)},
        )
