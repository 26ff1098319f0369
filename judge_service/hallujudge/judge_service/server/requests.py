"""Requests as bytes: counted and admitted first, then parsed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any, ClassVar, Protocol

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

__all__ = ["Form", "ProtobufForm", "RequestReader", "malformed"]

# Smaller messages are not counted: the worst of them becomes 2.6 MB, and counting would cost a
# tenth of the throughput of streams.
_COUNTED_BYTES = 1 << 16
# Larger messages are counted in a thread, so that other calls are served meanwhile.
_THREAD_BYTES = 1 << 18
# 10,000 items with 100 fields each.
_MAX_FIELDS = 1_000_000
# What a message of ordinary items becomes, per byte, with its values.
_FACTOR = 8
# How long a stream waits for memory before it is refused.
_WAITS = 100
_WAIT_SECONDS = 0.1


class Form(Protocol):
    """How the messages of one method are written as bytes."""

    field_bytes: ClassVar[int]
    """What becomes of a field in memory, at most, in bytes."""

    def count(self, raw: bytes, most: int) -> int:
        """Return the number of fields, before anything is built for them.

        Raises:
            MalformedBytesError: The bytes are not a message.
            TooManyFieldsError: There are more than ``most``.
        """

    async def parse(self, raw: bytes) -> Any:
        """Return the message.

        Raises:
            InvalidInputError: The bytes are not a message of the method.
        """


class ProtobufForm:
    """Messages in the binary form of protobuf, as gRPC sends them.

    Args:
        parse: Builds a message of the bytes; None: bytes are what the method takes.
    """

    # Measured on every kind of field: at most 90 bytes as messages, and about as many as values.
    field_bytes: ClassVar[int] = 180

    def __init__(self, parse: Callable[[bytes], Any] | None) -> None:
        self._parse = parse
        message = getattr(parse, "__self__", None)
        descriptor = getattr(message, "DESCRIPTOR", None)
        self._plan: Plan = plan_of(descriptor) if descriptor is not None else {}

    def count(self, raw: bytes, most: int) -> int:
        """Return the number of fields."""
        return count_fields(raw, self._plan, most)

    async def parse(self, raw: bytes) -> Any:
        """Return the message."""
        if self._parse is None:
            return raw
        try:
            return self._parse(raw)
        except (DecodeError, ValueError, RecursionError):
            raise malformed("the bytes are not a message of this method") from None


class RequestReader:
    """Reads the messages of one method.

    Args:
        form: How they are written.
    """

    def __init__(self, form: Form) -> None:
        self._form = form

    async def only(self, raws: AsyncIterable[bytes], memory: CallMemory) -> Any:
        """Return the one message of a unary call.

        Raises:
            InvalidInputError: There is none, or it is malformed.
            OverloadedError: There is no memory for it.
        """
        async for raw in raws:
            memory.take(len(raw))
            memory.grow(await self._extra(raw))
            return await self._form.parse(raw)
        raise malformed("the call has no message")

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
            yield await self._form.parse(raw)

    async def _extra(self, raw: bytes) -> int:
        """Return what is made of the bytes of a message, in bytes.

        Raises:
            InvalidInputError: They are malformed, or have too many fields.
        """
        if len(raw) <= _COUNTED_BYTES:
            return _FACTOR * len(raw)
        try:
            if len(raw) <= _THREAD_BYTES:
                count = self._form.count(raw, _MAX_FIELDS)
            else:
                count = await asyncio.to_thread(self._form.count, raw, _MAX_FIELDS)
        except MalformedBytesError as err:
            raise malformed(f"the bytes are not a message of this method: {err}") from None
        except TooManyFieldsError as err:
            raise InvalidInputError(
                f"{err}; send fewer items in one message", reason="MALFORMED_MESSAGE"
            ) from None
        return len(raw) + self._form.field_bytes * count


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


def malformed(problem: str) -> InvalidInputError:
    """Return the error for bytes that are not a message."""
    return InvalidInputError(
        f"{problem}; use a client of the same release", reason="MALFORMED_MESSAGE"
    )
