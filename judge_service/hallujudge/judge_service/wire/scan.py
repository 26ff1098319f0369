"""Counts the fields of a message in its bytes, before objects are built for them.

Two bytes on the wire can become a hundred in memory: twenty million empty items took 1.7 GB. The
count is what a message costs, and it stops at a limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor

__all__ = ["MalformedBytesError", "TooManyFieldsError", "count_fields", "leading_field", "plan_of"]

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
