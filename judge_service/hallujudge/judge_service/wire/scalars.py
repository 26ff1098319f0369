"""Converters of enums, literals and rows of two fields."""

from __future__ import annotations

import enum
from operator import attrgetter
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from .fields import Codec, getter, same
from .hints import MismatchError, ValueField, enum_numbers, members_of, without_none
from .places import MalformedError

__all__ = ["enum_codec", "literal_codec", "pairs_codec", "row_codec"]


def enum_codec(field: ValueField, theirs: FieldDescriptor) -> Codec:
    """Return the converter of an enum.

    Raises:
        MismatchError: The members have different names.
    """
    known = theirs.enum_type
    if known is None:
        raise MismatchError(f"{theirs.full_name} is not an enum")
    numbers = enum_numbers(without_none(field.hint), known)
    members: dict[int, enum.Enum | None] = {number: member for member, number in numbers.items()}
    # By name: the hash of an enum's member is computed in Python.
    by_name = {member.name: number for member, number in numbers.items()}

    def write(member: enum.Enum) -> int:
        return by_name[member._name_]

    if type(None) in members_of(field.hint):
        # A member that a later release adds counts as none.
        return Codec(write, members.get)

    def read(number: int) -> Any:
        if number not in members:
            raise MalformedError(f"{number} is not a known {known.name}")
        return members[number]

    return Codec(write, read)


def literal_codec(literals: tuple[Any, ...], field: ValueField) -> Codec:
    """Return the converter of a text that is one of a few."""

    def read(text: str) -> Any:
        if not text and field.default is not None:
            return field.default()
        if text not in literals:
            raise MalformedError(f"{text!r} is not one of {', '.join(literals)}")
        return text

    return Codec(same, read)


def pairs_codec(key: str, value: str, optional: bool) -> Codec:
    """Return the converter of a mapping to scalars that is sent as rows of two fields."""
    get = attrgetter(key, value)

    def read_optional(rows: Any) -> dict[str, Any]:
        return {
            getattr(row, key): getattr(row, value) if row.HasField(value) else None for row in rows
        }

    return Codec(
        lambda content: [{key: name, value: part} for name, part in content.items()],
        read_optional if optional else lambda rows: dict(map(get, rows)),
    )


def row_codec(row_type: Any, descriptor: Descriptor) -> Codec:
    """Return the converter of a named tuple of scalars, in the order of the message's fields."""
    names = tuple(field.name for field in descriptor.fields)
    optional = [(i, field.name) for i, field in enumerate(descriptor.fields) if field.has_presence]
    get, make = getter(names), row_type._make

    def read(message: Any) -> Any:
        parts = list(get(message))
        for index, name in optional:
            if not message.HasField(name):
                parts[index] = None
        return make(parts)

    return Codec(
        lambda value: dict(zip(names, value, strict=True)),
        read if optional else lambda message: make(get(message)),
    )
