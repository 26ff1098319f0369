"""Requests as bytes: their fields are counted and memory is reserved before they are parsed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from functools import cache
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from ..access.memory import CallMemory
from ..errors import InvalidInputError, OverloadedError

Plan: TypeAlias = "Mapping[int, Plan]"
"""Tag of each field that is a message -> the same of that message."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT = 10


class MalformedBytesError(ValueError):
    """The bytes are not a message."""


class TooManyFieldsError(ValueError):
    """The message has more fields than the limit."""


@cache
def plan_of(descriptor: Descriptor) -> Plan:
    """Return which fields of a message are messages themselves, at every depth."""
    return _plan(descriptor, {})


def _plan(descriptor: Descriptor, made: dict[str, dict[int, Plan]]) -> Plan:
    if (known := made.get(descriptor.full_name)) is not None:
        return known
    plan = made[descriptor.full_name] = {}
    for field in descriptor.fields:
        if field.type == FieldDescriptor.TYPE_MESSAGE and field.message_type is not None:
            plan[field.number << 3 | _BYTES] = _plan(field.message_type, made)
    return plan


def leading_field(data: bytes, number: int) -> bytes | None:
    """Return the bytes of a message's first field if it is a message with this number.

    Args:
        data: The message.
        number: The number, up to 15.
    """
    if not data or data[0] != (number << 3 | _BYTES):
        return None
    try:
        size, begin = _varint(data, 1)
    except (IndexError, MalformedBytesError):
        return None
    return data[begin : begin + size] if begin + size <= len(data) else None


def count_fields(data: bytes, plan: Plan, most: int) -> int:
    """Return the number of fields of a message, with those of the messages in it.

    This is the hot loop of large messages: tags and lengths of one byte take no function call.

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


_MessageT = TypeVar("_MessageT", bound=Message)

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

    @property
    def builds(self) -> bool:
        """Whether messages are built here; otherwise their bytes go on."""
        ...

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

    @property
    def builds(self) -> bool:
        """Whether messages are built here."""
        return self._parse is not None

    def count(self, raw: bytes, most: int) -> int:
        """Return the number of fields."""
        return count_fields(raw, self._plan, most)

    async def parse(self, raw: bytes) -> Any:
        """Return the message."""
        return self.message(raw)

    def message(self, raw: bytes) -> Any:
        """Return the message.

        Raises:
            InvalidInputError: The bytes are not a message of the method.
        """
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

    async def only(self, raw: bytes, memory: CallMemory) -> Any:
        """Return the one message of a unary call.

        Raises:
            InvalidInputError: It is malformed.
            OverloadedError: There is no memory for it.
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
        if len(raw) <= _COUNTED_BYTES or not self._form.builds:
            return _FACTOR * len(raw)
        if len(raw) <= _THREAD_BYTES:
            return _counted(raw, self._form)
        return await asyncio.to_thread(_counted, raw, self._form)

    async def parsed(self, raw: bytes, memory: CallMemory) -> Any:
        """Return the message of bytes that a call has received, and holds memory for, as bytes.

        Raises:
            InvalidInputError: They are malformed.
            OverloadedError: There is no memory for what is made of them.
        """
        if len(raw) > _COUNTED_BYTES:
            memory.grow(max(0, await self._extra(raw) - charged(raw)))
        return await self._form.parse(raw)


def read_message(kind: type[_MessageT], raw: bytes, most_bytes: int | None = None) -> _MessageT:
    """Return a message after counting its fields, as worker processes do.

    Args:
        kind: The type of the message.
        raw: Its bytes.
        most_bytes: The memory that may be made of them; None: no limit but that of fields.

    Raises:
        InvalidInputError: The bytes are malformed, or have too many fields.
        MoreMemoryError: They need more memory.
    """
    form = ProtobufForm(kind.FromString)
    if len(raw) > _COUNTED_BYTES:
        size = _counted(raw, form)
        if most_bytes is not None and size > most_bytes:
            raise MoreMemoryError(size)
    message: _MessageT = form.message(raw)
    return message


class MoreMemoryError(Exception):
    """A message needs more memory than its call holds.

    Args:
        size: What it needs, in bytes.
    """

    def __init__(self, size: int) -> None:
        super().__init__(f"the message needs {size} bytes of memory")
        self.size = size


def charged(raw: bytes) -> int:
    """Return what a call holds for a message that is not parsed here, in bytes."""
    return _FACTOR * len(raw)


def _counted(raw: bytes, form: Form) -> int:
    """Return what is made of the bytes of a message, in bytes."""
    try:
        return len(raw) + form.field_bytes * form.count(raw, _MAX_FIELDS)
    except MalformedBytesError as err:
        raise malformed(f"the bytes are not a message of this method: {err}") from None
    except TooManyFieldsError as err:
        raise InvalidInputError(
            f"{err}; send fewer items in one message", reason="MALFORMED_MESSAGE"
        ) from None


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
