"""Requests as bytes: their fields are counted and memory is reserved before they are parsed.

Two bytes on the wire can become a hundred in memory: twenty million empty items took 1.7 GB. The
number of fields is what a message costs, and counting stops at a limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from ..access import CallMemory
from ..errors import InvalidInputError, OverloadedError

_MessageT = TypeVar("_MessageT", bound=Message)

Plan: TypeAlias = "Mapping[int, Plan]"
"""Tag of each field that is a message -> the plan of that message."""

# Wire types of protobuf's encoding.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Bytes of the longest varint, of 64 bits with 7 in each byte.
_MAX_VARINT = 10

# Smaller messages are not counted: they become 2.6 MB at most, and counting them would cost a
# tenth of the throughput of streams.
_COUNTED_BYTES = 1 << 16
# Larger messages are counted in a thread, so that the event loop keeps serving other calls.
_THREAD_BYTES = 1 << 18
# 10,000 items with 100 fields each.
_MAX_FIELDS = 1_000_000
# Memory for each byte of a message with ordinary items, including the values made of it.
_FACTOR = 8
# How long a stream waits for memory before it is refused.
_WAITS = 100
_WAIT_SECONDS = 0.1


# What protobuf's parsers raise.
_UNREADABLE = (DecodeError, ValueError, RecursionError)
_NOT_A_MESSAGE = "the bytes are not a message of this method"


class MalformedBytesError(ValueError):
    """The bytes are not a message."""


class TooManyFieldsError(ValueError):
    """The message has more fields than the limit."""


class Form(Protocol):
    """The encoding of one method's messages."""

    field_bytes: ClassVar[int]
    """Maximum memory of a field, in bytes."""

    @property
    def builds(self) -> bool:
        """Whether messages are parsed here; otherwise the method receives bytes."""

    def count(self, raw: bytes, most: int) -> int:
        """Return the number of fields, without building objects for them.

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
        parse: Parses a message, or None if the method takes bytes.
    """

    # Measured on every kind of field: at most 90 bytes as a message, and about as many as a value.
    field_bytes: ClassVar[int] = 180

    def __init__(self, parse: Callable[[bytes], Any] | None) -> None:
        self._parse = parse
        message = getattr(parse, "__self__", None)
        descriptor = getattr(message, "DESCRIPTOR", None)
        self._plan: Plan = plan_of(descriptor) if descriptor is not None else {}

    @property
    def builds(self) -> bool:
        """Whether messages are parsed here."""
        return self._parse is not None

    def count(self, raw: bytes, most: int) -> int:
        """Return the number of fields."""
        return count_fields(raw, self._plan, most)

    async def parse(self, raw: bytes) -> Any:
        """Return the message, or its bytes if the method takes bytes."""
        if self._parse is None:
            return raw
        try:
            return self._parse(raw)
        except _UNREADABLE:
            raise malformed(_NOT_A_MESSAGE) from None


class RequestReader:
    """Reads the messages of one method.

    Args:
        form: How they are written.
    """

    def __init__(self, form: Form) -> None:
        self._form = form

    async def only(self, raw: bytes, memory: CallMemory) -> Any:
        """Return the message of a unary call.

        Raises:
            InvalidInputError: It is malformed.
            OverloadedError: There is not enough memory for it.
        """
        if len(raw) <= _COUNTED_BYTES:
            memory.take(len(raw) + charged(raw))
        else:
            memory.take(len(raw))
            memory.grow(await self._extra(raw))
        return await self._form.parse(raw)

    async def each(
        self,
        raws: AsyncIterable[bytes],
        memory: CallMemory,
        pace: Callable[[], Awaitable[None]] | None = None,
    ) -> AsyncIterator[Any]:
        """Yield the messages of a stream; reading pauses while there is not enough memory.

        Args:
            raws: The bytes of each message.
            memory: The memory of the call.
            pace: Waits until the caller may send another message.

        Raises:
            InvalidInputError: A message is malformed.
            OverloadedError: There is not enough memory for a message.
        """
        first = True
        async for raw in raws:
            # The first message was counted when the call was admitted.
            if not first and pace is not None:
                await pace()
            first = False
            size = len(raw)
            size += await self._extra(raw)
            await _take(memory, size)
            yield await self._form.parse(raw)

    async def _extra(self, raw: bytes) -> int:
        """Return the memory that parsing a message takes, in bytes.

        Raises:
            InvalidInputError: The message is malformed, or has too many fields.
        """
        if len(raw) <= _COUNTED_BYTES or not self._form.builds:
            return _FACTOR * len(raw)
        if len(raw) <= _THREAD_BYTES:
            return counted(raw, self._form)
        return await asyncio.to_thread(counted, raw, self._form)

    async def parsed(self, raw: bytes, memory: CallMemory) -> Any:
        """Parse a message that the call received as bytes and already holds memory for.

        Raises:
            InvalidInputError: It is malformed.
            OverloadedError: There is not enough memory to parse it.
        """
        if len(raw) > _COUNTED_BYTES:
            memory.grow(max(0, await self._extra(raw) - charged(raw)))
        return await self._form.parse(raw)


def read_message(kind: type[_MessageT], raw: bytes, most_bytes: int | None = None) -> _MessageT:
    """Return a message after counting its fields, as worker processes do.

    Args:
        kind: The type of the message.
        raw: Its bytes.
        most_bytes: Maximum memory for it; by default only the number of fields is limited.

    Raises:
        InvalidInputError: The bytes are malformed, or have too many fields.
        MoreMemoryError: Parsing needs more memory.
    """
    if len(raw) > _COUNTED_BYTES:
        size = counted(raw, ProtobufForm(kind.FromString))
        if most_bytes is not None and size > most_bytes:
            raise MoreMemoryError(size)
    try:
        return kind.FromString(raw)
    except _UNREADABLE:
        raise malformed(_NOT_A_MESSAGE) from None


class MoreMemoryError(Exception):
    """A message needs more memory than its call holds.

    Args:
        size: The memory that it needs, in bytes.
    """

    def __init__(self, size: int) -> None:
        super().__init__(f"the message needs {size} bytes of memory")
        self.size = size


def charged(raw: bytes) -> int:
    """Return the memory that is reserved for a message that is not parsed here, in bytes."""
    return _FACTOR * len(raw)


def counted(raw: bytes, form: Form) -> int:
    """Return the memory for a message and its fields, in bytes.

    Raises:
        InvalidInputError: The bytes are malformed, or have too many fields.
    """
    try:
        return len(raw) + form.field_bytes * form.count(raw, _MAX_FIELDS)
    except MalformedBytesError as err:
        raise malformed(f"{_NOT_A_MESSAGE}: {err}") from None
    except TooManyFieldsError as err:
        raise InvalidInputError(
            f"{err}; send fewer items in one message", reason="MALFORMED_MESSAGE"
        ) from None


async def _take(memory: CallMemory, size: int) -> None:
    """Take memory, or wait for it: an admitted stream continues when others end."""
    for _ in range(_WAITS):
        try:
            memory.take(size)
        except OverloadedError as err:
            if err.retry_after is None:
                raise
            await asyncio.sleep(_WAIT_SECONDS)
        else:
            return
    # The last attempt raises what is wrong.
    memory.take(size)


def malformed(problem: str) -> InvalidInputError:
    """Return the error for bytes that are not a message."""
    return InvalidInputError(
        f"{problem}; use a client of the same release", reason="MALFORMED_MESSAGE"
    )


@cache
def plan_of(descriptor: Descriptor) -> Plan:
    """Return which fields of a message are messages themselves, at every depth."""
    return _plan(descriptor, {})


def _plan(descriptor: Descriptor, made: dict[str, dict[int, Plan]]) -> Plan:
    if (known := made.get(descriptor.full_name)) is not None:
        return known
    # Kept before its fields are read, since a message may contain its own kind.
    plan = made[descriptor.full_name] = {}
    for field in descriptor.fields:
        if field.type == FieldDescriptor.TYPE_MESSAGE and field.message_type is not None:
            plan[field.number << 3 | _BYTES] = _plan(field.message_type, made)
    return plan


def leading_field(data: bytes) -> bytes | None:
    """Return the bytes of a message's first field if it is a message with the number 1."""
    if not data or data[0] != (1 << 3 | _BYTES):
        return None
    try:
        size, begin = _varint(data, 1)
    except (IndexError, MalformedBytesError):
        return None
    return data[begin : begin + size] if begin + size <= len(data) else None


def count_fields(data: bytes, plan: Plan, most: int) -> int:
    """Return the number of fields of a message, including those of nested messages.

    This is the hot loop of large messages, so that tags and lengths of one byte are read inline.

    Args:
        data: The bytes.
        plan: See :func:`plan_of`.
        most: The limit.

    Raises:
        MalformedBytesError: The bytes are not a message.
        TooManyFieldsError: There are more than ``most`` fields.
    """
    outer: list[tuple[Plan, int]] = []
    position, end, count = 0, len(data), 0
    try:
        while True:
            if position >= end:
                if not outer:
                    break
                plan, end = outer.pop()
                continue
            tag = data[position]
            position += 1
            if tag > 127:
                tag, position = _varint(data, position - 1)
            count += 1
            if count > most:
                raise TooManyFieldsError(f"the message has more than {most:,} fields")
            kind = tag & 7
            if kind == _BYTES:
                size = data[position]
                position += 1
                if size > 127:
                    size, position = _varint(data, position - 1)
                stop = position + size
                if stop > end:
                    raise MalformedBytesError("a field is longer than its message")
                if (inner := plan.get(tag)) is None:
                    position = stop
                else:
                    outer.append((plan, end))
                    plan, end = inner, stop
            else:
                position = _after_scalar(data, position, kind)
                if position > end:
                    raise MalformedBytesError("a field is longer than its message")
    except IndexError:
        raise MalformedBytesError("the message is cut off") from None
    return count


def _after_scalar(data: bytes, position: int, kind: int) -> int:
    if kind == _VARINT:
        return _varint(data, position)[1]
    if kind == _FIXED64:
        return position + 8
    if kind == _FIXED32:
        return position + 4
    raise MalformedBytesError("groups, which no client sends")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a number and the position after it."""
    number = 0
    for shift in range(0, 7 * _MAX_VARINT, 7):
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
    raise MalformedBytesError("a number has more than ten bytes")
