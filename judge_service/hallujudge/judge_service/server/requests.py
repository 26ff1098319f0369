"""Requests as bytes: counted and admitted first, then parsed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any

from google.protobuf.message import DecodeError

from ..access.memory import CallMemory
from ..errors import InvalidInputError, OverloadedError
from ..wire.scan import (
    MalformedBytesError,
    Plan,
    TooManyFieldsError,
    count_fields,
    plan_of,
)

__all__ = ["RequestReader"]

# Smaller messages are not counted: the worst of them becomes 2.6 MB, and counting would cost a
# tenth of the throughput of streams.
_COUNTED_BYTES = 1 << 16
# Larger messages are counted in a thread, so that other calls are served meanwhile.
_THREAD_BYTES = 1 << 18
# 10,000 items with 100 fields each.
_MAX_FIELDS = 1_000_000
# Measured on every kind of field: at most 90 bytes as messages, and about as many as values.
_FIELD_BYTES = 180
# What a message of ordinary items becomes, per byte, with its values.
_FACTOR = 8
# How long a stream waits for memory before it is refused.
_WAITS = 100
_WAIT_SECONDS = 0.1


class RequestReader:
    """Reads the messages of one method.

    Args:
        parse: Builds a message of the bytes; None: bytes are what the method takes.
    """

    def __init__(self, parse: Callable[[bytes], Any] | None) -> None:
        self._parse = parse
        message = getattr(parse, "__self__", None)
        descriptor = getattr(message, "DESCRIPTOR", None)
        self._plan: Plan = plan_of(descriptor) if descriptor is not None else {}

    async def only(self, raws: AsyncIterable[bytes], memory: CallMemory) -> Any:
        """Return the one message of a unary call.

        Raises:
            InvalidInputError: There is none, or it is malformed.
            OverloadedError: There is no memory for it.
        """
        async for raw in raws:
            memory.take(len(raw))
            memory.grow(await self._extra(raw))
            return self._parsed(raw)
        raise _malformed("the call has no message")

    async def each(
        self,
        raws: AsyncIterable[bytes],
        memory: CallMemory,
        pace: Callable[[], Awaitable[None]] | None = None,
    ) -> AsyncIterator[Any]:
        """Yield the messages of a stream. It is read no further while there is no memory.

        Args:
            raws: Their bytes.
            memory: What the call holds.
            pace: Waits until the caller may send another message.

        Raises:
            InvalidInputError: One is malformed.
            OverloadedError: There is no memory for one.
        """
        first = True
        async for raw in raws:
            if not first and pace is not None:
                await pace()
            first = False
            size = len(raw)
            size += await self._extra(raw)
            await _take(memory, size)
            yield self._parsed(raw)

    async def _extra(self, raw: bytes) -> int:
        """Return what is made of the bytes of a message, in bytes.

        Raises:
            InvalidInputError: They are malformed, or have too many fields.
        """
        if len(raw) <= _COUNTED_BYTES:
            return _FACTOR * len(raw)
        try:
            if len(raw) <= _THREAD_BYTES:
                count = count_fields(raw, self._plan, _MAX_FIELDS)
            else:
                count = await asyncio.to_thread(count_fields, raw, self._plan, _MAX_FIELDS)
        except MalformedBytesError as err:
            raise _malformed(f"the bytes are not a message of this method: {err}") from None
        except TooManyFieldsError as err:
            raise InvalidInputError(
                f"{err}; send fewer items in one message", reason="MALFORMED_MESSAGE"
            ) from None
        return len(raw) + _FIELD_BYTES * count

    def _parsed(self, raw: bytes) -> Any:
        if self._parse is None:
            return raw
        try:
            return self._parse(raw)
        except (DecodeError, ValueError, RecursionError):
            raise _malformed("the bytes are not a message of this method") from None


async def _take(memory: CallMemory, size: int) -> None:
    """Take memory, or wait for it: streams that were admitted go on when others end."""
    for _ in range(_WAITS):
        try:
            memory.take(size)
        except OverloadedError as err:
            if err.retry_after is None:
                raise
            await asyncio.sleep(_WAIT_SECONDS)
        else:
            return
    memory.take(size)


def _malformed(problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"{problem}; use a client of the same release", reason="MALFORMED_MESSAGE"
    )
